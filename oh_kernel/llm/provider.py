"""How is one request made to a real provider, and its reply streamed?

One request, one reply: retries live in `retry.py`. The model library is imported at first use, in a
worker thread, because it takes a second or more and the agent's loop has a status line to move.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from oh_kernel.errors import (
    ContentPolicyRefused,
    ModelError,
    ModelUnavailable,
    PictureRefused,
)
from oh_kernel.events import Message
from oh_kernel.events.base import new_id
from oh_kernel.events.text import without_lone_surrogates
from oh_kernel.llm import failures, pictures
from oh_kernel.llm.base import (
    Completion,
    Delta,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolSpec,
)
from oh_kernel.llm.clients import DEFAULT_TIMEOUT_S, Client, connect, split_name
from oh_kernel.llm.convert import to_request
from oh_kernel.llm.pricing import cost_of, usage_of
from oh_kernel.llm.replies import from_response
from oh_kernel.llm.request_options import RequestOptions

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse, ModelResponseStreamEvent


class ProviderLLM:
    """A model behind an HTTP API. Made on any thread, used on the agent thread."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        takes_images: bool = True,
        streams: bool = True,
        options: RequestOptions | None = None,
    ) -> None:
        self._provider, self._name = split_name(model, base_url)
        self._base_url = base_url
        self._api_key = api_key
        self._timeout_s = timeout_s
        self._takes_images = takes_images
        self._streams = streams
        self._options = options or RequestOptions()
        self._accepted_pictures: set[str] = set()
        self._refused_pictures: set[str] = set()
        self._client: Client | None = None
        self._connecting = asyncio.Lock()

    @property
    def model(self) -> str:
        return f"{self._provider}:{self._name}"

    @property
    def takes_images(self) -> bool:
        return self._takes_images

    async def warm_up(self) -> None:
        """Import the model library and make the client."""
        await self._connected()

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> AsyncGenerator[Delta | Completion]:
        """Ask once. Raises ModelUnavailable or ModelRateLimited when asking again could help.

        A picture that the provider refuses is left out, from then on, and the rest asked at once.
        """
        shown = {pictures.key_of(url) for url in pictures.urls_of(messages)}
        while True:
            try:
                async with aclosing(self._once(messages, tools)) as reply:
                    async for item in reply:
                        if isinstance(item, Completion):
                            self._accepted_pictures |= shown - self._refused_pictures
                        yield item
                return
            except PictureRefused:
                suspected = shown - self._accepted_pictures - self._refused_pictures
                if not suspected:
                    raise
                self._refused_pictures |= suspected

    async def _once(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> AsyncGenerator[Delta | Completion]:
        client = await self._connected()
        try:
            async with aclosing(self._ask(client, messages, tools)) as reply:
                async for item in reply:
                    yield item
        except ModelError:
            raise
        except Exception as error:
            # Here foreign exceptions enter: several libraries' trees, and what slips through them.
            if not _is_failure_of_call(error):
                raise
            self._check_was_stream(client)
            url = client.model.base_url or ""
            raise failures.from_exception(error, self.model, self._api_key, url) from error

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _connected(self) -> Client:
        async with self._connecting:
            if self._client is None:
                self._client = await asyncio.to_thread(
                    connect,
                    self._provider,
                    self._name,
                    base_url=self._base_url,
                    api_key=self._api_key,
                    timeout_s=self._timeout_s,
                    takes_images=self._takes_images,
                )
            return self._client

    async def _ask(
        self, client: Client, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> AsyncGenerator[Delta | Completion]:
        refused = frozenset(self._refused_pictures)
        dialect = replace(client.dialect, refused_pictures=refused)
        history, parameters = to_request(messages, tools, dialect)
        settings = _settings(client, self._options)
        if not self._streams:
            yield self._completion(
                await client.model.request(history, settings, parameters), client
            )
            return
        async with client.model.request_stream(history, settings, parameters) as reply:
            calls = _Calls()
            async for event in reply:
                delta = calls.delta(event)
                if delta is not None:
                    yield delta
            response = reply.get()
            if _was_cut_off(response, client):
                self._check_was_stream(client)
                raise ModelUnavailable(f"{self.model} broke off in the middle of its reply.")
            yield self._completion(response, client)

    def _check_was_stream(self, client: Client) -> None:
        """Raise, as asking again cannot help, when a document came where events were wanted."""
        if self._streams and client.answer.media_type:
            raise failures.for_document(
                client.answer.media_type, client.answer.text, self.model, self._api_key
            )

    def _completion(self, response: "ModelResponse", client: Client) -> Completion:
        self._check_not_refused(response)
        return Completion(
            message=from_response(response, client.dialect.kind),
            response_id=response.provider_response_id or new_id(),
            model=response.model_name or self._name,
            usage=usage_of(response.usage),
            cost_usd=cost_of(response),
            finish_reason=response.finish_reason or "stop",
        )

    def _check_not_refused(self, response: "ModelResponse") -> None:
        if response.finish_reason != "content_filter" or response.parts:
            return
        details = response.provider_details or {}
        said = failures.clean(str(details.get("refusal") or "the provider's filter struck"))
        raise ContentPolicyRefused(
            f"{self.model} refuses to answer: {said}",
            remedy="Say it in other words, or start a new conversation.",
        )


def _settings(client: Client, options: RequestOptions) -> Any:
    return {**_own_settings(client), **options.for_library(client.dialect.kind)}


def _own_settings(client: Client) -> dict[str, Any]:
    match client.dialect.kind:
        case "anthropic":
            return {"anthropic_cache_instructions": True}  # up to the mark, see convert.py
        case "responses":
            # Nothing is kept at the provider; reasoning comes back to us, encrypted.
            return {"openai_store": False}
        case _:
            return {}


def _was_cut_off(response: "ModelResponse", client: Client) -> bool:
    """A closed connection looks like the end of the stream: only the last event tells them apart.

    Some compatible servers never give a reason to finish; a count of tokens ends their streams.
    """
    if client.dialect.kind == "other":
        return False
    if response.state == "incomplete":
        return True
    finished = (response.provider_details or {}).get("finish_reason") is not None
    counted = client.dialect.kind == "chat" and response.usage.output_tokens > 0
    return not (finished or counted or response.finish_reason == "content_filter")


def _is_failure_of_call(error: Exception) -> bool:
    """Whether the provider or the way to it failed, rather than our own code."""
    import httpx2
    from pydantic_ai.exceptions import AgentRunError, UserError

    known = AgentRunError | UserError | httpx2.HTTPError | httpx2.StreamError | OSError
    return isinstance(error, known) or _is_of_library(error)


def _is_of_library(error: Exception) -> bool:
    """Whether the model library stumbled over a reply: it does not check all that it reads."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = str(trace.tb_frame.f_globals.get("__name__", "")) if trace is not None else ""
    stumbled = isinstance(error, TypeError | LookupError | AttributeError | ValueError)
    return stumbled and module.partition(".")[0] == "pydantic_ai"


class _Calls:
    """Turns the library's events into deltas, counting tool calls from 0."""

    def __init__(self) -> None:
        self._by_part: dict[int, tuple[int, str]] = {}

    def delta(self, event: "ModelResponseStreamEvent") -> Delta | None:
        from pydantic_ai import messages as library

        match event:
            case library.PartStartEvent(part=library.TextPart(content=text)):
                return _text(text)
            case library.PartDeltaEvent(delta=library.TextPartDelta(content_delta=text)):
                return _text(text)
            case library.PartStartEvent(part=library.ThinkingPart(content=text)):
                return _reasoning(text)
            case library.PartDeltaEvent(delta=library.ThinkingPartDelta(content_delta=text)):
                return _reasoning(text or "")
            case library.PartStartEvent(index=index, part=library.ToolCallPart() as call):
                self._by_part[index] = (len(self._by_part), call.tool_name)
                return self._piece(index, call.args)
            case library.PartDeltaEvent(index=index, delta=library.ToolCallPartDelta() as piece):
                return self._piece(index, piece.args_delta) if index in self._by_part else None
            case _:
                return None

    def _piece(self, index: int, arguments: "str | dict[str, Any] | None") -> ToolCallDelta:
        number, name = self._by_part[index]
        text = arguments if isinstance(arguments, str | None) else json.dumps(arguments)
        return ToolCallDelta(number, name, without_lone_surrogates(text or ""))


def _text(text: str) -> TextDelta | None:
    return TextDelta(without_lone_surrogates(text)) if text else None


def _reasoning(text: str) -> ReasoningDelta | None:
    return ReasoningDelta(without_lone_surrogates(text)) if text else None
