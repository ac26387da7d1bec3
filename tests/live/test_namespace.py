"""How does the agent's Python run among the user's variables, in a real kernel?"""

import ast
import json
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.live.agent_kernel import wait_until
from tests.live.kernel_client import DEADLINE_S, PLAIN, Kernel, Result, running_kernel

# Stands where the agent will: a cell's body is a list of steps, each one run of Python; its value
# is what each observation said and when, as the agent's loop saw it.
AGENT = """
import json as _json
from oh_kernel.sessions.namespace import Namespace as _Namespace

def _described(execution, seconds, live):
    return {
        "text": execution.text, "late": execution.late_text, "note": execution.note,
        "kinds": [output.kind for output in execution.outputs],
        "mimes": [sorted(output.data) for output in execution.outputs],
        "error": execution.error and [execution.error.name, execution.error.value],
        "traceback": execution.error and execution.error.traceback,
        "ok": execution.ok, "timed_out": execution.timed_out,
        "interrupted": execution.interrupted, "still_running": execution.still_running,
        "refused": execution.refused, "seconds": seconds, "live": "".join(live),
    }

class _Agent:
    def __init__(self, shell):
        self.namespace = _Namespace(shell)

    async def __call__(self, line, body, shell):
        import asyncio, time
        seen = []
        for step in _json.loads(body):
            live, start = [], time.monotonic()
            execution = await self.namespace.run(
                step["code"], timeout_s=step.get("timeout"), on_output=live.append,
                on_rich=lambda: live.append("<rich>"), forward_text=step.get("forward", False),
                can_ask=step.get("can_ask", False),
            )
            seen.append(_described(execution, time.monotonic() - start, live))
            if execution.interrupted:
                break
            if "thinks" in step:
                shell.openhands.bridge.write(step["thinks"])
            await asyncio.sleep(step.get("think", 0))
        return _json.dumps(seen)

get_ipython().openhands.run_cell = _Agent(get_ipython())
"""
MAGIC = "%%openhands\n"
SYNC = "x = get_ipython().run_cell_magic('openhands', '', {body!r}); print(repr(x))"


@dataclass
class Observed:
    result: Result
    runs: list[dict[str, Any]] = field(default_factory=list)

    @property
    def run(self) -> dict[str, Any]:
        assert len(self.runs) == 1
        return self.runs[0]


def steps(*codes: str | dict[str, Any]) -> str:
    return json.dumps([code if isinstance(code, dict) else {"code": code} for code in codes])


def observe(
    kernel: Kernel, *codes: str | dict[str, Any], deadline_s: float = DEADLINE_S
) -> Observed:
    return observed(kernel.run(MAGIC + steps(*codes), deadline_s=deadline_s))


def observed(result: Result) -> Observed:
    (value,) = result.of_type("execute_result") or ({"data": {"text/plain": "'[]'"}},)
    return Observed(result, json.loads(ast.literal_eval(value["data"]["text/plain"])))


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with running_kernel(tmp_path_factory.mktemp("kernel")) as kernel:
        kernel.run(AGENT)
        yield kernel


@pytest.fixture
def kernel(shared):
    yield shared
    shared.stray.clear()


@pytest.fixture
def fresh(tmp_path):
    with running_kernel(tmp_path) as kernel:
        kernel.run(AGENT)
        yield kernel


# What a run gives


def test_output_result_and_variables(kernel):
    run = observe(kernel, "print('hi')\nx = 41\nx + 1").run
    assert run["text"] == "hi\n42\n"
    assert run["kinds"] == ["stream", "result"]
    assert run["ok"]
    assert kernel.run("x").text == "41\n"


def test_text_is_live_and_not_sent_to_the_cell_twice(kernel):
    seen = observe(kernel, "print('only once')")
    assert seen.run["live"] == "only once\n"
    assert seen.result.of_type("stream") == []


