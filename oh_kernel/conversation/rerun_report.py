"""What is told of actions that were carried out again: is all as it was recorded?"""

from collections import Counter
from typing import Literal

from pydantic import BaseModel, ConfigDict

Outcome = Literal["same", "differs", "error", "skipped"]
OUTCOMES: tuple[Outcome, ...] = ("same", "differs", "error", "skipped")


class RerunCall(BaseModel):
    """One recorded call; `detail` is the difference, the error, or why it was skipped."""

    model_config = ConfigDict(frozen=True)

    call_id: str
    tool: str
    asked: str
    outcome: Outcome
    detail: str = ""


class RerunReport(BaseModel):
    """All calls of a conversation, in order, and how each went in the other workspace."""

    model_config = ConfigDict(frozen=True)

    conversation_id: str
    recorded_workspace: str
    workspace: str
    calls: tuple[RerunCall, ...]

    @property
    def drifted(self) -> tuple[RerunCall, ...]:
        """The calls that did not answer as they did in the recording."""
        return tuple(call for call in self.calls if call.outcome in ("differs", "error"))

    @property
    def headline(self) -> str:
        """The counts in words, such as "3 calls: 2 same, 1 differs"."""
        counts = Counter(call.outcome for call in self.calls)
        found = ", ".join(f"{counts[each]} {each}" for each in OUTCOMES if counts[each])
        calls = f"{len(self.calls)} call{'' if len(self.calls) == 1 else 's'}"
        return f"{calls}: {found}" if found else "No calls are recorded."

    def __str__(self) -> str:
        lines = [self.headline, *(f"{c.outcome}: {c.tool} {c.asked}" for c in self.calls)]
        return "\n".join(lines)

    __repr__ = __str__
