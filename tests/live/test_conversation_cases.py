"""Field cases about calls, approvals and stored conversations; each test bears its case's name."""

import contextlib
import json
import sqlite3
from pathlib import Path

import pytest

from oh_kernel.conversation.conversation import Conversation
from oh_kernel.errors import SettingsError
from oh_kernel.events import (
    AgentErrorEvent,
    Event,
    MessageEvent,
    ObservationEvent,
    ToolResultEvent,
    UserRejectObservation,
)
from oh_kernel.llm.sendable import sendable
from oh_kernel.store import EventStore
from oh_kernel.tools.task_tracker import TaskTrackerObservation
from tests.conversations import Scripted, assert_each_call_answered_once, call, calls, say


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


FILE = "file_editor"
MALFORMED = {
    "bare_newline": (FILE, '{"command": "view", "path": "$WORK/a.py", "view_range": \n[1, 2]\n}'),
    "cut_off": (FILE, '{"command": "create", "path": "$WORK/new.py", "file_text": "half'),
    "cut_off_long": (FILE, '{"command": "create", "file_text": "' + "x" * 50_000),
    "raw_newline_in_string": ("terminal", '{"command": "echo a\necho b"}'),
    "list_as_string": (FILE, '{"command": "view", "path": "$WORK/a.py", "view_range": "[1, 2]"}'),
    "number_as_string": ("terminal", '{"command": "echo t", "timeout": "5"}'),
    "looks_like_json": (
        FILE,
        '{"command": "create", "path": "$WORK/j.json", "file_text": "{\\"a\\": [1, 2]}"}',
    ),
    "tasks_as_strings": ("task_tracker", '{"command": "plan", "task_list": ["write", "test"]}'),
    "missing_field": (FILE, '{"command": "view"}'),
    "unknown_field": ("terminal", '{"command": "echo u", "colour": "red"}'),
    "not_an_object": ("terminal", '["ls"]'),
    "empty": ("terminal", ""),
    "unknown_tool": ("no_such_tool", "{}"),
}


@pytest.mark.parametrize("variant", MALFORMED)
def test_LM_01_malformed_arguments(work: Path, variant: str) -> None:
    (work / "a.py").write_text("one\ntwo\nthree\n")
    tool, raw = MALFORMED[variant]
    turns = [calls(call(tool, raw.replace("$WORK", str(work)), id="c1")), say("done")]
    with Scripted(work, turns) as scripted:
        assert scripted.ask() == "finished"
        (result,) = scripted.results.values()
        request = sendable(scripted.llm.requests[-1])
        assert_each_call_answered_once(request)
        for message in request:
            for made in message.tool_calls or []:
                assert isinstance(json.loads(made.arguments), dict)
        stored = [event.to_json() for event in scripted.conversation.events]
        cid, store = scripted.conversation.id, scripted.conversation.settings.store_path
        told = scripted.told("c1").text
    _check_variant(variant, work, result, told)
    with Conversation(workspace=work, conversation_id=cid, store_path=store) as loaded:
        assert [event.to_json() for event in loaded.events] == stored


def _check_variant(variant: str, work: Path, result: ToolResultEvent, told: str) -> None:
    failed = isinstance(result, AgentErrorEvent) or (
        isinstance(result, ObservationEvent) and result.observation.is_error
    )
    match variant:
        case "cut_off":
            assert failed and not (work / "new.py").exists()
            assert len(told) < 1500
        case "cut_off_long":
            assert failed and told.count("x") <= 1000
        case "raw_newline_in_string":
            assert not failed and told.startswith("a\nb\n")
        case "list_as_string":
            assert not failed and "two" in told and "three" not in told
        case "number_as_string":
            assert not failed and told.startswith("t\n")
        case "looks_like_json":
            assert not failed and (work / "j.json").read_bytes() == b'{"a": [1, 2]}'
        case "tasks_as_strings":
            assert isinstance(result, ObservationEvent)
            answer = result.observation
            assert isinstance(answer, TaskTrackerObservation)
            assert [(task.title, task.status) for task in answer.task_list] == [
                ("write", "todo"),
                ("test", "todo"),
            ]
        case "missing_field":
            assert failed and "path" in told
        case "unknown_field":
            assert failed and "colour" in told
        case "not_an_object" | "empty":
            assert failed
        case "unknown_tool":
            assert failed and "terminal" in told and "file_editor" in told