def test_text_can_be_forwarded_to_the_cell(kernel):
    seen = observe(kernel, {"code": "print('in the cell')", "forward": True})
    assert "".join(c["text"] for c in seen.result.of_type("stream")) == "in the cell\n"
    assert seen.run["text"] == "in the cell\n"


def test_rich_output_appears_in_the_cell_in_its_place(kernel):
    code = "from IPython.display import HTML\nprint('before')\ndisplay(HTML('<b>x</b>'))\nHTML('y')"
    seen = observe(kernel, code)
    assert seen.run["live"] == "before\n<rich><rich>"
    assert [c["data"]["text/html"] for c in seen.result.of_type("display_data")] == [
        "<b>x</b>",
        "y",
    ]
    assert len(seen.result.of_type("execute_result")) == 1  # the value of the agent's cell itself


def test_updates_of_a_display_replace_it(kernel):
    code = "h = display('one', display_id=True)\nh.update('two')"
    assert observe(kernel, code).run["text"] == "'two'\n"


def test_clear_output_forgets_and_leaves_the_cell_alone(kernel):
    code = "from IPython.display import clear_output\nprint('old')\nclear_output()\nprint('new')"
    seen = observe(kernel, code)
    assert seen.run["text"] == "new\n"
    assert seen.result.of_type("clear_output") == []


def test_plot_is_shown_and_captured(kernel):
    code = "import matplotlib.pyplot as plt\nbackend = plt.get_backend()\nplt.plot([1, 2]);None"
    seen = observe(kernel, code)
    assert "image/png" in seen.run["mimes"][0]
    assert "image/png" in seen.result.of_type("display_data")[0]["data"]
    assert kernel.run("plt.get_backend() == backend").text == "True\n"


def test_top_level_await(kernel):
    run = observe(kernel, "import asyncio\nawait asyncio.sleep(0.01)\nprint('slept'); 5").run
    assert run["text"] == "slept\n5\n"


def test_top_level_await_where_the_cell_blocks(kernel):
    """The main loop stands still then; code that awaits has a loop all the same."""
    body = steps(
        "import asyncio\nt = asyncio.create_task(asyncio.sleep(0.01, 7))", "print(await t)"
    )
    runs = json.loads(ast.literal_eval(kernel.run(SYNC.format(body=body)).text))
    assert [run["error"] for run in runs] == [None, None]
    assert runs[1]["text"] == "7\n"


def test_magics_and_commands(kernel):
    seen = observe(
        kernel, "%time 1", "!echo sub", "import os; r = os.system('echo desc; echo e >&2')"
    )
    assert "Wall time" in seen.runs[0]["text"]
    assert seen.runs[1]["text"].strip() == "sub"
    assert sorted(seen.runs[2]["text"].split()) == ["desc", "e"]
    assert seen.result.of_type("stream") == []


def test_output_of_children_is_never_late(kernel):
    code = "import subprocess; r = subprocess.run(['echo', 'child'])"
    for run in observe(kernel, *[code] * 10).runs:
        assert run["text"] == "child\n"


def test_output_of_forked_workers(kernel):
    code = """
import os
pid = os.fork()
if pid == 0:
    print('from the fork')
    os._exit(0)
r = os.waitpid(pid, 0)
"""
    assert observe(kernel, code).run["text"].endswith("from the fork\n")  # maybe after a warning


def test_output_of_threads_of_the_run(kernel):
    code = """
import sys
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(2) as pool:
    r = list(pool.map(sys.stdout.write, ['a ', 'b ']))
"""
    assert sorted(observe(kernel, code).run["text"].split()) == ["a", "b"]


def test_endless_output_is_bounded(kernel):
    code = "print('first')\nfor i in range(200_000): print('x' * 20)\nprint('last')"
    text = observe(kernel, code, deadline_s=60).run["text"]
    assert text.startswith("first\n")
    assert text.endswith("last\n")
    assert "characters of output were not kept" in text
    assert len(text) < 1_100_000


