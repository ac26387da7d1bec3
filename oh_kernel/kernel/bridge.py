"""How do other threads and processes reach the main thread, a widget's click or this kernel?

The one place that knows Jupyter's channels: display from any thread, comms that the agent owns,
requests from other processes, and the interrupt. Without a kernel (terminal IPython) only display
and interrupt remain.
"""

# ipykernel's functions have no types.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import asyncio
import select
import sys
import threading
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from oh_kernel.loop import main_thread, run_on_main, spawn
from oh_kernel.sessions.interrupts import interrupts

# A request from another process and its reply, both JSON objects; awaited on the agent loop.
RequestHandler = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]

# How long a request from another process may take to be answered.
REQUEST_S = 30.0
# How often the main thread looks whether a person has answered.
ANSWER_POLL_S = 0.05


class Bridge:
    """What the agent's threads may do with one shell and its kernel.

    Made on the main thread. Every method may be called on any thread, except where it says so.
    """

    def __init__(self, shell: Any, kernel: Any = None) -> None:
        self.shell = shell
        self.kernel: Any = kernel if kernel is not None else getattr(shell, "kernel", None)
        self.serves_main = False
        self.has_widget_front_end = False
        self._comm_ids: set[str] = set()
        self._request_handler: RequestHandler | None = None
        self._parents: list[Mapping[str, Any]] = []
        self._parents_lock = threading.Lock()
        self._consoles: set[str] = set()  # sessions of clients; written on the main thread
        self._status_id = ""
        self._serve_running_loop()
        self._watch_for_consoles()

    # Display

    def publish(
        self,
        data: Mapping[str, Any],
        metadata: Mapping[str, Any] | None = None,
        *,
        display_id: str | None = None,
        update: bool = False,
    ) -> None:
        """Show a MIME bundle in the cell that the calling task belongs to."""
        transient = {"display_id": display_id} if display_id else {}
        if self.kernel is None:
            self.shell.display_pub.publish(
                dict(data), dict(metadata or {}), transient=transient, update=update
            )
            return
        content = {"data": dict(data), "metadata": dict(metadata or {}), "transient": transient}
        self._send("update_display_data" if update else "display_data", content)

    def write(self, text: str, *, name: str = "stdout") -> None:
        """Write text to the cell that the calling task belongs to."""
        if self.kernel is None:
            print(text, end="", flush=True)
        else:
            self._send("stream", {"name": name, "text": text})

    @property
    def redraws(self) -> bool:
        """Whether the running cell's front end replaces what is shown by its update.

        Terminals print a display once: what came later would be printed again, or not at all.
        """
        if self.kernel is None:
            return False
        header = self.kernel.get_parent("shell").get("header") or {}
        return header.get("session") not in self._consoles

    def announce(self, data: Mapping[str, Any]) -> None:
        """Show at once that the cell began, until a view of the turn takes this place."""
        self._status_id = uuid.uuid4().hex
        self.publish(data, display_id=self._status_id)

    def take_status(self) -> str:
        """The display id of what was announced, "" when nothing is; whoever takes it updates it."""
        taken, self._status_id = self._status_id, ""
        return taken

    def withdraw_status(self) -> None:
        """Take back what was announced, if nobody took it: only with it alone in the cell."""
        if self.take_status():
            self._send("clear_output", {"wait": True})

    def _send(self, msg_type: str, content: dict[str, Any]) -> None:
        from ipykernel.jsonutil import json_clean  # there wherever a kernel is

        self.kernel.session.send(
            self.kernel.iopub_socket,
            msg_type,
            json_clean(content),
            parent=self.kernel.get_parent("shell"),
        )

    # Turns and interrupts

    @contextmanager
    def turn(self, *, stop: Callable[[], object]) -> Iterator[None]:
        """While in this block the agent works for the cell, and an interrupt calls `stop`."""
        parent = self.kernel.get_parent("shell") if self.kernel is not None else {}
        self._parents.append(parent)
        try:
            with interrupts.turn(stop):
                yield
        finally:
            with self._parents_lock:
                self._parents.remove(parent)

    @contextmanager
    def held_parent(self) -> Iterator[Mapping[str, Any] | None]:
        """The message whose cell the agent works for, which does not end within this block."""
        with self._parents_lock:
            yield self._parents[-1] if self._parents else None

    # The person at the front end

    @property
    def can_click(self) -> bool:
        """Whether the running cell's front end shows widgets whose clicks arrive meanwhile."""
        return self.has_widget_front_end and self._handles_comms() and self._is_attended()

    @property
    def can_type(self) -> bool:
        """Whether somebody at the front end of the running cell can answer a question."""
        if self.kernel is None:
            return bool(sys.stdin and sys.stdin.isatty())
        return self._is_attended()

    async def ask(self, prompt: str) -> str:
        """What a person types after `prompt`. Awaited on the agent loop.

        The main thread is only asked to look whether there is an answer, so it never waits for one
        and a cancelled question holds nothing up.
        """
        source = _Terminal() if self.kernel is None else _StdinChannel(self.kernel)
        await run_on_main(lambda: source.send(prompt))
        while (answer := await run_on_main(source.answer)) is None:
            await asyncio.sleep(ANSWER_POLL_S)
        return answer

    def _is_attended(self) -> bool:
        parent = self.kernel.get_parent("shell") if self.kernel is not None else {}
        return bool((parent.get("content") or {}).get("allow_stdin"))

    def _handles_comms(self) -> bool:
        return hasattr(self.kernel, "note_front_end")

    # Widgets

    def own_comm(self, comm_id: str) -> None:
        """Have messages of this comm handled at once, on the comm thread."""
        self._comm_ids.add(comm_id)

    def disown_comm(self, comm_id: str) -> None:
        """Leave this comm to the kernel again."""
        self._comm_ids.discard(comm_id)

    def owns_comm(self, comm_id: object) -> bool:
        return comm_id in self._comm_ids

    # Requests from other processes

    def on_request(self, handler: RequestHandler | None) -> None:
        """Answer `openhands_request` messages by `handler`, awaited on the agent loop."""
        self._request_handler = handler

    async def answer(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """The reply to one request, never an exception. Runs on the control thread's loop."""
        if self._request_handler is None:
            return _failure(
                "NotReady", "No conversation runs in this kernel; run a %%openhands cell."
            )
        try:
            work = spawn(_await(self._request_handler(content)))
            reply = await asyncio.wait_for(asyncio.wrap_future(work), REQUEST_S)
            return {"status": "ok", **reply}
        except TimeoutError:
            return _failure("TimeoutError", f"The kernel gave no answer in {REQUEST_S:.0f} s.")
        except Exception as error:
            # The border of the process: whatever went wrong, the other side must be told.
            return _failure(type(error).__name__, str(error))

    # The main thread

    def serve_main(self, loop: asyncio.AbstractEventLoop) -> None:
        """Have the main thread's event loop run what other threads submit to `loop.main_thread`."""
        main_thread.wake = partial(loop.call_soon_threadsafe, main_thread.serve)
        self.serves_main = True

    def _watch_for_consoles(self) -> None:
        """Note who asks whether a cell is complete: consoles do, before they send it."""
        if self.kernel is None:
            return
        handlers = self.kernel.shell_handlers
        handle = handlers["is_complete_request"]

        async def note(stream: Any, ident: Any, parent: Mapping[str, Any]) -> None:
            header = parent["header"]
            # Ids of this form are jupyter_client's. JupyterLab's console has others, and redraws.
            if header["msg_id"].startswith(f"{header['session']}_"):
                self._consoles.add(header["session"])
            await handle(stream, ident, parent)

        handlers["is_complete_request"] = note

    def _serve_running_loop(self) -> None:
        if self.kernel is None:
            return
        try:
            self.serve_main(asyncio.get_running_loop())
        except RuntimeError:
            return  # the kernel has not started yet and will call serve_main itself


class _StdinChannel:
    """A question on Jupyter's stdin channel. Used on the main thread, which owns its socket."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel

    def send(self, prompt: str) -> None:
        while self._received() is not None:
            continue  # an answer to a question that was cancelled
        kernel = self._kernel
        kernel.session.send(
            kernel.stdin_socket,
            "input_request",
            {"prompt": prompt, "password": False},
            kernel.get_parent("shell"),
            ident=kernel._parent_ident["shell"],  # as the kernel's own raw_input does
        )

    def answer(self) -> str | None:
        reply = self._received()
        return None if reply is None else str(reply["content"].get("value", ""))

    def _received(self) -> Mapping[str, Any] | None:
        import zmq  # present wherever there is a kernel

        _, reply = self._kernel.session.recv(self._kernel.stdin_socket, zmq.NOBLOCK)
        return reply if isinstance(reply, Mapping) else None


class _Terminal:
    """A question on the terminal that this process runs in. Used on the main thread."""

    def send(self, prompt: str) -> None:
        print(prompt, end="", flush=True)

    def answer(self) -> str | None:
        ready, _, _ = select.select([sys.stdin], [], [], 0)
        return sys.stdin.readline().rstrip("\n") if ready else None


async def _await(answer: Awaitable[Mapping[str, Any]]) -> Mapping[str, Any]:
    return await answer


def _failure(name: str, value: str) -> dict[str, Any]:
    return {"status": "error", "ename": name, "evalue": value}
