"""Whose output is this: of the run that goes on, of an earlier run's thread, or of the user's?

While a run goes on, its text and displays are taken where they are produced, before the kernel or
the terminal sends them, and on the thread that produces them. That thread (or its context) tells
the run it belongs to. Whatever belongs to no run of the agent's takes its usual way.
"""

# ipykernel's functions have no types.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import codecs
import os
import resource
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from oh_kernel.sessions.interrupts import interrupts
from oh_kernel.sessions.recording import Output, Recording
from oh_kernel.sessions.replaced import replaced

# How long output of child processes may take from the pipe to us once the run is over.
PIPE_S = 0.3

# Which run the calling code belongs to: by its context, or else by its thread.
_run: ContextVar[Recording | None] = ContextVar("openhands_run", default=None)
_run_of_thread: WeakKeyDictionary[threading.Thread, Recording] = WeakKeyDictionary()

_NUMBERS = {"stdout": 1, "stderr": 2}
# Written into a kernel's pipe to learn when everything before it was read. No terminal shows it.
_SENTINEL = "\0"

_PICTURES = ("image/png", "image/jpeg", "image/gif", "application/pdf")

SHOWING = ("display_data", "update_display_data", "execute_result", "clear_output")


class OutputTaps(Protocol):
    """Where a shell's output can be taken: in a kernel, or in a plain process."""

    def installed(self, outputs: Outputs) -> AbstractContextManager[None]:
        """Taken in this block; its end waits for what child processes have put out."""


class Outputs:
    """Sends output to the run it belongs to. Any thread may call `write` and `show`.

    `recorded` is entered on the main thread; `_current` changes only there.
    """

    def __init__(
        self,
        taps: OutputTaps,
        *,
        forward_text: bool = False,
        mask: Callable[[str], str] | None = None,
    ) -> None:
        self._taps = taps
        self._mask = mask
        self._forward_text = forward_text
        self._current: Recording | None = None

    @contextmanager
    def recorded(self, recording: Recording) -> Iterator[None]:
        """Record what the code in this block puts out, its tasks and threads included."""
        token = _run.set(recording)
        self._current = recording
        try:
            with self._taps.installed(self), replaced(threading.Thread, start=self._thread_start()):
                yield
        finally:
            self._current = None
            _run.reset(token)

    def write(self, name: str, text: str, *, from_child: bool = False) -> bool:
        """Take text of a stream; False: it belongs to no run and takes its usual way."""
        with interrupts.deferred():
            recording, late = self._owner(from_child)
            if recording is None:
                return False
            recording.add(Output("stream", text, name, late=late))
            recording.live.text(text)
            return not self._forward_text

    def show(self, msg_type: str, content: Mapping[str, Any]) -> str:
        """Take a display: "usual" way, "kept" here, or to "forward" to the notebook as well."""
        with interrupts.deferred():
            recording, late = self._owner()
            if recording is None:
                return "usual"
            if msg_type == "clear_output":
                # Passed on, it would wipe what the notebook shows of the agent's turn.
                recording.clear()
                return "kept"
            output = _display(msg_type, content, late)
            recording.add(output)
            if output.is_rich:
                recording.live.rich()
                return "forward"
            recording.live.text(f"{output.text}\n")
            return "kept"

    def masked(self, content: Mapping[str, Any]) -> Mapping[str, Any]:
        """What of a display may be forwarded: its texts without secrets, pictures as they are."""
        if self._mask is None:
            return content
        data = {
            mime: value if mime.startswith(_PICTURES) else _masked(value, self._mask)
            for mime, value in (content.get("data") or {}).items()
        }
        return {**content, "data": data}

    def _owner(self, from_child: bool = False) -> tuple[Recording | None, bool]:
        current = self._current if self._current and not self._current.closed else None
        if from_child:
            return current, False
        own = _run.get() or _run_of_thread.get(threading.current_thread())
        if own is None:
            return None, False
        return current, own is not current

    def _thread_start(self) -> Callable[[threading.Thread], None]:
        """`Thread.start` that remembers whose a thread is, as it does not inherit its context."""
        start = threading.Thread.start

        def start_known(thread: threading.Thread) -> None:
            own = _run.get() or _run_of_thread.get(threading.current_thread())
            if own is not None:
                _run_of_thread[thread] = own
            start(thread)

        return start_known


def _masked(value: Any, mask: Callable[[str], str]) -> Any:
    match value:
        case str():
            return mask(value)
        case dict():
            return {name: _masked(inner, mask) for name, inner in value.items()}
        case list() | tuple():
            return [_masked(inner, mask) for inner in value]
    return value


def _display(msg_type: str, content: Mapping[str, Any], late: bool) -> Output:
    data = content.get("data") or {}
    return Output(
        kind="result" if msg_type == "execute_result" else "display",
        text=str(data.get("text/plain", "")),
        data=data,
        metadata=content.get("metadata") or {},
        late=late,
        display_id=str((content.get("transient") or {}).get("display_id") or ""),
    )


class StreamTap:
    """Takes what is written to sys.stdout or sys.stderr, which stay the same objects."""

    def __init__(self, stream: Any, name: str, outputs: Outputs, usual: Any = None) -> None:
        self._stream = stream
        self._name = name
        self._outputs = outputs
        self._usual = usual or stream.write
        self._watcher = getattr(stream, "watch_fd_thread", None)
        self._pid = os.getpid()
        self._is_awaited = False
        self._has_arrived = threading.Event()

    def installed(self) -> AbstractContextManager[None]:
        return replaced(self._stream, write=self.write)

    def write(self, text: str) -> Any:
        if os.getpid() != self._pid:
            # A forked child: its memory is a copy, but its standard output is read by the parent.
            return os.write(_NUMBERS[self._name], text.encode(errors="replace"))
        from_child = threading.current_thread() is self._watcher
        if from_child and self._is_awaited and _SENTINEL in text:
            self._is_awaited = False
            self._has_arrived.set()
            before, _, behind = text.rpartition(_SENTINEL)
            text = before + behind  # of a child that goes on in the background
        if self._outputs.write(self._name, text, from_child=from_child):
            return len(text)
        return self._usual(text)

    def send_sentinel(self) -> None:
        if self._watcher is not None:
            self._is_awaited = True
            os.write(_NUMBERS[self._name], _SENTINEL.encode())

    def await_sentinel(self) -> None:
        if self._watcher is not None:
            self._has_arrived.wait(PIPE_S)


