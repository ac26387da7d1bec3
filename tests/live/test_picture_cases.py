"""Field case LM-05 over real HTTP: no picture makes a conversation impossible to go on with."""

import asyncio
import base64
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from agentskills.images import read_header
from oh_kernel import Conversation
from oh_kernel.errors import PictureRefused
from oh_kernel.events import ImageContent, Message, ObservationEvent, TextContent
from oh_kernel.llm import open_llm
from oh_kernel.store import EventStore
from oh_kernel.tools.file_editor import FileEditorObservation
from tests.live.asking import FAST, KEY, ask, read
from tests.live.model_server import ModelServer, Request

CHAT = "openai:gpt-4o"
ANTHROPIC = "anthropic:claude-sonnet-5"
RESPONSES = "openai-responses:gpt-5"


def png(width: int, height: int) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (width, height), 90).save(out, "PNG")
    return out.getvalue()


def picture(data: bytes) -> ImageContent:
    return ImageContent(image_urls=[f"data:image/png;base64,{base64.b64encode(data).decode()}"])


def shown(*parts: bytes) -> Message:
    return Message(role="user", content=[TextContent(text="Look."), *map(picture, parts)])


def pictures_of(body: object) -> Iterator[str]:
    """The base64 of every picture in a request of any of the three APIs."""
    match body:
        case {"type": "base64", "data": str(data)}:
            yield data
        case str() if body.startswith("data:image/"):
            yield body.partition(",")[2]
        case dict():
            for value in body.values():
                yield from pictures_of(value)
        case list():
            for value in body:
                yield from pictures_of(value)


def assert_acceptable(request: Request) -> list[str]:
    found = list(pictures_of(request.json))
    for data in found:
        assert len(data) <= 5 * 2**20
        header = read_header(base64.b64decode(data))
        assert header is not None
        assert max(header.width, header.height) <= (8000 if len(found) <= 20 else 2000)
    return found


def url_for(server: ModelServer, model: str) -> str:
    return server.url if model == ANTHROPIC else server.url + "/v1"


@pytest.mark.parametrize("model", [CHAT, ANTHROPIC, RESPONSES])
@pytest.mark.parametrize("copies", [1, 21])
def test_LM_05_a_large_picture_of_the_history_is_scaled(model: str, copies: int) -> None:
    with ModelServer([{"content": "seen"}]) as server:
        answer = ask(model, url_for(server, model), [shown(*[png(200, 9000)] * copies)])
        assert answer.text == "seen"
        assert len(assert_acceptable(server.requests[0])) == copies


REFUSAL = {"status": 400, "message": "Could not process image"}


@pytest.mark.parametrize("model", [CHAT, ANTHROPIC, RESPONSES])
def test_LM_05_a_refused_picture_is_left_out_from_then_on(model: str) -> None:
    script = [{"content": "first"}, {"fail": [REFUSAL], "content": "second"}]
    first, second = png(10, 10), png(20, 20)

    async def story() -> None:
        llm = open_llm(model, base_url=url_for(server, model), api_key=KEY, retry=FAST)
        history = [shown(first)]
        history += [(await read(llm, history)).message, shown(second)]
        history += [(await read(llm, history)).message, Message.of("user", "And now?")]
        assert (await read(llm, history)).text == "done"
        await llm.aclose()

    with ModelServer(script) as server:
        asyncio.run(story())
        numbers = [len(list(pictures_of(request.json))) for request in server.requests]
        assert numbers == [1, 2, 1, 1]
        assert "the provider refused it" in json.dumps(server.requests[2].json)


def test_LM_05_what_is_refused_without_a_picture_in_it_is_told() -> None:
    with ModelServer([{"fail_for_ever": REFUSAL}]) as server, pytest.raises(PictureRefused):
        ask(CHAT, server.url + "/v1", [Message.of("user", "Draw an image.")])
    assert len(server.requests) == 1


def test_LM_05_a_stored_conversation_with_a_large_picture_goes_on(tmp_path: Path) -> None:
    """Also when an older version stored it: the event stays as it is on the disk."""
    log = tmp_path / "log.sqlite"
    view = {"name": "file_editor", "arguments": {"command": "view", "path": "p.png"}}
    (tmp_path / "p.png").write_bytes(png(30, 30))
    with ModelServer([{"tool_calls": [view]}]) as server:
        options: dict[str, Any] = {"model": CHAT, "base_url": server.url + "/v1", "api_key": KEY}
        options |= {"workspace": tmp_path, "store_path": log}
        with Conversation(**options) as conversation:
            conversation.send_message("Look at p.png.")
            conversation.run()
            events = list(conversation.events)
        with EventStore.open(log) as store:
            for event in events:
                store.append("old", _with_a_large_picture(event))
            before = list(store.iterate_json("old"))
        with Conversation(conversation_id="old", **options) as conversation:
            conversation.send_message("go on")
            conversation.run()
            assert conversation.answer == "done"
        assert len(assert_acceptable(server.requests[-1])) == 1
    with EventStore.open(log) as store:
        assert list(store.iterate_json("old"))[: len(before)] == before
    assert any('"FileEditorObservation"' in text for text in before)


def _with_a_large_picture(event: Any) -> Any:
    if not isinstance(event, ObservationEvent):
        return event
    assert isinstance(event.observation, FileEditorObservation)
    content = [TextContent(text="A picture:"), picture(png(9000, 40))]
    observation = event.observation.model_copy(update={"content": content})
    return event.model_copy(update={"observation": observation})
