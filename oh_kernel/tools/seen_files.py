"""What of each file did the agent last see, and who changed it since?

Between two calls of the agent anybody may change a file; while one of its calls runs (a shell
command, a cell), a change counts as the agent's own. The conversation says when calls begin and
end; without that, every change is somebody else's.
"""

from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from agentskills.edit_history import digest
from agentskills.editing import FileText
from agentskills.errors import EditingError
from agentskills.unified import unified_diff

MAX_FILES = 200
MAX_BYTES = 24 * 1024 * 1024
"""Contents kept to show what changed; of those beyond it, a digest is kept."""
MAX_DIFF_CHARS = 3000
MAX_DIFF_BYTES = 400_000

Stamp = tuple[int, int, int, int, int] | None
"""What the system says of a file's state; None when there is none."""


@dataclass
class Sight:
    """The content of a file when the agent saw it, and what became of the file since."""

    content: bytes | None
    digest: bytes | None
    stamp: Stamp
    changed_by: str = ""
    """The agent's own call that changed it."""
    changed_outside: bool = False

    def is_of(self, content: bytes) -> bool:
        """Whether the file still holds what was seen."""
        if self.content is not None:
            return self.content == content
        return self.digest == digest(content)


@dataclass(frozen=True)
class Change:
    """How a file differs from what the agent saw. `own_call` is empty when others did it."""

    own_call: str
    diff: str


class SeenFiles:
    """The files that the agent of one conversation saw last. Used on one thread."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._seen: OrderedDict[Path, Sight] = OrderedDict()
        self._max_bytes = max_bytes
        self._running: list[str] = []

    def note(self, path: Path, content: bytes, stamp: Stamp) -> None:
        """The agent knows this content; `stamp` was asked for before it was read."""
        self._seen.pop(path, None)
        self._seen[path] = Sight(content, None, stamp)
        while len(self._seen) > MAX_FILES:
            self._seen.popitem(last=False)
        self._save_memory()

    def forget(self, path: Path) -> None:
        """The file is gone, and the agent knows."""
        self._seen.pop(path, None)

    def change(self, path: Path, content: bytes) -> Change | None:
        """How the file differs from what was seen; None if it does not, or was never seen."""
        sight = self._seen.get(path)
        if sight is None or sight.is_of(content):
            return None
        is_own = sight.changed_by and not sight.changed_outside and sight.stamp == stamp_of(path)
        return Change(sight.changed_by if is_own else "", _diff(path, sight.content, content))

    def call_begins(self, name: str) -> None:
        """A call that may change any file is about to run."""
        self._look(self._running[-1] if self._running else "")
        self._running.append(name)

    def call_ends(self, name: str) -> None:
        """It has ended; what changed meanwhile is the agent's own doing."""
        self._look(name)
        self._running.remove(name)

    def _look(self, running: str) -> None:
        for path, sight in self._seen.items():
            stamp = stamp_of(path)
            if stamp == sight.stamp:
                continue
            sight.stamp = stamp
            if running:
                sight.changed_by = running
            else:
                sight.changed_outside = True

    def _save_memory(self) -> None:
        held = sum(len(sight.content or b"") for sight in self._seen.values())
        for sight in self._seen.values():  # those seen longest ago first
            if held <= self._max_bytes:
                return
            if sight.content is not None:
                held -= len(sight.content)
                sight.digest, sight.content = digest(sight.content), None


def stamp_of(path: Path) -> Stamp:
    """The state of a file, told without reading it."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )


def _diff(path: Path, old: bytes | None, new: bytes) -> str:
    """What changed, as far as it can be shown in a few lines."""
    if old is None or len(old) + len(new) > MAX_DIFF_BYTES:
        return "(The file is too large to show what changed. View it.)"
    try:
        texts = [FileText.from_bytes(path, content).text for content in (old, new)]
    except EditingError:
        return "(It is not text any more.)"
    diff = unified_diff(texts[0], texts[1], path.name, context=2)
    if len(diff) > MAX_DIFF_CHARS:
        return diff[:MAX_DIFF_CHARS] + "\n(More changed than is shown here. View the file.)"
    return diff or "(Only the encoding or the line endings changed.)"
