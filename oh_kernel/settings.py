"""With which settings does this run work, and where did each value come from?

The one module that reads the environment. Values are layers, later ones win: config.toml, the
environment, what was set in this notebook, the flags of one turn.
"""

import os
import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple, Self, cast

import platformdirs
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationError,
)

from oh_kernel.credentials import stored_key
from oh_kernel.errors import SettingsError
from oh_kernel.layers import (
    Given,
    Layer,
    from_environment,
    layer_of,
    merged,
    of_file,
    read_file,
)
from oh_kernel.options import BY_NAME, OPTIONS, USES, Option
from oh_kernel.profiles import Profile, Profiles, profiles_in, with_profile
from oh_kernel.providers import PROVIDERS, Provider, own_address, provider_of


class Outside(NamedTuple):
    """What the environment and the disk hold for models and their providers."""

    variables: Mapping[str, str]
    config_folder: Path
    profiles: Profiles = MappingProxyType({})


def _option(name: str) -> Any:
    """A field with the default, the limit and the description of its row in the table."""
    option = BY_NAME[name]
    return Field(
        option.default,
        ge=option.minimum,
        allow_inf_nan=False if option.type is float else None,
        description=option.help,
    )


def _parts(value: object) -> object:
    """`a, b` as two texts. A value that is not text is left to the validator."""
    if not isinstance(value, str):
        return value
    return tuple(part.strip() for part in value.split(",") if part.strip())


def _absolute(value: object) -> object:
    return Path(value).expanduser().absolute() if isinstance(value, str | Path) else value


def _address(value: str | None) -> str | None:
    """Without its scheme, an address would be asked again and again, in vain; "" is none."""
    if value and not re.match(r"https?://[^/\s]", value):
        raise ValueError("not an HTTP address")
    return value or None


def _prices(value: str | None) -> str | None:
    if value and not re.fullmatch(r"\d*\.?\d+/\d*\.?\d+", value):
        raise ValueError("not two prices")
    return value or None


def _by_use(value: object) -> object:
    """A table, as `[models]` in config.toml, in the form of a list of `USE=MODEL`."""
    if isinstance(value, Mapping):
        return tuple(f"{use}={model}" for use, model in value.items())
    return _parts(value)


def _of_known_uses(value: tuple[str, ...]) -> tuple[str, ...]:
    pairs = [part.partition("=") for part in value]
    if any(use.strip() not in USES or not model.strip() for use, _, model in pairs):
        raise ValueError("not a list of USE=MODEL")
    return tuple(f"{use.strip()}={model.strip()}" for use, _, model in pairs)


Texts = Annotated[tuple[str, ...], BeforeValidator(_parts)]
Folder = Annotated[Path, BeforeValidator(_absolute)]


