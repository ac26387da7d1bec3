"""What does a turn look like when it is over?"""

from collections.abc import Iterable, Sequence
from pathlib import PurePath

from oh_kernel.conversation.state import Status
from oh_kernel.events import Event
from oh_kernel.views.blocks import NOTHING, WHOLE, Limits, render_block
from oh_kernel.views.rendered import Rendered, joined
from oh_kernel.views.style import FOOTER, TURN
from oh_kernel.views.turn import Block, Turn

# What one turn may add to a notebook file, HTML and both twins together.
MAX_SAVED_CHARS = 900_000

# Tried one after the other until the turn fits.
_LIMITS = (
    WHOLE,
    Limits(lines=500, chars=16_000),
    Limits(lines=100, chars=4_000),
    Limits(lines=20, chars=1_000),
    Limits(lines=0, chars=0),
)
_STATUS_WORDS = {
    Status.IDLE: "ended",
    Status.RUNNING: "stopped",
    Status.PAUSED: "stopped by you",
    Status.WAITING_FOR_CONFIRMATION: "waiting for your decision",
    Status.FINISHED: "finished",
    Status.ERROR: "ended with an error",
    Status.STUCK: "stopped, the agent was going in circles",
}


def render_turn(
    events: Iterable[Event],
    *,
    show_prompt: bool = False,
    workspace: PurePath | None = None,
    max_chars: int = MAX_SAVED_CHARS,
) -> Rendered:
    """The turn of these events: what was said and done, the answer, a footer; never too long."""
    turn = Turn.of(events, show_prompt=show_prompt, workspace=workspace)
    turn.end()
    return framed(fitting(turn.blocks, max_chars=max_chars), footer(turn))


def fitting(
    blocks: Sequence[Block], *, max_chars: int = MAX_SAVED_CHARS, open_edits: bool = True
) -> Rendered:
    """The blocks one below the other, each cut as far as is needed for all to fit."""
    if not blocks:
        return NOTHING
    for limits in _LIMITS:
        if rendered := _within(max_chars, blocks, limits, open_edits):
            return joined(rendered, text_gap="\n\n")
    return _latest(blocks, max_chars)


def framed(*parts: Rendered) -> Rendered:
    """The parts in the frame that every view of a turn has."""
    content = joined(parts, text_gap="\n\n")
    return Rendered(f'<div style="{TURN}">{content.html}</div>', content.markdown, content.text)


def footer(turn: Turn, elapsed_s: float | None = None) -> Rendered:
    """How the turn ended and what it took."""
    seconds = turn.elapsed_s if elapsed_s is None else elapsed_s
    steps = f"{turn.steps} step{'' if turn.steps == 1 else 's'}"
    facts = [_STATUS_WORDS[turn.status], steps, duration(seconds)]
    if turn.metrics.calls:
        facts += [f"{turn.metrics.tokens:,} tokens", turn.metrics.cost_in_words]
    if count := len(turn.files_changed):
        facts.append(f"{count} file{'' if count == 1 else 's'} changed")
    line = " · ".join(facts)
    return Rendered(f'<div style="{FOOTER}">{line}</div>', f"*{line}*", f"-- {line}")


def duration(seconds: float) -> str:
    """A length of time as a person says it.

    >>> duration(4.25), duration(75), duration(3700)
    ('4.2 s', '1 min 15 s', '1 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def _within(
    max_chars: int, blocks: Sequence[Block], limits: Limits, open_edits: bool
) -> list[Rendered]:
    """Every block, or nothing as soon as they turn out to be too long."""
    rendered: list[Rendered] = []
    for block in blocks:
        rendered.append(render_block(block, limits, open_edits=open_edits))
        max_chars -= len(rendered[-1])
        if max_chars < 0:
            return []
    return rendered


def _latest(blocks: Sequence[Block], max_chars: int) -> Rendered:
    """As many of the last blocks as fit, with the number of those before."""
    kept: list[Rendered] = []
    room = max_chars - 1_000
    for block in reversed(blocks):
        rendered = render_block(block, Limits(lines=20, chars=200))
        if len(rendered) > room:
            break
        room -= len(rendered)
        kept.append(rendered)
    line = f"{len(blocks) - len(kept):,} earlier entries are not shown here; the log has them."
    return joined([Rendered(f"<div>{line}</div>", line, line), *reversed(kept)])
