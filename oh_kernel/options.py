"""What can be set, as one table from which flags, environment variables, `%config` and docs derive?

A value is looked for in this order: the flag of a cell or command, `%config OpenHands.name` or
`%openhands config name=value`, the variable `OPENHANDS_NAME`, the older variables in `aliases`, the
file config.toml, the default. This module imports nothing of ours: the kernel reads it at start.
"""

from typing import NamedTuple


class Option(NamedTuple):
    """One thing that can be set. `help` is one sentence without its full stop."""

    name: str
    type: type
    default: object
    help: str
    unit: str = ""
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    metavar: str = ""
    aliases: tuple[str, ...] = ()
    per_turn: bool = False
    """It has a flag in `%%openhands`; every option but the secret ones has one in `oh-kernel`."""
    secret: bool = False

    @property
    def flag(self) -> str:
        """As on a command line: `--max-steps`."""
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """As in the environment: `OPENHANDS_MAX_STEPS`."""
        return "OPENHANDS_" + self.name.upper()

    @property
    def placeholder(self) -> str:
        """What stands for the value in a usage line: `never|always|risky`, `N`, `PRESET`."""
        return "|".join(self.choices) or self.metavar or _PLACEHOLDERS[self.type]


# For what a model is asked beside the agent's own steps.
USES = ("condenser", "title", "ask-agent", "critic", "hook", "analyzer")

_PLACEHOLDERS = {str: "TEXT", int: "N", float: "SECONDS", bool: "yes|no", list: "A,B"}

