"""In which layers do the values of settings come, and which of them win?"""

import tomllib
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from oh_kernel.errors import SettingsError
from oh_kernel.options import BY_NAME, OPTIONS, Option
from oh_kernel.providers import how_to_login, provider_name, provider_of


class Given(NamedTuple):
    """A value as it was found, and in words where."""

    value: object
    origin: str


Layer = Mapping[str, Given]


def layer_of(values: Mapping[str, object], origin: str) -> Layer:
    """`values` as a layer; None is no value."""
    return {
        option_named(name).name: Given(value, origin)
        for name, value in values.items()
        if value is not None
    }


def read_file(path: Path) -> dict[str, Any]:
    """What stands in config.toml; no file says nothing."""
    try:
        text = path.read_text("utf-8-sig")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"{path} cannot be read: {error}.",
            remedy="Make it a readable UTF-8 text, or take it away.",
        ) from error
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(
            f"{path} is not valid TOML: {error}.",
            remedy='A line of it is NAME = VALUE, with quotes around texts: policy = "risky".',
        ) from error


def of_file(values: Mapping[str, Any], path: Path) -> Layer:
    """The options among what stands in `path`."""
    for name in values:
        refuse_secret(option_named(name), path)
    return layer_of(values, str(path))


def refuse_secret(option: Option, path: Path) -> None:
    """Raise SettingsError for a key in a file."""
    if option.secret:
        raise SettingsError(
            f"{path} holds {option.name}, and files of settings are easily shared.",
            remedy=f"Take it out and store it for you alone: {how_to_login()}.",
        )


def from_environment(environ: Mapping[str, str]) -> Layer:
    """`OPENHANDS_NAME` before the older names; an empty variable is as good as none."""
    layer: dict[str, Given] = {}
    for option in OPTIONS:
        for variable in (option.variable, *option.aliases):
            if environ.get(variable, "").strip():
                layer[option.name] = Given(environ[variable].strip(), variable)
                break
    return layer


def merged(layers: Sequence[Layer]) -> dict[str, Given]:
    """Later layers win. A key or an address goes only with the model it was given for: asking
    another provider by a flag must not send it the first one's key.
    """
    given: dict[str, Given] = {}
    home: dict[str, Given | None] = {}
    for layer in layers:
        given.update(layer)
        home |= {name: given.get("model") for name in ("api_key", "base_url") if name in layer}
    for name, model in home.items():
        if model and _provider_key(model) != _provider_key(given["model"]):
            del given[name]
    return given


def _provider_key(model: Given) -> str:
    """The same text for two models of one provider."""
    provider = provider_of(str(model.value))
    return provider.name if provider else provider_name(str(model.value))


def option_named(name: str) -> Option:
    """The option called `name` (dashes allowed), or SettingsError with the nearest name."""
    found = BY_NAME.get(name.replace("-", "_"))
    if found is None:
        raise SettingsError(f"There is no setting {name!r}.", remedy=_nearest(name))
    return found


def _nearest(name: str) -> str:
    near = get_close_matches(name.replace("-", "_").lower(), BY_NAME, n=1)
    return f"Did you mean {near[0]}?" if near else f"There are: {', '.join(BY_NAME)}."
