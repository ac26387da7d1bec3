"""What of a shell must a run of the agent's code leave as the user knows it?"""

from __future__ import annotations

import builtins
import getpass
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from oh_kernel.sessions.replaced import replaced

_ABSENT = object()
_LAST_ERROR = ("last_type", "last_value", "last_traceback", "last_exc")
_SHELL_STATE = ("_last_traceback", "last_execution_result", "last_execution_succeeded")


class InputRefused(RuntimeError):
    """The agent's code asked for typed input where nobody can answer."""

    __module__ = "builtins"  # so that tracebacks name it plainly


class ExitRefused(Exception):
    """The agent's code called exit() or quit(), which would have ended the user's kernel."""

    __module__ = "builtins"


@contextmanager
def undisturbed(
    shell: Any, on_error: Callable[[type[BaseException], BaseException], None], *, can_ask: bool
) -> Iterator[None]:
    """Run code in `shell` without a trace in `_`, `Out`, `sys.last_*`, or the shell's exit.

    Errors are told to `on_error` instead of being shown.
    """

    def tell(etype: type[BaseException], value: BaseException, _lines: object) -> None:
        on_error(etype, value)

    with ExitStack() as stack:
        stack.enter_context(_kept(sys, _LAST_ERROR))
        stack.enter_context(_kept(shell, _SHELL_STATE))
        stack.enter_context(_kept(shell.displayhook, ("exec_result",)))
        stack.enter_context(
            replaced(shell.displayhook, update_user_ns=_nothing, log_output=_nothing)
        )
        stack.enter_context(replaced(shell, _showtraceback=tell, ask_exit=_refuse_exit))
        stack.enter_context(_without_exit_advice())
        if not can_ask:
            stack.enter_context(replaced(builtins, input=_refuse_input))
            stack.enter_context(replaced(getpass, getpass=_refuse_input))
            stack.enter_context(replaced(sys, stdin=_NoInput(), breakpointhook=_refuse_input))
            if debugger := sys.modules.get("pdb"):
                stack.enter_context(
                    replaced(debugger, set_trace=_refuse_input, post_mortem=_refuse_input)
                )
        yield


@contextmanager
def bound_in_builtins(names: Mapping[str, object]) -> Iterator[None]:
    """Names that code finds where it has none of its own; Python's builtins stay what they are."""
    new = {name: value for name, value in names.items() if not hasattr(builtins, name)}
    with replaced(builtins, **new):
        yield


@contextmanager
def _kept(target: Any, names: tuple[str, ...]) -> Iterator[None]:
    before = {name: getattr(target, name, _ABSENT) for name in names}
    try:
        yield
    finally:
        for name, value in before.items():
            if value is not _ABSENT:
                setattr(target, name, value)
            elif hasattr(target, name):
                delattr(target, name)


@contextmanager
def _without_exit_advice() -> Iterator[None]:
    """IPython answers SystemExit with advice for people at a terminal."""
    warnings.filterwarnings("ignore", message="To exit: use 'exit'")
    advice = warnings.filters[0]
    try:
        yield
    finally:
        if advice in warnings.filters:
            warnings.filters.remove(advice)  # type: ignore[attr-defined]  # a list at run time


def _nothing(*_: object) -> None:
    return


def _refuse_exit(*_: object) -> None:
    raise ExitRefused("exit() was called; the kernel stays alive.")


def _refuse_input(*_: object, **__: object) -> str:
    raise InputRefused("Nobody can type an answer here, so input(), getpass() and pdb do not work.")


class _NoInput:
    """Stands for sys.stdin: whoever reads it (pdb does) learns at once that nobody types."""

    encoding = "utf-8"

    def fileno(self) -> int:
        raise OSError("no standard input")

    def isatty(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        if name in ("read", "readline", "readlines", "buffer"):
            return _refuse_input
        raise AttributeError(name)