def test_LM_02_call_ids_used_again(work: Path) -> None:
    (work / "one.txt").write_text("first\n")
    (work / "two.txt").write_text("second\n")

    def view(name: str, id: str) -> dict[str, object]:
        return call("file_editor", {"command": "view", "path": str(work / name)}, id=id)

    turns = [
        calls(view("one.txt", "call_0")),
        calls(view("two.txt", "call_0")),
        calls(
            call("terminal", {"command": "echo x1"}, "call_1"),
            call("terminal", {"command": "echo x2"}, "call_1"),
        ),
        calls({"name": "terminal", "arguments": {"command": "echo x3"}, "id": ""}),
        say("done"),
        say("again"),
    ]
    with Scripted(work, turns) as scripted:
        assert scripted.ask() == "finished"
        assert len(scripted.call_ids) == len(set(scripted.call_ids)) == 5
        assert len(scripted.results) == 5
        for request in scripted.llm.requests:
            assert_each_call_answered_once(request)
        first = [m.text for m in scripted.llm.requests[-1] if m.role == "tool"]
        for text, part in zip(first, ("first", "second", "x1", "x2", "x3"), strict=True):
            assert part in text
        cid, store = scripted.conversation.id, scripted.conversation.settings.store_path
    with Scripted(work, turns, conversation_id=cid, store_path=store) as loaded:
        loaded.ask("more")
        tools = [m.text for m in loaded.llm.requests[-1] if m.role == "tool"]
        assert tools == first


def test_EV_04_approval_is_explicit(work: Path) -> None:
    (work / "build").mkdir()
    (work / "build/keep.txt").write_text("k\n")

    def pair(first: str, second: str) -> dict[str, object]:
        return calls(
            call("terminal", {"command": "rm -r build"}, first),
            call("terminal", {"command": "touch ok.txt"}, second),
        )

    turns = [pair("a", "b"), pair("c", "d"), say("done")]
    with Scripted(work, turns, policy="always") as scripted:
        assert scripted.ask("clean up") == "waiting_for_confirmation"
        assert str(scripted.conversation.run()) == "waiting_for_confirmation"
        scripted.conversation.send_message("wait, do not remove anything")
        cid, store = scripted.conversation.id, scripted.conversation.settings.store_path
        assert not scripted.results
    assert (work / "build/keep.txt").exists() and not (work / "ok.txt").exists()
    options = {"conversation_id": cid, "store_path": store, "policy": "always"}
    with Scripted(work, turns, **options) as loaded:
        assert str(loaded.conversation.run()) == "waiting_for_confirmation"  # of c and d
        assert (work / "build/keep.txt").exists() and not (work / "ok.txt").exists()
        for call_id in ("a", "b"):
            assert isinstance(loaded.results[call_id], UserRejectObservation)
            assert "nothing was run" in loaded.told(call_id).text
        roles = [message.role for message in loaded.llm.requests[-1]]
        assert roles[-3:] == ["tool", "tool", "user"]
        assert "wait, do not remove anything" in loaded.llm.requests[-1][-1].text
        loaded.conversation.reject("not yet", ["c"])
        loaded.conversation.approve(["d"])
        assert str(loaded.conversation.run()) == "finished"
        assert (work / "build/keep.txt").exists() and (work / "ok.txt").exists()
        rejected = loaded.results["c"]
        assert isinstance(rejected, UserRejectObservation)
        assert "not yet" in rejected.rejection_reason
        assert loaded.told("c").text == "Action rejected: not yet"
        done = loaded.results["d"]
        assert isinstance(done, ObservationEvent) and not done.observation.is_error


def test_waiting_calls_survive_a_reload_and_stay_unapproved(work: Path) -> None:
    turns = [calls(call("terminal", {"command": "touch made"}, "a")), say("done")]
    with Scripted(work, turns, policy="always") as scripted:
        scripted.ask()
        cid, store = scripted.conversation.id, scripted.conversation.settings.store_path
    with Scripted(work, turns, conversation_id=cid, store_path=store, policy="always") as loaded:
        assert [c.tool_call_id for c in loaded.conversation.waiting_calls] == ["a"]
        assert str(loaded.conversation.run()) == "waiting_for_confirmation"
        assert not (work / "made").exists()
        loaded.conversation.approve()
        assert str(loaded.conversation.run()) == "finished"
    assert (work / "made").exists()


def waiting(work: Path, policy: str = "always", **kwargs: object) -> Scripted:
    """Two calls, one reply, in a conversation that waits for a person."""
    both = calls(
        call("terminal", {"command": "touch a.txt"}, "a"),
        call("terminal", {"command": "touch b.txt"}, "b"),
    )
    return Scripted(work, [both, say("done")], policy=policy, **kwargs)


def test_approvals_one_by_one_last_until_the_last_is_given(work: Path) -> None:
    with waiting(work) as scripted:
        scripted.ask()
        scripted.conversation.approve(["b"])
        assert str(scripted.conversation.run()) == "waiting_for_confirmation"
        scripted.conversation.approve(["a"])
        assert str(scripted.conversation.run()) == "finished"
    assert (work / "a.txt").exists() and (work / "b.txt").exists()


