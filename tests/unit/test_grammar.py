"""The grammar of `%openhands`: prompts pass unchanged, commands only when the whole line is one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oh_kernel.errors import SettingsError
from oh_kernel.kernel.commands import COMMANDS, FLAGS, usage
from oh_kernel.kernel.grammar import Ask, Do, parse
from oh_kernel.options import OPTIONS

AWKWARD = [
    'it\'s "quoted"',
    "what is this?",
    "{braces} and {{more}} and $dollar",
    "% of rows, %matplotlib inline",
    "!ls -la",
    ">>> 1 + 1\n2",
    "In [1]: x = 1",
    "    indented\n\tand tabbed\n",
    "größer 🐍 \u2028 line",
    "--model is a flag, but here it is prose",
    "-h",
    "status",
    "new\n",
    "\\n backslash \\",
    "\n\nleading blank lines",
    "an unclosed ' quote",
]


@pytest.mark.parametrize("body", AWKWARD)
def test_body_reaches_the_agent_word_for_word(body: str) -> None:
    assert parse("", body) == Ask(body)
    assert parse("--max-steps 5 ", body) == Ask(body, overrides={"max_steps": "5"})


@given(st.text().filter(lambda text: bool(text.strip())))
def test_any_body_in_is_that_body_out(body: str) -> None:
    request = parse("--new", body)
    assert isinstance(request, Ask)
    assert (request.prompt, request.new) == (body, True)


@given(st.text().filter(lambda text: text == text.strip() and bool(text)))
def test_two_dashes_force_any_prompt(text: str) -> None:
    assert parse("-- " + text) == Ask(text)


@pytest.mark.parametrize("command", [one.name for one in COMMANDS])
def test_each_command_alone_is_a_command(command: str) -> None:
    assert parse(command) == Do(command)
    assert parse(f"  {command}  ") == Do(command)
    assert parse(command, "") == Do(command)
    assert parse(f"-- {command}") == Ask(command)
    assert parse(f"{command} --help") == Do("help")


@pytest.mark.parametrize("command", [one.name for one in COMMANDS])
def test_a_sentence_that_begins_like_a_command_is_a_prompt(command: str) -> None:
    line = f"{command} the whole thing, please"
    assert parse(line) == Ask(line)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("resume 1a2b3c4d", Do("resume", "1a2b3c4d")),
        ("resume 6f1f2c1e-8a5e-4c53-9d2e-0123456789ab", None),
        ("history 5", Do("history", "5")),
        ("history read_csv", Do("history", "read_csv")),
        ("history 'of numpy' 日本", Do("history", "'of numpy' 日本")),
        ("review 2", Do("review", "2")),
        ("login openai", Do("login", "openai")),
        ("fork", Do("fork")),
        ("fork 2", Do("fork", "2")),
        ("btw why is it slow?", Do("btw", "why is it slow?")),
        ("rename 'My analysis'", Do("rename", "'My analysis'")),
        ('rename "It\'s mine"', Do("rename", '"It\'s mine"')),
        ("delete 1a2b3c4d", Do("delete", "1a2b3c4d")),
        ("rerun ./again", Do("rerun", "./again")),
        ("rerun ~/again", Do("rerun", "~/again")),
        ("rerun /tmp/again", Do("rerun", "/tmp/again")),
        ("config max_steps", Do("config", "max_steps")),
        ("config max-steps=5", Do("config", "max-steps", "5")),
        ("config max_steps = 5", Do("config", "max_steps", "5")),
        ("config model='openai:a b'", Do("config", "model", "openai:a b")),
        (
            "config allow=terminal:git log, ipython",
            Do("config", "allow", "terminal:git log, ipython"),
        ),
        ("config colour=red", Do("config", "colour", "red")),
        (
            "config base_url=http://127.0.0.1:1/v1?a=b",
            Do("config", "base_url", "http://127.0.0.1:1/v1?a=b"),
        ),
    ],
)
def test_arguments(line: str, expected: Do | None) -> None:
    assert parse(line) == (expected or Do("resume", line.partition(" ")[2]))


@pytest.mark.parametrize(
    "line",
    [
        "resume training from the checkpoint",
        "resume training",
        "history of numpy",
        "review main.py",
        "fork the repository",
        "fork 2 processes",
        "btw, use pandas",
        "rename the columns",
        "rename 'a' to 'b'",
        "title the plots",
        "delete a",
        "delete face",
        "rerun the tests",
        "rerun ./again and tell me",
        "new: a folder",
        "config x = 5 has no effect, why?",
        "config files are where?",
        "stop words should be removed",
        "help me",
        "hello",
        "--model is nice"[2:],
        "- a list item",
        "-5 is negative?",
        "—dash",
        "why does ls --help fail",
        "'quoted whole'",
        "don't stop",
    ],
)
def test_everything_else_is_the_prompt(line: str) -> None:
    assert parse(line) == Ask(line)


def test_flags_are_quoted_as_in_a_shell_and_the_prompt_is_not() -> None:
    line = """--model "openai:my model" --tools='a b' -o answer say "hi" to O'Brien"""
    assert parse(line) == Ask(
        """say "hi" to O'Brien""",
        overrides={"model": "openai:my model", "tools": "a b"},
        bind="answer",
    )


