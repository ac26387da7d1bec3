"""Is work called done whose last test run failed? Then the agent is told so, once."""

import re

from oh_kernel.agents.tested import RunOfTests, last_run_of_tests
from oh_kernel.conversation.attendants import Attendant
from oh_kernel.conversation.log import ConversationLog
from oh_kernel.conversation.turns import answer_of

TESTS_FAILED = (
    "[Before this counts as done: the last test run failed{since}: {command}\n"
    "Make it pass{again}, or say plainly in your answer that it fails, and why.]"
)
_COMMAND_CHARS = 200
# Words of an answer that does not hide a failure. A sentence that speaks of a failure as mended
# ("fixed the failing test") does not count, unless something is said to be so still.
_TROUBLE = re.compile(
    r"\bfail|\bnot pass|n['’]t pass|\berrors?\b|\bbroken\b|\bunable\b|\bcannot\b|\bcould ?n[o'’]t\b"
    r"|\bunfinished\b|\bnot (?:yet )?(?:fixed|done|working|solved)",
    re.IGNORECASE,
)
_MENDED = re.compile(
    r"\b(?:fix(?:ed|es)?|mended|repaired|resolved|solved|no longer|no|none|zero|0|without)\b",
    re.IGNORECASE,
)
_STILL = re.compile(r"\b(?:still|remain\w*|but|except|however)\b", re.IGNORECASE)


class FinishCheck(Attendant):
    """Looks at the end of each turn at how its last test run went."""

    def __init__(self, log: ConversationLog) -> None:
        self._log = log
        self._said = False

    async def reason_to_go_on(self) -> str | None:
        """That the tests failed, if the answer keeps silent about it."""
        if self._said:
            return None
        run = last_run_of_tests(self._log.events)
        if run is None or run.passed or admits_trouble(answer_of(self._log.events)):
            return None
        self._said = True
        return _told(run)


def admits_trouble(answer: str) -> bool:
    """Whether an answer says that something is not as it should be.

    >>> admits_trouble("Two tests fail."), admits_trouble("I fixed the failing test.")
    (True, False)
    """
    return any(
        _TROUBLE.search(sentence) and (not _MENDED.search(sentence) or _STILL.search(sentence))
        for sentence in re.split(r"(?<=[.!?;:])\s|\n", answer)
    )


def _told(run: RunOfTests) -> str:
    command = " ".join(run.command.split())[:_COMMAND_CHARS]
    since = ", and it was not repeated after your last edit" if run.changed_since else ""
    again = " (run it again)" if run.changed_since else ""
    return TESTS_FAILED.format(since=since, command=command, again=again)
