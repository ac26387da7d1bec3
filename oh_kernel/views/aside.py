"""How is the answer to a question beside the task shown?"""

from oh_kernel.views.escape import escape, printable
from oh_kernel.views.markdown import inert_markdown, markdown_to_html
from oh_kernel.views.style import MUTED

NOTE = "Answered beside the task: nothing was run, and it is not part of the conversation."


class AsideView:
    """The answer, which is Markdown, as the value of a cell."""

    def __init__(self, answer: str) -> None:
        self.answer = answer

    def __str__(self) -> str:
        return self.answer

    def __repr__(self) -> str:
        return f"{printable(self.answer)}\n({NOTE})"

    def _repr_html_(self) -> str:
        note = f'<div style="{MUTED};font-size:90%">{escape(NOTE)}</div>'
        return f"<div>{markdown_to_html(self.answer)}</div>{note}"

    def _repr_markdown_(self) -> str:
        return f"{inert_markdown(printable(self.answer))}\n\n({NOTE})"
