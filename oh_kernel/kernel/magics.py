"""What does a line or cell of `%openhands` do? Parses it, and has the notebook's session do it."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Any, Protocol

from oh_kernel.credentials import store_key
from oh_kernel.errors import OpenHandsError, SettingsError
from oh_kernel.kernel.commands import usage
from oh_kernel.kernel.config import options_of
from oh_kernel.kernel.grammar import Ask, Do, parse
from oh_kernel.kernel.model_choice import models_shown, remark, switched
from oh_kernel.kernel.notes import Note, Table, displayed, refused
from oh_kernel.layers import option_named
from oh_kernel.loop import run_on_main
from oh_kernel.options import OPTIONS
from oh_kernel.providers import BY_NAME as PROVIDERS_BY_NAME
from oh_kernel.providers import (
    PROVIDERS,
    Provider,
    how_to_set_a_model,
    provider_of,
)
from oh_kernel.settings import Settings, config_folder, config_path
from oh_kernel.views.result import TurnResult

HISTORY_ROWS = 20


class NotebookSession(Protocol):
    """One notebook's conversation. Used on the agent thread; what it returns can show itself, or
    is text, a mapping, or a sequence of mappings.
    """

    settings: Settings

    async def turn(self, prompt: str, *, new: bool, overrides: dict[str, object]) -> TurnResult: ...

    async def new(self) -> object: ...

    async def resume(self, id: str | None) -> object: ...

    def status(self) -> object: ...

    def pause(self) -> object: ...

    async def stop(self) -> object: ...

    async def history(self, limit: int, text: str = "") -> object: ...

    def cost(self) -> object: ...

    def tools(self) -> object: ...

    def trust(self) -> object: ...

    async def review(self, n: int | None) -> object: ...

    async def take_secret(self, name: str, value: str, *, keep: bool) -> object: ...

    async def forget_secret(self, name: str) -> object: ...

    def secrets(self) -> object: ...

    async def manage(self, command: str, argument: str) -> object: ...


async def run_cell(line: str, body: str | None, shell: Any) -> object | None:
    """Do what `line` (behind the magic's name) and `body` say; the value is the cell's value.

    An error that a person can act on is returned as one line of text. Awaited on the agent's loop.
    """
    from oh_kernel.kernel.session import session_for  # it stands beside us and imports the agent

    try:
        request = parse(line, body)
        if request == Do("help"):
            return Note(usage())
        return await answer(request, session_for(shell), shell)
    except OpenHandsError as error:
        return refused(error)


async def answer(request: Ask | Do, session: NotebookSession, shell: Any) -> object | None:
    """Have `session` do what was asked; raises OpenHandsError."""
    options = options_of(shell)
    if options and (changed := options.take_changes()):
        session.settings = session.settings.with_("%config OpenHands", **changed)
    if isinstance(request, Ask):
        return await _turn(request, session, shell)
    return displayed(await _command(request, session, shell))


async def _turn(request: Ask, session: NotebookSession, shell: Any) -> object:
    settings = session.settings.with_("a flag", **request.overrides)
    if settings.model is None:
        return Note(how_to_set_a_model(config_path()))
    result = await session.turn(request.prompt, new=request.new, overrides=request.overrides)
    if request.bind:
        await run_on_main(lambda: shell.user_ns.update({request.bind: result.answer}))
    return result


async def _command(request: Do, session: NotebookSession, shell: Any) -> object:
    argument = request.argument or ""
    number = int(argument) if argument.isdigit() else None
    match request.command:
        case "new":
            return await session.new()
        case "resume":
            return await session.resume(request.argument)
        case "status":
            return session.status()
        case "pause":
            return session.pause()
        case "stop":
            return await session.stop()
        case "history":
            text = argument if number is None else ""
            return await session.history(number or HISTORY_ROWS, text)
        case "cost":
            return session.cost()
        case "tools":
            return session.tools()
        case "trust":
            return session.trust()
        case "config":
            return _config(request, session, shell)
        case "model":
            return _model(request.argument, session, shell)
        case "login":
            return await _login(request.argument, session)
        case "secret":
            return await _secret(argument, session)
        case "secrets":
            return session.secrets()
        case "review":
            return await session.review(number)
        case "fork" | "btw" | "condense" | "title" | "rename" | "delete" | "rerun":
            return await session.manage(request.command, argument)
        case _:
            return Note(usage())


def _config(request: Do, session: NotebookSession, shell: Any) -> object:
    if request.argument is None:
        names = [option.name for option in OPTIONS]
        return _shown(names, session.settings, f"Settings for every notebook: {config_path()}")
    option = option_named(request.argument)
    if request.value is None:
        return _shown([option.name], session.settings, f"{option.help}.")
    if option.secret:
        raise SettingsError(
            "A key is never typed into a cell, where it is saved with the notebook.",
            remedy="Delete it from this cell and use %openhands login, which asks for it.",
        )
    changed = session.settings.with_(**{option.name: request.value})
    if option.name == "tools":
        _refuse_unknown_tools(changed.tools)
    session.settings = changed
    if options := options_of(shell):
        options.record(option.name, _plain(getattr(session.settings, option.name)))
    text = f"{option.name} = {session.settings.shown(option.name)}, until this kernel ends."
    return text + (remark(session.settings) if option.name == "model" else "")


def _model(name: str | None, session: NotebookSession, shell: Any) -> object:
    if name is None:
        return models_shown(session.settings)
    session.settings, text = switched(session.settings, name)
    if options := options_of(shell):
        options.record("model", session.settings.model)
    return text


def _refuse_unknown_tools(wanted: str) -> None:
    from oh_kernel.tools.presets import tools_named  # imports the tools that are named

    tools_named(wanted)


def _plain(value: object) -> object:
    """Folders as text, as they are written in `%config`."""
    if isinstance(value, tuple):
        return tuple(map(str, value))
    return str(value) if isinstance(value, Path) else value


def _shown(names: list[str], settings: Settings, caption: str) -> Table:
    rows = [(name, settings.shown(name), settings.origin(name)) for name in names]
    return Table(("setting", "value", "from"), rows, caption)


async def _login(named: str | None, session: NotebookSession) -> str:
    provider = _provider(named or session.settings.model)
    key = await _asked(f"Key for {provider.name} (not shown): ")
    if not key:
        raise SettingsError("No key was given.", remedy="Run %openhands login again.")
    place = store_key(provider.name, key, config_folder())
    session.settings = session.settings.with_()
    text = f"The key for {provider.name} is stored in {place}."
    if session.settings.api_key and session.settings.origin("api_key") != "stored by login":
        text += f" {session.settings.origin('api_key')} is set too, and goes before it."
    return text


async def _secret(argument: str, session: NotebookSession) -> object:
    name, _, what = argument.partition(" ")
    if not name:
        return session.secrets()
    if what.strip() == "forget":
        return await session.forget_secret(name)
    value = await _asked(
        f"Value of {name} (not shown): ",
        remedy="Set it as a variable and run oh-kernel with --secret, or use update_secrets.",
    )
    return await session.take_secret(name, value, keep=what.strip() == "keep")


def _provider(name: str | None) -> Provider:
    """The provider called `name`, or that of the model `name`."""
    found = PROVIDERS_BY_NAME.get(name or "") or provider_of(name or "")
    if found and found.needs_key:
        return found
    with_keys = ", ".join(one.name for one in PROVIDERS if one.needs_key)
    raise SettingsError(
        f"{name!r} is no provider that takes a key." if name else "Login to which provider?",
        remedy=f"Write %openhands login PROVIDER, one of {with_keys}.",
    )


_NO_STDIN = "Set the provider's variable, such as OPENAI_API_KEY, before the kernel starts."


async def _asked(prompt: str, *, remedy: str = _NO_STDIN) -> str:
    from IPython.core.error import StdinNotImplementedError  # there when a shell calls us

    try:
        # Looked up when it is called: a kernel puts its own in place while a cell runs.
        return (await run_on_main(lambda: getpass.getpass(prompt))).strip()
    except (StdinNotImplementedError, EOFError) as error:
        raise SettingsError("Nobody can be asked for a key here.", remedy=remedy) from error
