"""What does an agent cell evaluate to?"""

from dataclasses import dataclass
from html import escape


@dataclass(frozen=True, repr=False)
class TurnResult:
    """How one turn ended: the answer, and what it took."""

    status: str
    answer: str
    conversation_id: str
    steps: int
    tokens: int
    cost_usd: float | None = None  # None: no price is known for the model
    files_changed: tuple[str, ...] = ()

    @property
    def cost(self) -> str:
        """The cost in words, "cost unknown" for a model without a known price."""
        return "cost unknown" if self.cost_usd is None else f"${self.cost_usd:.4f}"

    def facts(self) -> list[str]:
        """Status, steps, tokens, cost and changed files, each as a few words."""
        facts = [self.status, _count(self.steps, "step"), _count(self.tokens, "token"), self.cost]
        if self.files_changed:
            facts.append(f"{_count(len(self.files_changed), 'file')} changed")
        return facts

    def __str__(self) -> str:
        return self.answer

    def __repr__(self) -> str:
        lines = [" · ".join(self.facts()), f"conversation {self.conversation_id}"]
        lines += [f"changed: {path}" for path in self.files_changed]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        # Steps, tokens and cost stand right above, at the end of the transcript.
        facts = [self.status, f"conversation {self.conversation_id}"]
        if self.files_changed:
            facts.append(f"changed: {', '.join(self.files_changed)}")
        style = "color:var(--jp-ui-font-color2,#767676);font-size:90%;overflow-wrap:anywhere"
        return f'<div style="{style}">{escape(" · ".join(facts))}</div>'


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