def test_text_beside_the_flags_comes_before_the_body() -> None:
    assert parse("--new Explain this:", "  x = 1\n") == Ask("Explain this:\n  x = 1\n", new=True)


@pytest.mark.parametrize("option", [one for one in OPTIONS if one.per_turn])
def test_every_per_turn_option_is_a_flag(option: object) -> None:
    flag = next(one for one in FLAGS if one.option is option)
    assert flag.option is not None
    expected = Ask("go", overrides={flag.option.name: "v"})
    assert parse(f"{flag.name} v go") == parse(f"{flag.name}=v go") == expected


@pytest.mark.parametrize("line", ["", "-h", "--help", "--new -h do it", "help", "--model a --help"])
def test_help(line: str) -> None:
    assert parse(line) == Do("help")


def test_help_wins_over_a_body() -> None:
    assert parse("-h", "prompt") == Do("help")
    assert parse("", "  \n") == Do("help")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--modle a do", "There is no flag --modle. Did you mean --model?"),
        ("--max_step 3 do", "Did you mean --max-steps?"),
        ("--xyzzy do", "There is no flag --xyzzy. See %openhands -h."),
        ("-m a do", "There is no flag -m."),
        ("--api-key sk do", "%openhands login"),
        ("--base-url u do", "%openhands config base_url=VALUE"),
        ("--model", "--model needs a value. Write --model PROVIDER:NAME."),
        ("--model --new do", "--model needs a value."),
        ("--policy 'never do", "A quote after --policy is not closed."),
        ("--policy='never do", "A quote after --policy= is not closed."),
        ("--new=1 do", "--new takes no value."),
        ("--new --continue do", "exclude each other"),
        ("--new", "There is no prompt."),
        ("-o 1x do", "-o '1x' cannot be a variable."),
        ("-o class do", "-o 'class' cannot be a variable."),
        ("statsu", "There is no command 'statsu'. Did you mean status?"),
        ("Status", "Did you mean status?"),
        ("status?", "Did you mean status?"),
        ("histroy", "Did you mean history?"),
        ("tool", "Did you mean tools?"),
        ("config model=", "config model= has no value."),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(line: str, says: str) -> None:
    with pytest.raises(SettingsError) as refused:
        parse(line)
    text = str(refused.value)
    assert says in text
    assert "\n" not in text
    assert "sk" not in text.split()


@pytest.mark.parametrize("word", ["hello", "plot", "continue", "explain", "fix", "why", "42", "go"])
def test_a_word_that_is_near_no_command_is_a_prompt(word: str) -> None:
    assert parse(word) == Ask(word)


def test_a_command_above_a_body_is_refused() -> None:
    with pytest.raises(SettingsError, match="--new"):
        parse("new", "do it")
    with pytest.raises(SettingsError, match="a cell of its own"):
        parse("status", "do it")


def test_usage_names_every_flag_and_command_and_fits_a_screen() -> None:
    text = usage()
    names = [flag.name for flag in FLAGS] + [command.name for command in COMMANDS]
    assert [name for name in names if name not in text] == []
    assert max(map(len, text.splitlines())) <= 100