class Settings(BaseModel):
    """All options with their values. Immutable; `with_` gives a changed copy."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    model: str | None = _option("model")
    base_url: Annotated[str | None, AfterValidator(_address)] = _option("base_url")
    api_key: SecretStr | None = _option("api_key")
    fallbacks: Texts = _option("fallbacks")
    models: Annotated[tuple[str, ...], BeforeValidator(_by_use), AfterValidator(_of_known_uses)] = (
        _option("models")
    )
    tool_calls: Literal["auto", "native", "text", "code"] = _option("tool_calls")
    temperature: float | None = _option("temperature")
    reasoning_effort: Literal["auto", "none", "minimal", "low", "medium", "high", "xhigh"] = (
        _option("reasoning_effort")
    )
    max_output_tokens: int | None = _option("max_output_tokens")
    policy: Literal["risky", "never", "always", "cautious"] = _option("policy")
    unattended: Literal["deny", "allow", "fail"] = _option("unattended")
    allow: Texts = _option("allow")
    trust_hooks: bool = _option("trust_hooks")
    hooks_fail: Literal["closed", "open"] = _option("hooks_fail")
    max_steps: int = _option("max_steps")
    max_tokens: int | None = _option("max_tokens")
    conversation_max_tokens: int | None = _option("conversation_max_tokens")
    budget: float | None = _option("budget")
    conversation_budget: float | None = _option("conversation_budget")
    price: Annotated[str | None, AfterValidator(_prices)] = _option("price")
    stuck_detection: bool = _option("stuck_detection")
    critic: Literal["none", "pass", "finished", "changes", "tests", "model"] = _option("critic")
    critic_rounds: int = _option("critic_rounds")
    condenser: Literal["llm", "recent", "none"] = _option("condenser")
    condense_after_events: int = _option("condense_after_events")
    condense_after_tokens: int | None = _option("condense_after_tokens")
    tools: str = _option("tools")
    context: Literal["none", "schema", "full"] = _option("context")
    workspace: Folder | None = _option("workspace")
    store_path: Folder | None = _option("store_path")
    allowed_folders: Annotated[tuple[Folder, ...], BeforeValidator(_parts)] = _option(
        "allowed_folders"
    )
    timeout_s: float = _option("timeout_s")
    max_retries: int = _option("max_retries")
    images: bool = _option("images")
    stream: bool = _option("stream")
    python_timeout_s: float = _option("python_timeout_s")
    terminal_no_change_timeout_s: float = _option("terminal_no_change_timeout_s")
    terminal_one_statement: bool = _option("terminal_one_statement")
    runtime_idle_timeout_s: float = _option("runtime_idle_timeout_s")

    _layers: tuple[Layer, ...] = PrivateAttr(default=())
    _origins: Mapping[str, str] = PrivateAttr(default_factory=dict)
    _outside: Outside | None = PrivateAttr(default=None)
    _profile: Profile | None = PrivateAttr(default=None)

    def with_(self, _origin: str = "set in this notebook", /, **values: object) -> Self:
        """The same with other values, checked like all others. A new model finds its own key."""
        outside = self._outside or Outside({}, config_folder())
        return cast(Self, _settle((*self._layers, layer_of(values, _origin)), outside))

    @property
    def profile(self) -> Profile | None:
        """The profile by whose name the model was chosen."""
        return self._profile

    @property
    def profiles(self) -> Profiles:
        """All profiles of config.toml by their names."""
        return self._outside.profiles if self._outside else {}

    @property
    def headers(self) -> dict[str, str]:
        """What is sent with each request beside the usual headers; it may hold keys."""
        variables = self._outside.variables if self._outside else {}
        return self._profile.sent_headers(variables) if self._profile else {}

    @property
    def secret_values(self) -> list[str]:
        """What must never be shown: the key, and headers that come from variables."""
        key = [self.api_key.get_secret_value()] if self.api_key else []
        texts = self._profile.headers if self._profile else {}
        return key + [sent for name, sent in self.headers.items() if texts[name] != sent]

    def for_use(self, use: str) -> Self:
        """The settings with the model that `models` names for `use`; else these."""
        named = dict(part.split("=", 1) for part in self.models).get(use)
        return self.with_("models", model=named) if named else self

    def origin(self, name: str) -> str:
        """Where the value of `name` came from, in words: "default", "OPENHANDS_MODEL", ..."""
        return self._origins.get(name, "default")

    def shown(self, name: str) -> str:
        """The value of `name` as text for a person; secrets are masked."""
        return shown(getattr(self, name))

    @property
    def config_folder(self) -> Path:
        """Where this user keeps settings, keys, and what they decided once and for all."""
        return self._outside.config_folder if self._outside else config_folder()

    @property
    def store_file(self) -> Path:
        """The database of conversations: `store_path`, or the one in the Jupyter data folder."""
        if self.store_path is not None:
            return self.store_path
        return data_folder() / "events.sqlite"


def data_folder() -> Path:
    """Where this user's data of ours lies unless a setting says otherwise."""
    from jupyter_core.paths import jupyter_data_dir  # heavy for who has set the path

    return Path(jupyter_data_dir()) / "oh-kernel"


def cache_folder() -> Path:
    """Where what can be fetched again is kept."""
    return platformdirs.user_cache_path("oh-kernel", appauthor=False)


def shown(value: object) -> str:
    """A value as a person writes it."""
    if value is None or value == ():
        return "not set"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def load_settings(
    flags: Mapping[str, object] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    config_file: Path | None = None,
) -> Settings:
    """The settings of this run: defaults, config.toml, the environment and `flags`, in one place.

    Raises SettingsError, which names the value, its place, what is allowed and the remedy.
    """
    variables = os.environ if environ is None else environ
    path = config_file or _existing(config_path(variables), variables)
    values = read_file(path)
    profiles = profiles_in(values.pop("profiles", {}), path)
    layers = (of_file(values, path), from_environment(variables), layer_of(flags or {}, "a flag"))
    named = _of_providers(variables) | _of_profiles(profiles, variables)
    return _settle(layers, Outside(named, path.parent, profiles))


def config_folder() -> Path:
    """The folder of config.toml and of the stored keys."""
    return config_path().parent


def config_path(environ: Mapping[str, str] | None = None) -> Path:
    """The file of settings: OPENHANDS_CONFIG_FILE, or config.toml in the user's own folder."""
    named = (os.environ if environ is None else environ).get("OPENHANDS_CONFIG_FILE")
    if named:
        return Path(named).expanduser().absolute()
    return platformdirs.user_config_path("oh-kernel", appauthor=False) / "config.toml"


def _existing(path: Path, variables: Mapping[str, str]) -> Path:
    """`path`, which must be there when it was named; the user's own file need not be."""
    if variables.get("OPENHANDS_CONFIG_FILE") and not path.exists():
        raise SettingsError(
            f"There is no file {path}, which OPENHANDS_CONFIG_FILE names.",
            remedy="Make it (it may be empty), name another, or unset the variable.",
        )
    return path


