"""Which words and flags does `%openhands` take? One table for grammar, usage and completion.

Imports nothing but the table of options: the kernel reads it at start.
"""

from typing import NamedTuple

from oh_kernel.options import OPTIONS, Option


class Command(NamedTuple):
    """A control command; `pattern` is what the rest of its line must match, all of it."""

    name: str
    arguments: str
    help: str
    pattern: str = ""


class Flag(NamedTuple):
    """A flag of a prompt; `option` is None for those that set nothing."""

    name: str
    placeholder: str
    help: str
    option: Option | None = None


NUMBER = r"(?:\d{1,6})?"
# One word, or several of which the first is in quotes: `history of numpy` is a prompt.
_WORDS = r"""(?:[^\s"']+|(?:"[^"]+"|'[^']+')(?:\s+(?:"[^"]+"|'[^']+'|[^\s"']+))*)?"""
# Written so that it cannot be the beginning of a sentence.
_FOLDER = r"(?:(?:~|\.{0,2})/\S*)?"

COMMANDS = (
    Command("new", "", "start a new conversation; the old one stays in the history"),
    Command(
        "resume",
        "[ID]",
        "go on with the conversation ID (its first characters do), or the last one",
        r"(?:[0-9a-fA-F][0-9a-fA-F-]{3,35})?",
    ),
    Command("status", "", "what the agent is doing, and with which model"),
    Command("pause", "", "stop after the step that is running; the next prompt goes on"),
    Command("stop", "", "stop now: the model's answer and the tool that is running"),
    Command(
        "history",
        "[N | WORD]",
        'the last N conversations (20), or where WORD or "A PHRASE" stands',
        _WORDS,
    ),
    Command("cost", "", "tokens and cost of this conversation"),
    Command("tools", "", "the tools that the model is given"),
    Command(
        "config",
        "[NAME[=VALUE]]",
        "show all settings, or one, or set one for this notebook",
        r"(?:[A-Za-z][\w-]*(?:\s*=\s*.*)?)?",
    ),
    Command(
        "model",
        "[NAME]",
        "the models in use; or ask PROVIDER:NAME or a profile from now on",
        r"(?:[^\s:/'\"]+[:/]\S+|[\w.-]+)?",
    ),
    Command("login", "[PROVIDER]", "ask for a provider's key and store it", r"(?:[a-z][a-z-]*)?"),
    Command(
        "secret",
        "NAME",
        "ask for a value that commands get as $NAME; also: NAME keep, NAME forget",
        r"(?:[A-Z_][A-Z0-9_]*(?:\s+(?:keep|forget))?)?",
    ),
    Command("secrets", "", "the names of the secrets, and where the values come from"),
    Command("trust", "", "have the hooks that this folder brings run, as they are now"),
    Command("review", "[N]", "open the edits of the last turn, or of turn N, again", NUMBER),
    Command("fork", "[N]", "go on in a copy that ends with turn N, or with the last", NUMBER),
    Command("btw", "QUESTION?", "ask beside the task: nothing is run or kept", r"(?:\S.*\?)?"),
    Command("condense", "", "sum up the history for the model; the log keeps all of it"),
    Command("title", "", "have the model name this conversation"),
    Command("rename", '"TITLE"', "name it yourself, in quotes", r"""(?:\"[^"]+\"|'[^']+')?"""),
    Command("delete", "ID", "delete a stored conversation for good", r"(?:[0-9a-fA-F-]{8,36})?"),
    Command("rerun", "./DIR", "carry out its actions again there; say what differs", _FOLDER),
    Command("help", "", "this text"),
)
COMMANDS_BY_NAME = {command.name: command for command in COMMANDS}

FLAGS = (
    *(
        Flag(option.flag, option.placeholder, option.help, option)
        for option in OPTIONS
        if option.per_turn
    ),
    Flag("--new", "", "start a new conversation"),
    Flag("--continue", "", "go on with the notebook's conversation, as without any flag"),
    Flag("-o", "NAME", "bind the final answer, a text, to the variable NAME"),
    Flag("-h", "", "this text; also --help"),
    Flag("--", "", "what follows is the prompt, whatever it looks like"),
)
FLAGS_BY_NAME = {flag.name: flag for flag in FLAGS} | {"--help": FLAGS[-2]}


def usage() -> str:
    """What `%openhands -h` and `%openhands?` show."""
    flags = [(f"{flag.name} {flag.placeholder}".strip(), flag.help) for flag in FLAGS]
    commands = [(f"{one.name} {one.arguments}".strip(), one.help) for one in COMMANDS]
    width = max(len(left) for left, _ in commands)
    return "\n".join(
        [
            "%%openhands [FLAGS]      the rest of the cell is the prompt, word for word",
            "%openhands [FLAGS] TEXT  the same on one line",
            "%openhands COMMAND       when the whole line is one of the commands below",
            "",
            "Flags, for one prompt:",
            *(f"  {left}\n      {right}" for left, right in flags),
            "",
            "Commands:",
            *(f"  {left:<{width}}  {right}" for left, right in commands),
        ]
    )
