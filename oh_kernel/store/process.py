"""Who is the process that writes a conversation, and does it still live?"""

import json
import os
import socket
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Writer:
    """A process as a lease names it. `label` says which notebook or command it works for."""

    token: str
    host: str
    pid: int
    started: str
    boot_id: str
    label: str = ""

    @classmethod
    def this_process(cls, token: str, label: str) -> "Writer":
        """The process that asks."""
        pid = os.getpid()
        return cls(token, socket.gethostname(), pid, _started(pid), _boot_id(), label)

    @classmethod
    def from_json(cls, text: str | None) -> "Writer | None":
        """The writer of a stored row; None when there is none or the row makes no sense."""
        try:
            return cls(**json.loads(text)) if text else None
        except (TypeError, ValueError):
            return None

    def to_json(self) -> str:
        """The text that `from_json` reads."""
        return json.dumps(asdict(self))

    def is_elsewhere(self) -> bool:
        """Whether another machine runs it; containers of one machine share its boot id."""
        same_boot = bool(self.boot_id) and self.boot_id == _boot_id()
        return not same_boot and self.host != socket.gethostname()

    def is_alive(self) -> bool:
        """Whether it runs on this machine now; its start time tells it from a later namesake."""
        if self.boot_id != _boot_id():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass  # it lives and belongs to somebody else
        return self.started == _started(self.pid)

    def __str__(self) -> str:
        process = f"process {self.pid} on {self.host}"
        return f"{self.label} ({process})" if self.label else process


def _started(pid: int) -> str:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    # The name in parentheses may hold blanks; the start time is field 22 of the line.
    return stat.rpartition(")")[2].split()[19]


@cache
def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
