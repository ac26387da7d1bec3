"""What does a hook say about what is about to happen, and what if it fails to say it?"""

import re
from dataclasses import dataclass
from typing import Any

from oh_kernel.events.text import parsed_json
from oh_kernel.security.hooks.process import Ended

BLOCKED = "Blocked by hook"
DENIED_BY_CODE = 2
_ALLOWING, _DENYING = ("allow", "approve"), ("deny", "block")


@dataclass(frozen=True)
class Outcome:
    """What came of running a hook; `error` says why it is worth nothing, if it is."""

    success: bool
    blocked: bool = False
    exit_code: int = -1
    stdout: str = ""
    stderr: str = ""
    reason: str | None = None
    additional_context: str | None = None
    error: str | None = None


class NoVerdict(ValueError):
    """The words of a hook cannot be understood."""


def verdict_of_command(ended: Ended, timeout_s: float) -> Outcome:
    """What a command said by its exit code and its output. Output that is no JSON says nothing."""
    code, out, err = ended.exit_code, ended.stdout, ended.stderr
    if code is None:
        error = f"it was stopped after its {timeout_s:g} s"
        return Outcome(False, stdout=out, stderr=err, error=error)
    if code not in (0, DENIED_BY_CODE):
        error = f"it ended with exit code {code}{_last_words(err or out)}"
        return Outcome(False, exit_code=code, stdout=out, stderr=err, error=error)
    denied = code == DENIED_BY_CODE
    try:
        said = _read(out) if out.lstrip().startswith("{") else Outcome(True)
    except NoVerdict as failure:
        said = Outcome(denied, error=None if denied else str(failure))
    blocked = denied or said.blocked
    reason = said.reason or (err.strip() or BLOCKED if blocked else None)
    context = said.additional_context
    return Outcome(said.success, blocked, code, out, err, reason, context, said.error)


def verdict_of_model(text: str) -> Outcome:
    """What a model said, which has to be a verdict."""
    found = re.search(r"\{.*\}", text, re.DOTALL)
    try:
        said = _read(found.group() if found else text, required=True)
    except NoVerdict as failure:
        return Outcome(False, stdout=text, error=str(failure))
    reason = said.reason or (BLOCKED if said.blocked else None)
    context = said.additional_context
    return Outcome(True, said.blocked, stdout=text, reason=reason, additional_context=context)


def failing_closed(outcome: Outcome, hook: str) -> Outcome:
    """`outcome` of a hook that failed, as one that forbids."""
    reason = f"The hook `{hook}` failed, and nothing goes on without it: {outcome.error}."
    return Outcome(
        False,
        blocked=True,
        exit_code=outcome.exit_code,
        stdout=outcome.stdout,
        stderr=outcome.stderr,
        reason=reason,
        error=outcome.error,
    )


def _read(text: str, *, required: bool = False) -> Outcome:
    """The verdict in `text`; raises NoVerdict."""
    data = _flat(_object(text))
    decision = data.get("decision")
    if decision not in (None, *_ALLOWING, *_DENYING) or (required and decision is None):
        raise NoVerdict(f"its decision {decision!r} is neither allow nor deny")
    goes_on = data.get("continue", True)
    if not isinstance(goes_on, bool):
        raise NoVerdict(f"its continue {goes_on!r} is neither true nor false")
    return Outcome(
        True,
        blocked=decision in _DENYING or not goes_on,
        reason=_text(data, "reason"),
        additional_context=_text(data, "additionalContext"),
    )


def _object(text: str) -> dict[str, Any]:
    try:
        data = parsed_json(text)
    except ValueError as error:
        raise NoVerdict(f"its verdict is no JSON ({error})") from None
    if not isinstance(data, dict):
        raise NoVerdict("its verdict is no JSON object")
    return data


def _flat(data: dict[str, Any]) -> dict[str, Any]:
    """With what hooks for another product write one level deeper, under longer names."""
    inner = data.get("hookSpecificOutput")
    if not isinstance(inner, dict):
        return data
    names = {
        "permissionDecision": "decision",
        "permissionDecisionReason": "reason",
        "additionalContext": "additionalContext",
    }
    return data | {ours: inner[theirs] for theirs, ours in names.items() if theirs in inner}


def _text(data: dict[str, Any], name: str) -> str | None:
    value = data.get(name)
    return str(value) if value not in (None, "") else None


def _last_words(text: str) -> str:
    line = next((line for line in reversed(text.splitlines()) if line.strip()), "")
    return f" ({line.strip()[:300]})" if line else ""
