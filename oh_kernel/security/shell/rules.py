"""How risky is one simple command? A table of programs, and what holds for all of them."""

import re
from collections.abc import Callable, Iterator

from oh_kernel.security.findings import Finding, capped, high, medium
from oh_kernel.security.places import Place, is_secret_path, is_secret_variable, place_of
from oh_kernel.security.shell import files, git, network, packages, stores, system
from oh_kernel.security.shell.files import written_findings
from oh_kernel.security.shell.model import Call, Flow, Kind, Scope, Word
from oh_kernel.security.tables import names

Rule = Callable[[Call], Iterator[Finding]]

_RULES: dict[str, Rule] = {
    **files.RULES,
    **git.RULES,
    **network.RULES,
    **packages.RULES,
    **stores.RULES,
    **system.RULES,
}
_LOOKS_ONLY = set(
    names(
        """
    ls cat less more head tail bat nl tac grep egrep fgrep rg ag ack zgrep awk gawk cut sort
    uniq tr rev wc file stat tree du df pwd echo printf true false test [ [[ : which type
    whereis man info help tldr whatis date cal uptime uname arch nproc free lscpu lsblk lsusb
    lspci lsmod hostname whoami id groups who w users ps pgrep pidof top htop jobs lsof ss
    netstat nvidia-smi nvtop column diff cmp comm join paste fold fmt pr expand seq basename
    dirname realpath readlink md5sum sha1sum sha256sum sha512sum cksum b2sum xxd od hexdump
    strings jq yq zcat xzcat bzcat zless csvlook csvstat csvcut mlr sleep wait read local
    declare typeset readonly shift return exit break continue set unset shopt alias unalias hash
    history fc dirs getopts let cd pushd popd bc expr factor time tput clear tty locale getconf
    printenv env base64 base32 deactivate export compgen complete command mktemp dmesg
    journalctl last lastlog loginctl getent look cloc tokei scc xmllint pygmentize pdfinfo
    identify exiftool ffprobe h5ls h5dump ncdump parquet-tools numfmt tac shuf tsort yes vmstat
    iostat sar mpstat findmnt blkid dpkg-query ldd nm objdump readelf size zipinfo nvcc
    """
    )
)
_READS_SECRETS = set(
    names(
        """
    cp mv install ln rsync scp tar zip 7z gzip bzip2 xz zstd curl wget nc ncat socat dd mail
    mutt split openssl ssh-keygen gh aws gsutil rclone age
    """
    )
)
_ONLY_SAYS = (
    "--dry-run",
    "--dryrun",
    "--dry_run",
    "--just-print",
    "--whatif",
    "--simulate",
    "--check-only",
)
_ASKS_FOR_HELP = re.compile(r"(?:--version|--help|-V|-version)$")
_OPEN_TO_ALL = re.compile(
    r"(?:^|=)(?:0\.0\.0\.0|\[::\]|::)(?::\d+)?$|^--bind[_-]all$|^--listen$|^--share$"
)
_NO_PASSWORD = re.compile(
    r"(?:token|password|passwd)=(?:''|\"\")?$|^--no-?auth\w*$|^--auth[= ]none$|disable_check_xsrf",
    re.I,
)
_CANNOT_REHEARSE = set(names("rm dd sudo chmod chown find mv cp shred kill pkill"))


def is_known_program(name: str) -> bool:
    """Whether `name` is a program that could do harm."""
    return name.rsplit("/", 1)[-1] in _RULES or name in (
        "eval",
        "bash",
        "sh",
        "sudo",
        "xargs",
        "source",
    )


def findings(call: Call) -> list[Finding]:
    """What `call` does."""
    if len(call.args) == 1 and _ASKS_FOR_HELP.match(call.texts[0]):
        return []
    found = list(_own(call))
    if (
        any(text.split("=")[0] in _ONLY_SAYS for text in call.texts)
        and call.name not in _CANNOT_REHEARSE
    ):
        return capped(found)
    return [*found, *_for_all(call)]


def _own(call: Call) -> Iterator[Finding]:
    rule = _RULES.get(call.name) or _RULES.get(call.name.split(".")[0])
    if rule is not None:
        yield from rule(call)
    elif call.name not in _LOOKS_ONLY and call.name not in call.scope.functions:
        yield medium("runs a program")
        if call.scope.downloaded(call.name):
            yield high("runs what it downloads")
        yield from stores.by_verb(call)


