"""How does a name such as `openai:gpt-5` become a client of the model library?

Every client gets its key and base URL from its caller, reads proxies and CA bundles from the
environment (as any HTTP client does), and never retries by itself: `retry.py` does, and shows it.
"""

import importlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from oh_kernel.errors import ModelAuthError, ModelNotConfigured
from oh_kernel.imports import libraries_unshadowed
from oh_kernel.installing import pip_install
from oh_kernel.llm.convert import Dialect, Kind
from oh_kernel.providers import how_to_login, how_to_name_a_model, provider_name

if TYPE_CHECKING:
    from httpx2 import AsyncClient
    from pydantic_ai.models import Model

DEFAULT_TIMEOUT_S = 300.0
CONNECT_TIMEOUT_S = 20.0
_ALIASES = {"openai-chat": "openai", "google-gla": "google", "gemini": "google"}
# Local servers want no key, the client libraries insist on some text.
NO_KEY = "no-key"


@dataclass(frozen=True)
class Route:
    """Where a provider's classes are, and what it needs. `extra` is the model library's."""

    kind: Kind
    model: str
    provider: str
    base_url: str | None = None
    fixed_url: bool = False
    needs_key: bool = True
    extra: str | None = None
    http: str = "httpx2"


def _compatible(provider: str) -> Route:
    """A named server that speaks OpenAI's API at one address."""
    return Route("chat", "openai.OpenAIChatModel", provider, fixed_url=True)


_OPENAI_URL = "https://api.openai.com/v1"
_ANTHROPIC_URL = "https://api.anthropic.com"
OLLAMA_URL = "http://localhost:11434/v1"
_CHAT, _OPENAI = "openai.OpenAIChatModel", "openai.OpenAIProvider"
_CLAUDE = ("anthropic.AnthropicModel", "anthropic.AnthropicProvider")
_BEDROCK = ("bedrock.BedrockConverseModel", "bedrock.BedrockProvider")

ROUTES: dict[str, Route] = {
    "openai": Route("chat", _CHAT, _OPENAI, _OPENAI_URL),
    "openai-responses": Route("responses", "openai.OpenAIResponsesModel", _OPENAI, _OPENAI_URL),
    "anthropic": Route("anthropic", *_CLAUDE, _ANTHROPIC_URL),
    "ollama": Route("chat", _CHAT, "ollama.OllamaProvider", OLLAMA_URL, needs_key=False),
    "deepseek": _compatible("deepseek.DeepSeekProvider"),
    "openrouter": _compatible("openrouter.OpenRouterProvider"),
    "together": _compatible("together.TogetherProvider"),
    "fireworks": _compatible("fireworks.FireworksProvider"),
    "google": Route("other", "google.GoogleModel", "google.GoogleProvider", extra="google"),
    "groq": Route("other", "groq.GroqModel", "groq.GroqProvider", extra="groq", http="httpx"),
    "mistral": Route("other", "mistral.MistralModel", "mistral.MistralProvider", extra="mistral"),
    "bedrock": Route("other", *_BEDROCK, fixed_url=True, needs_key=False, extra="bedrock"),
}


def split_name(model: str, base_url: str | None = None) -> tuple[str, str]:
    """`provider:model` or `provider/model` as its two halves.

    With a base URL, a name without a known provider is one on an OpenAI-compatible server.

    >>> split_name("openrouter/meta/llama-4"), split_name("ollama:qwen3:8b")
    (('openrouter', 'meta/llama-4'), ('ollama', 'qwen3:8b'))
    >>> split_name("Qwen/Qwen3-8B", "http://localhost:8000/v1")
    ('openai', 'Qwen/Qwen3-8B')
    """
    prefix = provider_name(model)
    provider, name = _ALIASES.get(prefix, prefix), model[len(prefix) + 1 :]
    if provider in ROUTES and name:
        return provider, name
    if base_url and model and provider not in ROUTES:
        return "openai", model
    raise ModelNotConfigured(
        f"No provider is known for the model {model!r}.", remedy=how_to_name_a_model(model)
    )


