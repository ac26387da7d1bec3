"""Secrets: what is found in text, what becomes of events, and what the registry knows and tells."""

from __future__ import annotations

import asyncio
import base64
import html
import json
import logging
import re
import shlex
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oh_kernel.conversation.masked_streams import MaskedStreams
from oh_kernel.conversation.passing import Passing, ToolOutput
from oh_kernel.errors import SettingsError
from oh_kernel.events import (
    ActionEvent,
    HookExecutionEvent,
    Message,
    MessageEvent,
    MessageToolCall,
    event_from_json,
)
from oh_kernel.events.text import clip
from oh_kernel.llm.base import ReasoningDelta, RetryNotice, TextDelta
from oh_kernel.logs import hide_in_logs
from oh_kernel.security.registry import BACK_OFF_S, SecretRegistry
from oh_kernel.security.secret_sources import (
    EnvironmentSecret,
    LookupSecret,
    StaticSecret,
    recorded,
    restored,
)
from oh_kernel.security.secrets import HIDDEN, SecretMask
from oh_kernel.sessions.encodings import is_short
from oh_kernel.sessions.masking import _NOISE, Forms, StreamMask, _Places, _without_noise
from oh_kernel.tools.files import Files
from oh_kernel.tools.terminal import TerminalAction
from tests.experiments import count

TOKEN = "tok_5f3a9c77b1e2"
ODD = 'p"ä s/s+&w\\o=rd%'
KEY = (
    "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n"
    "BKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n-----END PRIVATE KEY-----"
)

ENCODINGS: dict[str, Callable[[str], str]] = {
    "itself": lambda v: v,
    "json": lambda v: json.dumps(v),
    "json, as it is": lambda v: json.dumps(v, ensure_ascii=False),
    "json in json": lambda v: json.dumps({"a": json.dumps({"b": v})}),
    "json in json in json": lambda v: json.dumps(json.dumps(json.dumps(v))),
    "python": repr,
    "bytes of python": lambda v: repr(v.encode()),
    "address": lambda v: quote(v, safe=""),
    "path of an address": quote,
    "form": quote_plus,
    "small letters": lambda v: re.sub("%..", lambda m: m[0].lower(), quote(v, safe="")),
    "base64": lambda v: base64.b64encode(v.encode()).decode(),
    "base64 for addresses": lambda v: base64.urlsafe_b64encode(v.encode()).decode(),
    "basic auth": lambda v: base64.b64encode(f"x:{v}".encode()).decode(),
    "basic auth, longer": lambda v: base64.b64encode(f"xy:{v}@".encode()).decode(),
    "hexadecimal": lambda v: v.encode().hex(),
    "HEXADECIMAL": lambda v: v.encode().hex().upper(),
    "dump": lambda v: v.encode().hex(" "),
    "html": html.escape,
    "shell": shlex.quote,
    "colours": lambda v: f"{v[:4]}\x1b[1;31m{v[4:9]}\x1b[0m{v[9:]}",
    "link": lambda v: f"{v[:4]}\x1b]8;;http://x\x07{v[4:]}",
    "wrapped": lambda v: f"{v[:7]}\r\n{v[7:]}",
    "wrapped base64": lambda v: "\n".join(textwrap.wrap(base64.b64encode(v.encode()).decode(), 16)),
}


