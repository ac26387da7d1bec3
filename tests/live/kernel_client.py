"""A real kernel for tests: start it, run cells in it, interrupt it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from tests.ports import free_port

OPENHANDS = [sys.executable, "-P", "-m", "oh_kernel", "-f", "{connection_file}"]
PLAIN = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
CHANNELS = ("shell", "iopub", "stdin", "control", "hb")
# What is waited for comes in milliseconds; this is for a machine that does much else.
DEADLINE_S = 30.0

Message = dict[str, Any]


@dataclass
class Result:
    """What a cell sent, in order, and how it ended."""

    messages: list[Message] = field(default_factory=list)
    reply: Message = field(default_factory=dict)

    def of_type(self, *types: str) -> list[Message]:
        return [m["content"] for m in self.messages if m["msg_type"] in types]

    @property
    def status(self) -> str:
        return str(self.reply["content"]["status"])

    @property
    def text(self) -> str:
        """Streams, results and displays as plain text, errors as `Name: value`."""
        return "".join(_plain(m["msg_type"], m["content"]) for m in self.messages)

    @property
    def errors(self) -> list[tuple[str, str]]:
        return [(c["ename"], c["evalue"]) for c in self.of_type("error")]


class Kernel:
    """One running kernel and a client of it."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient, log: Path) -> None:
        self.manager = manager
        self.client = client
        self.log = log
        self.stray: list[Message] = []  # output that came for other cells than the one asked

    def start(self, code: str, **options: Any) -> str:
        return str(self.client.execute(code, **options))

    def run(self, code: str, *, deadline_s: float = DEADLINE_S, **options: Any) -> Result:
        """Run a cell to its end."""
        return self.finish(self.start(code, **options), deadline_s=deadline_s)

    def finish(
        self,
        msg_id: str,
        *,
        deadline_s: float = DEADLINE_S,
        on_message: Callable[[Message], object] | None = None,
        on_any: Callable[[Message], object] | None = None,
    ) -> Result:
        """Gather the output of a cell until the kernel is idle again and has replied.

        `on_message` sees the output of the cell as it comes, `on_any` every message there is.
        """
        deadline = time.monotonic() + deadline_s
        result = Result()
        while True:
            message = self.client.get_iopub_msg(timeout=max(0.01, deadline - time.monotonic()))
            if on_any is not None:
                on_any(message)
            if message["parent_header"].get("msg_id") != msg_id:
                self.stray.append(message)
                continue
            if _is_idle(message):
                break
            result.messages.append(message)
            if on_message is not None:
                on_message(message)
        while result.reply.get("parent_header", {}).get("msg_id") != msg_id:
            result.reply = self.client.get_shell_msg(timeout=max(0.01, deadline - time.monotonic()))
        return result

    def interrupt_when(self, code: str, text: str, how: str) -> Interrupted:
        """Run a cell, interrupt it once `text` was printed; `how` is "signal" or "message"."""
        moments: list[float] = []

        def look(message: Message) -> None:
            if not moments and text in _plain(message["msg_type"], message["content"]):
                moments.append(time.monotonic())
                self.interrupt(how)

        result = self.finish(self.start(code), on_message=look)
        assert moments, f"{text!r} never came: {result.text!r}"
        return Interrupted(result, time.monotonic() - moments[0])

    def interrupt(self, how: str = "signal") -> None:
        if how == "signal":
            self.manager.interrupt_kernel()
            return
        request = self.client.session.msg("interrupt_request", {})
        self.client.control_channel.send(request)
        self.control_reply(request)

    def request(self, content: Message) -> Message:
        """Send `openhands_request` on the control channel and give the reply's content."""
        message = self.client.session.msg("openhands_request", content)
        self.client.control_channel.send(message)
        return self.control_reply(message)

    def control_reply(self, request: Message) -> Message:
        deadline = time.monotonic() + DEADLINE_S
        while True:
            timeout = max(0.01, deadline - time.monotonic())
            reply = self.client.control_channel.get_msg(timeout=timeout)
            if reply["parent_header"]["msg_id"] == request["header"]["msg_id"]:
                return dict(reply["content"])

    def gather_stray(self, enough: Callable[[str], bool]) -> str:
        """Text that came outside of finished cells, waited for until it is `enough`."""
        deadline = time.monotonic() + DEADLINE_S
        while not enough(self.stray_text) and time.monotonic() < deadline:
            try:
                self.stray.append(self.client.get_iopub_msg(timeout=0.1))
            except Empty:
                continue
        return self.stray_text

    @property
    def stray_text(self) -> str:
        return "".join(_plain(m["msg_type"], m["content"]) for m in self.stray)

    @property
    def stderr(self) -> str:
        return self.log.read_text()


@dataclass
class Interrupted:
    result: Result
    took_s: float


@contextmanager
def running_kernel(
    folder: Path, argv: list[str] = OPENHANDS, *, cwd: Path | None = None, **env: str
) -> Iterator[Kernel]:
    """A kernel with folders of its own below `folder`, ended at the end of the block."""
    private = {
        "IPYTHONDIR": str(folder / "ipython"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "JUPYTER_DATA_DIR": str(folder / "jupyter"),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
    }
    for path in private.values():
        Path(path).mkdir(parents=True, exist_ok=True)
    # The kernel would take it that it runs inside pytest, and not redirect its descriptors.
    inherited = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    manager = KernelManager(
        connection_file=str(folder / "runtime" / f"kernel-{time.time_ns()}.json"),
        cache_ports=False,
        **{f"{channel}_port": free_port() for channel in CHANNELS},
    )
    assert manager.kernel_spec is not None
    manager.kernel_spec.argv = list(argv)
    log = folder / "kernel.log"
    with log.open("w") as sink:
        manager.start_kernel(
            env={**inherited, **private, **env}, cwd=str(cwd or folder), stdout=sink, stderr=sink
        )
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        yield Kernel(manager, client, log)
    finally:
        client.stop_channels()
        if not manager.is_alive():
            manager.finish_shutdown()  # or its number would be signalled, by now another process's
        manager.shutdown_kernel(now=True)
        manager.cleanup_resources()


def _is_idle(message: Message) -> bool:
    is_status = message["msg_type"] == "status"
    return is_status and message["content"]["execution_state"] == "idle"


def _plain(msg_type: str, content: Message) -> str:
    match msg_type:
        case "stream":
            return str(content["text"])
        case "execute_result" | "display_data":
            return str(content["data"].get("text/plain", "")) + "\n"
        case "error":
            return f"{content['ename']}: {content['evalue']}\n"
        case _:
            return ""
