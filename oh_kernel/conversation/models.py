"""Which models does a conversation ask, each for its use?"""

from pathlib import Path

from oh_kernel.errors import ModelNotConfigured
from oh_kernel.events import ConversationStateUpdateEvent
from oh_kernel.llm import FallbackLLM, RetryPolicy, open_llm
from oh_kernel.llm.base import LLM
from oh_kernel.llm.priced import priced
from oh_kernel.llm.request_options import RequestOptions
from oh_kernel.settings import Settings

AGENT = "agent"
MODEL_KEY = "model"


class Models:
    """The models by their use ("agent", "condenser", ...), each opened when it is first asked.

    A use without a model of its own shares the agent's. The exception is a script: its turns were
    written for the agent's steps. (A recording finds its answer by the question, so it may be asked
    anything.) `given` is the agent's model in place of the one that the settings name, and belongs
    to who gave it until `aclose`. Used on the agent thread.
    """

    def __init__(self, settings: Settings, workspace: Path, given: LLM | None = None) -> None:
        self._settings = settings
        self._workspace = workspace
        self._given = given
        self._opened: dict[str, LLM] = {}

    def for_use(self, use: str = AGENT) -> LLM:
        """The model for `use`; raises ModelNotConfigured for a name that means none."""
        if use != AGENT and not self._is_named(use):
            self._check_may_be_asked(use)
            use = AGENT
        if use == AGENT and self._given is not None:
            return priced(self._given, self._settings.price)
        if use not in self._opened:
            self._opened[use] = model_of(self._settings.for_use(use), self._workspace)
        return self._opened[use]

    def price_for(self, use: str = AGENT) -> str | None:
        """What a million tokens cost with its model, as IN/OUT; None where nobody has set it."""
        return self._settings.for_use(use).price

    def context_window(self, use: str = AGENT) -> int | None:
        """How many tokens its model takes as its profile says; None where none says so."""
        profile = self._settings.for_use(use).profile
        return profile.context_window if profile else None

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

    def _is_named(self, use: str) -> bool:
        return self._settings.for_use(use) is not self._settings

    def _check_may_be_asked(self, use: str) -> None:
        model = self._settings.model or ""
        if self._given is None and model.startswith("scripted:"):
            raise ModelNotConfigured(
                f"There is no model for the use {use!r}: a script answers for the agent alone.",
                remedy=f"Name one: models={use}=PROVIDER:NAME.",
            )


def model_event(model: str) -> ConversationStateUpdateEvent:
    """The event that records from where on another model is asked."""
    return ConversationStateUpdateEvent(key=MODEL_KEY, value=model)


def model_of(settings: Settings, workspace: Path) -> LLM:
    """The model that the settings name; raises ModelNotConfigured when they name none."""
    if settings.model is None:
        raise ModelNotConfigured(
            "No model is chosen.",
            remedy="Set one: OPENHANDS_MODEL=openai:NAME, or ollama:NAME for a local one.",
        )
    models = [_one_model(each, workspace) for each in _with_fallbacks(settings)]
    return FallbackLLM(models) if len(models) > 1 else models[0]


def settings_of_models(settings: Settings) -> list[Settings]:
    """The settings for each model that may be asked: with its own provider's key and address."""
    uses = [part.partition("=")[0] for part in settings.models]
    others = [each for use in uses for each in _with_fallbacks(settings.for_use(use))]
    return [*_with_fallbacks(settings), *others]


def _with_fallbacks(settings: Settings) -> list[Settings]:
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
        options=RequestOptions(
            temperature=settings.temperature,
            reasoning_effort=settings.reasoning_effort,
            max_output_tokens=settings.max_output_tokens,
            headers=settings.headers,
        ),
        tool_calls=settings.tool_calls,
    )
    return priced(model, settings.price)
