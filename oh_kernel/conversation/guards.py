"""Who watches over a run: its limits, its circles, and how it ends?"""

from collections.abc import Sequence
from pathlib import Path

from oh_kernel.agents.critics import critic_named
from oh_kernel.conversation.aside import Aside
from oh_kernel.conversation.attendants import Attendant
from oh_kernel.conversation.critics import CriticOfRun
from oh_kernel.conversation.finish_check import FinishCheck
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


def judges_of_ends(
    log: ConversationLog, settings: Settings, aside: Aside, workspace: Path
) -> list[Attendant]:
    """Who is heard when the agent says that it is done."""
    judges: list[Attendant] = [FinishCheck(log)]
    if critic := critic_named(settings.critic):
        rounds = settings.critic_rounds
        judges.append(CriticOfRun(critic, log, aside, workspace, rounds=rounds))
    return judges
