"""Hooks as a person in a notebook meets them: told of, trusted, and seen when they block."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from oh_kernel.events import HookExecutionEvent
from tests.live.agent_kernel import AgentKernel, agent_kernel, asks, python, wait_until
from tests.outputs import final_text

PUSH = asks(("terminal", {"command": "touch pushed"}), say="I push it.")


def write_hooks(work: Path, **commands: str) -> None:
    folder = work / ".openhands"
    folder.mkdir(parents=True, exist_ok=True)
    hooks = {event: [{"hooks": [{"command": one}]}] for event, one in commands.items()}
    (folder / "hooks.json").write_text(json.dumps(hooks))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return tmp_path / "work"


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[str]:
    file = tmp_path / "settings" / "config.toml"
    file.parent.mkdir()
    file.touch()
    yield str(file)


def shown(kernel: AgentKernel, flags: str = "") -> str:
    return final_text(kernel.ask("push it", flags=flags).messages)


def test_first_told_then_trusted_then_heard(tmp_path: Path, work: Path, settings: str) -> None:
    write_hooks(work, PreToolUse="echo 'ask me first' >&2; exit 2", SessionEnd="touch ended")
    script = [PUSH, {"content": "done"}]
    with agent_kernel(tmp_path, script, OPENHANDS_CONFIG_FILE=settings) as kernel:
        first = shown(kernel)
        assert "you have not trusted" in first and "%openhands trust" in first
        assert "PreToolUse: echo 'ask me first'" in first
        assert (work / "pushed").exists()
        (work / "pushed").unlink()

        told = kernel.command("trust")
        assert "From now on these run" in told and "PreToolUse: echo 'ask me first'" in told
        second = shown(kernel, "--new")
        assert "you have not trusted" not in second
        assert "blocked terminal: ask me first" in second
        assert not (work / "pushed").exists()

        write_hooks(work, PreToolUse="exit 0")
        assert "was changed since you trusted its hooks" in shown(kernel, "--new")
        assert not (work / "pushed").exists()
        write_hooks(work, PreToolUse="echo 'ask me first' >&2; exit 2", SessionEnd="touch ended")
        assert "blocked terminal" in shown(kernel, "--new")
        wait_until((work / "ended").exists)
        (work / "ended").unlink()
        kernel.kernel.manager.shutdown_kernel()  # as Jupyter does it
    assert (work / "ended").exists()
    (event,) = [e for e in kernel.events() if getattr(e, "hook_event_type", "") == "PreToolUse"]
    assert isinstance(event, HookExecutionEvent) and event.blocked


def test_the_agent_cannot_trust_hooks_itself(tmp_path: Path, work: Path, settings: str) -> None:
    write_hooks(work, PreToolUse="exit 2")
    script = [python("get_ipython().run_line_magic('openhands', 'trust')"), {"content": "done"}]
    with agent_kernel(tmp_path, script, OPENHANDS_CONFIG_FILE=settings) as kernel:
        kernel.ask()
        assert "already running" in str([event.to_json() for event in kernel.events()])
    assert not (Path(settings).parent / "trusted_hooks.json").exists()
