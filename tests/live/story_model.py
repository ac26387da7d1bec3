"""The model of a story: a server that answers each request by the next reply of the plan.

Each call that does something writes a word of its own, a token, into a file or makes a file of that
name: what was carried out, and how often, can be seen there.
"""

import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.live.model_server import ModelServer, Request, Turn

BESIDE = "[A question beside the task."
TOKEN = re.compile(r"token\d+\b")
PRICE = "10/100"  # for a million tokens, in US dollars
_DEAR = 30_000  # tokens of a reply that costs more than anybody expects


class StoryModel(ModelServer):
    """Answers by the plan until it is `calm`: from then on, and past its end, in words."""

    def __init__(self, replies: Sequence[str], workspace: Path) -> None:
        super().__init__([])
        self.calm = False
        self.costs: dict[int, float] = {}
        self.whole: dict[int, Request] = {}  # by the number in the reply's id, oldest first
        self._left = iter(replies)
        self._asked = 0
        self._numbers = itertools.count()
        self._tokens = itertools.count(1)
        self._calls = _Calls(workspace, lambda: f"token{next(self._tokens)}")

    def turn_for(self, request: Request) -> tuple[int, Turn, Turn | None]:
        """The next reply; what is asked beside the run is always answered in words."""
        beside = is_beside(request)  # raises when the client was killed while it wrote
        with self._lock:
            number = next(self._numbers)
            self.whole[number] = request
            name = "words" if self.calm or beside else next(self._left, "words")
            turn = self._calls.turn(name, number)
            tokens = len(request.body) // 5, _DEAR if name == "dear" else 20 + number * 37 % 200
            turn["usage"] = {
                "prompt_tokens": tokens[0],
                "completion_tokens": tokens[1],
                "total_tokens": sum(tokens),
            }
            self.costs[number] = (tokens[0] * 10 + tokens[1] * 100) / 1_000_000
            return number, turn, turn.get("failure")


def is_beside(request: Request) -> bool:
    """Whether it is a question beside the run: a summary, or one of the person."""
    body = request.json
    return not body.get("tools") or BESIDE in json.dumps(body["messages"][-1])


class _Calls:
    """Makes the replies of a model that calls tools, well or badly."""

    def __init__(self, workspace: Path, new_token: Callable[[], str]) -> None:
        self._workspace = workspace
        self._token = new_token

    def turn(self, name: str, number: int) -> Turn:
        """The reply with this name."""
        words = {"content": f"These are the words of reply {number}."}
        failures = {
            "busy": {"status": 429, "retry_after": 0.01},
            "overflow": {"status": 400, "code": "context_length_exceeded"},
            "refused": {"status": 400, "message": "this model does not like it"},
        }
        match name:
            case "words" | "dear":
                return words
            case "slow words":
                return {**words, "delay_s": 0.02}
            case "cut":
                return {**words, "cut_after": 3}
            case "empty":
                return {"content": ""}
            case "busy" | "overflow" | "refused":
                return {"failure": failures[name]}
        return {"content": "", "tool_calls": list(self._made(name))}

    def _made(self, name: str) -> Iterator[dict[str, Any]]:
        finish = {"name": "finish", "arguments": {"message": "It is done."}}
        match name:
            case "call":
                yield self._append()
            case "slow call":
                yield self._append(sleep_s=0.1)
            case "edit":
                yield self._create()
            case "parallel":
                yield from (self._append(sleep_s=0.03), self._create(), self._append(sleep_s=0.05))
            case "risky":
                yield self._append("HIGH")
            case "mixed":
                yield from (self._append(), self._append("HIGH"), self._create("HIGH"))
            case "risky and finish":
                yield from (self._append("HIGH"), finish)
            case "finish":
                yield finish
            case "finish and calls":
                yield from (finish, self._append(), self._create())
            case "unknown tool":
                yield from ({"name": "nosuch", "arguments": {"a": 1}}, self._append())
            case "bad arguments":
                yield {"name": "terminal", "arguments": {"command": 7, "token": self._token()}}
            case "no JSON":
                yield from (self._append(), {"name": "terminal", "arguments": '{"command": "echo'})
            case "same again":
                yield {"name": "terminal", "arguments": {"command": "true"}}
            case "taken id":
                yield from ({**self._append(), "id": "call_0_0"}, {**self._append(), "id": ""})
            case _:
                raise AssertionError(f"no reply is called {name}")

    def _append(self, risk: str = "LOW", sleep_s: float = 0) -> dict[str, Any]:
        command = f"echo begun && sleep {sleep_s / 2} && echo {self._token()} >> done.txt"
        command = f"{command} && echo done && sleep {sleep_s / 2}"
        return {"name": "terminal", "arguments": {"command": command, "security_risk": risk}}

    def _create(self, risk: str = "LOW") -> dict[str, Any]:
        token = self._token()
        given = {"command": "create", "path": str(self._workspace / token), "file_text": "here\n"}
        return {"name": "file_editor", "arguments": {**given, "security_risk": risk}}


def times_carried_out(workspace: Path, token: str) -> int:
    """How often the call with this token did what it says."""
    done = workspace / "done.txt"
    lines = done.read_text().split() if done.exists() else []
    return lines.count(token) + (workspace / token).exists()


def check_request(request: Request) -> None:
    """Each call is answered once, directly behind it; no id comes twice, and no text is empty."""
    seen: set[str] = set()
    waiting: list[str] = []
    messages = request.json["messages"]
    assert [m["role"] for m in messages].count("system") == 1 and messages[0]["role"] == "system"
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] in waiting, f"answers no call before it: {message}"
            waiting.remove(message["tool_call_id"])
            continue
        assert not waiting, f"without a result in a request: {waiting}"
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
        assert all(waiting) and len(set(waiting)) == len(waiting) and not seen & set(waiting)
        assert waiting or message["content"], f"says nothing: {message}"
        seen.update(waiting)
    assert not waiting, f"without a result in a request: {waiting}"
