"""How is a rerun of recorded actions shown?"""

from oh_kernel.conversation.rerun_report import RerunCall, RerunReport
from oh_kernel.views.escape import escape, printable
from oh_kernel.views.rendered import Rendered, fenced, inline_code, joined
from oh_kernel.views.style import BODY, CALL, MUTED, PRE, STATE_COLOURS, SUMMARY

_SIGNS = {"same": "✓", "differs": "≠", "error": "✗", "skipped": "⊘"}
_COLOURS = {"same": "ok", "differs": "waiting", "error": "failed", "skipped": "rejected"}


class RerunView:
    """A report as the value of a cell."""

    def __init__(self, report: RerunReport) -> None:
        self.report = report

    def __repr__(self) -> str:
        return render_rerun(self.report).text

    def _repr_html_(self) -> str:
        return render_rerun(self.report).html


def render_rerun(report: RerunReport) -> Rendered:
    """The report in HTML, Markdown and plain text: the counts, then each call."""
    where = f"{report.recorded_workspace} → {report.workspace}"
    head = Rendered(
        html=f'<div><b>{escape(report.headline)}</b> <span style="{MUTED}">{escape(where)}</span>'
        "</div>",
        markdown=f"**{report.headline}**\n\n{inline_code(printable(where))}",
        text=f"{report.headline}\n{printable(where)}",
    )
    return joined([head, *map(_call, report.calls)])


def _call(call: RerunCall) -> Rendered:
    sign, asked = _SIGNS[call.outcome], printable(call.asked)
    colour = STATE_COLOURS[_COLOURS[call.outcome]]
    heading = (
        f'<span style="{colour}">{sign}</span> <b>{escape(call.tool)}</b> {escape(asked)} '
        f'<span style="{MUTED}">· {call.outcome}</span>'
    )
    words = f"{sign} {printable(call.tool)}: {asked} ({call.outcome})"
    if not call.detail:
        return Rendered(f'<div style="{SUMMARY}">{heading}</div>', f"- {inline_code(words)}", words)
    detail = printable(call.detail)
    is_open = " open" if call.outcome in ("differs", "error") else ""
    return Rendered(
        html=f'<details style="{CALL}"{is_open}><summary style="{SUMMARY}">{heading}</summary>'
        f'<div style="{BODY}"><pre style="{PRE}">{escape(call.detail)}</pre></div></details>',
        markdown=f"- {inline_code(words)}\n\n{fenced(detail, 'diff')}",
        text=f"{words}\n{detail}",
    )
