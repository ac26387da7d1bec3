"""How risky is a command of git? What is nowhere else, and what others have, is not to be lost."""

import re
from collections.abc import Callable, Iterator

from oh_kernel.security.findings import Finding, high, medium
from oh_kernel.security.places import is_address
from oh_kernel.security.shell.model import Call, Word
from oh_kernel.security.tables import names

_GLOBAL = ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path")
_LOOKS_ONLY = set(
    names(
        """
    status log diff show blame grep ls-files ls-tree rev-parse rev-list describe shortlog reflog
    cat-file check-ignore name-rev for-each-ref show-ref symbolic-ref var version help
    whatchanged merge-base count-objects diff-tree diff-index range-diff cherry archive fsck
    verify-commit
    """
    )
)


def _git(call: Call) -> Iterator[Finding]:
    yield from _settings(call.texts)
    words = _after_global(call)
    if not words:
        return
    verb = words[0].text
    inner = Call(verb, words[1:], call.stdin, call.scope)
    rule = _VERBS.get(verb)
    if rule is not None:
        yield from rule(inner)
    elif verb not in _LOOKS_ONLY:
        yield medium("changes the repository")
    if re.search(
        r"--(?:exec|upload-pack|receive-pack)(?:=|$)|^!|alias\.\w+=!", " ".join(call.texts)
    ):
        yield high("runs a command by way of git")


def _after_global(call: Call) -> list[Word]:
    index = 0
    while index < len(call.args) and call.args[index].text.startswith("-"):
        index += 2 if call.args[index].text in _GLOBAL else 1
    return call.args[index:]


def _settings(texts: list[str]) -> Iterator[Finding]:
    for text in texts:
        if re.match(r"http\.\S*sslverify=(?:false|0)", text, re.I):
            yield medium("one unchecked connection")


def _push(call: Call) -> Iterator[Finding]:
    words = call.operands(("-o", "--push-option", "--repo"))
    if call.has("-n", "--dry-run"):
        yield medium("says what a push would do")
        return
    forced = call.has(
        "-f", "--force", "--force-with-lease", "--force-if-includes", "--mirror", "--prune"
    )
    if forced or any(word.text.startswith("+") for word in words[1:]):
        yield high("rewrites a shared history")
    if call.has("-d", "--delete") or any(re.match(r":[^:]", word.text) for word in words[1:]):
        yield high("deletes a shared branch")
    if words and (words[0].text in call.scope.remotes or _is_place(words[0].text)):
        yield high("sends the repository to a new place")
    yield medium("pushes")


def _is_place(text: str) -> bool:
    return is_address(text) or bool(re.match(r"[\w.-]+@[\w.-]+:", text))


def _reset(call: Call) -> Iterator[Finding]:
    if call.has("--hard", "--merge", "--keep"):
        yield high("throws uncommitted work away")
    yield medium("moves a branch")


def _clean(call: Call) -> Iterator[Finding]:
    if call.has("-n", "--dry-run"):
        return
    yield (
        high("deletes untracked files")
        if call.has("-f", "--force")
        else medium("asks before it deletes")
    )


def _checkout(call: Call) -> Iterator[Finding]:
    texts = call.texts
    paths = texts[texts.index("--") + 1 :] if "--" in texts else _sure_paths(texts)
    many = any(
        path in (".", "*", ":/", "./", ":") or "*" in path or path.endswith("/") for path in paths
    )
    index_only = call.has("--staged", "-S") and not call.has("--worktree", "-W")
    if (many or call.has("-f", "--force", "--discard-changes")) and not index_only:
        yield high("throws uncommitted work away")
    yield medium("changes files of the workspace")


def _sure_paths(texts: list[str]) -> list[str]:
    """The words that are paths for sure although no `--` stands before them."""
    return [text for text in texts if text in (".", "*", ":/", "./")]


def _stash(call: Call) -> Iterator[Finding]:
    verb = call.texts[0] if call.texts else "push"
    if verb in ("clear", "drop"):
        yield high("throws set-aside work away")
    elif verb not in ("list", "show"):
        yield medium("sets work aside or brings it back")


