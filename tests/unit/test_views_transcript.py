"""A live view never floods, never stands still, and always ends static."""

from __future__ import annotations

import io
import re
import threading
import time
from collections.abc import Callable

import pytest

from oh_kernel.conversation.log import ToolOutput
from oh_kernel.events import Event, PauseEvent
from oh_kernel.llm.base import ReasoningDelta, RetryNotice, TextDelta, ToolCallDelta
from oh_kernel.loop import spawn
from oh_kernel.views.console import ConsoleTranscript
from oh_kernel.views.transcript import Transcript
from tests.unit.shown import Shown
from tests.unit.turns import action, answer, finished, observed, reference_events, user


class Notebook:
    """The outputs of a cell: what was shown under each display id, and when."""

    def __init__(self) -> None:
        self.outputs: dict[str, dict[str, str]] = {}
        self.times: list[float] = []
        self.changed = threading.Condition()

    def publish(self, data: dict[str, str], *, display_id: str, update: bool) -> None:
        with self.changed:
            assert update == (display_id in self.outputs)
            self.outputs[display_id] = data
            self.times.append(time.monotonic())
            self.changed.notify_all()

    def texts(self) -> list[str]:
        return [data["text/plain"] for data in self.outputs.values()]

    def wait_for(self, condition: Callable[[], bool], timeout_s: float = 30) -> None:
        with self.changed:
            assert self.changed.wait_for(condition, timeout_s), self.texts()

    def seconds(self) -> int:
        """What the clock of the status line says, 0 as long as there is none."""
        found = re.search(r"\[thinking · (\d+) s\]", self.texts()[0])
        return int(found[1]) if found else 0


def test_begin_shows_a_status_line_at_once() -> None:
    notebook = Notebook()
    transcript = Transcript(notebook.publish)
    transcript.begin("asking the model")
    assert "asking the model" in notebook.texts()[0]
    transcript.close()


def test_a_thousand_deltas_make_few_updates_and_none_is_lost() -> None:
    notebook = Notebook()
    transcript = Transcript(notebook.publish)
    transcript.begin()
    start = time.monotonic()
    for number in range(1_000):
        transcript.delta(TextDelta(f"w{number} "))
    transcript.event(answer("".join(f"w{number} " for number in range(1_000))))
    transcript.event(finished())
    transcript.close()
    allowed = (time.monotonic() - start) / 0.1 + 3  # the first, the last, one in between
    assert len(notebook.times) <= allowed
    (final,) = notebook.texts()
    assert final.count("w999") == 1 and "finished" in final


def test_the_clock_moves_while_nothing_comes() -> None:
    notebook = Notebook()
    transcript = Transcript(notebook.publish)
    transcript.begin("thinking")
    notebook.wait_for(lambda: notebook.seconds() >= 1)
    shown = notebook.seconds()
    notebook.wait_for(lambda: notebook.seconds() > shown)
    transcript.close()
    assert "thinking" not in notebook.texts()[0]


def test_streamed_text_and_running_output_are_shown_and_replaced() -> None:
    notebook = Notebook()
    transcript = Transcript(notebook.publish)
    transcript.begin()
    transcript.delta(ReasoningDelta("hm"))
    transcript.delta(TextDelta("I will "))
    transcript.delta(TextDelta("count."))
    transcript.delta(ToolCallDelta(0, "terminal", '{"comm'))
    notebook.wait_for(lambda: "I will count." in notebook.texts()[0])
    call = action("terminal", {"command": "seq 2"}, thought="I will count.")
    transcript.event(call)
    transcript.delta(ToolOutput(call.tool_call_id, "1\n"))
    notebook.wait_for(lambda: "\n1" in notebook.texts()[0])
    assert notebook.texts()[0].count("I will count.") == 1
    assert "[running terminal: seq 2 ·" in notebook.texts()[0]
    transcript.event(observed(call, "1\n2\n", exit_code=0))
    notebook.wait_for(lambda: "\n1\n2" in notebook.texts()[0])
    transcript.close()
    assert "ok, exit 0" in notebook.texts()[0]


def test_a_retry_forgets_what_was_streamed() -> None:
    notebook = Notebook()
    transcript = Transcript(notebook.publish)
    transcript.begin()
    transcript.delta(TextDelta("half a sen"))
    transcript.delta(RetryNotice(2, 5, 3.0, "connection lost"))
    notebook.wait_for(lambda: "trying again in 3 s (attempt 2 of 5)" in notebook.texts()[0])
    assert "half a sen" not in notebook.texts()[0]
    transcript.close()


@pytest.mark.parametrize("last", [[], [PauseEvent()]])
def test_the_end_is_static_also_after_a_stop(last: list[PauseEvent]) -> None:
    notebook = Notebook()
    transcript = Transcript(notebook.publish)
    transcript.begin()
    call = action("terminal", {"command": "sleep 99"})
    transcript.event(call)
    transcript.delta(ToolOutput(call.tool_call_id, "partial\n"))
    transcript.delta(TextDelta("and then"))
    for event in last:
        transcript.event(event)
    transcript.close()
    (text,) = notebook.texts()
    assert "interrupted" in text and "partial" in text and "and then" in text
    assert 'role="status"' not in next(iter(notebook.outputs.values()))["text/html"]
    count = len(notebook.times)
    transcript.delta(TextDelta("late"))
    transcript.event(finished())
    transcript.close()
    assert len(notebook.times) == count


