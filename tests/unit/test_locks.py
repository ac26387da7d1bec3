"""Who may use a file or a session at a time."""

import asyncio
import gc
import random
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from oh_kernel.events import Action, AgentErrorEvent, Observation, ToolAnnotations
from oh_kernel.loop import run_blocking, spawn
from oh_kernel.tools import locks
from oh_kernel.tools.base import Tool, ToolContext, ToolExecutor
from oh_kernel.tools.locks import LockTimeout, ResourceLocks
from tests.conversations import Scripted, call, calls, say

DEADLINE_S = 20.0


def on_loop(coro: Coroutine[Any, Any, None]) -> None:
    """Run `coro` where locks are used: on the agent thread."""
    run_blocking(asyncio.wait_for(coro, DEADLINE_S))


async def hold(table: ResourceLocks, keys: list[str], held: asyncio.Event) -> None:
    """Have `keys` until cancelled."""
    async with table.held(keys):
        held.set()
        await asyncio.Event().wait()


async def holding(table: ResourceLocks, *keys: str) -> "asyncio.Task[None]":
    """A task that has `keys` by now."""
    held = asyncio.Event()
    task = asyncio.ensure_future(hold(table, list(keys), held))
    await held.wait()
    return task


async def end(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_timeouts_are_those_of_the_contract() -> None:
    assert locks.TIMEOUTS_S == {
        "file": 30,
        "terminal": 300,
        "browser": 300,
        "mcp": 300,
        "tool": 60,
    }
    assert locks.OTHER_TIMEOUT_S == 30


@pytest.mark.parametrize(
    ("key", "seconds"),
    [("file:/w/a", "30"), ("terminal:session", "300"), ("tool:x", "60"), ("paint", "30")],
)
def test_timeout_says_which_key_and_how_long(key: str, seconds: str) -> None:
    timeout_s = locks.TIMEOUTS_S.get(key.partition(":")[0], locks.OTHER_TIMEOUT_S)
    expected = f"Could not acquire lock for '{key}' within {seconds}s"
    assert str(LockTimeout(key, timeout_s)) == expected


def test_what_stays_in_use_is_told_and_leaves_the_rest_free() -> None:
    async def run() -> None:
        own = ResourceLocks({"file": 0.01})
        other = await holding(ResourceLocks(), "file:/b")
        with pytest.raises(LockTimeout, match=r"lock for 'file:/b' within 0\.01s"):
            async with own.held(["file:/a", "file:/b"]):
                raise AssertionError("held what another has")
        async with own.held(["file:/a"]):
            await end(other)
        async with own.held(["file:/a", "file:/b"]):
            pass

    on_loop(run())


def test_files_are_shared_by_conversations_and_shells_are_not() -> None:
    async def run() -> None:
        first, second = ResourceLocks(), ResourceLocks({"file": 0.01, "tool": 0.01})
        other = await holding(first, "file:/a", "tool:paint", "terminal:session")
        async with second.held(["tool:paint", "terminal:session"]):
            pass
        with pytest.raises(LockTimeout):
            async with second.held(["file:/a"]):
                raise AssertionError("held what another has")
        await end(other)

    on_loop(run())


def test_cancelled_while_waiting_or_holding_nothing_stays_locked() -> None:
    async def run() -> None:
        table = ResourceLocks({"file": 0.01})
        holder = await holding(table, "file:/b")
        waiter = asyncio.ensure_future(
            hold(ResourceLocks(), ["file:/a", "file:/b"], asyncio.Event())
        )
        while "file:/a" not in locks._of_files:
            await asyncio.sleep(0)
        await end(waiter)
        await end(holder)
        async with table.held(["file:/a", "file:/b"]):
            pass

    on_loop(run())
    gc.collect()  # a cancelled task leaves its traceback behind
    assert not {"file:/a", "file:/b"} & set(locks._of_files)


def test_no_order_of_keys_leads_to_waiting_for_each_other() -> None:
    """Each of many tasks wants some files in an order of its own; nobody shares one."""
    names = [f"file:/{name}" for name in "abcdef"]
    in_use: set[str] = set()

    async def work(seed: int) -> None:
        choose = random.Random(seed)
        table = ResourceLocks()
        for _ in range(20):
            keys = choose.sample(names, choose.randint(1, 4))
            async with table.held(keys):
                assert not in_use & set(keys)
                in_use.update(keys)
                await asyncio.sleep(0)
                in_use.difference_update(keys)

    async def run() -> None:
        await asyncio.gather(*(work(seed) for seed in range(20)))

    on_loop(run())


class BrushAction(Action):
    """Nothing of its own."""


class BrushObservation(Observation):
    """Nothing of its own."""


class BrushExecutor(ToolExecutor[BrushAction, BrushObservation]):
    """Answers with what it has to itself."""

    async def run(self, action: BrushAction, context: ToolContext) -> BrushObservation:
        return BrushObservation.from_text("painted")

    def resources(self, action: BrushAction) -> tuple[str, ...]:
        return (f"file:{self.workspace}/picture",)


class BrushTool(Tool):
    name = "brush"
    prose = "Paints in a file."
    action = BrushAction
    observation = BrushObservation
    executor = BrushExecutor
    hints = ToolAnnotations()


def test_call_waits_for_its_file_and_a_stop_frees_it(tmp_path: Path) -> None:
    """A call that waits for another conversation's file is stopped like any running call."""
    work = tmp_path / "work"
    work.mkdir()
    key = f"file:{work.resolve()}/picture"
    other = run_blocking(holding(ResourceLocks(), key))
    turns = [calls(call("brush", id="a")), say("done")]
    with Scripted(work, turns, tools=[BrushTool], policy="never") as scripted:
        scripted.conversation.send_message("go")
        running = spawn(scripted.conversation.arun())
        run_blocking(_until_somebody_waits(key))
        scripted.conversation.interrupt()
        assert running.result(DEADLINE_S) == "paused"
        result = scripted.results["a"]
        assert isinstance(result, AgentErrorEvent) and "interrupted" in result.error
        run_blocking(end(other))
        gc.collect()
        assert key not in locks._of_files
        assert scripted.ask("again") == "finished"


async def _until_somebody_waits(key: str) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not locks._of_files[key]._waiters:
            await asyncio.sleep(0.005)
