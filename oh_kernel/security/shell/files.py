"""How risky are the commands that delete, move, copy or change files?"""

import re
from collections.abc import Iterator

from oh_kernel.security.findings import Finding, high, medium, rail
from oh_kernel.security.places import (
    CHANGES_HOOKS,
    CHANGES_STARTUP,
    Place,
    is_home_or_root,
    is_store,
    place_of,
)
from oh_kernel.security.shell.flows import sought_names
from oh_kernel.security.shell.model import Call, Kind, Scope, Word

_REMOTE = re.compile(r"^(?:[\w.-]+@)?[\w.-]+:(?!\\)(?!//)")
_OPTIONS = {
    "truncate": ("-s", "-r", "--size"),
    "touch": ("-d", "-r", "-t"),
    "mkdir": ("-m",),
    "ln": ("-t",),
}


def written_findings(path: str, scope: Scope) -> Iterator[Finding]:
    """What it means that `path` is written."""
    match place_of(path):
        case Place.DEVICE:
            yield rail("writes to a device")
        case Place.SYSTEM if not scope.is_own(path):
            yield high("writes to a system folder")
        case Place.STARTUP:
            yield high(CHANGES_STARTUP)
        case Place.HOOK:
            yield rail(CHANGES_HOOKS)
        case Place.NOWHERE:
            return
        case _:
            yield medium("writes a file")


def deleted_findings(words: list[Word], scope: Scope, *, recursive: bool) -> Iterator[Finding]:
    """What it means that what `words` name is deleted."""
    for word in words:
        for path in word.text.split() if word.is_wild and scope.loops else [word.text]:
            yield _deleted(path, word, scope, recursive)


def _deleted(path: str, word: Word, scope: Scope, recursive: bool) -> Finding:
    if recursive and is_home_or_root(path):
        return rail("deletes a home or the whole system")
    if scope.is_own(path):
        return medium("deletes what the same text made")
    place = _from_folder(place_of(path), path, scope)
    if place is Place.REMADE and not word.variables:
        return medium("deletes what is made again")
    if place is Place.HOOK:
        return rail(CHANGES_HOOKS)
    if place is Place.DEVICE or (place is Place.NOWHERE and path != "-"):
        return high("deletes a device")
    if place in (Place.OUTSIDE, Place.SYSTEM, Place.STARTUP, Place.TEMPORARY):
        return high("deletes folders" if recursive else "deletes outside of the workspace")
    if recursive:
        return high("deletes folders")
    if word.is_wild or word.variables or word.flow.kind > Kind.TEXT:
        return high("deletes files that the text does not name one by one")
    return medium("deletes a file")


def _from_folder(place: Place, path: str, scope: Scope) -> Place:
    """A relative path counts from where `cd` went."""
    if (
        place in (Place.WORKSPACE, Place.UNKNOWN)
        and scope.folder
        and not scope.is_own(scope.folder)
    ):
        return place_of(f"{scope.folder}/{path}")
    return place


def _rm(call: Call) -> Iterator[Finding]:
    recursive = call.has("-r", "-R", "--recursive")
    words = call.operands()
    yield from deleted_findings(words, call.scope, recursive=recursive)
    if "--no-preserve-root" in call.texts:
        yield rail("deletes a home or the whole system")
    if not words:
        yield high("deletes folders") if recursive else medium("deletes files")


def _rmdir(call: Call) -> Iterator[Finding]:
    yield medium("removes an empty folder")


def _shred(call: Call) -> Iterator[Finding]:
    yield high("overwrites a file for good")


def _truncate(call: Call) -> Iterator[Finding]:
    for word in call.operands(_OPTIONS["truncate"]):
        if word.is_wild or word.variables or place_of(word.text) is Place.OUTSIDE:
            yield high("empties files that the text does not name one by one")
        yield from written_findings(word.text, call.scope)


def _find(call: Call) -> Iterator[Finding]:
    texts = call.texts
    if "-delete" in texts or "-rmdir" in texts:
        start = next((text for text in texts if not text.startswith(("-", "("))), ".")
        paths = [
            f"{start.rstrip('/')}/{name}".removeprefix("./") for name in sought_names(call) or ["*"]
        ]
        remade = all(place_of(path) is Place.REMADE or call.scope.is_own(path) for path in paths)
        yield (
            medium("deletes what is made again")
            if remade
            else high("deletes every file that is found")
        )
    for option in ("-fprint", "-fprint0", "-fls"):
        if (target := call.value(option)) is not None:
            yield from written_findings(target.text, call.scope)
    if "PRIVATE KEY" in call.line or re.search(r"id_(?:rsa|ed25519|ecdsa)|\.pem\b", call.line):
        yield medium("looks for keys")


def _mv(call: Call) -> Iterator[Finding]:
    *sources, target = [*_sources(call), _target(call)]
    if target.text == "/dev/null":
        yield high("throws files away")
    for word in sources:
        far = place_of(word.text) in (Place.OUTSIDE, Place.SYSTEM, Place.STARTUP)
        if far and not call.scope.is_own(word.text):
            yield high("moves files away from outside of the workspace")
    yield from written_findings(target.text, call.scope)


def _cp(call: Call) -> Iterator[Finding]:
    yield from written_findings(_target(call).text, call.scope)


def _target(call: Call) -> Word:
    folder = call.value("-t", "--target-directory")
    if folder is not None:
        return folder
    words = call.operands()
    return words[-1] if words else Word("")


def _sources(call: Call) -> list[Word]:
    words = call.operands()
    return words if call.value("-t", "--target-directory") is not None else words[:-1]