def test_a_segment_leaves_room_for_a_plot_after_its_call() -> None:
    notebook = Notebook()
    transcript = Transcript(notebook.publish)
    transcript.begin()
    call = action("ipython", {"code": "plot()"})
    transcript.event(call)
    transcript.segment()  # the kernel shows the plot now
    transcript.delta(ToolOutput(call.tool_call_id, "drawn\n"))
    assert len(notebook.outputs) == 1  # still live, above the plot
    transcript.event(observed(call, "drawn\n"))
    transcript.event(answer("There."))
    transcript.close()
    first, second = notebook.texts()
    assert "plot()" in first and "drawn" in first and "[" not in first
    assert "There." in second and "plot()" not in second


def test_long_turns_are_shown_in_several_areas_without_a_gap() -> None:
    notebook = Notebook()
    transcript = Transcript(notebook.publish)
    transcript.begin()
    for number in range(60):
        call = action("terminal", {"command": f"step {number}"})
        transcript.event(call)
        transcript.event(observed(call, f"out {number}", exit_code=0))
    transcript.close()
    assert len(notebook.outputs) == 3
    whole = "\n".join(notebook.texts())
    assert [whole.count(f"\nout {number}\n") for number in range(59)] == [1] * 59
    assert sum(map(len, notebook.texts())) < 10_000


def test_events_from_the_agent_thread_and_close_from_another() -> None:
    notebook = Notebook()
    transcript = Transcript(notebook.publish)
    transcript.begin()

    async def run() -> None:
        for event in reference_events():
            transcript.event(event)

    spawn(run()).result(10)
    transcript.close()
    assert "Fixed the typo and added new.py." in notebook.texts()[-1]
    assert transcript.answer == "Fixed the typo and added new.py."
    bundle = next(iter(notebook.outputs.values()))
    assert set(bundle) == {"text/html", "text/markdown", "text/plain"}
    assert "new.py" in Shown(bundle["text/html"]).text


def test_a_broken_front_end_does_not_end_the_clock() -> None:
    notebook = Notebook()
    broken, failed = threading.Event(), threading.Event()

    def publish(data: dict[str, str], *, display_id: str, update: bool) -> None:
        if broken.is_set():
            failed.set()
            raise OSError("gone")
        notebook.publish(data, display_id=display_id, update=update)

    transcript = Transcript(publish)
    transcript.begin("thinking")
    broken.set()
    assert failed.wait(30)
    broken.clear()
    notebook.wait_for(lambda: notebook.seconds() >= 1)
    transcript.close()


def test_the_console_writes_text_once_and_a_line_for_each_call() -> None:
    stream = io.StringIO()
    console = ConsoleTranscript(stream)
    call = action("terminal", {"command": "seq 99"}, thought="I count.")
    console.event(user("count"))
    console.delta(TextDelta("I co"))
    console.delta(TextDelta("unt."))
    console.event(call)
    console.delta(ToolOutput(call.tool_call_id, "1\n"))
    console.event(observed(call, "\n".join(map(str, range(1, 100))), exit_code=0))
    console.event(answer("Done\x1b[2J."))
    console.event(finished())
    console.close()
    console.close()
    text = stream.getvalue()
    assert text.count("I count.") == 1
    assert "… terminal: seq 99 (running)\n✓ terminal: seq 99 (ok, exit 0)\n" in text
    assert "87 lines left out" in text
    assert "Done␛[2J.\n-- finished · 2 steps" in text
    assert console.answer == "Done\x1b[2J."


def test_the_console_writes_a_stopped_call_once() -> None:
    """It has ended when the stop is told, which only then says what ended it."""
    stream = io.StringIO()
    console = ConsoleTranscript(stream)
    call = action("terminal", {"command": "sleep 9"})
    console.event(user("wait"))
    console.notice("Nothing leaves.")
    console.event(call)
    console.event(observed(call, "[interrupted]", exit_code=130, is_error=True))
    console.event(PauseEvent())
    console.close()
    text = stream.getvalue()
    assert text.startswith("Nothing leaves.\n… terminal: sleep 9")
    assert text.count("$ sleep 9") == 1


def test_the_transcript_takes_over_a_display_that_stands_there() -> None:
    notebook = Notebook()
    notebook.publish({"text/plain": "[starting]"}, display_id="before", update=False)
    transcript = Transcript(notebook.publish, display_id="before")
    transcript.begin()
    transcript.notice("Said once.")
    transcript.event(answer("Done."))
    transcript.close()
    (text,) = notebook.texts()
    assert text.startswith("Said once.") and "Done." in text


def planned(status: str) -> list[Event]:
    tasks = [{"title": "Read", "status": status}]
    call = action("task_tracker", {"command": "plan", "task_list": tasks})
    return [call, observed(call, "updated", command="plan", task_list=tasks)]


def test_a_list_of_tasks_in_an_ended_area_is_folded_when_a_later_one_comes() -> None:
    notebook = Notebook()
    transcript = Transcript(notebook.publish)
    for event in planned("in_progress"):
        transcript.event(event)
    transcript.segment()
    (only_area,) = (data["text/html"] for data in notebook.outputs.values())
    assert " open>" in only_area
    for event in planned("done"):
        transcript.event(event)
    transcript.event(finished())
    transcript.close()
    first_area, last_area = (data["text/html"] for data in notebook.outputs.values())
    assert " open>" not in first_area and " open>" in last_area


def test_the_console_shows_what_changed_in_every_file_of_a_patch() -> None:
    stream = io.StringIO()
    console = ConsoleTranscript(stream)
    call = action("apply_patch", {"patch": "*** Begin Patch\n*** End Patch"})
    after = "\nsame" * 9
    changes = {
        name: {"type": "update", "old_content": f"old {name}{after}", "new_content": name + after}
        for name in ("a.py", "b.py", "c.py")
    }
    console.event(call)
    console.event(observed(call, "Done!", message="Done!", commit={"changes": changes}))
    console.close()
    text = stream.getvalue()
    assert all(f"-old {name}\n+{name}\n" in text for name in changes)
    assert "left out" not in text
