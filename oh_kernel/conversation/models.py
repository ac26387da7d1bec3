"""Which models does a conversation ask, each for its use?"""

from pathlib import Path

from oh_kernel.errors import ModelNotConfigured
from oh_kernel.llm import FallbackLLM, RetryPolicy, open_llm
from oh_kernel.llm.base import LLM
from oh_kernel.llm.priced import priced
from oh_kernel.settings import Settings

AGENT = "agent"


class Models:
    """The models by their use ("agent", "condenser", ...), each opened when it is first asked.

    `given` is asked for every use and belongs to who gave it until `aclose`. Used on the agent
    thread.
    """

    def __init__(self, settings: Settings, workspace: Path, given: LLM | None = None) -> None:
        self._settings = settings
        self._workspace = workspace
        self._given = given
        self._opened: dict[str, LLM] = {}

    def for_use(self, use: str = AGENT) -> LLM:
        """The model for `use`; raises ModelNotConfigured for a name that means none."""
        if self._given is not None:
            return priced(self._given, self._settings.price)
        if use not in self._opened:
            self._opened[use] = model_of(self._settings, self._workspace)
        return self._opened[use]

    @property
    def name(self) -> str:
        """The agent's model as it calls itself; "" before it was first asked for."""
        opened = self._given or self._opened.get(AGENT)
        return opened.model if opened else ""

    async def use(self, settings: Settings) -> None:
        """Go by other settings from the next request on."""
        self._settings = settings
        await self._close_opened()

    async def aclose(self) -> None:
        """Close the connections of all."""
        await self._close_opened()
        if self._given is not None:
            await self._given.aclose()

    async def _close_opened(self) -> None:
        opened, self._opened = list(self._opened.values()), {}
        for model in opened:
            await model.aclose()


def model_of(settings: Settings, workspace: Path) -> LLM:
    """The model that the settings name; raises ModelNotConfigured when they name none."""
    if settings.model is None:
        raise ModelNotConfigured(
            "No model is chosen.",
            remedy="Set one: OPENHANDS_MODEL=openai:NAME, or ollama:NAME for a local one.",
        )
    models = [_one_model(each, workspace) for each in settings_of_models(settings)]
    return FallbackLLM(models) if len(models) > 1 else models[0]


def settings_of_models(settings: Settings) -> list[Settings]:
    """The settings for the model and for each fallback: with its own provider's key and address."""
    others = [settings.with_("fallbacks", model=name) for name in settings.fallbacks]
    return [settings, *others]


def _one_model(settings: Settings, workspace: Path) -> LLM:
    key = settings.api_key
    assert settings.model is not None
    model = open_llm(
        settings.model,
        base_url=settings.base_url,
        api_key=key.get_secret_value() if key else None,
        timeout_s=settings.timeout_s,
        retry=RetryPolicy(attempts=settings.max_retries),
        workspace=workspace,
        takes_images=settings.images,
        stream=settings.stream,
    )
    return priced(model, settings.price)
