"""Which models could be asked as things stand? Told from a terminal, without any key."""

import argparse
import re
from collections.abc import Iterator

from oh_kernel.profiles import Profile
from oh_kernel.providers import PROVIDERS, Provider
from oh_kernel.settings import Settings, config_path, load_settings, provider_key_origin

FROM_FILES = ("scripted", "replay")


def models(arguments: argparse.Namespace) -> int:
    """`oh-kernel models`: what is chosen, the profiles, the providers."""
    settings = load_settings()
    print("\n".join(_lines(settings)))
    return 0


def _lines(settings: Settings) -> Iterator[str]:
    yield f"Model: {settings.shown('model')}" + _from(settings, "model")
    if settings.fallbacks:
        yield f"Fallbacks: {settings.shown('fallbacks')}"
    if settings.models:
        yield f"For other uses: {settings.shown('models')}"
    yield ""
    yield f"Profiles in {config_path()}:" + ("" if settings.profiles else " none")
    yield from _aligned([(one.name, one.model, _about(one)) for one in settings.profiles.values()])
    yield ""
    yield "Providers:"
    listed = [one for one in PROVIDERS if one.name not in FROM_FILES]
    yield from _aligned([(one.name, _key(one), "") for one in listed])


def _from(settings: Settings, name: str) -> str:
    origin = settings.origin(name)
    return "" if origin == "default" else f" ({origin})"


def _about(profile: Profile) -> str:
    """What the profile says beside the model; of headers the names alone."""
    options = [
        f"{name}={_without_password(str(value))}"
        for name, value in profile.options.items()
        if name != "model"
    ]
    key = [f"key from {profile.api_key_env}"] if profile.api_key_env else []
    window = [f"{profile.context_window} tokens"] if profile.context_window else []
    headers = [f"headers {', '.join(profile.headers)}"] if profile.headers else []
    return "; ".join([*options, *key, *window, *headers])


def _without_password(text: str) -> str:
    return re.sub(r"//[^/@\s]*@", "//***@", text)


def _key(provider: Provider) -> str:
    if not provider.needs_key:
        return "needs no key"
    return provider_key_origin(provider) or "no key"


def _aligned(rows: list[tuple[str, str, str]]) -> Iterator[str]:
    widths = [max((len(row[at]) for row in rows), default=0) for at in range(2)]
    for first, second, rest in rows:
        yield f"  {first:<{widths[0]}}  {second:<{widths[1]}}  {rest}".rstrip()