def notebook_of_session(environ: Mapping[str, str] | None = None) -> Path | None:
    """The notebook for which a Jupyter server started this process, as it was called then."""
    named = (os.environ if environ is None else environ).get("JPY_SESSION_NAME", "")
    return Path(named).absolute() if named.endswith(".ipynb") else None


def environment_variable(name: str) -> str | None:
    """What this process was given as `name`, for a secret that is kept there."""
    return os.environ.get(name)


def child_environment(more: Mapping[str, str]) -> dict[str, str]:
    """The environment of this process with `more`, for a kernel that is started."""
    return {**os.environ, **more}


def providers_with_key(environ: Mapping[str, str] | None = None) -> list[Provider]:
    """The providers that could be asked as things stand, by their own variables or by `login`."""
    return [one for one in PROVIDERS if one.needs_key and provider_key_origin(one, environ)]


def provider_key_origin(provider: Provider, environ: Mapping[str, str] | None = None) -> str | None:
    """Where the key of a provider comes from, in words; None where there is none."""
    variables = _of_providers(os.environ if environ is None else environ)
    found = [f"key from {name}" for name in provider.key_variables if name in variables]
    if found:
        return found[0]
    return "key stored by login" if stored_key(provider.name, config_folder()) else None


def misspelt_variables(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Variables that look like ours but are not, each with the one that was probably meant."""
    known = [option.variable for option in OPTIONS]
    found = {}
    for name in os.environ if environ is None else environ:
        near = get_close_matches(name, known, n=1, cutoff=0.85)
        if near and name not in known:
            found[name] = near[0]
    return found


def _of_providers(environ: Mapping[str, str]) -> dict[str, str]:
    names = [name for one in PROVIDERS for name in (*one.key_variables, *one.url_variables)]
    return {name: environ[name].strip() for name in names if environ.get(name, "").strip()}


def _of_profiles(profiles: Profiles, environ: Mapping[str, str]) -> dict[str, str]:
    names = [name for profile in profiles.values() for name in profile.variables]
    return {name: environ[name].strip() for name in names if environ.get(name, "").strip()}


def _settle(layers: tuple[Layer, ...], outside: Outside) -> Settings:
    whole, profile = with_profile(layers, outside.profiles, outside.variables)
    given = merged(whole)
    model = given.get("model")
    provider = provider_of(str(model.value)) if model else None
    if provider is not None:
        _add_own(given, provider, outside)
    settings = _checked(given)
    settings._layers = layers
    settings._origins = {name: one.origin for name, one in given.items()}
    settings._outside = outside
    settings._profile = profile
    return settings


def _add_own(given: dict[str, Given], provider: Provider, outside: Outside) -> None:
    """The provider's own variables, then the key that `login` stored, where nothing was given."""
    for name, variables in (
        ("base_url", provider.url_variables),
        ("api_key", provider.key_variables),
    ):
        for variable in variables:
            if name not in given and variable in outside.variables:
                value = outside.variables[variable]
                is_host = variable == "OLLAMA_HOST"  # as Ollama itself reads it, without a scheme
                given[name] = Given(own_address(value) if is_host else value, variable)
    if "api_key" in given or not provider.needs_key:
        return
    if key := stored_key(provider.name, outside.config_folder):
        given["api_key"] = Given(key, "stored by login")


def _checked(given: Mapping[str, Given]) -> Settings:
    try:
        return Settings.model_validate({name: one.value for name, one in given.items()})
    except ValidationError as error:
        name = str(error.errors()[0]["loc"][0])
        raise _refusal(BY_NAME[name], given[name]) from None


def _refusal(option: Option, given: Given) -> SettingsError:
    value = "***" if option.secret else repr(given.value)
    return SettingsError(
        f"{option.name} is {value} ({given.origin}), but must be {_allowed(option)}.",
        remedy=_remedy(option, given),
    )


def _allowed(option: Option) -> str:
    if option.choices:
        return "one of " + ", ".join(option.choices)
    if option.metavar == "URL":
        return "an address that begins with http:// or https://"
    if option.name == "models":
        return f"a list of USE=MODEL, with a USE of {', '.join(USES)}"
    if option.metavar == "IN/OUT":
        return "two prices, in and out, such as 0.15/0.60"
    limit = "" if option.minimum is None else f" of at least {option.minimum:g}"
    unit = f" ({option.unit})" if option.unit else ""
    return {
        int: f"a whole number{limit}{unit}",
        float: f"a number{limit}{unit}",
        bool: "yes or no",
        list: "texts with commas between",
    }.get(option.type, "text")


def _remedy(option: Option, given: Given) -> str:
    near = get_close_matches(str(given.value).lower(), option.choices, n=1, cutoff=0.5)
    if near:
        return f"Did you mean {near[0]}?"
    if option.default in (None, ()):
        return ""
    return f"The default is {shown(option.default)}."
