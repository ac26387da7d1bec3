"""Which executors does a conversation have, and what do they start?"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from oh_kernel.conversation.confirmation import Question
from oh_kernel.events import Event, ObservationEvent
from oh_kernel.tools.base import Preview, Tool, ToolExecutor
from oh_kernel.tools.locks import ResourceLocks

_Change = tuple[Path, str | None, str | None]


@runtime_checkable
class Previews(Protocol):
    """An executor that can say beforehand what an action would change."""

    def preview(self, action: Any) -> Preview | Sequence[Preview] | None:
        """The change of a file or of several, nothing when there is none to show."""


@runtime_checkable
class Reverts(Protocol):
    """An executor that can take an edit back."""

    def revert(self, path: Path, old_text: str | None, new_text: str | None) -> str | None:
        """Put the old text back; the reason why not, if it could not be done."""


class Toolbox:
    """The tools of a conversation. An executor is made when its tool is first called.

    Owned by the agent thread; `close` stops what the executors started.
    """

    def __init__(
        self,
        tools: Sequence[type[Tool]],
        workspace: Path,
        make: Callable[[type[Tool]], ToolExecutor[Any, Any]],
        mask: Callable[[str], str] = str,
    ) -> None:
        self.tools = tuple(tools)
        self.workspace = workspace
        self._make = make
        self._mask = mask
        self._executors: dict[str, ToolExecutor[Any, Any]] = {}
        self.locks = ResourceLocks()

    def executor(self, name: str) -> ToolExecutor[Any, Any] | None:
        """The executor of the tool called `name`, if there is such a tool."""
        if name not in self._executors:
            tool = next((tool for tool in self.tools if tool.name == name), None)
            if tool is None:
                return None
            self._executors[name] = self._make(tool)
        return self._executors[name]

    def with_preview(self, question: Question) -> Question:
        """`question` with what the call would change, masked, where its tool can say so."""
        executor = self.executor(question.call.tool_name)
        if not isinstance(executor, Previews):
            return question
        found = executor.preview(question.call.action) or ()
        previews = (found,) if isinstance(found, Preview) else tuple(found)
        return replace(question, previews=tuple(map(self._masked, previews)))

    def _masked(self, preview: Preview) -> Preview:
        old, new = (t and self._mask(t) for t in (preview.old_text, preview.new_text))
        return replace(preview, old_text=old, new_text=new)

    def revert(self, edit: ObservationEvent) -> str | None:
        """Take the edit back that `edit` reports, of all its files or of none; the reason why not,
        if it could not be done.
        """
        executor = self.executor(edit.tool_name)
        changes = self._changes(edit)
        if not changes or not isinstance(executor, Reverts):
            return "it is not an edit of a file"
        reverted: list[_Change] = []
        for path, old, new in reversed(changes):
            if trouble := executor.revert(path, old, new):
                for path, old, new in reversed(reverted):
                    executor.revert(path, new, old)
                return trouble
            reverted.append((path, old, new))
        return None

    def _changes(self, event: ObservationEvent) -> list[_Change]:
        """Path, old and new text of each file; a move is a removal and a new file."""
        changes: list[_Change] = []
        for edit in event.observation.edits():
            if edit.moved_to:
                changes.append((self.workspace / edit.path, edit.old, None))
                changes.append((self.workspace / edit.moved_to, None, edit.new))
            else:
                changes.append((self.workspace / edit.path, edit.old, edit.new))
        return changes

    def close(self) -> None:
        """Close every executor that was made."""
        executors, self._executors = list(self._executors.values()), {}
        for executor in executors:
            executor.close()


def edits_of(events: Iterable[Event]) -> list[ObservationEvent]:
    """The edits of files among `events`."""
    return [event for event in events if isinstance(event, ObservationEvent) and is_edit(event)]


def is_edit(event: ObservationEvent) -> bool:
    """Whether `event` reports that a file was changed."""
    return bool(event.observation.edits())