def test_an_approved_call_may_still_be_rejected(work: Path) -> None:
    with waiting(work) as scripted:
        scripted.ask()
        scripted.conversation.approve()
        scripted.conversation.approve(["a"])
        scripted.conversation.reject("on second thoughts", ["a"])
        assert str(scripted.conversation.run()) == "finished"
    assert not (work / "a.txt").exists() and (work / "b.txt").exists()


@pytest.mark.parametrize("policy", ["risky", "never"])
def test_a_milder_policy_after_a_reload_approves_nothing(work: Path, policy: str) -> None:
    with waiting(work) as scripted:
        scripted.ask()
        cid, store = scripted.conversation.id, scripted.conversation.settings.store_path
    with waiting(work, policy, conversation_id=cid, store_path=store) as loaded:
        assert str(loaded.conversation.run()) == "waiting_for_confirmation"
        assert not (work / "a.txt").exists()
        loaded.conversation.reject("no", ["a"])
        assert str(loaded.conversation.run()) == "waiting_for_confirmation"
        assert not (work / "b.txt").exists()
        loaded.conversation.approve(["b"])
        assert str(loaded.conversation.run()) == "finished"
    assert not (work / "a.txt").exists() and (work / "b.txt").exists()


def test_calls_after_finish_are_answered_and_never_run(work: Path) -> None:
    turns = [
        calls(
            call("finish", {"message": "all done"}, "f"),
            call("terminal", {"command": "touch late"}, "late"),
        ),
        say("second answer"),
    ]
    with Scripted(work, turns) as scripted:
        assert scripted.ask() == "finished"
        assert "Not run" in scripted.results["late"].to_json()
        assert scripted.ask("and now?") == "finished"
        assert_each_call_answered_once(scripted.llm.requests[-1])
    assert not (work / "late").exists()


def test_step_limit_is_stated(work: Path) -> None:
    turns = [calls(call("terminal", {"command": "true"})) for _ in range(9)]
    with Scripted(work, turns, max_steps=3) as scripted:
        assert scripted.ask() == "error"
        assert "maximum iterations limit (3)" in scripted.conversation.events[-2].to_json()
        assert len(scripted.llm.requests) == 3


def test_plain_text_ends_the_turn_and_is_the_answer(work: Path) -> None:
    with Scripted(work, [say("hello there")]) as scripted:
        assert scripted.ask("hi") == "finished"
        last = [e for e in scripted.conversation.events if isinstance(e, MessageEvent)][-1]
        assert last.source == "agent" and last.llm_message.text == "hello there"


def test_complete_output_is_saved_beside_the_log_and_goes_with_it(work: Path) -> None:
    turns = [calls(call("terminal", {"command": "seq 20000"}, "a")), say("done")]
    with Scripted(work, turns) as scripted:
        scripted.ask()
        store = scripted.conversation._core.store
        (saved,) = store.outputs_of(scripted.conversation.id).iterdir()
        assert saved.read_text().split() == [str(n) for n in range(1, 20_001)]
        assert str(saved) in scripted.told("a").text
        cid, path = scripted.conversation.id, store.path
    with EventStore.open(path) as opened:
        opened.delete(cid)
    assert not saved.exists()


def test_call_with_a_secret_in_it_is_refused_and_shown_nowhere(work: Path) -> None:
    key = "sk-live-0123456789"
    turns = [calls(call("terminal", {"command": f"echo {key} > leak"}, "a")), say("done")]
    with Scripted(work, turns, api_key=key) as scripted:
        shown: list[str] = []

        class Watch:
            def event(self, event: Event) -> None:
                shown.append(event.to_json())

            def delta(self, delta: object) -> None:
                shown.append(repr(delta))

        scripted.conversation.subscribe(Watch())
        assert scripted.ask() == "finished"
        assert "holds a secret" in scripted.told("a").text
        assert key not in "".join(shown)
        assert not (work / "leak").exists()


def test_tools_may_be_named(work: Path) -> None:
    with Scripted(work, [say("hi")], tools=["terminal", "finish"]) as scripted:
        scripted.ask()
        prompt = scripted.conversation.events[0].to_json()
        assert "TerminalTool" in prompt and "FileEditorTool" not in prompt
    with pytest.raises(SettingsError, match=r"no tool 'terminl'.*terminal"):
        Scripted(work, [], tools=["terminl"])


def test_event_that_is_missing_from_the_middle_is_told(work: Path) -> None:
    with Scripted(work, [calls(call("think", {"thought": "x"}, "a")), say("done")]) as scripted:
        scripted.ask()
        cid, path = scripted.conversation.id, scripted.conversation._core.store.path
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        third = "SELECT seq FROM events ORDER BY seq LIMIT 1 OFFSET 2"
        database.execute(f"DELETE FROM events WHERE seq = ({third})")
    with Scripted(work, [say("again")] * 5, conversation_id=cid, store_path=path) as loaded:
        assert any("1 event of this conversation" in line for line in loaded.conversation.remarks)
        assert loaded.ask("go on") == "finished"