def test_error_has_a_short_traceback(kernel):
    run = observe(kernel, "def f(n):\n    return 1 / n\nprint('so far')\nf(0)").run
    assert run["error"] == ["ZeroDivisionError", "division by zero"]
    assert run["text"].startswith("so far\nTraceback")
    assert 'File "<cell>", line 2, in f\n    return 1 / n' in run["traceback"]
    assert "IPython" not in run["traceback"]
    assert "oh_kernel" not in run["traceback"]
    assert "\x1b" not in run["traceback"]


def test_recursion_is_told_in_few_lines(kernel):
    run = observe(kernel, "def f(): f()\nf()").run
    assert run["error"][0] == "RecursionError"
    assert len(run["traceback"]) < 1000


def test_syntax_error(kernel):
    run = observe(kernel, "a b").run
    assert run["error"] == ["SyntaxError", "invalid syntax (line 1)"]
    assert 'File "<cell>", line 1' in run["text"]


# What a run leaves alone


def test_users_shell_is_left_alone(kernel):
    look = "print([_ == 'mine', __ == 'mine', len(Out), len(In), hasattr(sys, 'last_value')])"
    kernel.run("import sys\n'mine'")
    before = ast.literal_eval(kernel.run(look).text)
    observe(kernel, "123", "1/0", "'later'")
    after = ast.literal_eval(kernel.run(look).text)
    # Only the agent's cell itself is new, with its own value.
    assert before == [True, False, before[2], before[3], False]
    assert after == [False, True, before[2] + 1, before[3] + 2, False]


def test_builtins_streams_and_warnings_are_put_back(kernel):
    look = (
        "import sys, builtins, threading, warnings, getpass\n"
        "(id(sys.stdout), id(sys.stderr), 'write' in vars(sys.stdout),"
        " hasattr(builtins, 'open_file'), id(threading.Thread.start),"
        " len(warnings.filters), getpass.getpass.__name__,"
        " 'send' in vars(get_ipython().kernel.session), '_showtraceback' in vars(get_ipython()))"
    )
    before = kernel.run(look).text
    observe(kernel, "1/0", "import asyncio; await asyncio.sleep(0)")
    assert kernel.run(look).text == before


def test_skills_are_plain_names_for_the_agents_code_and_user_names_win(kernel):
    kernel.run("open_file = 'mine'")
    seen = observe(kernel, "print(callable(goto_line), open_file)")
    assert seen.run["text"] == "True mine\n"
    assert kernel.run("goto_line").errors[0][0] == "NameError"
    kernel.run("del open_file")


@pytest.mark.parametrize(
    "code",
    [
        "input('?')",
        "import getpass; getpass.getpass()",
        "breakpoint()",
        "import pdb; pdb.set_trace()",
        "import sys; sys.stdin.readline()",
    ],
)
def test_input_is_refused_at_once_when_nobody_answers(kernel, code):
    run = observe(kernel, code).run
    assert run["error"][0] == "InputRefused"
    assert "Nobody can type" in run["error"][1]
    assert run["seconds"] < 2


def test_input_is_asked_when_somebody_can_answer(kernel):
    cell = kernel.start(
        MAGIC + steps({"code": "name = input('Who? ')\nprint(name)", "can_ask": True}),
        allow_stdin=True,
    )
    request = kernel.client.get_stdin_msg(timeout=DEADLINE_S)
    assert request["content"]["prompt"] == "Who? "
    kernel.client.input("me")
    assert observed(kernel.finish(cell)).run["text"] == "me\n"


# Field cases


def test_KN_01_polite_loop_times_out(kernel):
    runs = observe(
        kernel,
        {"code": "bound = 1\nprint('begun')\nwhile True: pass", "timeout": 1},
        "print(bound)",
    ).runs
    assert runs[0]["timed_out"]
    assert not runs[0]["ok"]
    assert runs[0]["text"].startswith("begun\n")
    assert "timed out after 1 s" in runs[0]["note"]
    assert runs[0]["seconds"] < 8
    assert runs[1]["text"] == "1\n"