class KernelTaps:
    """The output of a Jupyter kernel."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel

    @contextmanager
    def installed(self, outputs: Outputs) -> Iterator[None]:
        taps = [StreamTap(getattr(sys, name), name, outputs) for name in _NUMBERS]
        children = _children_so_far()
        with ExitStack() as stack:
            for tap in taps:
                stack.enter_context(tap.installed())
            stack.enter_context(replaced(self._kernel.session, send=self._send(outputs)))
            try:
                yield
            finally:
                if _children_so_far() != children:
                    _await_pipes(taps)

    def _send(self, outputs: Outputs) -> Callable[..., Any]:
        usual = self._kernel.session.send

        def send(stream: Any, msg: Any, content: Any = None, *args: Any, **options: Any) -> Any:
            msg_type = msg if isinstance(msg, str) else msg["header"]["msg_type"]
            if msg_type not in SHOWING:
                return usual(stream, msg, content, *args, **options)
            shown = content if isinstance(msg, str) else msg["content"]
            way = outputs.show(msg_type, shown)
            if way == "kept":
                return None
            if way == "forward" and msg_type == "execute_result":
                # As a result it would look like the value of the user's own cell.
                parent = msg["parent_header"]
                as_display = {**outputs.masked(shown), "transient": {}}
                as_display.pop("execution_count", None)
                return usual(stream, "display_data", as_display, parent, **options)
            if way == "forward":
                shown = outputs.masked(shown)
                if isinstance(msg, str):
                    return usual(stream, msg, shown, *args, **options)
                msg = {**msg, "content": shown}
            return usual(stream, msg, content, *args, **options)

        return send


def _children_so_far() -> object:
    """Something that changes whenever a child process has ended."""
    return resource.getrusage(resource.RUSAGE_CHILDREN)


def _await_pipes(taps: list[StreamTap]) -> None:
    """Wait until the threads that read the kernel's pipes have passed on what is in them."""
    for tap in taps:
        tap.send_sentinel()
    for tap in taps:
        tap.await_sentinel()


class ShellTaps:
    """The output of a plain process: terminal IPython, or a run without a notebook.

    Nothing of a run goes to the terminal by itself; the view shows it.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    @contextmanager
    def installed(self, outputs: Outputs) -> Iterator[None]:
        with ExitStack() as stack:
            for name, number in _NUMBERS.items():
                stream = getattr(sys, name)
                usual = stack.enter_context(_descriptor_tap(number, name, stream, outputs))
                stack.enter_context(StreamTap(stream, name, outputs, usual).installed())
            stack.enter_context(self._displays(outputs))
            yield

    @contextmanager
    def _displays(self, outputs: Outputs) -> Iterator[None]:
        publisher, hook = self._shell.display_pub, self._shell.displayhook
        publish, write_format_data = publisher.publish, hook.write_format_data

        def tapped_publish(data: Any, metadata: Any = None, **options: Any) -> None:
            content = {"data": data, "metadata": metadata, "transient": options.get("transient")}
            if outputs.show("display_data", content) == "usual":
                publish(data, metadata, **options)

        def tapped_result(format_dict: Any, md_dict: Any = None) -> None:
            content = {"data": format_dict, "metadata": md_dict}
            if outputs.show("execute_result", content) == "usual":
                write_format_data(format_dict, md_dict)

        def tapped_clear(wait: bool = False) -> None:
            outputs.show("clear_output", {"wait": wait})

        with (
            replaced(publisher, publish=tapped_publish, clear_output=tapped_clear),
            replaced(hook, write_format_data=tapped_result, write_output_prompt=lambda: None),
        ):
            yield


@contextmanager
def _descriptor_tap(
    number: int, name: str, stream: Any, outputs: Outputs
) -> Iterator[Callable[[str], int] | None]:
    """Take what child processes write to a standard descriptor; gives the way around the tap."""
    stream.flush()
    saved = os.dup(number)
    reading, writing = os.pipe()
    os.dup2(writing, number)
    os.close(writing)
    reader = threading.Thread(
        target=_read_descriptor,
        args=(reading, name, outputs),
        name=f"openhands-{name}",
        daemon=True,
    )
    reader.start()
    try:
        yield _writer(saved) if _writes_to(stream, number) else None
    finally:
        os.dup2(saved, number)
        # The pipe ends with its last writer; a child in the background may keep it open.
        reader.join(PIPE_S)
        os.close(saved)


def _read_descriptor(reading: int, name: str, outputs: Outputs) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a character may come in two reads
    with open(reading, "rb", buffering=0) as pipe:
        while data := pipe.read(65536):
            outputs.write(name, decoder.decode(data), from_child=True)


def _writes_to(stream: Any, number: int) -> bool:
    try:
        return bool(stream.fileno() == number)
    except (OSError, ValueError, AttributeError):
        return False


def _writer(descriptor: int) -> Callable[[str], int]:
    def write(text: str) -> int:
        os.write(descriptor, text.encode(errors="replace"))
        return len(text)

    return write
