"""Hooks with real commands: what they are told, what they can stop, that none is left behind."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from oh_kernel.errors import ConversationError, SettingsError
from oh_kernel.events import (
    HookExecutionEvent,
    Message,
    MessageEvent,
    TextContent,
    UserRejectObservation,
)
from oh_kernel.llm.scripted import Turn
from oh_kernel.loop import run_blocking, spawn
from oh_kernel.security.hooks.process import MAX_BYTES, Ended, run_command
from oh_kernel.settings import Settings, load_settings
from tests.conversations import Scripted, assert_each_call_answered_once, call, calls, say

DEADLINE_S = 30
PUSH = calls(call("terminal", {"command": "git push"}, id="push"))


class Place:
    """A folder with hooks that its person trusts."""

    def __init__(self, path: Path) -> None:
        self.work = path / "work"
        (self.work / ".openhands").mkdir(parents=True)

    def hooks(self, **events: object) -> None:
        """Hooks by event, each a command, a hook or a list of either."""
        made = {}
        for event, given in events.items():
            each = given if isinstance(given, list) else [given]
            found = [one if isinstance(one, dict) else {"command": one} for one in each]
            made[event] = [{"matcher": "*", "hooks": found}]
        (self.work / ".openhands" / "hooks.json").write_text(json.dumps(made))

    def script(self, name: str, text: str) -> str:
        """A shell script; the command that runs it."""
        (self.work / name).write_text(text)
        return f"sh ./{name}"

    def scripted(self, *turns: Turn, **options: Any) -> Scripted:
        options.setdefault("policy", "never")
        return Scripted(self.work, turns, settings=trusting(), **options)


def trusting(**values: object) -> Settings:
    return load_settings({"trust_hooks": True, **values})


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def of_hooks(scripted: Scripted) -> list[HookExecutionEvent]:
    return [e for e in scripted.conversation.events if isinstance(e, HookExecutionEvent)]


def texts(request: Sequence[Message]) -> str:
    return "\n".join(message.text for message in request)


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.02)


def process_of(file: Path) -> psutil.Process:
    """The process whose number a hook writes to `file`."""
    wait_until(lambda: file.exists() and file.read_text().strip())
    return psutil.Process(int(file.read_text()))


def is_gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


# What a hook is told


def test_a_hook_is_told_of_a_call_on_stdin_and_in_its_environment(place: Place) -> None:
    place.hooks(
        PreToolUse="cat > pre.json; env > pre.env", PostToolUse="cat > post.json; pwd > post.pwd"
    )
    os.environ["LLM_API_KEY"] = "never-for-children"
    try:
        with place.scripted(calls(call("terminal", {"command": "echo hi"})), say("done")) as it:
            assert it.ask() == "finished"
            session = it.conversation.id
    finally:
        del os.environ["LLM_API_KEY"]
    told = json.loads((place.work / "pre.json").read_text())
    assert told["event_type"] == "PreToolUse"
    assert told["tool_name"] == "terminal"
    assert told["tool_input"]["command"] == "echo hi"
    assert told["tool_response"] is None and told["message"] is None
    assert told["session_id"] == session
    assert told["working_dir"] == str(place.work)
    assert told["metadata"] == {}
    environment = (place.work / "pre.env").read_text().splitlines()
    assert f"OPENHANDS_PROJECT_DIR={place.work}" in environment
    assert f"OPENHANDS_SESSION_ID={session}" in environment
    assert "OPENHANDS_EVENT_TYPE=PreToolUse" in environment
    assert "OPENHANDS_TOOL_NAME=terminal" in environment
    assert "never-for-children" not in "".join(environment)
    after = json.loads((place.work / "post.json").read_text())
    assert after["event_type"] == "PostToolUse"
    assert "hi" in json.dumps(after["tool_response"])
    assert (place.work / "post.pwd").read_text().strip() == str(place.work)


def test_every_event_comes_once_and_in_order(place: Place) -> None:
    note = 'echo "$OPENHANDS_EVENT_TYPE" >> order.txt'
    names = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd")
    place.hooks(**dict.fromkeys(names, note))
    with place.scripted(calls(call("terminal", {"command": "true"})), say("done")) as it:
        it.ask()
        session_id = it.conversation.id
        assert [e.hook_event_type for e in of_hooks(it)] == list(names[:-1])
    assert (place.work / "order.txt").read_text().split() == list(names)
    with place.scripted(conversation_id=session_id) as again:
        assert [e.hook_event_type for e in of_hooks(again)] == list(names)


# Calls


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("echo 'no pushes here' >&2; exit 2", "no pushes here"),
        ("exit 2", "Blocked by hook"),
        ("""echo '{"decision": "deny", "reason": "ask first"}'""", "ask first"),
    ],
)
def test_a_denied_call_is_not_run_and_the_model_is_told(
    place: Place, command: str, reason: str
) -> None:
    place.hooks(PreToolUse=command)
    touch = calls(call("terminal", {"command": "touch ran"}, id="push"))
    with place.scripted(touch, say("done")) as it:
        assert it.ask() == "finished"
        result = it.results["push"]
        assert isinstance(result, UserRejectObservation)
        assert (result.rejection_source, result.rejection_reason) == ("hook", reason)
        assert it.told("push").text == f"Action rejected: {reason}"
        (event,) = of_hooks(it)
        assert (event.blocked, event.success, event.reason) == (True, True, reason)
        assert event.action_id == result.action_id
    assert not (place.work / "ran").exists()


def test_only_the_call_that_is_meant_is_denied(place: Place) -> None:
    deny = "{ echo 'no pushes' >&2; exit 2; }"
    check = place.script("check.sh", f"grep -q 'git push' && {deny}\nexit 0")
    place.hooks(PreToolUse=check)
    both = calls(
        call("terminal", {"command": "git push"}, id="push"),
        call("terminal", {"command": "echo fine"}, id="fine"),
    )
    with place.scripted(both, say("done")) as it:
        assert it.ask() == "finished"
        assert it.told("push").text == "Action rejected: no pushes"
        assert "fine" in it.told("fine").text
        assert_each_call_answered_once(it.llm.requests[-1])


@pytest.mark.parametrize(
    "hook",
    [
        "exit 1",
        "no-such-command-anywhere",
        "kill -9 $$",
        "echo '{\"decision\": '",
        {"command": "sleep 600", "timeout": 0.2},
    ],
)
@pytest.mark.parametrize("fails", ["closed", "open"])
def test_a_hook_that_fails_blocks_unless_the_person_says_otherwise(
    place: Place, hook: object, fails: str
) -> None:
    place.hooks(PreToolUse=hook)
    touch = calls(call("terminal", {"command": "touch ran"}, id="push"))
    with Scripted(
        place.work, [touch, say("done")], settings=trusting(hooks_fail=fails), policy="never"
    ) as it:
        assert it.ask() == "finished"
        (event,) = of_hooks(it)
        assert not event.success and event.error
        assert event.blocked == (fails == "closed")
        assert ("failed, and nothing goes on without it" in it.told("push").text) == event.blocked
    assert (place.work / "ran").exists() == (fails == "open")


def test_a_hook_after_a_call_cannot_undo_but_the_model_hears_it(place: Place) -> None:
    place.hooks(PostToolUse="echo 'tabs are not allowed' >&2; exit 2")
    touch = calls(call("terminal", {"command": "touch ran"}, id="push"))
    with place.scripted(touch, say("done")) as it:
        assert it.ask() == "finished"
        assert "[PostToolUse hook feedback] tabs are not allowed" in texts(it.llm.requests[-1])
        assert_each_call_answered_once(it.llm.requests[-1])
    assert (place.work / "ran").exists()


def test_a_hook_that_fails_after_a_call_is_recorded_and_no_more(place: Place) -> None:
    place.hooks(PostToolUse="echo oops >&2; exit 3")
    with place.scripted(PUSH, say("done")) as it:
        assert it.ask() == "finished"
        (event,) = of_hooks(it)
        assert (event.success, event.blocked, event.exit_code) == (False, False, 3)
        assert event.error == "it ended with exit code 3 (oops)"
        assert "oops" not in texts(it.llm.requests[-1])


def test_context_of_hooks_reaches_the_model_behind_the_results(place: Place) -> None:
    place.hooks(
        PreToolUse="""echo '{"additionalContext": "before it"}'""",
        PostToolUse="""echo '{"additionalContext": "after it"}'""",
    )
    two = calls(call("terminal", {"command": "true"}), call("terminal", {"command": "true"}))
    with place.scripted(two, say("done")) as it:
        assert it.ask() == "finished"
        assert_each_call_answered_once(it.llm.requests[-1])
        assert texts(it.llm.requests[-1]).count("before it") == 2
        assert texts(it.llm.requests[-1]).count("after it") == 2


def test_the_first_hook_that_denies_is_the_last_that_runs(place: Place) -> None:
    place.hooks(PreToolUse=["exit 0", "exit 2", "touch third"])
    with place.scripted(PUSH, say("done")) as it:
        it.ask()
        assert [event.exit_code for event in of_hooks(it)] == [0, 2]
    assert not (place.work / "third").exists()


# Messages


@pytest.mark.parametrize("context", ["", ', "additionalContext": "more"'])
def test_a_denied_message_is_stored_and_never_sent(place: Place, context: str) -> None:
    said = f'{{"decision": "deny", "reason": "no names"{context}}}'
    check = place.script("check.sh", f"grep -q 'message.*Smith' && echo '{said}'\nexit 0")
    place.hooks(UserPromptSubmit=check)
    with place.scripted(say("hello")) as it:
        assert it.ask("Who is Smith?") == "finished"
        assert it.llm.requests == []
        stored = [e for e in it.conversation.events if isinstance(e, MessageEvent)]
        assert [e.llm_message.text for e in stored] == ["Who is Smith?"]
        (event,) = of_hooks(it)
        assert (event.blocked, event.reason, event.message_id) == (True, "no names", stored[0].id)
        assert it.ask("Who are you?") == "finished"
        assert "Smith" not in str(it.llm.requests) and "Who are you?" in texts(it.llm.requests[0])
        session_id = it.conversation.id
    with place.scripted(say("hello"), say("again"), conversation_id=session_id) as again:
        again.ask("And now?")
        assert "Smith" not in str(again.llm.requests)


def test_a_title_is_not_made_of_a_denied_message(place: Place) -> None:
    place.hooks(UserPromptSubmit="grep -q 'message.*Smith' && exit 2; exit 0")
    with place.scripted(say("A title")) as it:
        it.ask("Who is Smith?")
        with pytest.raises(ConversationError, match="nothing to name"):
            it.conversation.generate_title()
        assert it.llm.requests == []


def test_stopping_while_a_message_waits_for_a_hook_ends_the_hook(place: Place) -> None:
    place.hooks(UserPromptSubmit="echo $$ > pid; sleep 600")
    with place.scripted(say("hello")) as it:
        sending = spawn(it.conversation.asend_message("hello"))
        process = process_of(place.work / "pid")
        sending.cancel()
        wait_until(lambda: is_gone(process) and sending.done())
        assert not [e for e in it.conversation.events if isinstance(e, MessageEvent)]


def test_context_for_a_message_goes_with_it(place: Place) -> None:
    place.hooks(
        SessionStart="""echo '{"additionalContext": "the branch is main"}'""",
        UserPromptSubmit="""echo '{"additionalContext": "it is Monday"}'""",
    )
    with place.scripted(say("one"), say("two")) as it:
        it.ask("first")
        it.ask("second")
        first, second = (
            e for e in it.conversation.events if isinstance(e, MessageEvent) if e.source == "user"
        )
        assert [part.text for part in first.extended_content] == [
            "the branch is main",
            "it is Monday",
        ]
        assert [part.text for part in second.extended_content] == ["it is Monday"]
        content = it.llm.requests[0][-1].content
        sent = [part.text for part in content if isinstance(part, TextContent)]
        assert sent == ["first", "the branch is main", "it is Monday"]


# Ends


def test_a_denied_end_sends_the_agent_back_to_work(place: Place) -> None:
    place.hooks(Stop="test -e done.txt || { echo 'done.txt is missing' >&2; exit 2; }")
    write = calls(call("terminal", {"command": "touch done.txt"}))
    with place.scripted(say("all is done"), write, say("now it is")) as it:
        assert it.ask() == "finished"
        assert "[Stop hook feedback] done.txt is missing" in texts(it.llm.requests[1])
        assert it.conversation.answer == "now it is"


def test_a_hook_that_always_denies_the_end_is_heard_three_times(place: Place) -> None:
    place.hooks(Stop="exit 2")
    ends = [calls(call("finish", {"message": f"done {n}"})) for n in range(4)]
    with place.scripted(*ends) as it:
        assert it.ask() == "finished"
        assert len(it.llm.requests) == 4
        assert [event.blocked for event in of_hooks(it)] == [True, True, True, False]
        assert "was denied 3 times already" in (of_hooks(it)[-1].error or "")


# Questions to a model


@pytest.mark.parametrize(
    ("verdict", "told"),
    [
        ('{"decision": "allow"}', None),
        ('{"decision": "deny", "reason": "a push"}', "Action rejected: a push"),
        ("no idea", "Action rejected: The hook `Is it a push?` failed"),
    ],
)
def test_a_model_can_be_asked(place: Place, verdict: str, told: str | None) -> None:
    place.hooks(PreToolUse={"type": "prompt", "prompt": "Is it a push?"})
    touch = calls(call("terminal", {"command": "touch ran"}, id="push"))

    def first(messages: Sequence[Message]) -> Turn:
        return say(verdict) if "Is it a push?" in texts(messages) else touch

    with place.scripted(first, say("done")) as it:
        assert it.ask() == "finished"
        question = texts(it.llm.requests[1])
        assert "Is it a push?" in question and "touch ran" in question
        if told:
            assert it.told("push").text.startswith(told)
        usages = {getattr(event, "usage_id", "") for event in it.conversation.events}
        assert "hook" in usages
    assert (place.work / "ran").exists() == (told is None)


# Time, output, processes


def test_a_hook_that_nobody_waits_for_blocks_nothing_and_ends_with_the_conversation(
    place: Place,
) -> None:
    place.hooks(PreToolUse={"command": "echo $$ > pid; exec sleep 600", "async": True})
    with place.scripted(PUSH, say("done")) as it:
        assert it.ask() == "finished"
        process = process_of(place.work / "pid")
        session_id = it.conversation.id
    assert is_gone(process)
    with place.scripted(conversation_id=session_id) as again:
        (event,) = of_hooks(again)
        assert (event.blocked, event.success) == (False, False)


def test_an_interrupt_ends_a_hook_and_all_it_started(place: Place) -> None:
    place.hooks(PreToolUse="sleep 600 & echo $! > child; echo $$ > pid; wait")
    with place.scripted(PUSH, say("done")) as it:
        it.conversation.send_message("go")
        run = threading.Thread(target=it.conversation.run)
        run.start()
        child, parent = process_of(place.work / "child"), process_of(place.work / "pid")
        it.conversation.interrupt()
        run.join(DEADLINE_S)
        assert not run.is_alive()
        wait_until(lambda: is_gone(child) and is_gone(parent))
        assert str(it.conversation.status) == "paused"
        assert list(it.results) == ["push"]
        (event,) = of_hooks(it)
        assert (event.success, event.blocked, event.error) == (
            False,
            False,
            "it was stopped, as the agent was",
        )


def command(text: str, folder: Path, *, stdin: str = "{}", timeout_s: float = DEADLINE_S) -> Ended:
    return run_blocking(
        run_command(text, stdin, folder=folder, env=dict(os.environ), timeout_s=timeout_s)
    )


def test_the_end_of_its_time_ends_a_command_that_will_not_hear_of_it(tmp_path: Path) -> None:
    stubborn = (
        "trap '' TERM; sh -c \"trap '' TERM; echo \\$\\$ > child; sleep 600\" & echo early; wait"
    )
    ended = command(stubborn, tmp_path, timeout_s=0.5)
    assert (ended.exit_code, ended.stdout) == (None, "early\n")
    wait_until(lambda: is_gone(process_of(tmp_path / "child")))


def test_what_a_command_leaves_in_the_background_is_ended_with_it(tmp_path: Path) -> None:
    ended = command("sleep 600 & echo $! > child; echo done", tmp_path)
    assert (ended.exit_code, ended.stdout) == (0, "done\n")
    wait_until(lambda: is_gone(process_of(tmp_path / "child")))


def test_a_stranger_that_holds_the_output_open_is_not_waited_for(tmp_path: Path) -> None:
    leave = f"{sys.executable} -c 'import os, time; os.setsid(); time.sleep(20)' & echo $! > pid"
    began = time.monotonic()
    ended = command(f"{leave}; sleep 0.5; echo done", tmp_path)
    assert (ended.exit_code, ended.stdout) == (0, "done\n")
    assert time.monotonic() - began < 15
    psutil.Process(int((tmp_path / "pid").read_text())).kill()


def test_output_without_end_is_read_and_dropped(tmp_path: Path) -> None:
    ended = command("yes | head -c 20000000; echo x >&2", tmp_path)
    assert (ended.exit_code, ended.stderr) == (0, "x\n")
    assert len(ended.stdout) == MAX_BYTES


@pytest.mark.parametrize("text", ["exec <&-; exit 0", "exit 0", "head -c 10 > /dev/null"])
def test_a_command_need_not_read_what_it_is_told(tmp_path: Path, text: str) -> None:
    assert command(text, tmp_path, stdin="x" * 5_000_000).exit_code == 0


def test_a_command_gets_all_that_it_is_told(tmp_path: Path) -> None:
    assert command("wc -c", tmp_path, stdin="x" * 5_000_000).stdout.strip() == "5000000"


def test_bytes_that_are_no_text_and_a_terminal_that_is_not_there(tmp_path: Path) -> None:
    ended = command(r"printf 'a\377b'; test -t 0 || echo ' no terminal'", tmp_path)
    assert ended.stdout == "a\ufffdb no terminal\n"


def test_many_hooks_leave_no_open_files(tmp_path: Path) -> None:
    command("true", tmp_path)
    before = psutil.Process().num_fds()
    for _ in range(20):
        command("true", tmp_path)
        command("sleep 600", tmp_path, timeout_s=0.01)
    wait_until(lambda: psutil.Process().num_fds() <= before)


# Trust and bad files


def test_hooks_of_a_folder_that_nobody_trusts_do_not_run_and_that_is_told(place: Place) -> None:
    place.hooks(SessionStart="touch ran", PreToolUse="exit 2")
    with Scripted(place.work, [PUSH, say("done")], policy="never") as it:
        assert it.ask() == "finished"
        (remark,) = it.conversation.remarks
        assert "PreToolUse: exit 2" in remark and "%openhands trust" in remark
        assert of_hooks(it) == []
    assert not (place.work / "ran").exists()


def test_a_bad_file_refuses_the_turn_and_stores_nothing_of_it(place: Place) -> None:
    (place.work / ".openhands" / "hooks.json").write_text('{"PreToolUsee": []}')
    with Scripted(place.work, [say("done")]) as it:
        with pytest.raises(SettingsError, match="did you mean PreToolUse"):
            it.ask()
        assert it.conversation.events == ()
        place.hooks()
        assert it.ask() == "finished"


def test_without_a_notebook_it_is_the_same(place: Place, tmp_path: Path) -> None:
    place.hooks(PreToolUse="exit 2", SessionEnd="touch ended")
    script = tmp_path / "script.json"
    script.write_text(json.dumps([PUSH, say("done")]))

    def run(*flags: str) -> "subprocess.CompletedProcess[str]":
        words = [*("-C", str(place.work), "--model", f"scripted:{script}", "--json"), *flags]
        store = ["--store-path", str(tmp_path / "cli.sqlite"), "push it"]
        command = [sys.executable, "-m", "oh_kernel.cli", "run", *words, *store]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    untrusted = run()
    assert untrusted.returncode == 0
    assert "hooks that you have not trusted" in untrusted.stderr
    assert "HookExecutionEvent" not in untrusted.stdout
    trusted = run("--trust-hooks", "yes")
    assert trusted.returncode == 0
    assert trusted.stdout.count('"HookExecutionEvent"') == 2
    assert "nobody could confirm" not in trusted.stderr
    assert (place.work / "ended").exists()


def test_the_end_of_the_process_is_the_end_of_the_session(place: Place, tmp_path: Path) -> None:
    place.hooks(SessionEnd="touch ended")
    program = f"""
from oh_kernel.settings import load_settings
from tests.conversations import Scripted, say
from pathlib import Path
settings = load_settings({{"trust_hooks": True}})
it = Scripted(Path({str(place.work)!r}), [say("done")], settings=settings)
print(it.ask())
"""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=Path(__file__).parents[2],
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "finished\n", "")
    assert (place.work / "ended").exists()
