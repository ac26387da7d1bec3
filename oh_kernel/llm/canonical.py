"""What of a request is the same on another day, in another folder, on another machine?

Recording and replaying both look at a request through `Canonical`, which puts a placeholder in
place of each span that changes by itself: paths of the workspace, the home folder and Python;
dates, times and durations; versions and packages; host and platform; ids, addresses and keys.
"""

import hashlib
import json
import platform
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from oh_kernel.events import ImageContent, Message, TextContent
from oh_kernel.llm.base import ToolSpec
from oh_kernel.llm.failures import KEY_LIKE

WORKSPACE = "@WORKSPACE@"
HOME = "@HOME@"
PYTHON = "@PYTHON@"

_VERSION = r"\d+\.\d+(?:\.\w+)+(?:[-+][\w.]+)?"
_PACKAGE = r"[A-Za-z][\w.-]* \d[\w.+-]*"
# The order matters: a date holds what looks like a version, a list of packages holds versions.
_VOLATILE = (
    ("<key>", KEY_LIKE),
    ("<time>", re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?")),
    ("<date>", re.compile(r"\b\d{4}-\d\d-\d\d\b")),
    ("<id>", re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")),
    ("<address>", re.compile(r"\b0x[0-9a-f]{6,}\b")),
    ("Packages: <packages>", re.compile(r"^Packages: .*$", re.MULTILINE)),
    ("<packages>", re.compile(rf"{_PACKAGE}(?:, {_PACKAGE})+")),
    ("<version>", re.compile(rf"\b{_VERSION}\b")),
    ("<duration>", re.compile(r"\b\d+(?:\.\d+)? ?(?:ns|µs|us|ms|s|sec|seconds?|min|minutes)\b")),
    ("<id>", re.compile(r"\b(?=[a-f]*\d)[0-9a-f]{12,}\b")),
)  # fmt: skip


class Canonical:
    """The one function for both sides, with the paths that hold here."""

    def __init__(self, workspace: Path | str | None = None) -> None:
        paths = [
            (WORKSPACE, str(Path(workspace).absolute()) if workspace else ""),
            (WORKSPACE, str(Path(workspace).resolve()) if workspace else ""),
            (PYTHON, sys.prefix),
            (PYTHON, sys.base_prefix),
            (HOME, str(Path.home())),
        ]
        # The longest first: the workspace may be in the home folder, or hold the environment.
        self._paths = sorted((p for p in paths if len(p[1]) > 1), key=lambda p: -len(p[1]))
        self._host = [name for name in (platform.node(),) if len(name) > 2]
        self._platform = f"{platform.system()} {platform.machine()}"

    def request(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> str:
        """The request as lines of text."""
        numbers: dict[str, int] = {}
        lines = [self._tool(tool) for tool in tools]
        for message in messages:
            lines += self._message(message, numbers)
        return "\n".join(lines)

    def text(self, text: str) -> str:
        """`text` with a placeholder for each volatile span."""
        text = self.portable(text).replace(self._platform, "<platform>")
        for host in self._host:
            text = re.sub(rf"\b{re.escape(host)}\b", "<host>", text)
        for placeholder, pattern in _VOLATILE:
            text = pattern.sub(placeholder, text)
        return text

    def portable(self, text: str) -> str:
        """`text` with a placeholder for each path that is another one elsewhere."""
        for placeholder, path in self._paths:
            text = re.sub(rf"{re.escape(path)}(?![\w-]|\.\w)", placeholder, text)
        return KEY_LIKE.sub("<key>", text)

    def local(self, text: str, *, in_json: bool = False) -> str:
        """`text` with the paths that hold here, the reverse of `portable`."""
        for placeholder, path in self._paths:
            text = text.replace(placeholder, json.dumps(path)[1:-1] if in_json else path)
        return text

    def _tool(self, tool: ToolSpec) -> str:
        parameters = json.dumps(tool.parameters, sort_keys=True, ensure_ascii=False)
        return f"tool {tool.name}: {self.text(tool.description)} {parameters}"

    def _message(self, message: Message, numbers: dict[str, int]) -> list[str]:
        head = f"[{message.role}]"
        if message.tool_call_id is not None:
            head += f" answers call {_number(message.tool_call_id, numbers)}"
        lines = [head]
        for part in message.content:
            match part:
                case TextContent():
                    lines += self.text(part.text).splitlines()
                case ImageContent():
                    lines += [f"image {_digest(url)}" for url in part.image_urls]
        for call in message.tool_calls or ():
            number = _number(call.id, numbers)
            lines.append(f"call {number}: {call.name} {self.text(call.arguments)}")
        return lines


def _number(call_id: str, numbers: dict[str, int]) -> int:
    return numbers.setdefault(call_id, len(numbers) + 1)


def _digest(url: str) -> str:
    return hashlib.sha256(url.encode()).hexdigest()[:16]