@pytest.mark.parametrize("value", [TOKEN, ODD, KEY], ids=["token", "odd", "key"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_value_is_hidden_as_whatever_it_is_encoded(encoding: str, value: str) -> None:
    text = ENCODINGS[encoding](value)
    masked = Forms([value]).hide(f"before {text} behind")
    assert HIDDEN in masked
    assert masked.startswith("before ") and masked.endswith(" behind")
    # What is left are quotes, padding and the few characters that neighbours have a part in.
    left = masked[len("before ") : -len(" behind")].replace(HIDDEN, "")
    assert len(left) <= 12 + 10 * (encoding.startswith("json in")), left


def test_each_long_line_of_a_key_is_hidden_by_itself() -> None:
    masked = Forms([KEY]).hide("     2\tMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n")
    assert masked == f"     2\t{HIDDEN}\n"
    assert Forms([KEY]).hide("-----BEGIN PRIVATE KEY-----") == "-----BEGIN PRIVATE KEY-----"


def test_one_secret_in_another_and_two_that_overlap_are_hidden_whole() -> None:
    forms = Forms(["hunter", "hunter22-of-the-night", "the-night-watch"])
    assert forms.hide("hunter22-of-the-night") == HIDDEN
    assert forms.hide("hunter22-of-the-night-watch!") == f"{HIDDEN}!"
    assert forms.hide("hunter, night") == f"{HIDDEN}, night"


def test_masking_twice_is_masking_once() -> None:
    forms = Forms(["secret", "hidden", "secret-hidden", TOKEN])
    once = forms.hide(f"{TOKEN} and {HIDDEN}")
    assert once == f"{HIDDEN} and {HIDDEN}" == forms.hide(once)


def test_short_values_are_not_hidden_across_lines() -> None:
    assert Forms(["onetwo"]).hide("one\ntwo") == "one\ntwo"
    assert Forms(["onetwo"]).hide("one\x1b[1mtwo") == HIDDEN


SECRETS = st.lists(st.text('abAB12+/=&" \\\n-é', min_size=6, max_size=30), min_size=1, max_size=4)


@settings(max_examples=count(100, long=5_000), deadline=None)
@given(st.data(), SECRETS)
def test_pieces_are_masked_like_the_whole(data: st.DataObject, values: list[str]) -> None:
    parts = st.one_of(
        st.sampled_from(values),
        st.sampled_from(values).map(lambda v: v[: len(v) // 2]),
        st.sampled_from(values).map(lambda v: base64.b64encode(v.encode()).decode()),
        st.sampled_from(["\x1b[1m", "\n", "\r\n", "\x1b", " ", HIDDEN]),
        st.text("abAB12\n", max_size=8),
    )
    text = "".join(data.draw(st.lists(parts, max_size=8)))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    forms = Forms(values)
    stream = StreamMask(forms)
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    whole = forms.hide(text)
    assert "".join([*map(stream.feed, pieces), stream.flush()]) == whole
    for value in values:
        value = value.strip()
        assert is_short(value) or value in HIDDEN or value not in whole.replace(HIDDEN, "\0")


def call_event(code: str, **arguments: Any) -> ActionEvent:
    return ActionEvent(
        thought=[],
        action=TerminalAction(command=code),
        tool_name="terminal",
        tool_call_id="c1",
        tool_call=MessageToolCall(
            id="c1",
            name="terminal",
            arguments=json.dumps({"command": code, **arguments}),
            origin="completion",
        ),
        llm_response_id="r1",
    )


@pytest.mark.parametrize("value", [TOKEN, ODD, KEY, 'tab\tand quote"'])
def test_event_with_a_secret_stays_readable(value: str) -> None:
    masked = SecretMask([value]).event(call_event(f"\techo {value}\n"))
    assert isinstance(masked, ActionEvent) and isinstance(masked.action, TerminalAction)
    assert masked.action.command == f"\techo {HIDDEN}\n"
    assert json.loads(masked.tool_call.arguments) == {"command": f"\techo {HIDDEN}\n"}
    assert event_from_json(masked.to_json()) == masked


@pytest.mark.parametrize(
    "value", ["terminal", "ActionEvent", "environment", "assistant", "command", "completion"]
)
def test_secret_that_is_a_word_of_the_format_breaks_no_event(value: str) -> None:
    masked = SecretMask([value]).event(call_event(f"login {value}"))
    assert isinstance(masked, ActionEvent) and isinstance(masked.action, TerminalAction)
    assert masked.action.command == f"login {HIDDEN}"
    assert masked.tool_name == "terminal" and masked.source == "agent"


@pytest.mark.parametrize("value", ["nabcdef", "tabcdef", 'uabcdef"', "\\nabcde"])
def test_letter_of_an_escape_is_no_letter_of_a_secret(value: str) -> None:
    other = f"\n{value[1:]} \t{value[1:]} {value}"
    message = MessageEvent(source="user", llm_message=Message.of("user", other))
    masked = SecretMask([value]).event(message)
    assert isinstance(masked, MessageEvent)
    assert masked.llm_message.text == f"\n{value[1:]} \t{value[1:]} {HIDDEN}"


def test_event_without_a_secret_is_the_same_object() -> None:
    event = call_event("ls")
    assert SecretMask([TOKEN]).event(event) is event
    assert SecretMask().event(event) is event


def test_what_hooks_were_told_is_masked_too() -> None:
    event = HookExecutionEvent(
        hook_event_type="PreToolUse",
        hook_command=f"check --token {TOKEN}",
        success=True,
        exit_code=0,
        stdout=f"seen {TOKEN}",
        hook_input={"tool_input": {"command": [TOKEN], TOKEN: 1}},
    )
    masked = SecretMask([TOKEN]).event(event).to_json()
    assert TOKEN not in masked and masked.count(HIDDEN) == 4


# Streams


def test_what_is_held_back_comes_before_what_follows_it() -> None:
    mask = SecretMask([TOKEN])
    streams = MaskedStreams(mask.stream)
    told: list[Passing] = []
    for piece in (
        ReasoningDelta("I take tok_"),
        TextDelta("The value is tok_5f"),
        TextDelta("3a9c77b1e2, and tok"),
        ToolOutput("c1", "tok_"),
    ):
        told += streams.feed(piece)
    told += streams.before(MessageEvent(source="agent", llm_message=Message.of("assistant", "x")))
    told += streams.before(call_event("x"))
    assert [(type(one).__name__, getattr(one, "text", "")) for one in told] == [
        ("ReasoningDelta", "I take "),
        ("ReasoningDelta", "tok_"),
        ("TextDelta", "The value is "),
        ("TextDelta", f"{HIDDEN}, and "),
        ("TextDelta", "tok"),
    ]


def test_reply_that_begins_anew_forgets_what_was_held_back() -> None:
    streams = MaskedStreams(SecretMask([TOKEN]).stream)
    list(streams.feed(TextDelta("tok_")))
    (notice,) = streams.feed(RetryNotice(1, 2, 0.0, "x"))
    assert isinstance(notice, RetryNotice)
    assert [one.text for one in streams.feed(TextDelta("5f3a "))] == ["5f3a "]  # type: ignore[union-attr]  # text it is


# Logs


def test_logs_hold_no_secret_in_messages_arguments_and_tracebacks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    mask = SecretMask([TOKEN])
    hide_in_logs(mask)
    try:
        raise ValueError(f"bad {TOKEN}")
    except ValueError:
        logging.getLogger("oh_kernel.somewhere").exception("at %s", TOKEN)
        logging.getLogger("somebody.else").warning("of others: %s", TOKEN)
    ours, theirs = caplog.records
    assert TOKEN not in caplog.text.replace(theirs.getMessage(), "")
    assert "ValueError: bad <secret-hidden>" in (ours.exc_text or "")
    assert theirs.args == (TOKEN,)


# The registry


def registry(**secrets: Any) -> SecretRegistry:
    made = SecretRegistry(SecretMask())
    made.update(secrets)
    return made


def test_short_value_is_not_masked_and_said_so() -> None:
    known = registry(PIN="7", TOKEN=TOKEN)
    assert known.forms.hide(f"17 {TOKEN}") == f"17 {HIDDEN}"
    (remark,) = known.remarks
    assert "PIN has fewer than 6 characters" in remark and "7" not in remark.replace("17", "")


@pytest.mark.parametrize(("value", "words"), [("hidden", "part of"), ("sunshine", "ordinary word")])
def test_value_that_hides_badly_is_said(value: str, words: str) -> None:
    (remark,) = registry(PASSWORD=value).remarks
    assert words in remark and "PASSWORD" in remark and value not in remark.replace(HIDDEN, "")


@pytest.mark.parametrize("name", ["", "1A", "A B", "A-B", "PATH", "PS1", "BASH_ENV", "LD_PRELOAD"])
def test_name_that_a_shell_cannot_have_or_needs_is_refused(name: str) -> None:
    with pytest.raises(SettingsError):
        registry(**{name: TOKEN})


@pytest.mark.parametrize("value", ["", "a\0bcdefg"])
def test_value_that_no_variable_can_hold_is_refused(value: str) -> None:
    with pytest.raises(SettingsError, match="TOKEN"):
        registry(TOKEN=value)


def test_nothing_of_a_value_is_in_what_is_shown_or_stored() -> None:
    source = LookupSecret(url="https://vault.example/t?id=1", headers={"X-Key": "k-123456789"})
    known = registry(A=TOKEN, B=source, C=lambda: TOKEN, D=StaticSecret(value=TOKEN))
    shown = f"{known.origins} {known.record} {known.described} {source!r} {known.sources!r}"
    assert TOKEN not in shown.replace(repr(source), "")
    assert "k-123456789" not in json.dumps(known.record)
    again = SecretRegistry(SecretMask())
    again.restore(json.loads(json.dumps(known.record)))
    assert again.missing == ["A", "C", "D"] and list(again.origins) == ["A", "B", "C", "D"]
    assert again.record == known.record


@pytest.mark.parametrize(
    "url", ["ftp://x/y", "file:///etc/passwd", "https://me:pw@x/y", "x/y", "http://"]
)
def test_only_plain_http_addresses_are_looked_up(url: str) -> None:
    with pytest.raises(ValueError, match="http or https"):
        LookupSecret(url=url)


def test_sources_are_read_as_the_api_writes_them() -> None:
    source = restored({"kind": "LookupSecret", "url": "http://x/y", "description": "d"})
    assert isinstance(source, LookupSecret) and source.description == "d"
    static = StaticSecret.model_validate({"kind": "StaticSecret", "value": TOKEN})
    assert static.value and static.value.get_secret_value() == TOKEN
    assert recorded(static) == {"kind": "StaticSecret"}


def test_variable_of_the_environment_is_hidden_before_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MY_TOKEN", TOKEN)
    known = registry(DEPLOY=EnvironmentSecret(variable="MY_TOKEN"))
    assert known.forms.hide(TOKEN) == HIDDEN and known["DEPLOY"] == TOKEN
    assert not known.missing
    monkeypatch.delenv("MY_TOKEN")
    assert registry(DEPLOY=EnvironmentSecret(variable="MY_TOKEN")).missing == ["DEPLOY"]


def test_function_that_fails_rests_for_a_minute_and_says_why_without_its_text() -> None:
    calls: list[int] = []
    now = [100.0]

    def ask() -> str:
        calls.append(1)
        if len(calls) < 2:
            raise RuntimeError(f"no, not {TOKEN}")
        return TOKEN

    known = SecretRegistry(SecretMask(), clock=lambda: now[0])
    known.update({"TOKEN": ask})

    def fetched() -> list[str]:
        return asyncio.run(known.fetch(frozenset({"TOKEN", "OTHER"})))

    (told,) = fetched()
    assert "RuntimeError" in told and TOKEN not in told
    now[0] += BACK_OFF_S - 1
    assert fetched() == [told] and len(calls) == 1
    now[0] += 1
    assert fetched() == [] and known["TOKEN"] == TOKEN
    assert fetched() == [] and len(calls) == 2
    assert known.forms.hide(TOKEN) == HIDDEN


def test_forgotten_secret_is_not_given_out_and_still_hidden() -> None:
    known = registry(TOKEN=TOKEN, PIN="7")
    known.update({"TOKEN": None, "PIN": None})
    assert not list(known) and not known.remarks and not known.record["secret_sources"]
    assert known.forms.hide(TOKEN) == HIDDEN


# Files


def test_rejected_edit_of_a_file_with_a_secret_is_taken_back_whole(tmp_path: Path) -> None:
    from oh_kernel.tools.file_editor import FileEditorAction, FileEditorExecutor

    path = tmp_path / "conf.ini"
    path.write_text(before := f"token = {TOKEN}\nlevel = 1\n")
    files = Files(tmp_path)
    executor = FileEditorExecutor(tmp_path, files=files)
    executor(FileEditorAction(command="view", path=str(path)))
    action = FileEditorAction(
        command="str_replace", path=str(path), old_str="level = 1", new_str="level = 2"
    )
    (edit,) = executor(action).edits()
    mask = SecretMask([TOKEN])
    assert edit.old is not None and edit.new is not None
    old, new = mask(edit.old), mask(edit.new)
    assert HIDDEN in old
    assert Files(tmp_path).revert(path, old, new)  # who knows the log alone cannot
    assert TOKEN in path.read_text()
    assert files.revert(path, old, new) is None
    assert path.read_text() == before


def test_file_is_never_made_from_a_masked_text(tmp_path: Path) -> None:
    reason = Files(tmp_path).revert(tmp_path / "gone.ini", f"token = {HIDDEN}\n", None)
    assert reason and "secret" in reason
    assert not (tmp_path / "gone.ini").exists()


CUTS = [
    clip("x" * 200, 150)[4:-4].strip("x"),
    " [line cut: 812 characters]",
    "\n[... cut: 1,000 characters in all ...]\n",
    "\n... (cut)",
]


@pytest.mark.parametrize("cut", CUTS)
def test_half_of_a_value_beside_a_cut_is_hidden(cut: str) -> None:
    forms = Forms([TOKEN])
    before, behind = forms.hide(f"begin {TOKEN[:9]}{cut}"), forms.hide(f"{cut}{TOKEN[8:]} end")
    assert before == f"begin {HIDDEN}{cut}" and behind == f"{cut}{HIDDEN} end"
    assert forms.hide(f"tok {cut} 1e2") == f"tok {cut} 1e2"  # may be anything
    event = MessageEvent(source="user", llm_message=Message.of("user", f"a {TOKEN[:9]}{cut}"))
    assert TOKEN[:9] not in SecretMask([TOKEN]).event(event).to_json()


@pytest.mark.parametrize("text", ["", "\n", " a \n  b\r\n\t c\r\r d", "\n \n x\r", "a\n\n  \n"])
def test_quick_way_to_take_line_ends_out_is_the_thorough_one(text: str) -> None:
    assert _without_noise(text) == _NOISE.sub("", text) == _Places(text).plain
