"""What does Tab offer in an `%openhands` line: flags, commands, models, values, conversations?

Registered at kernel start, so nothing heavy is imported before the first Tab.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oh_kernel.errors import OpenHandsError
from oh_kernel.kernel.commands import COMMANDS, FLAGS, FLAGS_BY_NAME
from oh_kernel.options import BY_NAME, OPTIONS, Option
from oh_kernel.providers import PROVIDERS

if TYPE_CHECKING:
    from IPython.core.completer import CompletionContext, SimpleMatcherResult

    from oh_kernel.settings import Settings

LAST_CONVERSATIONS = 20
_LINE = re.compile(r"\s*(%%?)openhands\s(.*)", re.DOTALL)


def add_completion(shell: Any) -> None:
    """Have the shell's Tab offer what `complete` finds."""
    from IPython.core.completer import context_matcher  # there in every shell

    @context_matcher()  # type: ignore[untyped-decorator, unused-ignore] # untyped in IPython
    def openhands_matcher(context: CompletionContext) -> SimpleMatcherResult:
        return _matches(context, shell)

    shell.Completer.custom_matchers.append(openhands_matcher)


def _matches(context: CompletionContext, shell: Any) -> SimpleMatcherResult:
    from IPython.core.completer import SimpleCompletion  # there when Tab was pressed

    # Only the first line is ours: below it is a prompt, and the user's own completion.
    line = context.full_text.split("\n")[context.cursor_line][: context.cursor_position]
    is_first = not "".join(context.full_text.split("\n")[: context.cursor_line]).strip()
    parts = _LINE.fullmatch(line) if is_first else None
    if parts is None:
        return {"completions": []}
    try:
        fragment, found = complete(parts[2], shell)
    except OpenHandsError:  # a broken setting is told when the cell runs, not at every Tab
        return {"completions": []}
    return {
        "completions": [SimpleCompletion(text=text, type="openhands") for text in found],
        "matched_fragment": fragment,
        "suppress": True,
        "ordered": True,
    }


def complete(before: str, shell: Any = None) -> tuple[str, list[str]]:
    """The word being typed at the end of `before`, and what it may become.

    >>> complete("--max")
    ('--max', ['--max-steps'])
    >>> complete("--policy r")
    ('r', ['risky'])
    """
    fragment = re.split(r"\s", before)[-1]
    words = before[: len(before) - len(fragment)].split()
    offered = _offered(words, fragment, shell)
    return _cut(fragment), [text for text in offered if text.startswith(_cut(fragment))]


def _cut(fragment: str) -> str:
    """The part of the word that is completed: behind `=` in `--model=op`, else all of it."""
    return fragment.rpartition("=")[2] if "=" in fragment else fragment


def _offered(words: list[str], fragment: str, shell: Any) -> Iterable[str]:
    name, equals, _ = fragment.partition("=")
    if equals and (flag := FLAGS_BY_NAME.get(name)):
        return _values(flag.option, shell)
    if words and (flag := FLAGS_BY_NAME.get(words[-1])) and flag.placeholder:
        return _values(flag.option, shell)
    if "--" in words:
        return ()
    if fragment.startswith("-"):
        return [flag.name for flag in FLAGS if flag.name != "--"] + ["--help"]
    if not words:
        return [command.name for command in COMMANDS]
    return _arguments(words, fragment, shell) if len(words) == 1 else ()


def _arguments(words: list[str], fragment: str, shell: Any) -> Iterable[str]:
    match words[0]:
        case "resume" | "delete":
            return _conversations(shell)
        case "model":
            return _values(BY_NAME["model"], shell)
        case "login":
            return [one.name for one in PROVIDERS if one.needs_key]
        case "config" if "=" in fragment:
            return _values(BY_NAME.get(fragment.partition("=")[0].replace("-", "_")), shell)
        case "config":
            return [option.name for option in OPTIONS if not option.secret]
    return ()


def _values(option: Option | None, shell: Any) -> Iterable[str]:
    if option is None:
        return ()
    if option.name == "model":
        return _models(_settings(shell))
    if option.type is bool:
        return ("yes", "no")
    if option.name == "tools":
        from oh_kernel.tools.presets import ALL_TOOLS, AUTO, PRESETS  # imports pydantic

        return (AUTO, *PRESETS, *ALL_TOOLS)
    return option.choices


def _settings(shell: Any) -> Settings:
    """Those of the notebook when it has begun to use the agent, else as they would be."""
    if shell is not None and (module := sys.modules.get("oh_kernel.kernel.session")):
        settings: Settings = module.session_for(shell).settings
        return settings
    from oh_kernel.settings import load_settings  # imports pydantic

    return load_settings()


def _models(settings: Settings) -> list[str]:
    """The one in use, those of providers whose key is known, those that ollama has here."""
    from oh_kernel.settings import providers_with_key  # imports pydantic

    used = [settings.model] if settings.model else []
    known = [f"{one.name}:{name}" for one in providers_with_key() for name in one.models]
    return list(dict.fromkeys([*used, *settings.profiles, *known, *_ollama_models()]))


def _ollama_models() -> list[str]:
    """Read from ollama's folder: asking its server would take too long when it is not there."""
    library = Path.home() / ".ollama/models/manifests/registry.ollama.ai/library"
    tags = sorted(library.glob("*/*")) if library.is_dir() else []
    return [f"ollama:{tag.parent.name}:{tag.name}" for tag in tags]


def _conversations(shell: Any) -> list[str]:
    """The ids used last, newest first; a store that is in use or damaged offers none."""
    from oh_kernel.errors import StoreError
    from oh_kernel.store import EventStore  # imports the events

    path = _settings(shell).store_file
    if not path.exists():
        return []
    try:
        with EventStore.open(path, read_only=True) as store:
            return [info.id for info in store.conversations(limit=LAST_CONVERSATIONS)]
    except StoreError:
        return []
