"""What does this kernel do that a plain IPython kernel does not?

It has the `%openhands` magics, handles clicks on the agent's own widgets while a cell runs, and
answers `openhands_request` on the control channel. Starting it imports neither the agent nor
pydantic nor widgets.
"""

# ipykernel's functions have no types.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import asyncio
import contextvars
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp

from oh_kernel.kernel import front
from oh_kernel.kernel.bridge import Bridge

Message = dict[str, Any]


class OpenHandsKernel(IPythonKernel):
    """An IPython kernel with a software agent in it.

    The main thread owns everything but `_comm_messages`, a queue from the shell-channel thread to
    the comm thread, and `_answers`, which the control thread owns.
    """

    implementation = "openhands"
    shell: Any
    session: Any

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.bridge = Bridge(self.shell, self)
        self._comm_messages: SimpleQueue[tuple[list[bytes], Message]] = SimpleQueue()
        self._comm_thread: threading.Thread | None = None
        self._answers: set[asyncio.Task[None]] = set()
        self.control_handlers["openhands_request"] = self.openhands_request
        front.install(self.shell, self.bridge)

    def start(self) -> None:
        super().start()
        loop: Any = self.io_loop  # tornado's; the kernel always runs it on asyncio
        self.bridge.serve_main(loop.asyncio_loop)

    # Interrupts. ipykernel leaves Python's handler on until the reply to a cell is sent. One that
    # came when the code has just ended would lose the reply, and the cell would never end.

    async def do_execute(self, *args: Any, **options: Any) -> Message:
        try:
            reply: Message = await super().do_execute(*args, **options)
        finally:
            _ignore_interrupts()
        return reply

    @contextmanager
    def _cancel_on_sigint(self, future: Any) -> Iterator[None]:
        try:
            with super()._cancel_on_sigint(future):
                yield
        finally:
            _ignore_interrupts()

    # Widgets of the agent

    async def shell_channel_thread_main(self, msg: list[Any]) -> None:
        """Pick out messages of the agent's comms before they queue up behind the running cell."""
        own = self._agent_comm_message(msg)
        if own is None:
            await super().shell_channel_thread_main(msg)
            return
        if self._comm_thread is None:
            self._comm_thread = threading.Thread(
                target=self._handle_comm_messages, name="openhands-comm", daemon=True
            )
            self._comm_thread.start()
        self._comm_messages.put(own)

    def _agent_comm_message(self, msg: list[Any]) -> tuple[list[bytes], Message] | None:
        if self.session is None:
            return None
        try:
            idents, frames = self.session.feed_identities(msg, copy=False)
            # Without the content, so that the signature stays unused for whoever takes the message.
            peek = self.session.deserialize(frames, content=False, copy=False)
            msg_type = peek["header"]["msg_type"]
            if msg_type in ("comm_open", "comm_info_request"):
                self.note_front_end(self.session.unpack(peek["content"]))
            if msg_type not in ("comm_msg", "comm_close"):
                return None
            if not self.bridge.owns_comm(self.session.unpack(peek["content"]).get("comm_id")):
                return None
            return idents, self.session.deserialize(frames, content=True, copy=False)
        except (ValueError, KeyError):
            return None  # not well-formed: the stock path reports it

    def note_front_end(self, content: Message) -> None:
        """A front end that shows widgets asks for their comms when it connects."""
        if str(content.get("target_name")).startswith("jupyter.widget"):
            self.bridge.has_widget_front_end = True

    def _handle_comm_messages(self) -> None:
        while True:
            _, msg = self._comm_messages.get()
            contextvars.copy_context().run(self._handle_comm_message, msg)

    def _handle_comm_message(self, msg: Message) -> None:
        # For this thread only: the running cell keeps its own parent.
        self._shell_parent.set(msg)
        self.shell.set_thread_parent(msg)
        self._publish_status("busy", "shell", parent=msg)
        try:
            self.shell_handlers[msg["header"]["msg_type"]](None, [], msg)
        except Exception:
            # The edge of the kernel: a failing click must not end the thread of all clicks.
            self.log.exception("A message of the agent's widget could not be handled")
        finally:
            self._publish_status("idle", "shell", parent=msg)

    def _publish_status(self, status: str, channel: str, parent: Message | None = None) -> None:
        """Front ends take "idle" for the whole kernel: while a turn runs, say "busy" again."""
        with self.bridge.held_parent() as running:
            super()._publish_status(status, channel, parent)
            if status == "idle" and running is not None:
                super()._publish_status("busy", "shell", running)

    # Requests from other processes

    async def openhands_request(self, stream: Any, ident: Any, parent: Message) -> None:
        """Answer later: an interrupt must not wait on the control channel behind this request."""
        answer = asyncio.ensure_future(self._answer(stream, ident, parent))
        self._answers.add(answer)
        answer.add_done_callback(self._answers.discard)

    async def _answer(self, stream: Any, ident: Any, parent: Message) -> None:
        content = await self.bridge.answer(parent["content"])
        self.session.send(stream, "openhands_reply", content, parent, ident=ident)


def _ignore_interrupts() -> None:
    """Until ipykernel sets its handler for the next message."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


class OpenHandsKernelApp(IPKernelApp):
    """The kernel process."""

    def init_path(self) -> None:
        """Put the working folder on the path, even if `-P` on the command line had kept it off."""
        if "-P" not in sys.orig_argv or self.ignore_cwd or "" in sys.path:
            super().init_path()
            return
        places = (at for at, entry in enumerate(sys.path) if entry.endswith("-packages"))
        sys.path.insert(next(places, 0), "")
