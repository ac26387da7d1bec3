"""What becomes of the bytes that a shell prints: readable text, live and kept, without secrets?"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from oh_kernel.sessions.capture import Capture
from oh_kernel.sessions.masking import StreamMask
from oh_kernel.sessions.screen import Screen


class ShellOutput:
    """The output of one command after the other. `folder` is where long ones are saved whole."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._own_folder: tempfile.TemporaryDirectory[str] | None = None
        self._capture = Capture(self._new_file)
        self._screen = Screen()
        self._kept_mask = StreamMask()
        self._live_mask = StreamMask()

    def hide(self, secrets: Iterable[str]) -> None:
        """From now on hide these values, in what is kept and in what is shown."""
        secrets = tuple(secrets)
        self._capture.add(self._kept_mask.flush())
        self._kept_mask, self._live_mask = StreamMask(secrets), StreamMask(secrets)

    def feed(self, data: bytes) -> str:
        """Keep `data`; the news in it for a live view."""
        settled, live = self._screen.feed(data)
        if settled:
            self._capture.add(self._kept_mask.feed(settled))
        return self._live_mask.feed(live)

    def take(self, *, over: bool) -> Capture:
        """What has come since the last time; `over`: nothing more of this command will."""
        rest = self._screen.flush() if over else self._screen.take_line()
        self._capture.add(self._kept_mask.feed(rest) + self._kept_mask.flush())
        capture, self._capture = self._capture, Capture(self._new_file)
        capture.close()
        return capture

    def rest_of_live(self) -> str:
        """What the live view was not told yet, since it might have become a secret."""
        return self._live_mask.flush()

    def drop_line(self) -> None:
        """Forget the line that has no end yet."""
        self._screen.take_line()

    def forget(self) -> None:
        """Start anew, for another shell."""
        self._capture.close()
        self._capture = Capture(self._new_file)
        self._screen = Screen()

    def close(self) -> None:
        """Remove the files that nobody gave a folder for."""
        if self._own_folder is not None:
            self._own_folder.cleanup()
            self._own_folder = None

    def _new_file(self) -> Path:
        if self._folder is None and self._own_folder is None:
            self._own_folder = tempfile.TemporaryDirectory(prefix="oh-output-")
        folder = self._folder or Path(self._own_folder.name if self._own_folder else "")
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix="terminal_output_", suffix=".txt", dir=folder)
        os.close(handle)
        return Path(name)
