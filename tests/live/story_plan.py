"""What happens in a story: chance decides once, and the outcome is data that can be cut down.

plan_of(7)                  the story with this seed
shorter_than(plan)          the same story with one thing less, for each thing
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

# What the model answers; see story_model.py. Those that are named twice come twice as often.
REPLIES = (
    *("words", "slow words", "call", "call", "slow call", "slow call", "edit"),
    *("parallel", "parallel", "parallel", "risky", "risky", "mixed", "risky and finish"),
    *("finish", "finish and calls", "unknown tool", "bad arguments", "no JSON", "same again"),
    *("taken id", "empty", "busy", "cut", "overflow", "refused", "dear"),
)
# What a person does. At rest, `ask` is a message and a run.
AT_REST = (
    *("ask", "ask", "ask", "ask", "send", "run", "run", "pause", "interrupt"),
    *("approve", "reject", "condense", "side question", "raise the budget", "rename"),
    *("kill", "reopen", "intrude", "fork", "fork from an event", "switch", "delete"),
)
WHILE_WAITING = (
    *("approve", "approve", "approve some", "reject", "reject some", "reject without a reason"),
    *("approve what is not there", "interrupt", "pause", "send", "run", "kill", "ask"),
)
MEANWHILE = (
    *("pause", "interrupt", "interrupt", "interrupt", "send", "send", "kill", "kill", "kill"),
    *("run", "approve"),
    *("reject", "condense", "side question", "fork", "fork from an event", "intrude"),
)
# After which pieces of news something is done: events, and what passes. "": any.
NEWS = (
    *("", "", "ActionEvent", "ActionEvent", "ToolOutput", "ToolOutput", "ObservationEvent"),
    *("TextDelta", "LLMCompletionLogEvent", "ConversationStateUpdateEvent", "MessageEvent"),
)
ANSWERS = ("yes", "yes", "no", "some", "yes from elsewhere", "no from elsewhere", *MEANWHILE)
POLICIES = ("risky", "risky", "always", "never")
BUDGETS = (None, 0.6, 1.5)
CONDENSE_AFTER = (500, 500, 30)


@dataclass(frozen=True)
class Deed:
    """Something that is done; `number` chooses where there is a choice."""

    what: str
    number: int = 0


@dataclass(frozen=True)
class Interlude:
    """What is done during a run: a moment after its n-th piece of some news."""

    deed: Deed
    news: str
    n: int
    wait_s: float


@dataclass(frozen=True)
class Step:
    """What is done at rest, and what during the run if it is one; `if_waiting` when calls wait."""

    deed: Deed
    if_waiting: Deed | None = None
    meanwhile: tuple[Interlude, ...] = ()


@dataclass(frozen=True)
class Plan:
    """One story. `answers`: of a person who is asked during runs; without any, nobody is there."""

    seed: int
    policy: str
    budget: float | None
    condense_after: int
    answers: tuple[Deed, ...]
    replies: tuple[str, ...]
    steps: tuple[Step, ...]


def plan_of(seed: int) -> Plan:
    """The story that chance gives for `seed`."""
    chance = random.Random(seed)
    is_attended = chance.random() < 0.4
    steps = [_step(chance) for _ in range(chance.randint(4, 12))]
    return Plan(
        seed,
        policy=chance.choice(POLICIES),
        budget=chance.choice(BUDGETS),
        condense_after=chance.choice(CONDENSE_AFTER),
        answers=tuple(_deed(chance, ANSWERS) for _ in range(6 if is_attended else 0)),
        replies=tuple(chance.choice(REPLIES) for _ in range(40)),
        steps=(Step(Deed("ask"), None, _interludes(chance)), *steps),
    )


def _step(chance: random.Random) -> Step:
    deed = _deed(chance, AT_REST)
    if_waiting = _deed(chance, WHILE_WAITING) if chance.random() < 0.7 else None
    return Step(deed, if_waiting, _interludes(chance))


def _interludes(chance: random.Random) -> tuple[Interlude, ...]:
    count = chance.choice((0, 1, 1, 2))
    return tuple(_interlude(chance) for _ in range(count))


def _interlude(chance: random.Random) -> Interlude:
    news = chance.choice(NEWS)
    n = chance.choice((1, 1, 2, 3)) if news else chance.randint(0, 25)
    wait_s = chance.choice((0.0, 0.0, chance.uniform(0, 0.03)))
    return Interlude(_deed(chance, MEANWHILE), news, n, wait_s)


def _deed(chance: random.Random, choice: Sequence[str]) -> Deed:
    return Deed(chance.choice(choice), chance.randrange(1000))


def shorter_than(plan: Plan) -> Iterator[Plan]:
    """The plan with one thing less, or simpler: what is worth trying first comes first."""
    steps, replies = plan.steps, plan.replies
    for size in (4, 1):
        for at in reversed(range(len(steps))):
            if len(steps) > size:
                yield replace(plan, steps=steps[:at] + steps[at + size :])
    for at, step in enumerate(steps):
        for index in range(len(step.meanwhile)):
            less = step.meanwhile[:index] + step.meanwhile[index + 1 :]
            shorter = replace(step, meanwhile=less)
            yield replace(plan, steps=(*steps[:at], shorter, *steps[at + 1 :]))
    for size in (8, 1):
        for at in reversed(range(len(replies))):
            yield replace(plan, replies=replies[:at] + replies[at + size :])
    if plan.answers:
        yield replace(plan, answers=())
    if plan.budget is not None:
        yield replace(plan, budget=None)
