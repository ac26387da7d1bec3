"""What files of hooks ask for, whom they mean, what hooks say, and whose hooks run."""

import json
from pathlib import Path
from typing import Any

import pytest

from oh_kernel.errors import SettingsError
from oh_kernel.events import HookExecutionEvent, MessageEvent, TextContent, event_from_json
from oh_kernel.events.content import Message
from oh_kernel.events.messages import events_to_messages
from oh_kernel.security.hooks.config import EVENTS, HookConfig, read_hooks
from oh_kernel.security.hooks.matching import pattern_of
from oh_kernel.security.hooks.process import Ended
from oh_kernel.security.hooks.running import TRUNCATED, Occasion, recorded
from oh_kernel.security.hooks.trust import find_hooks, trust_hooks
from oh_kernel.security.hooks.verdicts import (
    Outcome,
    failing_closed,
    verdict_of_command,
    verdict_of_model,
)
from oh_kernel.views.static import render_turn

FILE = Path("/w/.openhands/hooks.json")
CHECK = {"type": "command", "command": "./check.sh", "timeout": 5}


def read(data: object) -> HookConfig:
    return read_hooks(FILE, json.dumps(data).encode())


def asked(config: HookConfig, tool_name: str = "terminal") -> list[str]:
    return [hook.command for hook in config.of("PreToolUse", tool_name)]


@pytest.mark.parametrize(
    "data",
    [
        {"pre_tool_use": [{"matcher": "terminal", "hooks": [CHECK]}]},
        {"PreToolUse": [{"matcher": "terminal", "hooks": [CHECK]}]},
        {"hooks": {"PreToolUse": [{"matcher": "terminal", "hooks": [CHECK]}]}},
        {"hooks": {"pre_tool_use": [{"matcher": "terminal", "hooks": [CHECK]}]}, "other": 1},
    ],
)
def test_every_layout_says_the_same(data: object) -> None:
    config = read(data)
    (hook,) = config.of("PreToolUse", "terminal")
    assert (hook.type, hook.command, hook.timeout_s, hook.is_async) == (
        "command",
        "./check.sh",
        5.0,
        False,
    )
    assert config.of("PreToolUse", "ipython") == []
    assert config.of("PostToolUse", "terminal") == []


def test_what_is_left_out_has_the_defaults_of_the_reference() -> None:
    (hook,) = read({"stop": [{"hooks": [{"command": "make lint"}]}]}).of("Stop")
    assert (hook.type, hook.timeout_s, hook.is_async) == ("command", 60.0, False)


def test_every_event_has_both_spellings() -> None:
    for event in EVENTS:
        snake = "".join(f"_{c.lower()}" if c.isupper() else c for c in event).lstrip("_")
        for name in (event, snake):
            assert read({name: [{"hooks": [CHECK]}]}).of(event)


def test_a_matcher_is_for_tools_alone() -> None:
    config = read({"SessionStart": [{"matcher": "startup", "hooks": [CHECK]}]})
    assert config.of("SessionStart")


def test_hooks_of_two_files_run_in_order() -> None:
    first, second = (
        read({"PreToolUse": [{"hooks": [{"command": c}]}]}) for c in ("./a.sh", "./b.sh")
    )
    assert asked(first + second) == ["./a.sh", "./b.sh"]


def test_a_prompt_may_stand_under_its_own_name() -> None:
    hooks = [{"type": "prompt", "prompt": "no secrets?"}, {"type": "prompt", "command": "x"}]
    config = read({"UserPromptSubmit": [{"hooks": hooks}]})
    assert [hook.command for hook in config.of("UserPromptSubmit")] == ["no secrets?", "x"]


