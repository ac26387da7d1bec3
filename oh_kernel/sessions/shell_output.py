"""What becomes of the bytes that a shell prints: readable text, live and kept, without secrets?"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from oh_kernel.sessions.capture import Capture
from oh_kernel.sessions.masking import Forms, StreamMask
from oh_kernel.sessions.screen import Screen


class ShellOutput:
    """The output of one command after the other. `folder` is where long ones are saved whole."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._own_folder: tempfile.TemporaryDirectory[str] | None = None
        self._capture = Capture(self._new_file)
        self._screen = Screen()
        self._news = ""
        self._fed = False  # since the last command's end
        self._kept_mask = StreamMask()
        self._live_mask = StreamMask()

    def hide(self, secrets: Iterable[str] | Forms) -> None:
        """From now on hide these values, in what is kept and in what is shown."""
        forms = secrets if isinstance(secrets, Forms) else Forms(secrets)
        self._capture.add(self._kept_mask.flush())
        self._kept_mask, self._live_mask = StreamMask(forms), StreamMask(forms)

    def feed(self, data: bytes) -> str:
        """Keep `data`; the news in it for a live view."""
        self._fed = True
        said = self._screen.feed(data)
        if said.text:
            self._capture.add(self._kept_mask.feed(said.text))
        return self._live_mask.feed(said.news)

    def take(self, *, over: bool) -> Capture:
        """What has come since the last time; `over`: nothing more of this command will."""
        if not self._fed:
            return Capture(self._new_file)
        self._fed = not over
        said = self._screen.flush() if over else self._screen.take()
        self._news = self._live_mask.feed(said.news) + self._live_mask.flush()
        self._capture.add(self._kept_mask.feed(said.text) + self._kept_mask.flush())
        capture, self._capture = self._capture, Capture(self._new_file)
        capture.close()
        return capture

    def last_news(self) -> str:
        """What a live view was not told when it came: a drawn screen, what might be a secret."""
        news, self._news = self._news, ""
        return news

    def drop_line(self) -> None:
        """Forget the line that has no end yet."""
        self._screen.take()

    def forget(self) -> None:
        """Start anew, for another shell."""
        self._capture.close()
        self._capture = Capture(self._new_file)
        self._screen = Screen()
        self._fed = False

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
