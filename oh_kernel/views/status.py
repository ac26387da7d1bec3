"""How does the line look that says what is being waited for?"""

from oh_kernel.views.escape import escape, printable
from oh_kernel.views.rendered import Rendered
from oh_kernel.views.style import MUTED


def status_line(words: str) -> Rendered:
    """The line for `words`, such as "thinking · 3 s"."""
    shown = printable(words)
    html = f'<div role="status" style="{MUTED};padding:2px 0">● {escape(shown)}</div>'
    return Rendered(html=html, markdown=f"*{shown}*", text=f"[{shown}]")


def starting_line() -> Rendered:
    """What stands there before anything else does."""
    return status_line("starting · 0 s")
