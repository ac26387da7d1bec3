"""Any mix of terminal calls: each command gets its own output and exit code, none shifted."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from oh_kernel.tools.terminal import TerminalAction, TerminalExecutor, TerminalObservation
from tests.experiments import count, measured

PER_SHELL = 250
"""How many commands one executor carries out, so that a failure can be played again."""


@dataclass
class Player:
    """One terminal, and what has to come of each call."""

    executor: TerminalExecutor
    dice: random.Random
    commands: int = 0

    def call(self, command: str, **fields: Any) -> TerminalObservation:
        return self.executor(TerminalAction(command=command, **fields))

    def run(self, command: str, **fields: Any) -> TerminalObservation:
        self.commands += 1
        return self.call(command, **fields)

    @property
    def word(self) -> str:
        """What only this command prints."""
        return f"w{self.commands}-{self.dice.randrange(10**9)}"

    def check(self, done: TerminalObservation, text: str, exit_code: int) -> None:
        assert (own_lines(done), done.exit_code) == (text.splitlines(), exit_code), done.text


def own_lines(done: TerminalObservation) -> list[str]:
    """Without what background jobs print, and bash reports of them, between any two characters."""
    own = re.sub(r"\[\d+\][-+ ]+(Done|Killed|Stopped|Exit) .*\n?|late-\n?", "", done.text)
    return [line for line in own.splitlines() if not line.startswith("[")]


def quick(player: Player) -> None:
    word, status = player.word, player.dice.randrange(100)
    player.check(player.run(f"echo {word}; (exit {status})"), word, status)


def several_lines(player: Player) -> None:
    word, size = player.word, player.dice.randrange(2, 300)
    done = player.run(
        f'for ((i = 1; i <= {size}; i++)); do echo "{word} $i"; done; (exit {size % 50})'
    )
    player.check(done, "\n".join(f"{word} {n}" for n in range(1, size + 1)), size % 50)


def heredoc(player: Player) -> None:
    text = f"{player.word} $HOME `id`\n\nlast"
    player.check(player.run(f"cat <<'E'\n{text}\nE"), text, 0)


def slow(player: Player) -> None:
    word = player.word
    player.check(
        player.run(f"printf {word}; sleep 0.0{player.dice.randrange(1, 6)}; echo"), word, 0
    )


def syntax_error(player: Player) -> None:
    broken = player.dice.choice(["if then", "echo 'open", "f() {", "echo a | | b", ")", "x=("])
    assert player.run(broken).exit_code not in (0, -1, None)


def unfinished(player: Player) -> None:
    assert player.run(player.dice.choice(["echo $(", 'x="$(ls', "cat <<E\nx"])).is_error


def unknown(player: Player) -> None:
    word = player.word
    done = player.run(f"no-such-command-{word}")
    assert done.exit_code == 127
    assert word in done.text


def background(player: Player) -> None:
    word = player.word
    player.check(
        player.run(f"(sleep 0.0{player.dice.randrange(5)}; echo late-) & echo {word}"), word, 0
    )


def imitation(player: Player) -> None:
    word = player.word
    record = "\\036" + "0" * 16 + "\\0350\\0350\\035\\035\\035/x\\035/b\\035\\037"
    done = player.run(f"printf '{record}\\n'; echo {word}; (exit 7)")
    assert done.exit_code == 7
    assert own_lines(done)[-1] == word


def read_on_until_done(player: Player, word: str) -> None:
    text, done = "", player.call("")
    while done.timeout:
        text, done = text + done.text, player.call("")
    assert done.exit_code == 5, done.text
    assert (text + done.text).count(word) == 1


def timing_out(player: Player) -> None:
    word = player.word
    first = player.run(f"sleep 0.2; echo {word}; (exit 5)", timeout=0.05)
    assert (first.exit_code, first.timeout) == (-1, True)
    assert player.call("echo never").is_error
    read_on_until_done(player, word)


def end_unseen(player: Player) -> None:
    word = player.word
    assert player.run(f"sleep 0.1; echo {word}; (exit 5)", timeout=0.02).timeout
    told = ""
    done = player.run("echo next")
    while done.is_error:  # it was still running
        told += done.text
        done = player.call("echo next")
    told += done.text
    assert told.count(word) == 1
    assert own_lines(done)[-1] == "next"


def answered(player: Player) -> None:
    word = player.word
    asked = player.run("read -p 'name? ' a; echo \"got-$a\"; (exit 4)", timeout=0.1).text
    while "name? " not in asked:
        asked += player.call("", timeout=0.05).text
    done = player.call(word, is_input=True, timeout=10)
    player.check(done, f"got-{word}", 4)


def interrupted(player: Player) -> None:
    word = player.word
    program = player.dice.choice(["sleep 1000", "cat", "read x", "while :; do :; done"])
    text = player.run(f"echo {word}; {program}", timeout=0.05).text
    while word not in text:
        text += player.call("", timeout=0.05).text
    done = player.call("C-c", is_input=True, timeout=10)
    assert done.exit_code == 130, done.text
    assert (text + done.text).count(word) == 1


def stopped(player: Player) -> None:
    assert player.run("sleep 1000", timeout=0.05).timeout
    done = player.call("C-z", is_input=True, timeout=10)
    assert done.exit_code == 148, done.text
    assert player.run("kill -9 %%; wait %% 2>/dev/null; true").exit_code == 0


def ending(player: Player) -> None:
    word, status = player.word, player.dice.randrange(1, 100)
    job = player.dice.choice(["", "sleep 1000 & "])
    done = player.run(f"{job}echo {word}; exit {status}")
    assert done.exit_code == status
    assert word in done.text
    assert "A new one was started" in done.text


def damaging(player: Player) -> None:
    word = player.word
    damage = player.dice.choice(
        [
            "PS1='mine> '; PROMPT_COMMAND='echo spam'",
            "set -e; set -u; set -x; set +x",
            "trap 'true' DEBUG ERR",
            "unset PS1 PROMPT_COMMAND; IFS=0123456789",
            "stty raw -echo",
            "mkdir -p gone; cd gone; rmdir ../gone; cd ..",
            "printf '\\0\\r\\n'",
        ]
    )
    assert player.run(f"{damage} 2>/dev/null").exit_code == 0
    player.check(player.run(f"echo {word}; (exit 6)"), word, 6)


STEPS: dict[Callable[[Player], None], int] = {
    quick: 40,
    several_lines: 8,
    heredoc: 6,
    slow: 4,
    syntax_error: 6,
    unfinished: 2,
    unknown: 4,
    background: 4,
    imitation: 4,
    timing_out: 1,
    end_unseen: 2,
    answered: 1,
    interrupted: 3,
    stopped: 1,
    ending: 1,
    damaging: 4,
}


def play(folder: Path, seed: int, commands: int) -> int:
    executor = TerminalExecutor(folder, no_change_timeout_s=10)
    player = Player(executor, random.Random(seed))
    try:
        while player.commands < commands:
            (step,) = player.dice.choices(list(STEPS), list(STEPS.values()))
            step(player)
    except AssertionError as error:
        error.add_note(f"seed {seed}, command {player.commands}")
        raise
    finally:
        executor.close()
    return player.commands


def test_every_kind_of_call(tmp_path: Path) -> None:
    executor = TerminalExecutor(tmp_path, no_change_timeout_s=10)
    try:
        for step in STEPS:
            step(Player(executor, random.Random(1)))
    finally:
        executor.close()


@pytest.mark.timeout(1200)
@pytest.mark.repeated
def test_any_mix_of_calls_is_answered_call_by_call(tmp_path: Path) -> None:
    wanted, done, seed = count(150, long=10_000), 0, 0
    with measured("terminal commands in random order, answered by another's output", tries=wanted):
        while done < wanted:
            done += play(tmp_path, seed, min(PER_SHELL, wanted - done))
            seed += 1
