"""How does one block of a turn look?"""

from dataclasses import dataclass, replace
from typing import assert_never

from oh_kernel.views.ansi import ansi_to_html
from oh_kernel.views.calls import Call, CallState
from oh_kernel.views.checklist import render_checklist
from oh_kernel.views.diff import render_diff
from oh_kernel.views.escape import Clipped, clip, escape, one_line, printable, strip_ansi
from oh_kernel.views.highlight import code_to_html
from oh_kernel.views.markdown import inert_markdown, markdown_to_html
from oh_kernel.views.rendered import Rendered, fenced, inline_code, joined
from oh_kernel.views.style import BODY, CALL, MUTED, PRE, QUOTE, STATE_COLOURS, SUMMARY
from oh_kernel.views.turn import Block, Notice, Saying

SIGNS: dict[CallState, str] = {
    "running": "…",
    "waiting": "?",
    "ok": "✓",
    "failed": "✗",
    "timed out": "✗",
    "rejected": "⊘",
    "interrupted": "■",
}
# Tools whose answers repeat what was asked.
_TELLING = (
    *("file_editor", "planning_file_editor", "read_file", "list_directory"),
    *("glob", "grep", "task_tracker"),
)
_OPENED: tuple[CallState, ...] = ("running", "failed", "timed out", "rejected", "interrupted")


@dataclass(frozen=True)
class Limits:
    """How much of each text a block may show."""

    lines: int
    chars: int
    diff_lines: int | None = None
    """Lines for all diffs of a call; None means as many as any text has."""

    def clip(self, text: str) -> Clipped:
        return clip(text, max_lines=self.lines, max_chars=self.chars)


WHOLE = Limits(lines=2_000, chars=64_000)
# The twins are for reading where HTML is not shown; the log and the HTML have the rest.
_TWIN = Limits(lines=400, chars=16_000)
_REASONING = Limits(lines=60, chars=4_000)
NOTHING = Rendered("", "", "")


def render_block(block: Block, limits: Limits = WHOLE, *, open_edits: bool = True) -> Rendered:
    """The block in HTML, Markdown and plain text; `open_edits` unfolds edits and what waits."""
    match block:
        case Saying():
            return _saying(block, limits)
        case Notice():
            return _notice(block)
        case Call():
            return _call(block, limits, open_edits=open_edits)
        case _:
            assert_never(block)


def heading_text(call: Call) -> str:
    """The call in one line of plain text."""
    return _heading(call).text


def _saying(saying: Saying, limits: Limits) -> Rendered:
    if saying.who == "reasoning":
        return _reasoning(saying.text, limits)
    shown = _join(limits.clip(saying.text))
    text = printable(shown)
    if saying.who == "user":
        return Rendered(
            html=f'<div style="{QUOTE};white-space:pre-wrap"><b>You:</b> {escape(shown)}</div>',
            markdown="**You:**\n\n"
            + "\n".join(f"> {line}" for line in inert_markdown(text).split("\n")),
            text=f"You: {text}",
        )
    html = f"<div>{markdown_to_html(shown)}</div>"
    return Rendered(html=html, markdown=inert_markdown(text), text=text)


def _reasoning(whole: str, limits: Limits) -> Rendered:
    text = _join(_smaller(limits, _REASONING).clip(whole))
    html = (
        f'<details><summary style="{MUTED};cursor:pointer">Reasoning</summary>'
        f'<div style="{QUOTE};white-space:pre-wrap">{escape(text)}</div></details>'
    )
    return Rendered(html=html, markdown="", text="")


def _notice(notice: Notice) -> Rendered:
    text = printable(" ".join(notice.text.split()))
    shown = f"✗ {text}" if notice.is_error else text
    style = STATE_COLOURS["failed"] if notice.is_error else MUTED
    line = escape(shown)
    if notice.details:
        line = _folded(line, _join(_REASONING.clip(notice.details)))
    html = f'<div role="note" style="{style};margin:4px 0">{line}</div>'
    return Rendered(html=html, markdown=inert_markdown(shown), text=shown)


def _folded(line: str, text: str) -> str:
    return (
        f'<details><summary style="cursor:pointer">{line}</summary>'
        f'<div style="{QUOTE};white-space:pre-wrap">{escape(text)}</div></details>'
    )


