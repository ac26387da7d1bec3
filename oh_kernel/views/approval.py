"""How is a person asked about an action, and what counts as a yes?"""

import re
from pathlib import PurePath

from oh_kernel.conversation.confirmation import Decision, Question, run_text
from oh_kernel.events import SecurityRisk
from oh_kernel.views.calls import shown_path
from oh_kernel.views.diff import Diff, render_diff
from oh_kernel.views.escape import clip, one_line, printable

PROMPT = "Run it? [y]es, [n]o, or say what to do instead: "
HOW_TO_ANSWER = "Please answer y or n, or say in words what to do instead."

_YES = frozenset({"y", "yes", "approve", "approved", "accept", "allow"})
_NO = re.compile(
    r"(?:n|no|reject|rejected|deny)(?:[\s,.:;!-]+(?P<reason>.*))?", re.IGNORECASE | re.DOTALL
)
_MAX_CODE_LINES = 40


def subject(question: Question) -> str:
    """What is asked about in a few words, such as "the command rm -r build"."""
    if question.preview is not None:
        return f"edit of {question.preview.path}"
    action = question.call.action
    text = one_line(run_text(action), 60) if action is not None else ""
    kind = {"terminal": "the command", "ipython": "the code"}.get(question.call.tool_name)
    return f"{kind or question.call.tool_name} {text}".strip()


def reasons(question: Question) -> list[str]:
    """Why the model wants it and why a person is asked, a line each."""
    lines = [f"Why: {one_line(question.call.summary)}"] if question.call.summary else []
    why = ", ".join(question.reasons)
    risk = "not known" if question.risk is SecurityRisk.UNKNOWN else str(question.risk).lower()
    return [*lines, f"Risk: {risk}" + (f" ({why})" if why else "")]


def code(question: Question) -> str:
    """The command or code that would run, "" for an edit."""
    if question.preview is not None or question.call.action is None:
        return ""
    return run_text(question.call.action) or question.call.tool_call.arguments


def preview(question: Question, workspace: PurePath | None = None) -> Diff | None:
    """What the edit would change, if the action is one."""
    if question.preview is None:
        return None
    edit = question.preview
    return Diff(shown_path(str(edit.path), workspace), edit.old_text, edit.new_text)


def question_text(question: Question) -> str:
    """The question in plain text, for `input()` and for front ends without HTML."""
    lines = [f"The agent wants to run: {subject(question)}", *reasons(question)]
    if diff := preview(question):
        lines += ["", render_diff(diff, max_rows=_MAX_CODE_LINES).text]
    elif body := code(question):
        shown = clip(body, max_lines=_MAX_CODE_LINES, max_chars=4_000)
        lines += ["", shown.text, *filter(None, [shown.note])]
    return printable("\n".join(lines))


def read_answer(text: str) -> Decision | None:
    """The decision that was typed; None when it has to be asked again.

    Only a bare word of approval approves. "yes, but ..." and any other words are a refusal with
    these words as the reason: what was asked about is not what the person wants.

    >>> read_answer(" Yes ").approved, read_answer("no: use git mv").reason
    (True, 'use git mv')
    >>> read_answer("yes, but keep a copy")
    Decision(approved=False, reason='yes, but keep a copy')
    """
    words = text.strip()
    if not words:
        return None
    if words.lower().rstrip(".!") in _YES:
        return Decision(approved=True)
    if match := _NO.fullmatch(words):
        return Decision(approved=False, reason=(match["reason"] or "").strip())
    return Decision(approved=False, reason=words)