def _branch(call: Call) -> Iterator[Finding]:
    if call.has("-D") or (call.has("-d", "--delete") and call.has("-f", "--force")):
        yield high("deletes a branch that may be nowhere else")
    elif call.operands() or call.has("-d", "-m", "-M"):
        yield medium("changes a branch")


def _tag(call: Call) -> Iterator[Finding]:
    if call.operands() and not call.has("-l", "--list"):
        yield medium("changes a tag")


def _remote(call: Call) -> Iterator[Finding]:
    texts = call.texts
    if texts[:1] in (["add"], ["set-url"]):
        names = [word.text for word in call.operands()[1:2]]
        call.scope.remotes |= {*names, "--all"}
        yield medium("adds a place to push to")
    elif texts[:1] in (["remove"], ["rm"], ["rename"], ["prune"], ["update"]):
        yield medium("changes the places to push to")


def _reflog(call: Call) -> Iterator[Finding]:
    if call.texts[:1] in (["expire"], ["delete"]):
        yield high("makes lost commits unrecoverable")


def _gc(call: Call) -> Iterator[Finding]:
    if any(re.match(r"--prune=(?:now|all)", text) for text in call.texts) or call.name == "prune":
        yield high("makes lost commits unrecoverable")
    yield medium("tidies the repository")


def _rewrites(call: Call) -> Iterator[Finding]:
    yield high("rewrites the whole history")


def _update_ref(call: Call) -> Iterator[Finding]:
    yield high("deletes a ref") if call.has("-d", "--delete") else medium("moves a ref")


def _worktree(call: Call) -> Iterator[Finding]:
    if call.texts[:1] == ["remove"] and call.has("-f", "--force"):
        yield high("throws uncommitted work away")
    elif call.texts[:1] != ["list"]:
        yield medium("changes the working trees")


def _rm(call: Call) -> Iterator[Finding]:
    yield medium("deletes what git keeps")


def _config(call: Call) -> Iterator[Finding]:
    texts = [text.lower() for text in call.texts]
    line = " ".join(texts)
    reads = call.has("-l", "--list", "--get", "--get-all", "--get-regexp") or texts[:1] in (
        ["get"],
        ["list"],
    )
    if reads or len(call.operands()) < 2:
        return
    if re.search(r"sslverify (?:false|0)|sslnoverify|safe\.directory \*|fsckobjects false", line):
        yield high("turns certificate or ownership checks off")
    runs = re.search(
        r"core\.(?:hookspath|sshcommand|pager|editor|fsmonitor)|alias\.\S+ !|helper store", line
    )
    if runs and (call.has("--global", "--system") or "!" in line):
        yield high("changes what git runs from now on")
    yield high("writes system settings") if call.has("--system") else medium("changes settings")


def _credential(call: Call) -> Iterator[Finding]:
    if call.texts[:1] == ["fill"]:
        yield high("shows credentials")


def _submodule(call: Call) -> Iterator[Finding]:
    if call.texts[:1] == ["deinit"] and call.has("-f", "--force"):
        yield high("throws uncommitted work away")
    yield medium("changes submodules")


def _lfs(call: Call) -> Iterator[Finding]:
    yield medium("moves large files")


def _send(call: Call) -> Iterator[Finding]:
    yield high("sends mail")


_VERBS: dict[str, Callable[[Call], Iterator[Finding]]] = {
    "push": _push,
    "reset": _reset,
    "clean": _clean,
    "checkout": _checkout,
    "switch": _checkout,
    "restore": _checkout,
    "checkout-index": _checkout,
    "stash": _stash,
    "branch": _branch,
    "tag": _tag,
    "remote": _remote,
    "reflog": _reflog,
    "gc": _gc,
    "prune": _gc,
    "filter-branch": _rewrites,
    "filter-repo": _rewrites,
    "update-ref": _update_ref,
    "worktree": _worktree,
    "rm": _rm,
    "config": _config,
    "credential": _credential,
    "submodule": _submodule,
    "lfs": _lfs,
    "send-email": _send,
    "send-pack": _push,
}

RULES = {"git": _git, "bfg": _rewrites, "git-filter-repo": _rewrites}
