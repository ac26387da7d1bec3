"""A scripted model server on loopback, speaking the APIs of OpenAI and Anthropic over real HTTP.

    with ModelServer([{"content": "Hello."}]) as server:
        Conversation(model="openai:scripted", base_url=server.url + "/v1", api_key="k-1")
        ...
        server.requests[0].json["messages"]

A script is a list of turns; the turn with number k answers the request whose history holds k
replies of the model, so a request that is sent again gets the same turn. Past its end: "done".
In place of a turn, a list holds what the first, second, ... request for it gets.
A turn is a JSON object with any of

    content, reasoning   texts
    tool_calls           [{name, arguments (object or raw text), id?}]
    blocks               Anthropic content blocks, sent as they are instead of the above
    items                output items of the Responses API, sent as they are instead of the above
    finish               reason to finish       usage        the API's own usage object
    fail                 [{status, message?, code?, retry_after?, headers?, body?}]: entry n is what
                         the n-th request for this turn gets; {"drop": true} closes the connection
                         retry_after may be a function that is called for it
    fail_for_ever        one such entry for every request
    body                 a JSON text to send as it is, not streamed
    delay_s              pause before each piece of the stream
    cut_after            close the connection after so many pieces
    hang_after           after so many pieces send nothing until the client has gone away

Paths: /v1/chat/completions, /v1/responses, /v1/messages. The same script serves all three. With
`capabilities`, /api/show answers as Ollama does; it is not among the requests.
"""

import json
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Turn = dict[str, Any]
Script = Sequence[Turn | list[Turn]]
DEADLINE_S = 30.0


@dataclass
class Request:
    """One request, as its bytes arrived. `closed`: the client closed the stream before its end."""

    path: str
    headers: dict[str, str]
    body: bytes
    at: float  # time.monotonic()
    closed: threading.Event = field(default_factory=threading.Event)

    @property
    def json(self) -> Any:
        """The body, which has to be strict UTF-8."""
        return json.loads(self.body.decode("utf-8", "strict"))

    @property
    def messages(self) -> list[Any]:
        """The history in it."""
        return list(self.json.get("messages") or self.json.get("input") or [])


class ModelServer:
    """The server, in a thread of its own, for as long as the `with` block lasts."""

    def __init__(self, script: Script) -> None:
        self.script = list(script)
        self.capabilities: list[str] | None = None  # told to who asks as Ollama is asked
        self.requests: list[Request] = []
        self._lock = threading.Lock()
        self._tries: dict[int, int] = {}
        self._arrived = threading.Condition()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.model = self
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "ModelServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def wait_for(self, condition: Callable[[], bool], timeout_s: float = DEADLINE_S) -> None:
        """Wait until `condition` holds; it is looked at whenever something happened here."""
        with self._arrived:
            assert self._arrived.wait_for(condition, timeout_s), "nothing came within the time"

    def wait_for_requests(self, count: int, timeout_s: float = DEADLINE_S) -> None:
        """Wait until `count` requests have come."""
        self.wait_for(lambda: len(self.requests) >= count, timeout_s)

    def note(self) -> None:
        """Something happened: have those who wait look again."""
        with self._arrived:
            self._arrived.notify_all()

    def turn_for(self, request: Request) -> tuple[int, Turn, Turn | None]:
        """The number of the turn, the turn, and the failure to send instead of it."""
        number = sum(_is_reply(message) for message in _replies(request))
        turn = self.script[number] if number < len(self.script) else {"content": "done"}
        with self._lock:
            tries = self._tries.get(number, 0)
            self._tries[number] = tries + 1
        if isinstance(turn, list):
            return number, turn[min(tries, len(turn) - 1)], None
        failures = turn.get("fail", [])
        forever = turn.get("fail_for_ever")
        return number, turn, failures[tries] if tries < len(failures) else forever


def _replies(request: Request) -> list[Any]:
    """Messages with the items of one Responses reply taken together."""
    merged: list[Any] = []
    for message in request.messages:
        own = _is_reply(message)
        if own and merged and _is_reply(merged[-1]) and "role" not in message:
            continue
        merged.append(message)
    return merged


