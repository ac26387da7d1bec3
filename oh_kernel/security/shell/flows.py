"""What does a command write: the user's data, a download, decoded text, a secret?"""

import re
from itertools import pairwise

from oh_kernel.security.places import is_secret_path, is_secret_variable
from oh_kernel.security.shell.model import NOTHING, Call, Flow, Kind, Scope, Word, merged
from oh_kernel.security.shell.words import MADE_HERE, unescaped
from oh_kernel.security.tables import names

_SHOWERS = set(
    names(
        """
    cat less more head tail bat batcat nl tac grep egrep fgrep zgrep rg ag ack sed awk gawk mawk
    cut sort uniq xxd od hexdump strings vim vi nvim nano emacs view code open jq yq dasel diff
    cmp column paste join fold fmt pr expand tr rev zcat bzcat xzcat gunzip look base64 base32
    openssl csvlook mlr source-highlight pygmentize glow most dotenv sqlite3 plutil
    """
    )
)
_FILTERS = set(
    names(
        """
    cat tee head tail sed awk gawk grep egrep fgrep rg sort uniq cut tac nl gunzip zcat gzip
    bunzip2 bzcat xz unxz xzcat zstd zstdcat lz4 dos2unix fold fmt paste column pv less more
    sponge envsubst iconv jq yq htmlq pup expand stdbuf xmllint
    """
    )
)
_SCRAMBLERS = set(
    names(
        """
    rev tr base64 base32 basenc xxd uudecode openssl gpg hexdump od uncompress brotli
    """
    )
)
_SHOW_NO_DATA = set(
    names(
        """
    date seq basename dirname nproc uname arch wc md5sum sha1sum sha256sum sha512sum cksum b2sum
    true false test [ which type command sleep pwd uuidgen stat df du free uptime tput getconf
    whoami id groups hostname mktemp realpath readlink docker podman gh huggingface-cli hf npm
    twine aws gcloud az vault python python3 ssh-add gpg-agent kubectl helm
    """
    )
)
_PROCESSES = set(names("ps pgrep pidof top htop lsof fuser ss netstat jobs"))
_LISTINGS = set(names("ls find fd fdfind locate tree git du"))
SHELL_HOOK = "what a tool tells the shell"
_HOOKS = re.compile(
    r"(?:conda|mamba|micromamba|direnv|pyenv|rbenv|nodenv|starship|zoxide|opam|fnm|atuin|mise) .*"
    r"(?:hook|init|env|activate)|ssh-agent|brew shellenv|dircolors|register-python-argcomplete"
)
_HARMLESS_PATTERN = re.compile(
    r"\^?\(?(?:PATH|CUDA|PYTHON|CONDA|VIRTUAL|LANG|LC_|OMP|MKL|NCCL|SLURM|DISPLAY|SHELL|TERM"
    r"|LD_|JAVA"
    r"|XDG|EDITOR|NVIDIA|THREADS|PROXY)[\w|=^()\\-]*",
    re.I,
)


def flow_of_words(words: list[Word]) -> Flow:
    """What is written when `words` are shown."""
    if any(is_secret_variable(name) for word in words for name in word.variables):
        return Flow(Kind.SECRET)
    flow = merged(word.flow for word in words)
    if flow.kind > Kind.TEXT:
        return flow
    if any(word.variables for word in words):
        return Flow(Kind.UNKNOWN)
    return Flow(Kind.TEXT, " ".join(word.text for word in words))


def content_of(word: Word, scope: Scope) -> Flow:
    """What is in the file that `word` names."""
    if word.flow.kind > Kind.PLAIN:
        return word.flow if word.text.startswith("/dev/fd/") else Flow(Kind.DATA)
    if (kept := scope.kept(word.text)) is not None:
        return kept
    if is_secret_path(word.text):
        return Flow(Kind.SECRET)
    if scope.downloaded(word.text):
        return Flow(Kind.DOWNLOAD)
    return NOTHING if word.text in ("/dev/null", "/dev/stdin", "-") else Flow(Kind.DATA)


def output_of(call: Call) -> Flow:
    """What `call` writes to its output."""
    name = call.name
    if name in ("echo", "printf"):
        return _spoken(call)
    if name == "mktemp":
        call.scope.made.add(MADE_HERE)
        return Flow(Kind.PLAIN, MADE_HERE)
    if name in ("env", "printenv", "set", "export", "history"):
        return _environment(call)
    if name in ("curl", "wget", "http", "https", "xh", "aria2c", "fetch", "nc", "ncat", "lynx"):
        return Flow(Kind.DOWNLOAD)
    if _says_only_whether(call):
        return Flow(Kind.PLAIN)
    if name in _PROCESSES:
        return Flow(Kind.PROCESSES)
    if name in _SHOWERS or name in _FILTERS or name in _SCRAMBLERS:
        return _shown(call)
    return _other(call)