@pytest.mark.parametrize(
    ("matcher", "means", "means_not"),
    [
        ("*", ["terminal", "x"], []),
        ("", ["terminal", "x"], []),
        ("terminal", ["terminal"], ["terminal2", "my_terminal"]),
        ("/term.*/", ["terminal", "term"], ["my_terminal"]),
        ("/edit/", ["edit"], ["file_editor"]),
        ("file_editor|edit", ["file_editor", "edit"], ["edit2"]),
        ("file_.*", ["file_editor"], ["my_file_editor"]),
        ("e?dit", ["edit", "dit"], ["ed"]),
        ("/", ["/"], ["x"]),
        ("//", ["//"], ["x"]),
    ],
)
def test_matchers(matcher: str, means: list[str], means_not: list[str]) -> None:
    is_meant = pattern_of(matcher)
    assert [name for name in [*means, *means_not] if is_meant(name)] == means


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "is no JSON"),
        ("\xff", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ("[]", "must be an object"),
        ('{"hooks": 3}', "must be an object"),
        ('{"PreToolUsed": []}', "did you mean PreToolUse?"),
        ('{"nonsense": []}', "there are PreToolUse"),
        ('{"stop": [], "Stop": []}', "Stop twice"),
        ('{"stop": {}}', "at Stop"),
        ('{"stop": [{"hooks": [{}]}]}', "at Stop.0.hooks.0.command"),
        ('{"stop": [{"hooks": [{"command": ""}]}]}', "at Stop.0.hooks.0.command"),
        ('{"stop": [{"hooks": ["x"]}]}', "at Stop.0.hooks.0"),
        ('{"stop": [{"hooks": [{"command": "x", "timeout": 0}]}]}', "timeout"),
        ('{"stop": [{"hooks": [{"command": "x", "type": "other"}]}]}', "type"),
        ('{"stop": [{"hooks": [{"command": "x", "type": "agent"}]}]}', "agent is not supported"),
        ('{"pre_tool_use": [{"matcher": "(", "hooks": []}]}', "no regular expression"),
    ],
)
def test_a_bad_file_is_refused_with_file_place_and_remedy(content: str, words: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        read_hooks(FILE, content.encode("latin-1"))
    assert str(FILE) in str(refusal.value)
    assert words in str(refusal.value)
    assert "no turn begins" in refusal.value.remedy


# What hooks say


@pytest.mark.parametrize(
    ("ended", "blocked", "reason"),
    [
        (Ended(0, "", ""), False, None),
        (Ended(0, "all is well", ""), False, None),
        (Ended(0, '{"decision": "allow", "reason": "fine"}', ""), False, "fine"),
        (Ended(0, '{"decision": "deny", "reason": "no pushes"}', "err"), True, "no pushes"),
        (Ended(0, '{"decision": "deny"}', "said on stderr\n"), True, "said on stderr"),
        (Ended(0, '{"decision": "deny"}', ""), True, "Blocked by hook"),
        (Ended(0, '{"decision": "block"}', ""), True, "Blocked by hook"),
        (Ended(0, '{"continue": false}', ""), True, "Blocked by hook"),
        (Ended(2, "", "not here"), True, "not here"),
        (Ended(2, "", ""), True, "Blocked by hook"),
        (Ended(2, '{"decision": "allow"}', "e"), True, "e"),
        (Ended(2, '{"reason": "why"}', "e"), True, "why"),
        (Ended(2, "{broken", "e"), True, "e"),
        (
            Ended(0, '{"hookSpecificOutput": {"permissionDecision": "deny"}}', ""),
            True,
            "Blocked by hook",
        ),
    ],
)
def test_what_a_command_says(ended: Ended, blocked: bool, reason: str | None) -> None:
    outcome = verdict_of_command(ended, 60)
    assert (outcome.success, outcome.blocked, outcome.reason) == (True, blocked, reason)
    assert (outcome.error, outcome.exit_code) == (None, ended.exit_code)


def test_context_is_read_beside_a_denial() -> None:
    said = '{"decision": "deny", "additionalContext": "see CONTRIBUTING"}'
    assert verdict_of_command(Ended(0, said, ""), 60).additional_context == "see CONTRIBUTING"


@pytest.mark.parametrize(
    ("ended", "words"),
    [
        (Ended(None, "part", ""), "stopped after its 1.5 s"),
        (Ended(1, "", "Traceback\nNameError: x\n"), "exit code 1 (NameError: x)"),
        (Ended(127, "", "sh: ./check.sh: not found"), "exit code 127 (sh: ./check.sh: not found)"),
        (Ended(-11, "", ""), "exit code -11"),
        (Ended(0, '{"decision": ', ""), "its verdict is no JSON"),
        (Ended(0, '{"decision": "perhaps"}', ""), "'perhaps' is neither allow nor deny"),
        (Ended(0, '{"decision": ["deny"]}', ""), "neither allow nor deny"),
        (Ended(0, '{"continue": "no"}', ""), "neither true nor false"),
    ],
)
def test_a_command_that_fails_says_why_and_can_count_as_a_denial(ended: Ended, words: str) -> None:
    outcome = verdict_of_command(ended, 1.5)
    assert (outcome.success, outcome.blocked) == (False, False)
    assert words in (outcome.error or "")
    closed = failing_closed(outcome, "./check.sh")
    assert closed.blocked and not closed.success
    assert closed.reason and "`./check.sh` failed" in closed.reason and words in closed.reason


@pytest.mark.parametrize(
    ("text", "blocked"),
    [
        ('{"decision": "allow"}', False),
        ('```json\n{"decision": "deny", "reason": "a push"}\n```', True),
        ('I think: {"decision": "deny"}.', True),
    ],
)
def test_what_a_model_says(text: str, blocked: bool) -> None:
    outcome = verdict_of_model(text)
    assert (outcome.success, outcome.blocked, outcome.stdout) == (True, blocked, text)


@pytest.mark.parametrize("text", ["", "allow", "{}", '{"decision": "yes"}', '["allow"]'])
def test_a_model_has_to_give_a_verdict(text: str) -> None:
    outcome = verdict_of_model(text)
    assert not outcome.success and outcome.error


# The event


def occasion(**told: Any) -> Occasion:
    return Occasion("PreToolUse", "c1", Path("/w"), **told)


def test_no_field_of_the_event_is_longer_than_the_limit() -> None:
    (hook,) = read({"stop": [{"hooks": [{"command": "c" * 60_000}]}]}).of("Stop")
    long = "x" * 60_000
    told = occasion(tool_input={"texts": [{"text": long}]}, message=long)
    event = recorded(hook, told, Outcome(True, stdout=long, stderr=long, reason=long))
    cut = "x" * 50_000 + TRUNCATED
    assert event.stdout == event.stderr == event.reason == cut
    assert len(event.hook_command) == 50_000 + len(TRUNCATED)
    assert event.hook_input is not None
    assert event.hook_input["message"] == cut
    assert event.hook_input["tool_input"] == {"texts": [{"text": cut}]}


def test_the_event_survives_json_with_the_fields_of_the_reference() -> None:
    (hook,) = read({"stop": [{"hooks": [CHECK]}]}).of("Stop")
    event = recorded(
        hook, occasion(tool_name="terminal"), Outcome(True, exit_code=0), action_id="a"
    )
    data = json.loads(event.to_json())
    assert data["source"] == "hook" and data["kind"] == "HookExecutionEvent"
    assert (data["hook_event_type"], data["hook_command"]) == ("PreToolUse", "./check.sh")
    assert (data["tool_name"], data["action_id"], data["exit_code"]) == ("terminal", "a", 0)
    assert data["hook_input"]["event_type"] == "PreToolUse"
    assert event_from_json(event.to_json()) == event


def hook_event(**fields: Any) -> HookExecutionEvent:
    given = {"hook_event_type": "UserPromptSubmit", "hook_command": "./p.sh", "success": True}
    return HookExecutionEvent(**{**given, **fields})


def message(text: str, **fields: Any) -> MessageEvent:
    return MessageEvent(source="user", llm_message=Message.of("user", text), **fields)


def test_a_model_is_never_sent_a_blocked_message() -> None:
    events = [
        message("first"),
        hook_event(blocked=True, message_id="m2"),
        message("blocked", id="m2", extended_content=[TextContent(text="its context")]),
        message("third"),
    ]
    (sent,) = events_to_messages(events)
    assert [part.text for part in sent.content if isinstance(part, TextContent)] == [
        "first",
        "third",
    ]


@pytest.mark.parametrize(
    ("event", "shown"),
    [
        (hook_event(), ""),
        (
            hook_event(blocked=True, reason="no secrets"),
            "Hook UserPromptSubmit (./p.sh) blocked your message, so no model is asked: no secrets",
        ),
        (
            hook_event(
                hook_event_type="PreToolUse", tool_name="terminal", blocked=True, reason="no\npush"
            ),
            "Hook PreToolUse (./p.sh) blocked terminal: no push",
        ),
        (
            hook_event(hook_event_type="PostToolUse", success=False, error="exit code 1"),
            "Hook PostToolUse (./p.sh): exit code 1",
        ),
    ],
)
def test_a_person_sees_one_line_of_what_blocked_or_failed(
    event: HookExecutionEvent, shown: str
) -> None:
    lines = render_turn([event]).text.split("\n")
    assert (lines[0] if shown else "") == shown
    assert shown or "Hook" not in "".join(lines)


# Whose hooks run


class Folder:
    """A workspace that brings hooks, and the config folder of its user."""

    def __init__(self, path: Path) -> None:
        self.work, self.config = path / "work", path / "config"
        self.file = self.work / ".openhands" / "hooks.json"
        self.file.parent.mkdir(parents=True)
        self.config.mkdir()

    def write(self, command: str, place: Path | None = None) -> None:
        hooks = {"PreToolUse": [{"matcher": "terminal", "hooks": [{"command": command}]}]}
        (place or self.file).write_text(json.dumps(hooks))

    def running(self, *, trust: bool = False) -> list[str]:
        return asked(find_hooks(self.work, self.config, trust=trust).config)

    def remarks(self) -> str:
        return "\n".join(find_hooks(self.work, self.config).remarks)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_hooks_of_a_folder_run_only_after_a_yes_which_is_remembered(folder: Folder) -> None:
    folder.write("./check.sh")
    assert folder.running() == []
    assert "PreToolUse[terminal]: ./check.sh" in folder.remarks()
    assert "%openhands trust" in folder.remarks()
    told = trust_hooks(folder.work, folder.config)
    assert "PreToolUse[terminal]: ./check.sh" in told
    assert folder.running() == ["./check.sh"]
    assert folder.remarks() == ""


def test_hooks_that_changed_since_are_refused_until_trusted_again(folder: Folder) -> None:
    folder.write("./check.sh")
    trust_hooks(folder.work, folder.config)
    folder.write("./other.sh")
    with pytest.raises(SettingsError, match="was changed since you trusted"):
        folder.running()
    trust_hooks(folder.work, folder.config)
    assert folder.running() == ["./other.sh"]


def test_trusted_hooks_that_are_gone_are_told(folder: Folder) -> None:
    folder.write("./check.sh")
    trust_hooks(folder.work, folder.config)
    folder.file.unlink()
    assert folder.running() == []
    assert "are gone" in folder.remarks()
    assert "no hooks" in trust_hooks(folder.work, folder.config)
    assert folder.remarks() == ""


def test_trust_is_for_one_folder(folder: Folder, tmp_path: Path) -> None:
    other = Folder(tmp_path / "other")
    folder.write("./check.sh")
    other.write("./check.sh")
    trust_hooks(folder.work, folder.config)
    assert asked(find_hooks(other.work, folder.config).config) == []


def test_the_option_has_any_hooks_run(folder: Folder) -> None:
    folder.write("./check.sh")
    assert folder.running(trust=True) == ["./check.sh"]


def test_own_hooks_always_run_and_come_first(folder: Folder) -> None:
    folder.write("./own.sh", folder.config / "hooks.json")
    folder.write("./check.sh")
    assert folder.running() == ["./own.sh"]
    assert folder.running(trust=True) == ["./own.sh", "./check.sh"]


def test_own_hooks_lie_in_the_home_folder_too(
    folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Folder(tmp_path / "home")
    home.write("./home.sh")
    monkeypatch.setenv("HOME", str(home.work))
    assert folder.running() == ["./home.sh"]
    assert asked(find_hooks(home.work, folder.config).config) == ["./home.sh"], "once, not twice"


def test_bad_hooks_are_refused_even_untrusted(folder: Folder) -> None:
    folder.file.write_text('{"PreToolUs": []}')
    with pytest.raises(SettingsError, match="did you mean PreToolUse"):
        folder.running()


def test_a_remark_shows_what_could_act_or_mislead_as_harmless_text(folder: Folder) -> None:
    folder.write("echo \x1b[2J\nrm \u202e" + "x" * 500)
    assert "\x1b" not in folder.remarks() and "\u202e" not in folder.remarks()
    assert "\n" not in folder.remarks() and len(folder.remarks()) < 600


def test_a_damaged_record_of_trust_is_told(folder: Folder) -> None:
    folder.write("./check.sh")
    (folder.config / "trusted_hooks.json").write_text("[1]")
    with pytest.raises(SettingsError, match="trusted_hooks"):
        folder.running()
