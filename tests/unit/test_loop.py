"""Which thread does the work, and what do waiting, cancelling and interrupting do?"""

import asyncio
import concurrent.futures
import contextvars
import signal
import threading
import time

import pytest

from oh_kernel import loop
from oh_kernel.loop import Interrupted, main_thread, run_blocking, spawn

place = contextvars.ContextVar("place", default="nowhere")


async def submitted(fn):
    return await asyncio.wrap_future(main_thread.submit(fn))


async def sleep_forever():
    await asyncio.Event().wait()


def test_spawn_runs_on_one_background_thread():
    async def where():
        return threading.current_thread()

    first, second = spawn(where()).result(5), spawn(where()).result(5)
    assert first is second
    assert first.daemon
    assert first is not threading.main_thread()


def test_a_value_and_an_error_come_back():
    async def fail():
        raise ValueError("told")

    async def give():
        return 7

    assert run_blocking(give()) == 7
    with pytest.raises(ValueError, match="told"):
        run_blocking(fail())


def test_main_thread_works_while_it_waits():
    assert run_blocking(submitted(threading.current_thread)) is threading.main_thread()


def test_blocking_waits_nest():
    """Code that the agent runs on main may itself call something blocking."""

    def outer():
        return run_blocking(submitted(lambda: (threading.current_thread(), main_thread.blocked)))

    assert run_blocking(submitted(outer)) == (threading.main_thread(), True)
    assert not main_thread.blocked


def test_another_thread_may_wait_too():
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: run_blocking(submitted(threading.current_thread)))

        async def forward():
            return await asyncio.wrap_future(waiting)

        assert run_blocking(forward()) is threading.main_thread()


def test_context_variables_flow_both_ways():
    token = place.set("cell 3")
    try:
        assert run_blocking(submitted(place.get)) == "cell 3"
    finally:
        place.reset(token)
    assert run_blocking(submitted(place.get)) == "nowhere"


def test_waiting_on_the_agent_thread_is_refused():
    async def wrong():
        run_blocking(asyncio.sleep(0))

    with pytest.raises(RuntimeError, match="own thread"):
        run_blocking(wrong())


def test_timeout_cancels_and_says_so():
    started, ended = threading.Event(), threading.Event()

    async def slow():
        started.set()
        try:
            await sleep_forever()
        finally:
            ended.set()

    while not started.is_set():  # a busy machine may not come to it before its time is up
        with pytest.raises(TimeoutError, match=r"0\.05 s"):
            run_blocking(slow(), timeout_s=0.05)
    assert ended.is_set()


def test_cancelled_coroutine_may_still_answer():
    started = threading.Event()

    async def stubborn():
        started.set()
        try:
            await sleep_forever()
        except asyncio.CancelledError:
            return "this far"

    future = spawn(stubborn())
    assert started.wait(5)
    assert future.cancel()
    assert future.result(5) == "this far"
    assert not future.cancel()


def test_cancel_before_the_start_leaves_no_warning():
    future = spawn(sleep_forever())
    future.cancel()
    with pytest.raises(concurrent.futures.CancelledError):
        future.result(5)


def test_keyboard_interrupt_cancels_waits_and_rises():
    ended = threading.Event()

    async def slow():
        while not main_thread.blocked:
            await asyncio.sleep(0.01)
        signal.raise_signal(signal.SIGINT)
        try:
            await sleep_forever()
        finally:
            await asyncio.sleep(0.05)
            ended.set()

    with pytest.raises(KeyboardInterrupt):
        run_blocking(slow())
    assert ended.is_set()


def test_interrupt_of_submitted_work_reaches_both_sides():
    futures = []

    def spin():
        signal.raise_signal(signal.SIGINT)
        while True:
            time.sleep(0.01)

    async def ask():
        futures.append(main_thread.submit(spin))
        await sleep_forever()

    with pytest.raises(KeyboardInterrupt):
        run_blocking(ask())
    with pytest.raises(Interrupted, match="KeyboardInterrupt"):
        futures[0].result(5)
    assert run_blocking(asyncio.sleep(0, "alive")) == "alive"


def test_system_exit_in_a_coroutine_does_not_stop_the_loop():
    async def leave():
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        spawn(leave()).result(5)
    assert run_blocking(asyncio.sleep(0, "alive"), timeout_s=5) == "alive"


def test_an_event_loop_on_main_serves_the_work():
    async def kernel():
        event_loop = asyncio.get_running_loop()
        main_thread.wake = lambda: event_loop.call_soon_threadsafe(main_thread.serve)
        try:
            where, blocked = await asyncio.wrap_future(
                spawn(submitted(lambda: (threading.current_thread(), main_thread.blocked)))
            )
        finally:
            main_thread.wake = None
        return where, blocked

    assert asyncio.run(kernel()) == (threading.main_thread(), False)


def test_serve_survives_an_interrupt():
    def interrupt():
        raise KeyboardInterrupt

    first, second = main_thread.submit(interrupt), main_thread.submit(lambda: 2)
    main_thread.serve()
    assert isinstance(first.exception(), Interrupted)
    assert second.result() == 2


def test_thread_is_made_at_first_use_only():
    fresh = loop._AgentThread()
    assert not fresh.is_current()
    assert fresh._thread is None