def _other(call: Call) -> Flow:
    if call.name in _SHOW_NO_DATA:
        return Flow(Kind.PLAIN)
    if call.name in _LISTINGS:
        return Flow(Kind.LISTING, names=_patterns(call))
    if call.name in ("cd", "mkdir", "touch", "read", "shift", "exit", "return", ":"):
        return NOTHING
    return Flow(Kind.DATA, SHELL_HOOK if _HOOKS.match(call.line) else "")


def _patterns(call: Call) -> tuple[str, ...]:
    """The names that a listing gives, when an option or the words say so."""
    if call.name == "ls":
        return tuple(word.text for word in call.operands() if word.is_wild)
    return sought_names(call)


def sought_names(call: Call) -> tuple[str, ...]:
    """The patterns of names that `find` is given."""
    after = {"-name", "-iname", "-path"}
    return tuple(text for before, text in pairwise(call.texts) if before in after)


def _spoken(call: Call) -> Flow:
    flow = flow_of_words(call.args)
    if flow.kind is not Kind.TEXT:
        return flow
    text = re.sub(r"^(?:-[neE]+ )+", "", flow.text)
    if call.name == "printf":
        text = _printed([word.text for word in call.operands()])
    if re.search(r"\\(?:x[0-9a-fA-F]{2}|0?[0-7]{3}|u[0-9a-fA-F]{4})", text):
        return Flow(Kind.DECODED, unescaped(text))
    return Flow(Kind.TEXT, text)


def _printed(texts: list[str]) -> str:
    if not texts:
        return ""
    filled = re.sub(r"%[-\w.]*?[sbq]", lambda _: texts.pop(1) if len(texts) > 1 else "", texts[0])
    return filled.replace("\\n", "\n").replace("\\t", "\t")


def _environment(call: Call) -> Flow:
    operands = [text for text in call.texts if not text.startswith("-")]
    if call.name == "set":
        return NOTHING if call.args else Flow(Kind.SECRET)
    if call.name == "export":
        return Flow(Kind.SECRET) if call.texts in ([], ["-p"]) else NOTHING
    if call.name == "history":
        return NOTHING if call.has("-c", "-w", "-a") else Flow(Kind.SECRET)
    if call.name == "printenv" and operands:
        secret = any(is_secret_variable(name) for name in operands)
        return Flow(Kind.SECRET if secret else Kind.PLAIN)
    return Flow(Kind.SECRET)


def _says_only_whether(call: Call) -> bool:
    """`grep -q`, `-c` and `-l` tell whether and how often, not what."""
    if call.name in ("grep", "egrep", "fgrep", "rg", "zgrep"):
        return call.has("-q", "-c", "--quiet", "--count", "--silent")
    return (
        call.name == "cut" and call.value("-f") is not None and call.line.endswith(("-f1", "-f 1"))
    )


def _shown(call: Call) -> Flow:
    if call.name in ("sort", "tee") and call.value("-o") is not None:
        return NOTHING
    operands = call.operands(("-n", "-c", "-e", "-f", "-k", "-t", "-d", "-A", "-B", "-C", "-m"))
    files = operands
    if call.name in (
        "grep",
        "egrep",
        "fgrep",
        "rg",
        "zgrep",
        "ag",
        "ack",
        "sed",
        "awk",
        "gawk",
        "jq",
        "yq",
        "tr",
    ):
        files = operands[0 if call.has("-e", "-f", "--regexp") else 1 :] or operands[1:]
        if call.stdin.kind is Kind.SECRET and any(
            _HARMLESS_PATTERN.fullmatch(one.text) for one in operands
        ):
            return Flow(Kind.PLAIN)
    if call.name == "tee":
        files = []
    contents = [content_of(word, call.scope) for word in files]
    flow = merged(contents) if files else call.stdin
    if call.name in ("grep", "rg", "egrep") and call.has("-l", "--files-with-matches"):
        return Flow(Kind.LISTING)
    return _changed(call, flow)


def _changed(call: Call, flow: Flow) -> Flow:
    if flow.kind in (Kind.SECRET, Kind.DOWNLOAD, Kind.NOTHING):
        return flow
    if call.name in _SCRAMBLERS and not _encodes(call):
        return Flow(Kind.DECODED)
    if call.name in ("cat", "tee", "less", "more", "pv", "sponge", "head", "tail", "nl", "tac"):
        return flow
    if flow.kind in (Kind.TEXT, Kind.UNKNOWN):
        return Flow(Kind.DECODED)
    return flow


def _encodes(call: Call) -> bool:
    if call.name in ("base64", "base32"):
        return not call.has("-d", "-D", "--decode", "-i")
    if call.name in ("xxd", "hexdump", "od"):
        return not call.has("-r")
    return call.name in ("openssl", "gpg") and not re.search(
        r"(?:^| )(?:-d|--decrypt|-A)\b", call.line
    )
