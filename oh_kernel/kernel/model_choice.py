"""Which models does a notebook ask, and how is another one chosen for it?"""

from oh_kernel.errors import SettingsError
from oh_kernel.kernel.notes import Table
from oh_kernel.options import USES
from oh_kernel.providers import how_to_name_a_model, provider_of
from oh_kernel.settings import Settings


def models_shown(settings: Settings) -> Table:
    """The model of each use, and the profiles to choose from."""
    rows = [_row("agent", settings)]
    rows += [(f"fallback {n}", name, "") for n, name in enumerate(settings.fallbacks, 1)]
    own = {use: settings.for_use(use) for use in USES}
    rows += [_row(use, one) for use, one in own.items() if one is not settings]
    named = ", ".join(settings.profiles) or "none in config.toml"
    return Table(("use", "model", "tool calls"), rows, f"Profiles: {named}.")


def switched(settings: Settings, name: str) -> tuple[Settings, str]:
    """The settings with another model, and what to say of it."""
    changed = settings.with_(model=name)
    is_whole = name in settings.profiles or ":" in name or "/" in name or settings.base_url
    if not is_whole:
        named = f"The profiles are {', '.join(settings.profiles)}. " if settings.profiles else ""
        raise SettingsError(
            f"{name!r} is neither a profile nor PROVIDER:NAME.",
            remedy=f"{named}For a prompt that begins with this word: %openhands -- model {name}",
        )
    text = f"From the next turn on {changed.model} is asked, until this kernel ends."
    return changed, text + remark(changed)


def remark(settings: Settings) -> str:
    """Of a model that cannot be asked as things stand. Not refused: its base_url may come next,
    and has to, as an address goes only with the model it was set for.
    """
    model = settings.model
    if model is None or settings.base_url or provider_of(model):
        return ""
    return f" But it cannot be used yet: no provider is known for it. {how_to_name_a_model(model)}"


def _row(use: str, settings: Settings) -> tuple[str, str, str]:
    profile = f" (profile {settings.profile.name})" if settings.profile else ""
    return use, f"{settings.model or 'not set'}{profile}", settings.tool_calls