class WholeAnswer:
    """What the last successful response held, if that was one document and no stream of events.

    A login page, an error in spite of status 200, a server that cannot stream: a client library
    that reads them as a stream finds nothing in them, and says nothing.
    """

    def __init__(self) -> None:
        self.media_type = ""
        self.text = ""

    async def note(self, response: Any) -> None:
        """Look at a response (of httpx or httpx2) before anybody else does."""
        self.media_type = self.text = ""
        media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.status_code != 200 or media_type not in ("application/json", "text/html"):
            return
        if "content-length" in response.headers:  # a stream of whatever type has none
            await response.aread()
            self.text = response.text
        if media_type == "text/html" or _is_json(self.text):  # half a JSON is an accident
            self.media_type = media_type


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


@dataclass(frozen=True)
class Client:
    """A model of the library, the HTTP client under it (None: the provider's own), its dialect."""

    model: "Model"
    http: "AsyncClient | None"
    dialect: Dialect
    answer: WholeAnswer = field(default_factory=WholeAnswer)

    async def aclose(self) -> None:
        if self.http is not None:
            await self.http.aclose()


def connect(
    provider: str,
    name: str,
    *,
    base_url: str | None,
    api_key: str | None,
    timeout_s: float,
    takes_images: bool,
) -> Client:
    """Make the client. This imports the model library: seconds, so not on a thread that serves."""
    route = ROUTES[provider]
    if base_url and route.fixed_url:
        raise ModelNotConfigured(
            f"{provider} models are at one address; a base URL cannot be set for them.",
            remedy="Leave it out, or name the model openai:NAME with that base URL.",
        )
    if base_url and not base_url.lower().startswith(("http://", "https://")):
        raise ModelNotConfigured(
            f"The base URL {base_url!r} is no address.",
            remedy="It begins with http:// or https://, as in http://localhost:8000/v1.",
        )
    model_class = _load("models", route.model, route)
    provider_class = _load("providers", route.provider, route)
    if provider == "bedrock":
        # Its own transport (botocore), which finds AWS credentials by its own rules.
        made = provider_class(aws_read_timeout=timeout_s, aws_connect_timeout=CONNECT_TIMEOUT_S)
        return _client(model_class(name, provider=made), None, route, takes_images)
    answer = WholeAnswer()
    http = _http_client(route, timeout_s, answer)
    urls = {} if route.fixed_url else {"base_url": base_url or route.base_url}
    key = _key(provider, route, api_key, base_url)
    made = provider_class(api_key=key, http_client=http, **urls)
    if hasattr(made.client, "max_retries"):
        made.client.max_retries = 0
    return _client(model_class(name, provider=made), http, route, takes_images, answer)


def _client(
    model: "Model",
    http: "AsyncClient | None",
    route: Route,
    takes_images: bool,
    answer: WholeAnswer | None = None,
) -> Client:
    profile: dict[str, Any] = dict(model.profile)
    dialect = Dialect(
        kind=route.kind,
        system=model.system,
        takes_images=takes_images,
        thinking_field=profile.get("openai_chat_thinking_field"),
        id_chars=profile.get("tool_call_id_length"),
    )
    return Client(model, http, dialect, answer or WholeAnswer())


def _http_client(route: Route, timeout_s: float, answer: WholeAnswer) -> Any:
    library = importlib.import_module(route.http)  # with the model library, at first use
    timeout = library.Timeout(timeout_s, connect=min(CONNECT_TIMEOUT_S, timeout_s))
    hooks = {"response": [answer.note]}
    return library.AsyncClient(timeout=timeout, follow_redirects=True, event_hooks=hooks)


def _key(provider: str, route: Route, api_key: str | None, base_url: str | None) -> str:
    """The key, always explicit: left to themselves, the client libraries would read variables."""
    if api_key:
        return api_key
    if route.needs_key and base_url is None:
        name = provider.split("-")[0]
        raise ModelAuthError(
            f"There is no key for {provider}.",
            remedy=f"Use {how_to_login(name)}, or set {name.upper()}_API_KEY.",
        )
    return NO_KEY


def _load(package: str, path: str, route: Route) -> Any:
    """The class `path` of the model library; a missing extra becomes an error that names it."""
    module, _, name = path.rpartition(".")
    try:
        with libraries_unshadowed():
            return getattr(importlib.import_module(f"pydantic_ai.{package}.{module}"), name)
    except ImportError as error:
        if route.extra is None:
            raise
        raise ModelNotConfigured(
            f"The client library for {route.extra} models is not installed.",
            remedy=f"Install it: {pip_install(f'pydantic-ai-slim[{route.extra}]')}",
        ) from error
