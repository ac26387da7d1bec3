"""Who watches over a run: its limits, its circles, and how it ends?"""

from collections.abc import Sequence

from oh_kernel.conversation.attendants import Attendant
from oh_kernel.conversation.limits import Limits, LimitsOfRun
from oh_kernel.conversation.log import ConversationLog
from oh_kernel.conversation.stuck import StuckWatch
from oh_kernel.settings import Settings
from oh_kernel.tools.base import Tool


def guards_of_steps(
    log: ConversationLog, settings: Settings, limits: Limits, tools: Sequence[type[Tool]]
) -> list[Attendant]:
    """Who is heard before each step."""
    guards: list[Attendant] = [LimitsOfRun(limits, log, [tool.spec() for tool in tools])]
    if settings.stuck_detection:
        reading = [tool.name for tool in tools if tool.hints.readOnlyHint]
        guards.append(StuckWatch(log, reading=reading))
    return guards
