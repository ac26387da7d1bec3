"""How does `%config OpenHands.name = value` reach the settings?

A Configurable with one trait for each option, made from the table; cheap enough for kernel start.
"""

import sys
from typing import Any, cast

from traitlets import Bool, Enum, Float, Int, List, TraitType, Unicode
from traitlets.config import Configurable

from oh_kernel.options import OPTIONS, Option


class Options(Configurable):
    """The settings of the agent. They hold for this kernel; `%openhands config` shows all."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._taken = {option.name: option.default for option in OPTIONS if not option.secret}
        self.observe(self._say_if_unusable, "model")

    def take_changes(self) -> dict[str, object]:
        """What was set since the last call; at first, also by a file of IPython's settings."""
        values = {name: _plain(getattr(self, name)) for name in self._taken}
        changed = {name: value for name, value in values.items() if value != self._taken[name]}
        self._taken = values
        return changed

    def record(self, name: str, value: object) -> None:
        """Show a value that was set elsewhere, without handing it out again."""
        self._taken[name] = value
        self.set_trait(name, list(value) if isinstance(value, tuple) else value)
        self._taken[name] = _plain(getattr(self, name))

    def _say_if_unusable(self, change: Any) -> None:
        """A name that was typed wrong is told at once, not in the next turn."""
        if not change.new or change.new == self._taken["model"]:
            return
        from oh_kernel.kernel.model_choice import remark  # imports pydantic
        from oh_kernel.settings import load_settings

        given = {"model": change.new, "base_url": self._trait_values.get("base_url")}
        if text := remark(load_settings().with_("%config OpenHands", **given)):
            print(f"model = {change.new}.{text}", file=sys.stderr)


def _plain(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _trait(option: Option) -> TraitType[Any, Any]:
    text = option.help + (f" ({option.unit})" if option.unit else "")
    default: Any = option.default
    if option.choices:
        trait: TraitType[Any, Any] = Enum(option.choices, default, help=text)
    elif option.type is list:
        trait = List(Unicode(), list(default), help=text)
    elif option.type is bool:
        trait = Bool(default, help=text)
    elif option.type is int:
        trait = Int(default, min=option.minimum, help=text)
    elif option.type is float:
        trait = Float(default, min=option.minimum, help=text)
    else:
        trait = Unicode(default, allow_none=True, help=text)
    if default is None:
        trait.allow_none = True
    return trait.tag(config=True)


# `%config` finds a Configurable by the name of its class.
OpenHands = cast(
    type[Options],
    type(
        "OpenHands",
        (Options,),
        {option.name: _trait(option) for option in OPTIONS if not option.secret}
        | {"__doc__": Options.__doc__, "__module__": __name__},
    ),
)


def add_options(shell: Any) -> Options:
    """Give the shell its `%config OpenHands`; a second call finds the first one's."""
    found = options_of(shell)
    if found is None:
        found = OpenHands(parent=shell)
        shell.configurables.append(found)
    return found


def options_of(shell: Any) -> Options | None:
    """The shell's `%config OpenHands`, if it has one."""
    for one in getattr(shell, "configurables", ()):
        if isinstance(one, Options):
            return one
    return None
