"""What the terminal tool takes for a command, and what typing sends."""

import asyncio
import subprocess
import sys

import pytest
from pydantic import ValidationError

from oh_kernel.events import event_from_json
from oh_kernel.tools.shell_syntax import literal_kind, statements, unfinished
from oh_kernel.tools.terminal import (
    CmdOutputMetadata,
    TerminalAction,
    TerminalObservation,
    TerminalTool,
)
from oh_kernel.tools.terminal_keys import control_letter, key_bytes


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("C-c", b"\x03"),
        ("c-C", b"\x03"),
        ("CTRL-d", b"\x04"),
        ("Ctrl+Z", b"\x1a"),
        ("C-l", b"\x0c"),
        ("CTRL+x", b"\x18"),
        ("ctrl-X", b"\x18"),
        (" C-z ", b"\x1a"),
        ("C-[", b"\x1b"),
        ("CTRL+[", b"\x1b"),
        ("C-\\", b"\x1c"),
        ("C-]", b"\x1d"),
        ("C-^", b"\x1e"),
        ("C-_", b"\x1f"),
        ("C-@", b"\x00"),
        ("C-?", b"\x7f"),
        ("ENTER", b"\r"),
        ("tab", b"\t"),
        ("BS", b"\x7f"),
        ("ESC", b"\x1b"),
        ("UP", b"\x1b[A"),
        ("DOWN", b"\x1b[B"),
        ("LEFT", b"\x1b[D"),
        ("RIGHT", b"\x1b[C"),
        ("HOME", b"\x1b[H"),
        ("END", b"\x1b[F"),
        ("PGUP", b"\x1b[5~"),
        ("PGDN", b"\x1b[6~"),
        ("yes", b"yes\r"),
        ("\n", b"\r"),
        ("a\nb\n", b"a\rb\r"),
        ("C-cat", b"C-cat\r"),
        ("C-1", b"C-1\r"),
        ("the end", b"the end\r"),
        ("é", "é\r".encode()),
    ],
)
def test_typing_sends(text: str, sent: bytes) -> None:
    assert key_bytes(text) == sent


def test_only_control_keys_are_named() -> None:
    keys = ("C-c", "ctrl+z", "C-\\", "UP", "C-", "C-cc", "C-1")
    assert [control_letter(text) for text in keys] == ["C", "Z", "\\", "", "", "", ""]


@pytest.mark.parametrize(
    "command",
    [
        "echo a; echo b",
        "echo a &",
        "cat <<E | wc -c\nbbb\nE",
        "cat <<'A' > x && cat <<B\na\nA\nb\nB",
        "for i in 1 2\ndo\n  echo $i\ndone",
        "if true; then\n echo x\nfi && \\\n  echo y",
        "f() {\n  echo 1\n}",
        "echo 'two\nlines'",
        "a |\n b |\n c",
        "# what it does\necho a  # here\n# and there",
        "A=(); [[ x =~ ^(y|z)$ ]] || false",
        "if then\nfi",
        "echo 'open",
    ],
)
def test_one_command(command: str) -> None:
    assert len(statements(command)) == 1


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        ("cd x\nls", ["cd x", "ls"]),
        ("echo a; echo b\n\n\necho c", ["echo a; echo b", "echo c"]),
        ("cat <<E\nx\nE\necho é\n", ["cat <<E\nx\nE", "echo é"]),
        ("sleep 1 &\necho b", ["sleep 1 &", "echo b"]),
        ("# one\nls\n# two\npwd", ["ls", "pwd"]),
    ],
)
def test_several_commands(command: str, parts: list[str]) -> None:
    assert statements(command) == parts


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ('["ls"]', "list literal"),
        (" ['ls', '-l']", "list literal"),
        ('[{"a": 1}]', "list literal"),
        ("[[1, 2]]", "nested list literal"),
        ('{"command": "ls"}', "dict literal"),
        ("{'a'}", "dict literal"),
        ("[ -f x ] && echo y", ""),
        ("[[ -f x ]] && echo y", ""),
        ("{ echo a; }", ""),
        ("echo [1, 2]", ""),
    ],
)
def test_literals_are_not_commands(command: str, kind: str) -> None:
    assert literal_kind(command) == kind


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("echo $(", "unexpected EOF while looking for matching `)'"),
        ('x="$(ls | wc', "unexpected EOF"),
        ("diff <(sort a", "unexpected EOF"),
        ("cat <<E\nnever closed", "here-document"),
        ("cat <<E | wc\nnever closed\n", "here-document"),
        ("cat <<E\nclosed\nE", ""),
        ("echo $(date) $((1 << 3)) <<<word", ""),
        ("echo '$('", ""),
        ("ls !(a|$(echo b))", ""),
        ("if then", ""),  # bash may see it: it says so, and nothing is hurt
    ],
)
def test_what_has_no_end_is_found_before_bash_sees_it(command: str, complaint: str) -> None:
    said = asyncio.run(unfinished(command))
    assert complaint in said if complaint else not said


def test_action_refuses_unknown_fields_and_negative_timeouts() -> None:
    for fields in ({"timeout": -1}, {"cwd": "/"}):
        with pytest.raises(ValidationError):
            TerminalAction(command="ls", **fields)


def test_model_reads_output_then_facts() -> None:
    done = TerminalObservation.from_text(
        "out",
        command="x",
        exit_code=2,
        metadata=CmdOutputMetadata(
            exit_code=2, working_dir="/w", py_interpreter_path="/p", prefix="<", suffix="\n[done]"
        ),
    )
    assert done.text == "<out"
    assert [part.model_dump()["text"] for part in done.for_model()] == [
        "<out\n[Current working directory: /w]\n[Python interpreter: /p]\n"
        "[Command finished with exit code 2]"
    ]
    still = done.model_copy(update={"metadata": CmdOutputMetadata(suffix="\n[still]")})
    assert still.text == "out\n[still]"


def test_import_starts_nothing_heavy() -> None:
    code = (
        "import sys, oh_kernel.tools.terminal; "
        "print([m for m in ('pexpect', 'tree_sitter', 'psutil') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_description_is_short() -> None:
    spec = TerminalTool.spec()
    fields = spec.parameters["properties"]
    own = [fields[name]["description"] for name in ("command", "is_input", "timeout", "reset")]
    # Four characters a token is what English prose comes to.
    assert len(spec.description) + sum(map(len, own)) < 420 * 4
    assert "30 s" in spec.description
    assert "30 s" in fields["timeout"]["description"]
    assert "30,000" in spec.description


def test_stored_observations_of_others_load() -> None:
    text = (
        '{"kind":"ObservationEvent","id":"1","timestamp":"2025-01-01T00:00:00","source":'
        '"environment","tool_name":"terminal","tool_call_id":"c","action_id":"a","observation":'
        '{"kind":"TerminalObservation","content":[],"command":"ls","exit_code":0,'
        '"metadata":{"exit_code":0,"pid":7,"later":1}}}'
    )
    assert '"later":1' in event_from_json(text).to_json()
