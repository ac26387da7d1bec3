"""How is a person asked about an action, and what counts as a yes?"""

import re
from pathlib import PurePath

from oh_kernel.conversation.confirmation import Decision, Question, run_text
from oh_kernel.events import FileEdit, SecurityRisk
from oh_kernel.tools.base import Preview
from oh_kernel.views.calls import call_of, diff_of
from oh_kernel.views.checklist import render_checklist
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
    if question.previews:
        return f"edit of {', '.join(str(preview.path) for preview in question.previews)}"
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
    """The command or code that would run, or what else the tool is asked; "" for an edit."""
    if question.previews or question.call.action is None:
        return ""
    call = call_of(question.call)
    return render_checklist(call.tasks).text if call.tasks else call.code


def previews(question: Question, workspace: PurePath | None = None) -> list[Diff]:
    """What the edit would change, if the action is one."""
    return [diff_of(_edit(preview), workspace) for preview in question.previews]


def question_text(question: Question) -> str:
    """The question in plain text, for `input()` and for front ends without HTML."""
    lines = [f"The agent wants to run: {subject(question)}", *reasons(question)]
    if diffs := previews(question):
        rows = _MAX_CODE_LINES // len(diffs)
        lines += [text for diff in diffs for text in ("", render_diff(diff, max_rows=rows).text)]
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


def _edit(preview: Preview) -> FileEdit:
    moved_to = str(preview.moved_to) if preview.moved_to else None
    return FileEdit(str(preview.path), preview.old_text, preview.new_text, moved_to)