def test_KN_01_code_that_swallows_the_interrupt(fresh, tmp_path):
    stop = tmp_path / "stop"
    code = f"""
import os, time
hits = 0
while not os.path.exists({str(stop)!r}):
    try:
        time.sleep(0.2)
    except BaseException:
        hits += 1
"""
    report = tmp_path / "observations"
    fresh.run(
        f"""
inner = _Agent(get_ipython())
async def agent(line, body, shell):
    for step in _json.loads(body):
        seen = await inner(line, _json.dumps([step]), shell)
        with open({str(report)!r}, "a") as file:
            file.write(seen + "\\n")
get_ipython().openhands.run_cell = agent
"""
    )
    cell = fresh.start(MAGIC + steps({"code": code, "timeout": 3}, "print('queued')"))
    wait_until(lambda: report.exists() and report.read_text().count("\n") == 2)
    first, second = (json.loads(line)[0] for line in report.read_text().splitlines())
    # Within 8 s there is a result that says it timed out and still runs.
    assert first["timed_out"]
    assert first["still_running"]
    assert "still runs" in first["note"]
    assert first["seconds"] < 8
    # No second call is queued silently behind it.
    assert second["refused"]
    assert "restart" in second["note"]
    assert second["text"] == ""
    # Interrupts end nothing, and break nothing.
    for _ in range(3):
        fresh.interrupt()
    stop.touch()
    fresh.finish(cell)
    # It has ended: the same namespace works again.
    fresh.run("get_ipython().openhands.run_cell = inner")
    run = observe(fresh, "print(type(hits).__name__)").run
    assert run["text"] == "int\n"
    assert fresh.run("hits >= 3").text == "True\n"


def test_KN_02_leaving_the_interpreter_is_a_result(fresh, tmp_path):
    pid = fresh.run("import os; os.getpid()").text
    log = tmp_path / "ran.log"
    runs = observe(
        fresh,
        f"x = 5; r = open({str(log)!r}, 'a').write('A')",
        "import sys; sys.exit(2)",
        "exit()",
        "quit",
        "raise KeyboardInterrupt",
        "print(x)",
    ).runs
    assert [run["ok"] for run in runs] == [True, False, False, False, False, True]
    assert runs[1]["error"] == ["SystemExit", "2"]
    assert runs[2]["error"][0] == "ExitRefused"
    assert "exit()" in runs[2]["error"][1]
    assert runs[3]["error"][0] == "ExitRefused"
    assert runs[4]["error"][0] == "KeyboardInterrupt"
    assert not runs[4]["interrupted"]  # nobody interrupted it
    assert runs[5]["text"] == "5\n"
    assert fresh.run("os.getpid()").text == pid
    assert log.read_bytes() == b"A"
    assert "To exit" not in "".join(run["text"] for run in runs)


def test_KN_03_asyncio_is_the_same_before_and_after(fresh):
    look = (
        "(asyncio.run, asyncio.get_event_loop_policy().__class__, id(asyncio.get_running_loop()))"
    )
    fresh.run(f"import asyncio; await asyncio.sleep(0); before = {look}")
    code = """
import asyncio
await asyncio.sleep(0.05)
t = asyncio.create_task(asyncio.sleep(0.05, result=7))
print(await t)
"""
    run = observe(fresh, code).run
    assert run["text"] == "7\n"
    assert run["error"] is None
    after = fresh.run(f"await asyncio.sleep(0.01); after = {look}; print(before == after)")
    assert after.text == "True\n"
    fresh.run(
        """
async def model(line, body, shell):
    shell.openhands.bridge.write("asking")
    await asyncio.sleep(5)
get_ipython().openhands.run_cell = model
"""
    )
    interrupted = fresh.interrupt_when(MAGIC + "x", "asking", "signal")
    assert interrupted.took_s < 2
    start = time.monotonic()
    assert fresh.run("await asyncio.sleep(0.01); print('alive')").text == "alive\n"
    assert time.monotonic() - start < 2
    assert "never awaited" not in fresh.stderr
    assert "was destroyed" not in fresh.stderr