def _is_reply(message: Any) -> bool:
    return message.get("role") == "assistant" or message.get("type") in (
        "function_call",
        "reasoning",
    )


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    model: ModelServer

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.stopping = threading.Event()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away are what is tested here; they are no errors."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing on stderr."""

    def do_GET(self) -> None:
        models = [{"id": "scripted", "object": "model"}]
        self._send_json({"object": "list", "data": models})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.path == "/api/show":
            known = self.server.model.capabilities
            self._send(200 if known else 404, json.dumps({"capabilities": known}), {})
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.request_seen = Request(self.path, headers, body, time.monotonic())
        self.server.model.requests.append(self.request_seen)
        self.server.model.note()
        number, turn, failure = self.server.model.turn_for(self.request_seen)
        if failure is not None:
            self._fail(failure)
        elif "body" in turn:
            self._send(200, turn["body"], {"content-type": "application/json"})
        elif self.request_seen.json.get("stream"):
            self._stream(turn, _events(self.path, number, turn, self.request_seen.json))
        else:
            self._send_json(_whole_chat(number, turn, self.request_seen.json))

    def _fail(self, failure: Turn) -> None:
        if failure.get("drop"):
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        headers = dict(failure.get("headers", {}))
        if "retry_after" in failure:
            wait = failure["retry_after"]
            headers["retry-after"] = str(wait() if callable(wait) else wait)
        error = {
            "message": failure.get("message", "scripted error"),
            "type": failure.get("type", "scripted"),
            "code": failure.get("code"),
        }
        body = failure.get("body", json.dumps({"type": "error", "error": error}))
        self._send(failure["status"], body, {"content-type": "application/json", **headers})

    def _send_json(self, value: Any) -> None:
        self._send(200, json.dumps(value), {"content-type": "application/json"})

    def _send(self, status: int, body: str, headers: dict[str, str]) -> None:
        data = body.encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, turn: Turn, events: Iterator[str]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for count, event in enumerate(events):
            if count == turn.get("cut_after"):
                return
            if count == turn.get("hang_after") and not self._pause(None):
                return
            if turn.get("delay_s") and not self._pause(turn["delay_s"]):
                return
            try:
                self.wfile.write(event.encode())
                self.wfile.flush()
            except OSError:
                self._gone()
                return

    def _pause(self, seconds: float | None) -> bool:
        """Wait so long, or until the client has gone away; says whether it is still there."""
        deadline = time.monotonic() + (seconds if seconds is not None else 60)
        while (left := deadline - time.monotonic()) > 0 and not self.server.stopping.is_set():
            readable, _, _ = select.select([self.connection], [], [], min(left, 0.05))
            if readable:
                self._gone()
                return False
        return True

    def _gone(self) -> None:
        self.request_seen.closed.set()
        self.server.model.note()


def _events(path: str, number: int, turn: Turn, request: Any) -> Iterator[str]:
    if path.endswith("/messages"):
        return _anthropic_events(number, turn, request)
    if path.endswith("/responses"):
        return _responses_events(number, turn, request)
    return _chat_events(number, turn, request)


def _calls(number: int, turn: Turn) -> list[tuple[str, str, str]]:
    """(id, name, arguments) of the calls of a turn."""
    return [
        (
            call.get("id", f"call_{number}_{i}"),
            call["name"],
            call["arguments"]
            if isinstance(call["arguments"], str)
            else json.dumps(call["arguments"]),
        )
        for i, call in enumerate(turn.get("tool_calls", []))
    ]


def _spaced(text: str | None) -> Iterator[str]:
    words = text.split(" ") if text else []
    for i, word in enumerate(words):
        yield word if i == len(words) - 1 else word + " "


CHAT_USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


def _chat_tool_calls(number: int, turn: Turn) -> list[dict[str, Any]]:
    return [
        {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
        for id_, name, arguments in _calls(number, turn)
    ]


def _whole_chat(number: int, turn: Turn, request: Any) -> dict[str, Any]:
    calls = _chat_tool_calls(number, turn)
    message: dict[str, Any] = {"role": "assistant", "content": turn.get("content")}
    if calls:
        message["tool_calls"] = calls
    finish = turn.get("finish", "tool_calls" if calls else "stop")
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1,
        "model": request.get("model", "scripted"),
        "usage": turn.get("usage", CHAT_USAGE),
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    }


def _chat_events(number: int, turn: Turn, request: Any) -> Iterator[str]:
    base = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": request.get("model", "scripted"),
    }

    def chunk(delta: dict[str, Any], finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return f"data: {json.dumps({**base, 'choices': [choice]})}\n\n"

    yield chunk({"role": "assistant"})
    for word in _spaced(turn.get("reasoning")):
        yield chunk({"reasoning_content": word})
    for word in _spaced(turn.get("content")):
        yield chunk({"content": word})
    calls = _chat_tool_calls(number, turn)
    for i, call in enumerate(calls):
        function = call["function"]
        yield chunk(
            {"tool_calls": [{"index": i, **call, "function": {**function, "arguments": ""}}]}
        )
        middle = len(function["arguments"]) // 2
        for piece in (function["arguments"][:middle], function["arguments"][middle:]):
            yield chunk({"tool_calls": [{"index": i, "function": {"arguments": piece}}]})
    yield chunk({}, turn.get("finish", "tool_calls" if calls else "stop"))
    usage = turn.get("usage", CHAT_USAGE)
    yield f"data: {json.dumps({**base, 'choices': [], 'usage': usage})}\n\n"
    yield "data: [DONE]\n\n"


def _anthropic_blocks(number: int, turn: Turn) -> list[dict[str, Any]]:
    if "blocks" in turn:
        return list(turn["blocks"])
    blocks: list[dict[str, Any]] = []
    if turn.get("reasoning"):
        blocks.append({"type": "thinking", "thinking": turn["reasoning"], "signature": "c2ln"})
    if turn.get("content"):
        blocks.append({"type": "text", "text": turn["content"]})
    blocks += [
        {"type": "tool_use", "id": id_, "name": name, "input": arguments}
        for id_, name, arguments in _calls(number, turn)
    ]
    return blocks


def _anthropic_events(number: int, turn: Turn, request: Any) -> Iterator[str]:
    def event(kind: str, **fields: Any) -> str:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"

    usage = turn.get("usage", {"input_tokens": 100, "output_tokens": 10})
    message = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**usage, "output_tokens": 1},
    }
    yield event("message_start", message=message)
    blocks = _anthropic_blocks(number, turn)
    for index, block in enumerate(blocks):
        start, deltas = _anthropic_block(block)
        yield event("content_block_start", index=index, content_block=start)
        for delta in deltas:
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    called = any(block["type"] == "tool_use" for block in blocks)
    reason = turn.get("finish", "tool_use" if called else "end_turn")
    yield event(
        "message_delta",
        delta={"stop_reason": reason, "stop_sequence": None},
        usage={"output_tokens": usage["output_tokens"]},
    )
    yield event("message_stop")


