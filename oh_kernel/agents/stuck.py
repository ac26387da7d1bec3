"""Does the agent go in circles?

Told from the events since the user last spoke, each looked at once and then known by its digest:
what an event costs does not depend on how many came before it.
"""

import hashlib
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from oh_kernel.events import (
    ActionEvent,
    AgentErrorEvent,
    Condensation,
    Event,
    ImageContent,
    MessageEvent,
    ObservationEvent,
    ToolResultEvent,
    UserRejectObservation,
)

# What differs between two runs of one program although nothing has changed.
_CHANGES_BY_ITSELF = re.compile(
    r"\b\d+(?:\.\d+)? ?(?:ns|µs|us|ms|s|secs?|seconds?)\b"
    r"|\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b|\b0x[0-9a-f]{6,}\b|\bpytest-\d+\b"
)
_WORDS_CHARS = 120


@dataclass(frozen=True)
class StuckDetectionThresholds:
    """How often is too often. All but `condensation` are the reference's, by its names."""

    action_observation: int = 4
    action_error: int = 3
    """So often the agent is told of it; once more is too often."""
    monologue: int = 3
    alternating_pattern: int = 6
    condensation: int = 3


@dataclass(frozen=True)
class Circle:
    """A circle that the agent is in, or about to be in: what goes on in it, and how far it is."""

    key: str
    what: str
    count: int
    limit: int
    warns: bool = True
    """Whether a word to the agent comes before the end; not where it was answered all along."""

    @property
    def is_closed(self) -> bool:
        """Whether it has gone on for too long."""
        return self.count >= self.limit


@dataclass(frozen=True)
class _Pair:
    """A call with its result, as digests. `words` name the call and are not compared."""

    call: str
    result: str
    is_error: bool
    words: str

    @property
    def digest(self) -> str:
        return f"{self.call} {self.result}"


class StuckDetector:
    """Takes events as they come; `circle` says whether the last of them are a circle.

    Equal are calls with the same arguments, whatever was thought about them, and results that say
    the same but for times and addresses. A command that still runs is never equal to itself a
    while ago: waiting for it is no circle. `reading` names the tools that change nothing.
    """

    def __init__(
        self,
        thresholds: StuckDetectionThresholds | None = None,
        *,
        reading: Collection[str] = (),
    ) -> None:
        self._limits = thresholds or StuckDetectionThresholds()
        self._reading = frozenset(reading)
        self._waits = 0
        self.reset()

    def reset(self) -> None:
        """Forget everything, as when the user has spoken."""
        self._asked: dict[str, ActionEvent] = {}
        self._last: _Pair | None = None
        self._one_before: _Pair | None = None
        self._repeats = self._errors = self._alternations = 0
        self._messages = self._condensations = 0
        self._done: set[str] = set()
        self._since_change: set[str] = set()
        self.is_repetition = False

    def add(self, event: Event) -> None:
        """Take the next event of the log."""
        match event:
            case MessageEvent(source="user"):
                self.reset()
            case MessageEvent(source="agent"):
                self._messages += 1
            case ActionEvent():
                self._messages = 0
                self._asked[event.tool_call_id] = event
            case ToolResultEvent():
                if call := self._asked.pop(event.tool_call_id, None):
                    self._add_pair(self._pair(call, event), call.tool_name)
            case Condensation():
                self._condensations += 1
                self._since_change.clear()  # what was forgotten may have to be read again

    @property
    def circle(self) -> Circle | None:
        """The circle that is closed, else one that the next call may close."""
        near = [circle for circle in self._circles() if circle.count >= circle.limit - 1]
        return next((circle for circle in near if circle.is_closed), near[0] if near else None)

    def _circles(self) -> Iterator[Circle]:
        limits, last, before = self._limits, self._last, self._one_before
        count = self._messages
        what = f"{count} messages came one after the other, with nothing done in between"
        yield Circle("monologue", what, count, limits.monologue, warns=False)
        count = self._condensations
        what = f"the history was condensed {count} times, with nothing new done in between"
        yield Circle("condensation", what, count, limits.condensation)
        if last is None:
            return
        what = f"{last.words} was called {self._repeats} times in a row, with the same result"
        yield Circle(last.call, what, self._repeats, limits.action_observation)
        what = f"{last.words} was called {self._errors} times in a row and failed each time"
        yield Circle(last.call, what, self._errors, limits.action_error + 1)
        if before is None:
            return
        key = " ".join(sorted((before.call, last.call)))
        what = f"{before.words} and {last.words} were called by turns, with the same results"
        yield Circle(key, what, self._alternations, limits.alternating_pattern)

    def _add_pair(self, pair: _Pair, tool: str) -> None:
        last, before = self._last, self._one_before
        is_same = last is not None and pair.digest == last.digest
        self._repeats = self._repeats + 1 if is_same else 1
        goes_on = last is not None and pair.call == last.call
        self._errors = self._errors * goes_on + 1 if pair.is_error else 0
        if is_same or last is None:
            self._alternations = 1
        else:
            goes_on = before is not None and pair.digest == before.digest
            self._alternations = max(2, self._alternations + 1) if goes_on else 2
        self._one_before, self._last = last, pair
        if pair.digest not in self._done:
            self._condensations = 0
        self._done.add(pair.digest)
        self._look_for_repetition(pair, tool)

    def _look_for_repetition(self, pair: _Pair, tool: str) -> None:
        """Whether the call was made before with the same result, with nothing changed since."""
        self.is_repetition = pair.digest in self._since_change
        if not self.is_repetition and tool not in self._reading:
            self._since_change.clear()
        self._since_change.add(pair.digest)

    def _pair(self, call: ActionEvent, result: ToolResultEvent) -> _Pair:
        asked = call.tool_call.arguments if call.action is None else call.action.to_json()
        said, is_error = _said(result)
        if said is None:
            self._waits += 1
            said = f"still running {self._waits}"
        said = _CHANGES_BY_ITSELF.sub("#", said)
        return _Pair(_digest(call.tool_name, asked), _digest(said), is_error, _words(call))


def _said(result: ToolResultEvent) -> tuple[str | None, bool]:
    """What a result says, None if that is not over, and whether the call failed."""
    match result:
        case AgentErrorEvent():
            return result.error, True
        case UserRejectObservation():
            return result.rejection_reason, False
        case ObservationEvent(observation=observation):
            if getattr(observation, "timeout", False) is True:
                return None, False
            parts = observation.for_model()
            texts = [
                " ".join(part.image_urls) if isinstance(part, ImageContent) else part.text
                for part in parts
            ]
            failed = observation.is_error or (getattr(observation, "exit_code", 0) or 0) > 0
            return "\n".join(texts), failed
    return result.to_json(), False


def _digest(*texts: str) -> str:
    return hashlib.blake2b("\0".join(texts).encode("utf-8", "replace"), digest_size=12).hexdigest()


def _words(call: ActionEvent) -> str:
    arguments = " ".join(call.tool_call.arguments.split())
    if len(arguments) > _WORDS_CHARS:
        arguments = arguments[: _WORDS_CHARS - 1] + "…"
    return f"{call.tool_name} {arguments}"
