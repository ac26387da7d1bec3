"""Which commands and snippets carry which risk, as people labelled them?

`python -m tests.risk_corpus NEW.jsonl` adds labelled lines and says nothing of where each went;
the rules of the labels are in tests/data/risk/README.md.
"""

import json
import random
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, get_args

from oh_kernel.events import SecurityRisk

FOLDER = Path(__file__).parent / "data" / "risk"
NEAR_MISS = "near miss: "
SEED = 20240501
SHARE = 3
"""One of so many neighbours is held back."""

Name = Literal["known", "held_back"]
Tool = Literal["terminal", "ipython"]


@dataclass(frozen=True)
class LabelledText:
    """What an agent might run, and the risk that a person saw in it."""

    tool: Tool
    text: str
    risk: SecurityRisk
    why: str

    @property
    def is_near_miss(self) -> bool:
        """Whether it looks dangerous and is not."""
        return self.why.startswith(NEAR_MISS)

    @property
    def stratum(self) -> tuple[str, str, bool]:
        """The group within which a third is held back."""
        return self.tool, self.risk.value, self.is_near_miss


def read_corpus(name: Name) -> list[LabelledText]:
    """The lines of `known`, or of `held_back`, which no author of an analyzer looks at."""
    return read_lines(FOLDER / f"{name}.jsonl")


def read_lines(path: Path) -> list[LabelledText]:
    """The labelled lines of any file; a line with other fields or values is refused."""
    return [_parsed(line) for line in path.read_text("utf-8").splitlines()]


def split(entries: Iterable[LabelledText], seed: int = SEED) -> dict[Name, list[LabelledText]]:
    """Hold one at random of each three neighbours of a stratum back.

    Neighbours, since people write lines of one kind together: each kind is then on both sides.
    """
    strata: dict[tuple[str, str, bool], list[LabelledText]] = {}
    for entry in entries:
        strata.setdefault(entry.stratum, []).append(entry)
    choice = random.Random(seed)
    parts: dict[Name, list[LabelledText]] = {"known": [], "held_back": []}
    for _, members in sorted(strata.items()):
        for start in range(0, len(members), SHARE):
            held = start + choice.randrange(SHARE)
            for index, entry in enumerate(members[start : start + SHARE], start):
                parts["held_back" if index == held else "known"].append(entry)
    return parts


def add(path: Path) -> None:
    """Split the lines of `path` and append them; lines that are there already stay where they are.

    The whole is never split again: what an author has seen would move to the held-back side.
    """
    for name, entries in split(read_lines(path)).items():
        with (FOLDER / f"{name}.jsonl").open("a", encoding="utf-8") as file:
            file.writelines(
                json.dumps(asdict(entry), ensure_ascii=False) + "\n" for entry in entries
            )


def _parsed(line: str) -> LabelledText:
    fields = json.loads(line)
    entry = LabelledText(**{**fields, "risk": SecurityRisk(fields["risk"])})
    if entry.tool not in get_args(Tool):
        raise ValueError(f"tool {entry.tool!r} is not one of {', '.join(get_args(Tool))}")
    return entry


if __name__ == "__main__":
    add(Path(sys.argv[1]))