def test_KN_04_output_of_a_thread_that_outlives_its_run(fresh):
    tick = """
import threading, time, sys
out0 = (id(sys.stdout), id(sys.stderr))
def tick():
    for i in range(6):
        time.sleep(0.5); print('tick', i, flush=True)
threading.Thread(target=tick).start()
"""
    seen = observe(
        fresh,
        {"code": tick, "think": 0.7},
        {"code": "print('second')", "think": 0.3},
        "import time; time.sleep(4); print(out0 == (id(sys.stdout), id(sys.stderr)))",
    )
    first, second, third = seen.runs
    # Step 1 does not wait for the thread.
    assert first["seconds"] < 1
    # What is a run's own is its own; earlier work is marked.
    assert second["text"] == "second\n"
    assert third["text"] == "True\n"
    assert "tick" in third["late"]
    # Every line is seen once, over the observations and the notebook's own output.
    everything = "".join(
        [*(run["text"] + run["late"] for run in seen.runs)]
        + [c["text"] for c in seen.result.of_type("stream")]
        + [fresh.stray_text]
    )
    assert [everything.count(f"tick {i}\n") for i in range(6)] == [1] * 6
    # Nothing stays captured.
    mine = fresh.run("threading.Thread(target=lambda: print('mine')).start()")
    assert "mine" in mine.text + fresh.gather_stray(lambda text: "mine" in mine.text + text)
    assert "mine" not in observe(fresh, "1").run["text"]


def test_KN_04_users_own_thread_stays_the_users(fresh):
    fresh.run(
        """
import threading, time
stop = threading.Event()
def tick():
    while not stop.wait(0.05): print('users')
thread = threading.Thread(target=tick); thread.start()
"""
    )
    run = observe(fresh, "import time; time.sleep(0.5); print('own')").run
    fresh.run("stop.set(); thread.join()")
    assert run["text"] == "own\n"
    assert run["late"] == ""


def test_task_that_outlives_its_run_is_late(fresh):
    code = """
import asyncio
go_on = asyncio.Event()
async def later():
    await go_on.wait()
    print('from the task')
t = asyncio.create_task(later())
await asyncio.sleep(0)
"""
    seen = observe(fresh, code, "go_on.set(); await t; print('own')")
    assert seen.runs[1]["text"] == "own\n"
    assert seen.runs[1]["late"] == "from the task\n"


def test_stock_kernel_with_the_extension_runs_it_too(tmp_path):
    with running_kernel(tmp_path, PLAIN) as kernel:
        kernel.run(f"%load_ext oh_kernel\n{AGENT}")
        seen = observe(kernel, "print('stock')\n1 + 1", "import asyncio; await asyncio.sleep(0); 3")
        assert [run["text"] for run in seen.runs] == ["stock\n2\n", "3\n"]


def test_terminal_ipython_runs_it_too(tmp_path):
    """No kernel, no event loop: the wait for the agent does the work, and text is the output."""
    body = steps("print('terminal')\n1 + 1", "import asyncio; await asyncio.sleep(0); 3", "1/0")
    code = f"""
%load_ext oh_kernel
{AGENT}
r = get_ipython().run_cell({MAGIC + body!r})
print('SEEN', r.result)
"""
    ipython = subprocess.run(
        [sys.executable, "-m", "IPython", "--simple-prompt", "--no-banner", "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
        check=False,
    )
    seen = ipython.stdout.partition("SEEN ")[2].splitlines()
    assert seen, ipython
    runs = json.loads(seen[0])
    assert [run["text"] for run in runs[:2]] == ["terminal\n2\n", "3\n"]
    assert runs[2]["error"][0] == "ZeroDivisionError"
    assert ipython.stderr == ""
