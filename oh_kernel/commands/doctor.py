"""Is everything set up, and what is to be done where it is not?"""

import argparse
import os
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from oh_kernel.commands.findings import Finding, note, ok, wrong
from oh_kernel.commands.kernelspecs import check_kernelspecs
from oh_kernel.errors import OpenHandsError
from oh_kernel.providers import (
    how_to_name_a_model,
    how_to_set_a_model_in_a_terminal,
    provider_of,
)
from oh_kernel.settings import Settings, config_path, load_settings, misspelt_variables

OLDEST_PYTHON = (3, 11)
QUESTION = "Reply with the single word: ready"


def doctor(arguments: argparse.Namespace) -> int:
    """`oh-kernel doctor`: prints what it found; 1 when something is wrong."""
    failed = False
    for finding in _findings(ask_model=arguments.call):
        print(finding, flush=True)
        failed = failed or finding.state == "wrong"
    print("Something is wrong, see above." if failed else "Nothing is wrong.")
    return int(failed)


def _findings(*, ask_model: bool) -> Iterator[Finding]:
    yield _python()
    yield from check_kernelspecs()
    try:
        settings = load_settings()
    except OpenHandsError as error:
        yield wrong(error.message, error.remedy)
        return
    yield from _variables()
    yield from _tools(settings)
    yield _store(settings.store_file)
    yield from _model(settings, ask=ask_model)


def _python() -> Finding:
    text = f"Python {platform.python_version()} ({sys.executable}), oh-kernel {_ours()}"
    if sys.version_info < OLDEST_PYTHON:
        return wrong(text, "Use Python 3.11 or later.")
    return ok(f"{text}, ipykernel {version('ipykernel')}")


def _ours() -> str:
    return version("oh-kernel")


def _variables() -> Iterator[Finding]:
    for name, meant in misspelt_variables().items():
        yield wrong(f"The variable {name} is not one of ours.", f"Did you mean {meant}?")


def _tools(settings: Settings) -> Iterator[Finding]:
    from oh_kernel.tools.presets import tools_named  # imports the tools that are named

    try:
        tools_named(settings.tools)
    except OpenHandsError as error:
        yield wrong(f"{error.message} ({settings.origin('tools')})", error.remedy)


def _store(path: Path) -> Finding:
    """Whether conversations can be stored. Looks, and makes nothing."""
    folder = path.parent
    while not folder.exists():
        folder = folder.parent
    remedy = "Set another place: the option store_path, or the variable OPENHANDS_STORE_PATH."
    for place in (path, folder) if path.exists() else (folder,):
        if not os.access(place, os.W_OK):
            return wrong(f"{place} cannot be written, so nothing can be stored.", remedy)
    size = f"{path.stat().st_size / 1e6:.1f} MB" if path.exists() else "not there yet"
    return ok(f"store {path} ({size})")


def _model(settings: Settings, *, ask: bool) -> Iterator[Finding]:
    if settings.model is None:
        yield note("No model is set.", how_to_set_a_model_in_a_terminal(config_path()))
        return
    origin = settings.origin("model")
    provider = provider_of(settings.model)
    if provider is None and settings.base_url is None:
        yield wrong(
            f"The model {settings.model} ({origin}) names no known provider.",
            how_to_name_a_model(settings.model),
        )
        return
    if provider and provider.needs_key and settings.api_key is None:
        yield wrong(
            f"There is no key for {provider.name}.",
            f"Set {provider.key_variables[0]}, or run: oh-kernel login {provider.name}",
        )
        return
    yield ok(f"model {settings.model} ({origin})" + _key_and_url(settings))
    if ask:
        yield _asked(settings)


def _key_and_url(settings: Settings) -> str:
    key = f", key from {settings.origin('api_key')}" if settings.api_key else ""
    url = f", at {settings.base_url}" if settings.base_url else ""
    return key + url


def _asked(settings: Settings) -> Finding:
    from oh_kernel.loop import run_blocking

    try:
        answer, tokens = run_blocking(_ask(settings))
    except OpenHandsError as error:
        return wrong(f"The model does not answer: {error.message}", error.remedy)
    return ok(f"the model answers: {answer[:60]!r} ({tokens} tokens)")


async def _ask(settings: Settings) -> tuple[str, int]:
    """One short call. Tells the words of the answer and the tokens it took."""
    from oh_kernel.conversation.models import model_of
    from oh_kernel.events import Message  # imports pydantic models, and the next one a provider
    from oh_kernel.llm.base import Completion

    llm = model_of(settings.with_(max_retries=0), Path.cwd())
    try:
        async for item in llm.stream([Message.of("user", QUESTION)], []):
            if isinstance(item, Completion):
                return item.message.text, item.usage.prompt_tokens + item.usage.completion_tokens
    finally:
        await llm.aclose()
    return "", 0
