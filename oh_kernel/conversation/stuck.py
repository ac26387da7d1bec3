"""What is done when the agent goes in circles: it is told, and when that does not help, stopped."""

from collections.abc import Collection

from oh_kernel.agents.stuck import Circle, StuckDetectionThresholds, StuckDetector
from oh_kernel.conversation.attendants import Attendant, environment_message
from oh_kernel.conversation.log import ConversationLog
from oh_kernel.conversation.state import Status, recorded_status
from oh_kernel.events import ActionEvent, Event, MessageEvent

REPETITION = (
    "[You made this same call before, with the same result, and changed nothing since. Making it "
    "again will tell you nothing new.]"
)
NUDGE = (
    "[You are going in circles: {what}. Doing that again will not help. Try something else, or "
    "finish and say what stands in the way; if it goes on, the run is stopped.]"
)
STOPPED = "[The run was stopped here, as it went in circles: {what}.]"


class StuckWatch(Attendant):
    """Reads along in the log; made for each run, which begins with a clean slate after a stop."""

    def __init__(
        self,
        log: ConversationLog,
        *,
        reading: Collection[str] = (),
        thresholds: StuckDetectionThresholds | None = None,
    ) -> None:
        self._log = log
        self._detector = StuckDetector(thresholds, reading=reading)
        self._read = _beginning(log)
        self._told: set[str] = set()

    async def before_step(self) -> Status | None:
        """Have the agent told once of each circle; end the run when one is closed all the same."""
        circle = self._circle()
        if circle is None:
            return None
        if circle.is_closed and (circle.key in self._told or not circle.warns):
            await self._log.append(environment_message(STOPPED.format(what=circle.what)))
            return Status.STUCK
        if circle.warns and circle.key not in self._told:
            self._told.add(circle.key)
            await self._log.append(environment_message(NUDGE.format(what=circle.what)))
        return None

    async def after_call(self, call: ActionEvent, result: Event) -> None:
        """Say at once that a call told nothing new, unless more is to be said before the step."""
        circle = self._circle()
        if self._detector.is_repetition and circle is None and call.tool_name != "finish":
            await self._log.append(environment_message(REPETITION))

    def _circle(self) -> Circle | None:
        events = self._log.events
        while self._read < len(events):
            self._detector.add(events[self._read])
            self._read += 1
        return self._detector.circle


def _beginning(log: ConversationLog) -> int:
    """Where the user last spoke, or the agent was last stopped for going in circles."""
    for at in range(len(log.events) - 1, -1, -1):
        event = log.events[at]
        spoke = isinstance(event, MessageEvent) and event.source == "user"
        if spoke or recorded_status(event) is Status.STUCK:
            return at
    return 0