OPTIONS = (
    Option(
        "model",
        str,
        None,
        "the model that is asked, as PROVIDER:NAME, or a profile of config.toml",
        metavar="PROVIDER:NAME",
        aliases=("LLM_MODEL",),
        per_turn=True,
    ),
    Option(
        "base_url",
        str,
        None,
        "where the model is reached, when not at its provider's own address",
        metavar="URL",
        aliases=("LLM_BASE_URL",),
    ),
    Option(
        "api_key",
        str,
        None,
        "the key for the model's provider; stored by `%openhands login`",
        aliases=("LLM_API_KEY",),
        secret=True,
    ),
    Option(
        "fallbacks",
        list,
        (),
        "models that are asked, in this order, when the model cannot be reached",
        metavar="PROVIDER:NAME,...",
    ),
    Option(
        "models",
        list,
        (),
        "models for other uses than the agent's own: " + ", ".join(USES),
        metavar="USE=MODEL,...",
    ),
    Option(
        "tool_calls",
        str,
        "auto",
        "how the model calls tools: by its provider's means, as text, or as blocks of code",
        choices=("auto", "native", "text", "code"),
        per_turn=True,
    ),
    Option(
        "temperature",
        float,
        None,
        "how freely the model chooses its words; by default as its provider has it",
        unit="from 0, the plainest",
        minimum=0,
        metavar="NUMBER",
    ),
    Option(
        "reasoning_effort",
        str,
        "auto",
        "how much the model thinks before it answers; auto is as its provider has it",
        choices=("auto", "none", "minimal", "low", "medium", "high", "xhigh"),
        per_turn=True,
    ),
    Option(
        "max_output_tokens",
        int,
        None,
        "how long one reply of the model may be",
        unit="tokens",
        minimum=1,
    ),
    Option(
        "policy",
        str,
        "risky",
        "which tool calls a person is asked about before they run",
        choices=("risky", "never", "always", "cautious"),
        per_turn=True,
    ),
    Option(
        "unattended",
        str,
        "deny",
        "what happens to a call that needs a yes when nobody can give it",
        choices=("deny", "allow", "fail"),
    ),
    Option(
        "allow",
        list,
        (),
        "with unattended=allow, the calls that run unasked, as TOOL or TOOL:PATTERN",
        metavar="RULE,...",
    ),
    Option(
        "trust_hooks",
        bool,
        False,
        "have the hooks of any folder run, without `%openhands trust`",
    ),
    Option(
        "hooks_fail",
        str,
        "closed",
        "what a hook that fails does to what it could have forbidden: forbid it, or let it go on",
        choices=("closed", "open"),
    ),
    Option(
        "max_steps",
        int,
        100,
        "how many times the model may be asked in one turn",
        unit="steps",
        minimum=1,
        per_turn=True,
    ),
    Option(
        "max_tokens",
        int,
        None,
        "how many tokens, in and out, one turn may use",
        unit="tokens",
        minimum=1,
        per_turn=True,
    ),
    Option(
        "conversation_max_tokens",
        int,
        None,
        "how many tokens, in and out, a whole conversation may use",
        unit="tokens",
        minimum=1,
    ),
    Option(
        "budget",
        float,
        None,
        "how many US dollars one turn may cost",
        unit="US dollars",
        minimum=0,
        metavar="DOLLARS",
        per_turn=True,
    ),
    Option(
        "conversation_budget",
        float,
        None,
        "how many US dollars a whole conversation may cost",
        unit="US dollars",
        minimum=0,
        metavar="DOLLARS",
    ),
    Option(
        "price",
        str,
        None,
        "what a million tokens cost in US dollars, for a model whose price is not known",
        metavar="IN/OUT",
        per_turn=True,
    ),
    Option(
        "stuck_detection",
        bool,
        True,
        "whether an agent that goes in circles is told so, and then stopped",
    ),
    Option(
        "critic",
        str,
        "none",
        "who judges the agent's work before it counts as done",
        choices=("none", "pass", "finished", "changes", "tests", "model"),
        per_turn=True,
    ),
    Option(
        "critic_rounds",
        int,
        3,
        "how often in a turn the agent is sent back to work by the critic",
        unit="times",
        minimum=0,
    ),
    Option(
        "condenser",
        str,
        "llm",
        "what becomes of old events when a history gets long: a model sums them up, they are left "
        "out, or nothing",
        choices=("llm", "recent", "none"),
    ),
    Option(
        "condense_after_events",
        int,
        80,
        "how many events the model is shown before old ones are condensed",
        unit="events",
        minimum=12,
    ),
    Option(
        "condense_after_tokens",
        int,
        None,
        "how long a request may get before old events are condensed; by default what the model "
        "takes",
        unit="tokens",
        minimum=1000,
    ),
    Option(
        "tools",
        str,
        "auto",
        "the tools that the model is given: auto, default, gpt5, gemini, planning, or single tools",
        metavar="NAME,...",
        per_turn=True,
    ),
    Option(
        "context",
        str,
        "schema",
        "what the model is told of your variables: nothing, names and shapes, or some rows too",
        choices=("none", "schema", "full"),
        per_turn=True,
    ),
    Option(
        "workspace",
        str,
        None,
        "the folder that the agent works in; by default the notebook's",
        metavar="DIR",
    ),
    Option(
        "store_path",
        str,
        None,
        "the database of all conversations; by default in the Jupyter data folder",
        metavar="FILE",
    ),
    Option(
        "allowed_folders",
        list,
        (),
        "folders, beside the workspace, in which file tools may write; they read anywhere",
        metavar="DIR,...",
    ),
    Option(
        "timeout_s",
        float,
        300.0,
        "how long the model may be silent before the request is given up",
        unit="seconds",
        minimum=1,
    ),
    Option(
        "max_retries",
        int,
        5,
        "how often a failed request to the model is sent again",
        unit="times",
        minimum=0,
    ),
    Option("images", bool, True, "send plots and pictures to the model, which must take them"),
    Option("stream", bool, True, "show the model's words as they come"),
    Option(
        "python_timeout_s",
        float,
        600.0,
        "how long the agent's Python may run in the notebook, unless the model asks for more",
        unit="seconds",
        minimum=1,
    ),
    Option(
        "terminal_no_change_timeout_s",
        float,
        30.0,
        "how long a shell command may be silent before the model is asked what to do",
        unit="seconds",
        minimum=1,
    ),
    Option(
        "terminal_one_statement",
        bool,
        False,
        "whether a shell command of several statements on lines of their own is refused",
    ),
    Option(
        "runtime_idle_timeout_s",
        float,
        0.0,
        "after how long without an answer this machine is taken away (0: never); a shell command "
        "whose timeout comes near to it is refused",
        unit="seconds",
        minimum=0,
        aliases=("OH_RUNTIME_IDLE_TIMEOUT_SECONDS",),
    ),
)

BY_NAME = {option.name: option for option in OPTIONS}
