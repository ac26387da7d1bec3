"""Which providers of models are known, and where do they keep their keys? Imports nothing of ours.

A name of a model is `provider:model` or `provider/model`; `openrouter:anthropic/claude-x` is a
model of openrouter.
"""

from difflib import get_close_matches
from typing import NamedTuple


class Provider(NamedTuple):
    """A provider: the variables it reads itself, and a few of its models to complete to."""

    name: str
    key_variables: tuple[str, ...] = ()
    url_variables: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    needs_key: bool = True


PROVIDERS = (
    Provider(
        "openai",
        ("OPENAI_API_KEY",),
        ("OPENAI_BASE_URL",),
        ("gpt-6.1-sol", "gpt-6.1-terra", "gpt-6-luna"),
        aliases=("openai-chat", "openai-responses"),
    ),
    Provider(
        "anthropic",
        ("ANTHROPIC_API_KEY",),
        ("ANTHROPIC_BASE_URL",),
        ("claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5"),
    ),
    Provider(
        "google",
        ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        (),
        ("gemini-4-carbon", "gemini-3.8-flash"),
        aliases=("google-gla", "gemini"),
    ),
    Provider("groq", ("GROQ_API_KEY",), ("GROQ_BASE_URL",), ("openai/gpt-oss-120b",)),
    Provider("mistral", ("MISTRAL_API_KEY",), (), ("mistral-large-latest", "codestral-latest")),
    Provider("openrouter", ("OPENROUTER_API_KEY",), (), ("anthropic/claude-sonnet-5.5",)),
    Provider("deepseek", ("DEEPSEEK_API_KEY",), (), ("deepseek-chat", "deepseek-reasoner")),
    Provider("together", ("TOGETHER_API_KEY",)),
    Provider("fireworks", ("FIREWORKS_API_KEY",)),
    Provider("bedrock", needs_key=False),
    Provider(
        "ollama",
        ("OLLAMA_API_KEY",),
        ("OLLAMA_BASE_URL", "OLLAMA_HOST"),
        ("qwen3",),
        needs_key=False,
    ),
    Provider("local", models=("qwen2.5-coder-1.5b-instruct",), needs_key=False),
    Provider("scripted", needs_key=False),
    Provider("replay", needs_key=False),
)

BY_NAME = {name: one for one in PROVIDERS for name in (one.name, *one.aliases)}


def provider_of(model: str) -> Provider | None:
    """The provider that a model's name begins with, or None when it is not one of ours.

    >>> provider_of("anthropic/claude-haiku-5-5").name
    'anthropic'
    >>> provider_of("qwen3") is None
    True
    """
    return BY_NAME.get(provider_name(model))


def provider_name(model: str) -> str:
    """What stands before the first colon or slash, known or not; "" when there is neither."""
    for place, letter in enumerate(model):
        if letter in ":/":
            return model[:place]
    return ""


def own_address(host: str) -> str:
    """Where the server is reached that `OLLAMA_HOST` names, for itself or for others.

    >>> own_address("0.0.0.0"), own_address("gpu:8080"), own_address("https://models.example/o")
    ('http://127.0.0.1:11434/v1', 'http://gpu:8080/v1', 'https://models.example/o/v1')
    """
    scheme, mark, rest = host.partition("://")
    if not mark:
        scheme, rest = "http", host
    place, slash, path = rest.rstrip("/").partition("/")
    name, colon, port = place.partition(":")
    if not colon and not mark:
        port = "11434"
    name = "127.0.0.1" if name in ("", "0.0.0.0") else name  # it listens everywhere
    path = path.removesuffix("v1").rstrip("/")
    return f"{scheme}://{name}{':' + port if port else ''}{slash}{path}".rstrip("/") + "/v1"


def acts_by_code(mode: str, model: str) -> bool:
    """Whether a model's actions are blocks of code, by the option `tool_calls` and its name.

    Those on this machine are small, and read the schemas of all tools for minutes.
    """
    return mode == "code" or (mode == "auto" and provider_name(model) == "local")


def how_to_name_a_model(model: str) -> str:
    """What to write in place of a name that begins with no known provider; the nearest first."""
    names = [one.name for one in PROVIDERS]
    near = get_close_matches(provider_name(model).lower(), names, n=1)
    hint = f"Did you mean {near[0]}? " if near else ""
    ordered = near + [name for name in names if name not in near]
    return (
        f"{hint}Name it PROVIDER:NAME, with one of {', '.join(ordered)}; "
        "or, for a server of your own that speaks OpenAI's API, set base_url."
    )


def how_to_set_a_model(config_file: object) -> str:
    """Three lines for who has not chosen a model in a notebook."""
    return (
        "No model is set. For this notebook: %openhands config model=openai:gpt-6-luna (or "
        "anthropic:..., google:...), then %openhands login, which asks for the key.\n"
        "For every notebook: OPENHANDS_MODEL and OPENAI_API_KEY (ANTHROPIC_API_KEY, ...) in the "
        f'environment of Jupyter, or model = "openai:gpt-6-luna" in {config_file}.\n'
        "Without a key, on this machine: ollama pull qwen3, then "
        "%openhands config model=ollama:qwen3."
    )


def how_to_set_a_model_in_a_terminal(config_file: object) -> str:
    """Three lines for who has not chosen a model for `oh-kernel run`."""
    return (
        "For one task: oh-kernel run --model openai:gpt-6-luna TASK (or anthropic:..., google:...);"
        " oh-kernel login openai asks for the key and stores it.\n"
        "For every task: OPENHANDS_MODEL=openai:gpt-6-luna and OPENAI_API_KEY (ANTHROPIC_API_KEY, "
        f'...) in the environment, or model = "openai:gpt-6-luna" in {config_file}.\n'
        "Without a key, on this machine: ollama pull qwen3, then oh-kernel run --model ollama:qwen3"
        " TASK."
    )


def how_to_login(provider: str = "PROVIDER") -> str:
    """Where a key can be typed, in a notebook and elsewhere."""
    return f"%openhands login in a notebook, oh-kernel login {provider} in a terminal"