def _rsync(call: Call) -> Iterator[Finding]:
    rehearsal = call.has("-n", "--dry-run")
    words = call.operands(
        ("-e", "--exclude", "--include", "--rsh", "--filter", "--files-from", "--rsync-path")
    )
    target = words[-1].text if words else ""
    if rehearsal:
        if any(_REMOTE.match(word.text) for word in words):
            yield medium("talks to another machine")
        return
    if any(text.startswith(("--delete", "--del", "--remove-source-files")) for text in call.texts):
        yield high("deletes what is only at the target")
    if is_remote(target):
        yield high("copies files to another machine")
    yield from written_findings(target, call.scope)


def is_remote(text: str) -> bool:
    """Whether a word names a file of another machine, as scp and rsync write it.

    >>> is_remote("alice@host:/tmp/"), is_remote("./a:b"), is_remote("s3://bucket/x")
    (True, False, True)
    """
    if is_store(text) or text.startswith(("rsync://", "scp://", "sftp://")):
        return True
    return bool(_REMOTE.match(text)) and not text.startswith((".", "/"))


def _tar(call: Call) -> Iterator[Finding]:
    first = call.texts[0] if call.texts else ""
    lists = call.has("-t", "--list") or ("t" in first and not re.search(r"[xcru]", first))
    folder = call.value("-C", "--directory", "-d")
    if any(
        re.match(r"--(?:to-command|checkpoint-action=exec|use-compress-program)", one)
        for one in call.texts
    ):
        yield high("runs a program for each file")
    if "--remove-files" in call.texts:
        yield high("deletes what it packs")
    extracts = call.name == "unzip" or call.has("-x", "--extract") or re.match(r"-?\w*x", first)
    if extracts and folder is not None:
        yield from written_findings(folder.text, call.scope)
    if not lists and not (call.name == "unzip" and call.has("-l", "-t", "-v")):
        yield medium("packs or unpacks files")


def _dd(call: Call) -> Iterator[Finding]:
    target = next((text[3:] for text in call.texts if text.startswith("of=")), "-")
    yield from written_findings(target, call.scope)
    if place_of(target) is Place.OUTSIDE:
        yield high("overwrites a file outside of the workspace")
    source = next((text[3:] for text in call.texts if text.startswith("if=")), "")
    if place_of(source) is Place.DEVICE and not re.match(r"/dev/(?:zero|u?random)", source):
        yield high("reads a whole disk")


def _tee(call: Call) -> Iterator[Finding]:
    for word in call.operands():
        yield from written_findings(word.text, call.scope)
        if place_of(word.text) is Place.OUTSIDE and not call.has("-a"):
            yield high("overwrites a file outside of the workspace")


def _sed(call: Call) -> Iterator[Finding]:
    in_place = call.has("-i", "--in-place") or any(
        re.match(r"-i\S+|--in-place", t) for t in call.texts
    )
    scripts = [word.text for word in call.operands()[:1]]
    if any(re.search(r"^\d*e\s+\w|/e\s*$|;\s*e\s+\w", script) for script in scripts):
        yield high("runs commands from a script of sed")
    if in_place:
        for word in call.operands()[1:] or [Word("file")]:
            yield from written_findings(word.text, call.scope)


def _awk(call: Call) -> Iterator[Finding]:
    program = " ".join(call.texts)
    if re.search(r"\bsystem\s*\(|\|\s*getline|\|\s*\"(?:ba)?sh\"", program):
        yield high("runs commands from a script of awk")
    elif re.search(r">\s*\"|-i\s+inplace", program):
        yield medium("writes a file")


def _rights(call: Call) -> Iterator[Finding]:
    recursive = call.has("-R", "--recursive")
    words = call.operands()
    reference = any(text.startswith("--reference") for text in call.texts)
    for word in words if reference else words[1:]:
        place = _from_folder(place_of(word.text), word.text, call.scope)
        if place in (Place.SYSTEM, Place.DEVICE) and is_home_or_root(word.text) and recursive:
            yield rail("opens system folders")
        elif place in (Place.SYSTEM, Place.DEVICE):
            yield high("changes the rights of system files")
        elif recursive and (place is Place.OUTSIDE or word.text.startswith("$")):
            yield high("changes the rights of files outside of the workspace")
    if re.search(
        r"(?:^| )(?:[0-7]?[4267]7{2}[0-7]|[2467][0-7]{3}|[ug+]*\+\w*s)(?: |$)",
        " ".join(call.texts[:2]),
    ) and re.match(r"[ug+]*\+\w*s|[2467][0-7]{3}$", words[0].text if words else ""):
        yield high("lets a program act as its owner")
    yield medium("changes the rights of files")


def _made(call: Call) -> Iterator[Finding]:
    for word in call.operands(_OPTIONS.get(call.name, ())):
        yield from written_findings(word.text, call.scope)


RULES = {
    "rm": _rm,
    "unlink": _rm,
    "trash": _rmdir,
    "rmdir": _rmdir,
    "shred": _shred,
    "srm": _shred,
    "wipe": _shred,
    "truncate": _truncate,
    "find": _find,
    "mv": _mv,
    "cp": _cp,
    "install": _cp,
    "ln": _cp,
    "rsync": _rsync,
    "tar": _tar,
    "unzip": _tar,
    "bsdtar": _tar,
    "dd": _dd,
    "tee": _tee,
    "sed": _sed,
    "awk": _awk,
    "gawk": _awk,
    "mawk": _awk,
    "chmod": _rights,
    "chown": _rights,
    "chgrp": _rights,
    "setfacl": _rights,
    "touch": _made,
    "mkdir": _made,
}
