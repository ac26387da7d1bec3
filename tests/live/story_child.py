"""The processes of stories, in which conversations live until they are killed.

`python -m tests.live.story_child` imports what a conversation needs, and forks a process for each
connection that it is handed on its standard input. No thread runs before that. There, a command is
a JSON object in a line, and so is each reply, and each piece of news in between:

    {"n": 3, "do": "send", "text": "hello"}    {"n": 3, "ok": true, "status": "idle", ...}
                                               {"news": "ActionEvent", "stored": ID}
                                               {"asked": CALL IDS}
"""

import asyncio
import importlib
import json
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from oh_kernel.conversation.confirmation import Decision, Question
from oh_kernel.conversation.conversation import Conversation
from oh_kernel.conversation.log import Passing
from oh_kernel.errors import OpenHandsError
from oh_kernel.events import Event
from oh_kernel.llm import RetryPolicy, open_llm
from oh_kernel.loop import run_blocking
from tests.live.story_model import PRICE

# Imported when first used; here once for all.
NEEDED = (
    "anyio._backends._asyncio",
    "oh_kernel.llm.provider",
    "oh_kernel.llm.replies",
    "oh_kernel.security.shell.risk",
    "oh_kernel.sessions.bash",
    "oh_kernel.tools.file_editor",
    "oh_kernel.tools.terminal",
    "openai.resources.chat.completions",
    "openai.resources.models",
    "genai_prices.data",
    "pydantic_ai.models.openai",
    "pydantic_ai.providers.openai",
    "unittest.mock",
)
QUICK = RetryPolicy(min_wait_s=0.01, max_wait_s=0.03)
TOOLS = "terminal,file_editor,finish"


class Wire:
    """A connection with the test; any thread may write."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    def tell(self, **said: Any) -> None:
        line = json.dumps(said).encode() + b"\n"
        with self._lock:
            self._connection.sendall(line)

    # As a listener of a conversation.

    def event(self, event: Event) -> None:
        self.tell(stored=event.id, news=event.kind)

    def delta(self, delta: Passing) -> None:
        self.tell(news=type(delta).__name__)


class Person:
    """Is asked by a run, tells the test, and has it answer."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._answer: asyncio.Future[list[bool]] | None = None

    async def decide(self, questions: Sequence[Question]) -> Sequence[Decision]:
        self._answer = asyncio.get_running_loop().create_future()
        self._wire.tell(asked=[question.call.tool_call_id for question in questions])
        return [Decision(approved=yes, reason="not this") for yes in await self._answer]

    def answers(self, yes: list[bool]) -> None:
        """From any thread; too late is no harm."""
        if (answer := self._answer) is not None:
            answer.get_loop().call_soon_threadsafe(lambda: answer.done() or answer.set_result(yes))


class Teller:
    """Does what the test says with one conversation."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._person = Person(wire)
        self.conversation: Conversation | None = None

    def do(self, n: int, do: str, given: dict[str, Any]) -> None:
        """Carry one command out and reply."""
        try:
            value, said = getattr(self, f"_{do}")(**given), {"ok": True}
        except OpenHandsError as error:
            kind, remedy = type(error).__name__, error.remedy
            value, said = None, {"ok": False, "error": kind, "text": str(error), "remedy": remedy}
        except Exception as error:  # none of ours: the test fails by it
            said = {"ok": False, "error": type(error).__name__, "text": traceback.format_exc()}
            value = None
        self._wire.tell(n=n, value=value, **said, **self._state())

    def _state(self) -> dict[str, Any]:
        if self.conversation is None:
            return {}
        waiting = [call.tool_call_id for call in self.conversation.waiting_calls]
        return {"status": str(self.conversation.status), "waiting": waiting}

    def _open(
        self,
        id: str | None,
        folder: str,
        url: str,
        policy: str,
        budget: float | None,
        condense_after: int,
        attended: bool,
    ) -> str:
        llm = open_llm("openai:scripted", base_url=f"{url}/v1", api_key="k-1", retry=QUICK)
        conversation = Conversation(
            Path(folder) / "work",
            llm=llm,
            store_path=Path(folder) / "events.sqlite",
            conversation_id=id,
            policy=policy,
            tools=TOOLS,
        )
        options = {"price": PRICE, "conversation_budget": budget}
        settings = conversation.settings.with_(
            "the story", **options, condense_after_events=condense_after
        )
        run_blocking(conversation.use(settings))
        if attended:
            conversation.approver = self._person
        conversation.subscribe(self._wire)
        self.conversation = conversation
        return conversation.id

    @property
    def _now(self) -> Conversation:
        assert self.conversation is not None
        return self.conversation

    def _look(self) -> None:
        """The state is in each reply."""

    def _send(self, text: str) -> None:
        self._now.send_message(text)

    def _run(self) -> str:
        return str(self._now.run())

    def _pause(self) -> None:
        self._now.pause()

    def _interrupt(self) -> None:
        self._now.interrupt()

    def _approve(self, ids: list[str] | None) -> None:
        self._now.approve(ids)

    def _reject(self, ids: list[str] | None, reason: str) -> None:
        self._now.reject(reason, ids)

    def _answer(self, yes: list[bool]) -> None:
        self._person.answers(yes)

    def _condense(self) -> None:
        self._now.condense()

    def _ask(self, text: str) -> str:
        return self._now.ask_agent(text)

    def _fork(self, event: str | None) -> str:
        with self._now.fork(event) as fork:
            return fork.id

    def _rename(self, title: str) -> None:
        self._now.rename(title)

    def _budget(self, usd: float) -> None:
        settings = self._now.settings.with_("the story", conversation_budget=usd)
        run_blocking(self._now.use(settings))

    def _delete(self) -> None:
        self._now.delete()
        self.conversation = None

    def _close(self) -> None:
        self._now.close()
        self.conversation = None


def tell_story(connection: socket.socket) -> None:
    """Carry out commands until the test goes away; each on a thread of its own."""
    wire = Wire(connection)
    wire.tell(pid=os.getpid())
    teller = Teller(wire)
    for line in connection.makefile("rb"):
        command = json.loads(line)
        n, do = command.pop("n"), command.pop("do")
        threading.Thread(target=teller.do, args=(n, do, command), daemon=True).start()
    if teller.conversation is not None:
        teller.conversation.close()


def main() -> None:
    """Fork a process for each connection that comes, until no more can come."""
    for name in NEEDED:
        importlib.import_module(name)
    assert threading.active_count() == 1, "a thread would not be there in the forked processes"
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    with socket.socket(fileno=sys.stdin.fileno()) as control:
        while True:
            given, handed_over, _, _ = socket.recv_fds(control, 4096, 1)
            if not handed_over:
                return
            connection = socket.socket(fileno=handed_over[0])
            if os.fork() == 0:
                control.close()
                become_child(json.loads(given), connection)
            connection.close()


def become_child(given: dict[str, str], connection: socket.socket) -> None:
    """Live through a story in the forked process, and end."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    connection.set_inheritable(False)
    os.environ["OH_STORY"] = given["story"]  # by which what it leaves behind is found
    # What a shell of a person does when it starts must not be killed half way.
    os.environ["HOME"] = given["folder"]
    os.dup2(os.open(f"{given['folder']}/stderr", os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    try:
        tell_story(connection)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(0)


if __name__ == "__main__":
    main()
