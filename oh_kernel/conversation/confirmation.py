"""Which calls wait for a person, and what is decided when nobody is there?"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from oh_kernel.events import Action, ActionEvent, SecurityRisk
from oh_kernel.security.analyzers import assess
from oh_kernel.security.policies import ConfirmationPolicy
from oh_kernel.tools.base import Preview

Unattended = Literal["wait", "deny", "allow", "fail"]

NEVER_ASKED = ("finish", "think")
NOBODY_THERE = (
    "Nobody is there to confirm it ({reasons}), so it was not run. Find a way without it, or say "
    "in your answer what is left to do."
)
ANSWERED_BY_MESSAGE = "The user did not approve it but sent a message; nothing was run."


@dataclass(frozen=True)
class Question:
    """A call that waits: what it is, how risky and why, and what files it would change and how."""

    call: ActionEvent
    risk: SecurityRisk
    reasons: tuple[str, ...] = ()
    previews: tuple[Preview, ...] = ()
    always_ask: bool = False
    """Only a person may answer it: no policy and no rule lets it through."""


@dataclass(frozen=True)
class Decision:
    """A person's answer to a question."""

    approved: bool
    reason: str = ""


class Approver(Protocol):
    """A person who can be asked. Cancelling takes the question back."""

    async def decide(self, questions: Sequence[Question]) -> Sequence[Decision]:
        """One decision for each question."""


class Gate:
    """Decides which calls of a reply are asked about; answers for a person who is not there."""

    def __init__(
        self,
        policy: ConfirmationPolicy,
        *,
        unattended: Unattended = "wait",
        allow: Sequence[str] = (),
        workspace: Path | None = None,
    ) -> None:
        self.policy = policy
        self.unattended = unattended
        self.allow = tuple(allow)
        self._workspace = workspace

    def questions(self, calls: Sequence[ActionEvent]) -> list[Question]:
        """What has to be asked before any of `calls` may run."""
        return [question for call in calls if (question := self._question(call)) is not None]

    def _question(self, call: ActionEvent) -> Question | None:
        if call.action is None or call.tool_name in NEVER_ASKED:
            return None
        found = assess(call.tool_name, call.action, call.security_risk, self._workspace)
        if not (found.always_ask or self.policy.should_confirm(found.risk)):
            return None
        reasons = found.reasons or ("the policy asks for every call",)
        return Question(call, found.risk, reasons, always_ask=found.always_ask)

    def answer_for_nobody(self, question: Question) -> Decision:
        """The decision that the settings make when there is no person."""
        is_allowed = not question.always_ask and self._is_allowed(question.call)
        if self.unattended == "allow" and is_allowed:
            return Decision(approved=True)
        reasons = ", ".join(question.reasons)
        return Decision(approved=False, reason=NOBODY_THERE.format(reasons=reasons))

    def _is_allowed(self, call: ActionEvent) -> bool:
        assert call.action is not None
        text = f"{call.tool_name}:{run_text(call.action)}"
        return any(_matches(rule, text) for rule in self.allow)


def _matches(rule: str, text: str) -> bool:
    if ":" not in rule:
        return rule == text.partition(":")[0]
    # A star stands for arguments, never for a further command: `terminal:git push*` must not
    # let `git push; rm -rf ~` through.
    pattern = re.escape(rule).replace(r"\*", r"[^;&|<>()`$\n]*")
    return re.fullmatch(pattern, text) is not None


def run_text(action: Action) -> str:
    """What a rule such as `terminal:git push*` is compared with: the command, code or path."""
    for field in ("command", "code", "path", "file_path", "dir_path"):
        value = getattr(action, field, None)
        if isinstance(value, str) and not (field == "command" and hasattr(action, "path")):
            return value
    return ""
