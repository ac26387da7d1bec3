"""How risky are the commands that install and publish packages?"""

import re
from collections.abc import Iterator

from oh_kernel.security.findings import Finding, high, medium
from oh_kernel.security.places import is_this_machine
from oh_kernel.security.shell.model import Call
from oh_kernel.security.tables import by_name, names

_INSTALLS_FROM = re.compile(r"(?:^|[\s@=])(?:git\+\w+|https?|ftp)://|^git@")
_PLAIN_INDEX = re.compile(r"--(?:extra-)?index(?:-url)?=http://|--trusted-host=")
_INDEX_OPTION = re.compile(r"-[if]|--(?:(?:extra-)?index(?:-url)?|find-links|registry)")
_LOOKS = names("list show freeze check search info ls view outdated tree why config")
_FETCHES = names("install i add download wheel sync ci pip tool inject create update")


def _pip(call: Call) -> Iterator[Finding]:
    yield from installing(call.texts)


def installing(texts: list[str]) -> Iterator[Finding]:
    """What it means that packages are installed as `texts` say.

    >>> [f.risk.value for f in installing(["install", "git+https://example.com/x"])]
    ['HIGH', 'MEDIUM']
    """
    verb = next((text for text in texts if not text.startswith("-")), "")
    if verb in _LOOKS:
        line = " ".join(texts)
        if verb == "config" and re.search(r"trusted-host|strict-ssl false|ssl_verify", line):
            yield high("turns certificate checks off")
        return
    if verb in _FETCHES:
        yield from _sources(texts)
    if verb in ("publish", "unpublish", "deprecate", "yank"):
        yield high("publishes a package")
    yield medium("changes the project's packages")


def _sources(texts: list[str]) -> Iterator[Finding]:
    """Where packages come from, when it is not the usual index."""
    for before, text in zip(["", *texts], texts, strict=False):
        if _INDEX_OPTION.fullmatch(before):
            if text.startswith("http://") and not is_this_machine(text):
                yield high("installs from an unencrypted index")
        elif text == "--trusted-host" or _PLAIN_INDEX.match(text):
            yield high("installs from an unencrypted index")
        elif before in ("-c", "--channel") or text.startswith("--"):
            continue
        elif _INSTALLS_FROM.search(text):
            yield high("installs from a bare address")


def _npm(call: Call) -> Iterator[Finding]:
    if call.texts[:2] == ["token", "list"] or call.texts[:1] in (["login"], ["adduser"]):
        yield medium("logs in")
    if re.search(r"(?:config )?set strict-ssl false", " ".join(call.texts)):
        yield high("turns certificate checks off")
    yield from installing(call.texts)


def _conda(call: Call) -> Iterator[Finding]:
    line = " ".join(call.texts)
    if call.texts[:1] == ["init"]:
        yield high("changes what runs at a later start")
    if re.search(r"ssl_verify (?:false|no)", line, re.I):
        yield high("turns certificate checks off")
    if re.match(r"env (?:remove|rm)|remove .*--all|uninstall .*--all", line):
        yield high("deletes an environment")
    if not re.match(
        r"(?:env list|list|info|search|config --show|shell|compare|activate|deactivate)\b", line
    ):
        yield from installing(call.texts)


def _uv(call: Call) -> Iterator[Finding]:
    texts = call.texts[1:] if call.texts[:1] in (["pip"], ["tool"]) else call.texts
    yield from installing(texts)


def _publishes(call: Call) -> Iterator[Finding]:
    verbs = {"upload", "publish", "deploy", "release", "register", "push", "unpublish", "yank"}
    if verbs & set(call.texts[:3]):
        yield high("publishes")
    yield from installing(call.texts)


RULES = by_name(
    {
        "pip pip3 pipx": _pip,
        "npm pnpm yarn bun": _npm,
        "conda mamba micromamba": _conda,
        "uv rye pdm": _uv,
        "poetry flit hatch twine cargo maturin gem vsce": _publishes,
    }
)