def _call(call: Call, limits: Limits, *, open_edits: bool) -> Rendered:
    parts = [_code(call, limits), _outcome(call, limits)] if limits.lines else []
    body = joined([part for part in parts if part.html])
    is_list = call.shows_tasks and not call.superseded
    is_open = is_list or call.state in _OPENED or (_is_edit_or_waits(call) and open_edits)
    head = _heading(call)
    attribute = " open" if is_open else ""
    html = (
        f'<details style="{CALL}"{attribute}><summary style="{SUMMARY}">{head.html}</summary>'
        f'<div style="{BODY}">{body.html}</div></details>'
    )
    return Rendered(
        html=html,
        markdown="\n\n".join(filter(None, [head.markdown, body.markdown])),
        text="\n".join(filter(None, [head.text, body.text])),
    )


def _is_edit_or_waits(call: Call) -> bool:
    """Whether a widget, where there is one, shows the call in more detail."""
    return bool(call.diffs) or call.state == "waiting"


def _heading(call: Call) -> Rendered:
    """One line: sign, tool, what for, and how it went in words."""
    sign = SIGNS[call.state]
    tool, summary = printable(call.tool), printable(one_line(call.summary))
    facts = ", ".join(call.facts)
    html = (
        f'<span style="{STATE_COLOURS[call.state]}">{sign}</span> <b>{escape(tool)}</b> '
        f'{escape(summary)} <span style="{MUTED}">· {escape(facts)}</span>'
    )
    purpose = f" {inline_code(summary)}" if summary else ""
    return Rendered(
        html=html,
        markdown=f"{sign} **{inert_markdown(tool)}**{purpose} ({facts})",
        text=f"{sign} {tool}: {summary} ({facts})" if summary else f"{sign} {tool} ({facts})",
    )


def _code(call: Call, limits: Limits) -> Rendered:
    """What the tool was asked. An edit's diff, tasks and some answers say it better."""
    says_it = call.diffs or call.shows_tasks or (call.tool in _TELLING and call.state == "ok")
    if says_it or not call.code.strip():
        return NOTHING
    prompt = "$ " if call.language == "bash" else ""
    shown = limits.clip(call.code.strip("\n"))
    twin = printable(_join(_smaller(limits, _TWIN).clip(call.code.strip("\n"))))
    code = code_to_html(printable(shown.text), call.language)
    return Rendered(
        html=_pre(f"{prompt}{code}") + _remark(shown.note),
        markdown=fenced(twin, call.language),
        text=f"{prompt}{twin}",
    )


def _outcome(call: Call, limits: Limits) -> Rendered:
    if call.shows_tasks:
        tasks = render_checklist(call.tasks)
        return replace(tasks, markdown="", text="") if call.superseded else tasks
    if call.diffs:
        lines = limits.lines if limits.diff_lines is None else limits.diff_lines
        changes = [render_diff(diff, lines // len(call.diffs)) for diff in call.diffs]
        named = zip(call.diffs, changes, strict=True)
        return joined([replace(each, html=_remark(diff.path) + each.html) for diff, each in named])
    pictures = f"({call.images} image{'s' if call.images > 1 else ''})" if call.images else ""
    output = call.output.strip("\n")
    if not output:
        words = pictures or ("" if call.state in ("running", "waiting") else "(no output)")
        return Rendered(_remark(words), words, words) if words else NOTHING
    shown = limits.clip(output)
    twin = printable(_join(_smaller(limits, _TWIN).clip(strip_ansi(output))))
    return Rendered(
        html=_pre(ansi_to_html(shown.text)) + _remark(shown.note) + _remark(pictures),
        markdown=fenced(twin),
        text=twin,
    )


def _pre(html: str) -> str:
    # The inner element keeps a first empty line: browsers drop a newline right after <pre>.
    return f'<pre style="{PRE}"><code style="background:none;padding:0">{html}</code></pre>'


def _remark(text: str) -> str:
    return f'<div style="{MUTED}">{escape(text)}</div>' if text else ""


def _join(clipped: Clipped) -> str:
    return f"{clipped.text}\n\n{clipped.note}" if clipped.note else clipped.text


def _smaller(a: Limits, b: Limits) -> Limits:
    return Limits(min(a.lines, b.lines), min(a.chars, b.chars))
