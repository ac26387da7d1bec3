"""How does the agent's Python run in a process without a notebook?"""

import os
import signal
import sys
import threading
import warnings

import pytest

from oh_kernel.loop import run_blocking, spawn
from oh_kernel.sessions.namespace import Execution, Namespace


@pytest.fixture
def namespace(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run_blocking(Namespace.in_process(tmp_path))


def run(namespace: Namespace, code: str, **options: object) -> Execution:
    return run_blocking(namespace.run(code, **options), timeout_s=20)


def test_output_is_taken_and_nothing_reaches_the_terminal(namespace, capfd):
    live: list[str] = []
    code = (
        "import os, sys; print('out')\nprint('err', file=sys.stderr)\nr = os.system('echo child')"
    )
    execution = run(namespace, f"{code}\n6 * 7", on_output=live.append)
    assert sorted(execution.text.split()) == ["42", "child", "err", "out"]
    assert "".join(live) == execution.text
    assert capfd.readouterr() == ("", "")


def test_character_of_a_child_is_whole_however_it_is_read(namespace):
    """A pipe gives 64 KiB at most at a time, which is no multiple of three bytes."""
    execution = run(namespace, "import os; r = os.system('printf %.0s€ $(seq 100000)')")
    assert execution.text.count("€") == len(execution.text.strip()) == 100_000


def test_others_print_meanwhile_as_ever(namespace, capfd):
    """The command line writes events while the agent's code runs."""
    begun, go_on = threading.Event(), threading.Event()
    namespace.shell.user_ns.update(begun=begun, go_on=go_on)

    async def watched() -> Execution:
        import asyncio

        work = asyncio.ensure_future(namespace.run("begun.set(); r = go_on.wait(10); print('own')"))
        while not begun.is_set():
            await asyncio.sleep(0.01)
        print("an event")
        go_on.set()
        return await work

    assert run_blocking(watched(), timeout_s=20).text == "own\n"
    assert capfd.readouterr().out == "an event\n"


def test_variables_last_and_await_works(namespace):
    run(namespace, "import asyncio\nt = asyncio.create_task(asyncio.sleep(0.01, 7))")
    assert run(namespace, "await t").text == "7\n"


def test_plot_becomes_a_picture(namespace):
    execution = run(namespace, "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()")
    assert execution.error is None
    (display,) = [output for output in execution.outputs if output.is_rich]
    assert "image/png" in display.data


def test_error_and_exit_are_results(namespace):
    assert run(namespace, "1/0").error.name == "ZeroDivisionError"
    assert run(namespace, "import sys; sys.exit(2)").error.value == "2"
    assert run(namespace, "exit()").error.name == "ExitRefused"
    assert run(namespace, "input()").error.name == "InputRefused"


def test_timeout(namespace):
    execution = run(namespace, "while True: pass", timeout_s=0.2)
    assert execution.timed_out
    assert not execution.still_running
    assert run(namespace, "import asyncio; await asyncio.sleep(60)", timeout_s=0.2).timed_out


def test_code_runs_in_its_folder_and_the_process_stays_in_its_own(namespace, tmp_path):
    before, main, path = os.getcwd(), sys.modules["__main__"], list(sys.path)
    (tmp_path / "beside.py").write_text("value = 3\n")
    (tmp_path / "below").mkdir()
    code = "import os, beside\nprint(os.getcwd(), beside.value, __name__)\nos.chdir('below')"
    assert run(namespace, code).text == f"{tmp_path} 3 __main__\n"
    assert run(namespace, "print(os.path.basename(os.getcwd()))").text == "below\n"
    assert (os.getcwd(), sys.modules["__main__"], sys.path) == (before, main, path)


def test_interrupt_without_a_turn_ends_the_code_and_reaches_who_waits(namespace):
    """As for `Conversation.run()` in a script: control-C is for the whole of it."""
    seen: list[Execution] = []
    begun: list[str] = []

    def press(text: str) -> None:
        if not begun:
            begun.append(text)
            os.kill(os.getpid(), signal.SIGINT)

    async def work() -> None:
        code = "import time\nprint('begun')\ntime.sleep(60)"
        seen.append(await namespace.run(code, on_output=press))

    future = spawn(work())
    with pytest.raises(KeyboardInterrupt):
        run_blocking(_wait(future), timeout_s=20)
    future.result(5)
    assert seen[0].interrupted
    assert run(namespace, "1 + 1").text == "2\n"


async def _wait(future):
    import asyncio

    await asyncio.wrap_future(future)