def _for_all(call: Call) -> Iterator[Finding]:
    texts = call.texts
    looks_only = call.name in _LOOKS_ONLY or call.name in (
        "ping",
        "nc",
        "curl",
        "grep",
        "git",
        "find",
    )
    if not looks_only and any(_OPEN_TO_ALL.search(text) for text in texts):
        yield high("opens a server to everybody")
    if not looks_only and any(_NO_PASSWORD.search(text) for text in texts):
        yield high("starts a server without a password")
    if not looks_only and any(
        text.replace("_", "-").startswith("--trust-remote-code") for text in texts
    ):
        yield high("runs code of a model from the network")
    if call.name in _READS_SECRETS and any(_is_used_secret(call, word) for word in call.args):
        yield high("copies or sends credentials")
    if not looks_only and any(
        word.flow.kind is Kind.SECRET or _names_secret(word) for word in call.args
    ):
        yield medium("gives a secret to a program")


def _is_used_secret(call: Call, word: Word) -> bool:
    text = re.sub(r"^[\w-]*=?@|^--[\w-]+=", "", word.text)
    if not is_secret_path(text) or text.startswith("-") or "://" in text:
        return False
    option = call.value("-i", "--key", "--cert", "--cacert", "-E", "--identity", "--exclude", "-e")
    is_target = call.name in ("cp", "mv", "install", "ln") and word is call.args[-1]
    return not (
        is_target
        or (option is not None and option.text == word.text)
        or word.text.startswith("--ex")
    )


def _names_secret(word: Word) -> bool:
    return any(is_secret_variable(name) for name in word.variables)


def writing(target: Word, scope: Scope, flow: Flow, *, appends: bool) -> Iterator[Finding]:
    """What it means that output goes into the file `target`."""
    path = target.text
    if path.startswith(("/dev/tcp/", "/dev/udp/")):
        sends = flow.kind > Kind.TEXT or flow.kind is Kind.NOTHING
        yield high("sends data to another machine") if sends else medium("talks to another machine")
        return
    place = place_of(path)
    if place is Place.TEMPORARY:
        scope.made.add(path)
    if flow.kind is Kind.DOWNLOAD:
        scope.downloads.add(path.removeprefix("./"))
    if place is Place.OUTSIDE and not appends and not scope.is_own(path):
        yield high("overwrites a file outside of the workspace")
    yield from written_findings(path, scope)


def remember(call: Call) -> None:
    """Keep what later commands of the text rely on: fetched files, folders made, where it is."""
    scope = call.scope
    match call.name:
        case "cd" | "pushd":
            _go(call)
        case "mkdir" | "touch":
            scope.made |= {text for text in call.texts if place_of(text) is Place.TEMPORARY}
        case "tee" if call.stdin.kind is not Kind.NOTHING:
            for word in call.operands():
                scope.keep(word.text, call.stdin)
                if call.stdin.kind is Kind.DOWNLOAD:
                    scope.downloads.add(word.text)
        case "read" | "mapfile" | "readarray":
            for word in call.operands(("-p", "-t", "-n", "-d", "-u", "-a")):
                shown = Word(f"${word.text}", call.stdin, (word.text,), is_literal=False)
                scope.variables[word.text] = (shown,)
        case "cp" | "mv" | "install" if len(call.operands()) == 2:
            first, last = (word.text for word in call.operands())
            if scope.downloaded(first):
                scope.downloads.add(last.removeprefix("./"))
            if (kept := scope.kept(first)) is not None:
                scope.keep(last, kept)
        case _:
            scope.downloads |= {name for name in network.fetched(call) if name}


def _go(call: Call) -> None:
    target = call.operands()[0].text if call.operands() else "~"
    scope = call.scope
    if scope.downloaded(target) or place_of(target) in (
        Place.OUTSIDE,
        Place.SYSTEM,
        Place.TEMPORARY,
    ):
        scope.folder = target
    elif target.startswith("/") or target == "-":
        scope.folder = ""
    elif scope.folder:
        scope.folder = f"{scope.folder}/{target}"