def _anthropic_block(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    match block["type"]:
        case "text":
            pieces = [{"type": "text_delta", "text": word} for word in _spaced(block["text"])]
            return {"type": "text", "text": ""}, pieces
        case "thinking":
            pieces = [{"type": "thinking_delta", "thinking": w} for w in _spaced(block["thinking"])]
            pieces.append({"type": "signature_delta", "signature": block["signature"]})
            return {"type": "thinking", "thinking": "", "signature": ""}, pieces
        case "tool_use":
            raw = block["input"]
            text = raw if isinstance(raw, str) else json.dumps(raw)
            piece = {"type": "input_json_delta", "partial_json": text}
            return {**block, "input": {}}, [piece]
        case _:
            return block, []


def _responses_items(number: int, turn: Turn) -> list[dict[str, Any]]:
    if "items" in turn:
        return list(turn["items"])
    items: list[dict[str, Any]] = []
    if turn.get("content"):
        part = {"type": "output_text", "text": turn["content"], "annotations": []}
        items.append(
            {
                "type": "message",
                "id": f"msg_{number}",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    items += [
        {
            "type": "function_call",
            "id": f"fc_{id_}",
            "call_id": id_,
            "name": name,
            "arguments": arguments,
            "status": "completed",
        }
        for id_, name, arguments in _calls(number, turn)
    ]
    return items


def _responses_events(number: int, turn: Turn, request: Any) -> Iterator[str]:
    sequence = iter(range(100_000))

    def event(kind: str, **fields: Any) -> str:
        data = {"type": kind, "sequence_number": next(sequence), **fields}
        return f"event: {kind}\ndata: {json.dumps(data)}\n\n"

    items = _responses_items(number, turn)
    response: dict[str, Any] = {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1,
        "model": request["model"],
        "status": "in_progress",
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    yield event("response.created", response=response)
    for index, item in enumerate(items):
        place = {"output_index": index, "item_id": item["id"]}
        yield event("response.output_item.added", output_index=index, item=_opened(item))
        if item["type"] == "message":
            for word in _spaced(item["content"][0]["text"]):
                yield event(
                    "response.output_text.delta", content_index=0, delta=word, logprobs=[], **place
                )
        if item["type"] == "reasoning":
            yield from _summary_events(event, item, place)
        if item["type"] == "function_call":
            arguments = item["arguments"]
            yield event("response.function_call_arguments.delta", delta=arguments, **place)
        yield event("response.output_item.done", output_index=index, item=item)
    usage = turn.get(
        "usage",
        {
            "input_tokens": 100,
            "output_tokens": 10,
            "total_tokens": 110,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    )
    done = {**response, "status": "completed", "output": items, "usage": usage}
    yield event("response.completed", response=done)


def _summary_events(
    event: Callable[..., str], item: dict[str, Any], place: dict[str, Any]
) -> Iterator[str]:
    for index, part in enumerate(item["summary"]):
        opened = {"type": "summary_text", "text": ""}
        yield event(
            "response.reasoning_summary_part.added", summary_index=index, part=opened, **place
        )
        yield event(
            "response.reasoning_summary_text.delta",
            summary_index=index,
            delta=part["text"],
            **place,
        )


def _opened(item: dict[str, Any]) -> dict[str, Any]:
    """An item as it is announced, before its contents."""
    match item["type"]:
        case "message":
            return {**item, "content": [], "status": "in_progress"}
        case "function_call":
            return {**item, "arguments": "", "status": "in_progress"}
        case "reasoning":
            return {**item, "summary": [], "encrypted_content": None, "status": "in_progress"}
        case _:
            return item
