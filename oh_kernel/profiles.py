"""Which models has a person given names of their own, with all that belongs to each?

A table `[profiles.NAME]` of config.toml holds options of the model, which hold as long as it is
chosen by that name, and what no option says of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from oh_kernel.errors import SettingsError
from oh_kernel.layers import Given, Layer, option_named, refuse_secret
from oh_kernel.options import BY_NAME

OPTIONS_OF_A_MODEL = (
    "model",
    "base_url",
    "tool_calls",
    "temperature",
    "reasoning_effort",
    "max_output_tokens",
    "price",
    "images",
    "stream",
    "tools",
    "timeout_s",
    "max_retries",
)
_MORE = ("api_key_env", "context_window", "price_in", "price_out", "headers")


@dataclass(frozen=True)
class Profile:
    """A model under a name of its own.

    `headers` are sent with each request; a value such as `$NAME` is that variable's.
    """

    name: str
    path: Path
    options: Mapping[str, object] = field(default_factory=dict)
    api_key_env: str | None = None
    context_window: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def model(self) -> str:
        """As PROVIDER:NAME."""
        return str(self.options["model"])

    @property
    def variables(self) -> list[str]:
        """The variables of the environment that it names."""
        named = [value[1:] for value in self.headers.values() if value.startswith("$")]
        return [self.api_key_env, *named] if self.api_key_env else named

    def layer(self, variables: Mapping[str, str]) -> Layer:
        """Its options as a layer of settings.

        A model at an address of its own is sent no key but the one that the profile names.
        """
        origin = f"profile {self.name}"
        layer = {name: Given(value, origin) for name, value in self.options.items()}
        if self.api_key_env:
            layer["api_key"] = Given(self._value(self.api_key_env, variables), self.api_key_env)
        elif "base_url" in layer:
            layer["api_key"] = Given(None, origin)
        return layer

    def sent_headers(self, variables: Mapping[str, str]) -> dict[str, str]:
        """The headers with the values of their variables."""
        return {
            name: self._value(text[1:], variables) if text.startswith("$") else text
            for name, text in self.headers.items()
        }

    def _value(self, variable: str, variables: Mapping[str, str]) -> str:
        if variable not in variables:
            raise SettingsError(
                f"The profile {self.name} needs the variable {variable}, which is not set.",
                remedy=f"Set it, or take it out of {self.path}.",
            )
        return variables[variable]


Profiles = Mapping[str, Profile]


def profiles_in(tables: object, path: Path) -> Profiles:
    """The tables `[profiles.NAME]` of `path`; raises SettingsError with what is wrong in which."""
    if not isinstance(tables, Mapping) or not all(isinstance(t, Mapping) for t in tables.values()):
        raise SettingsError(
            f"profiles in {path} is no table of tables.",
            remedy='Write [profiles.NAME] on a line of its own, and below it model = "...".',
        )
    return {name: _profile(name, table, path) for name, table in tables.items()}


def with_profile(
    layers: Sequence[Layer], profiles: Profiles, variables: Mapping[str, str]
) -> tuple[Sequence[Layer], Profile | None]:
    """The layers with the options of the profile that is chosen as model, if one is.

    They go before what was set in earlier layers, and behind what is set with the choice or later.
    """
    for at in reversed(range(len(layers))):
        chosen = layers[at].get("model")
        if chosen is None:
            continue
        profile = profiles.get(str(chosen.value))
        if profile is None:
            return layers, None
        beside = {name: given for name, given in layers[at].items() if name != "model"}
        return (*layers[:at], profile.layer(variables), beside, *layers[at + 1 :]), profile
    return layers, None


def _profile(name: str, table: Mapping[str, Any], path: Path) -> Profile:
    for key in table:
        if key not in (*OPTIONS_OF_A_MODEL, *_MORE):
            if key in BY_NAME:
                refuse_secret(option_named(key), path)
            raise _wrong(name, path, f"has {key!r}", _nearest(key))
    if not isinstance(table.get("model"), str) or not table["model"].strip():
        raise _wrong(name, path, "has no model", 'Write model = "PROVIDER:NAME" in it.')
    if table["model"] in (name, ""):
        raise _wrong(name, path, "is its own model", 'Write model = "PROVIDER:NAME" in it.')
    options = {key: table[key] for key in OPTIONS_OF_A_MODEL if key in table}
    window, headers = table.get("context_window"), table.get("headers", {})
    if window is not None and (type(window) is not int or window < 1):
        raise _wrong(name, path, f"has the context_window {window!r}", "It is a number of tokens.")
    if not isinstance(headers, Mapping) or not all(isinstance(v, str) for v in headers.values()):
        raise _wrong(name, path, "has headers that are no texts", 'As in { "X-Team" = "a" }.')
    variable = table.get("api_key_env")
    if variable is not None and not isinstance(variable, str):
        raise _wrong(name, path, "has an api_key_env that is no text", "It names a variable.")
    options |= _price(name, table, path)
    return Profile(name, path, options, variable, window, dict(headers))


def _price(name: str, table: Mapping[str, Any], path: Path) -> dict[str, object]:
    """The option `price` for the two numbers that may stand in its place."""
    prices = [table.get(key) for key in ("price_in", "price_out")]
    if prices == [None, None]:
        return {}
    if not all(type(price) in (int, float) and price >= 0 for price in prices if price is not None):
        raise _wrong(name, path, "has a price that is no number", "In US dollars for 1e6 tokens.")
    if None in prices:
        raise _wrong(name, path, "has one price only", "Give both, price_in and price_out.")
    return {"price": "/".join(f"{price:f}" for price in prices)}


def _wrong(name: str, path: Path, what: str, remedy: str) -> SettingsError:
    return SettingsError(f"The profile {name} in {path} {what}.", remedy=remedy)


def _nearest(key: str) -> str:
    known = (*OPTIONS_OF_A_MODEL, *_MORE)
    near = get_close_matches(key, known, n=1)
    return f"Did you mean {near[0]}?" if near else f"There are: {', '.join(known)}."
