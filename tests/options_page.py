"""Writes docs/options.md from the table of options: python -m tests.options_page"""

from pathlib import Path

from oh_kernel.options import OPTIONS, Option
from oh_kernel.settings import shown

PAGE = Path(__file__).resolve().parent.parent / "docs" / "options.md"
HEAD = """\
# Options

Made from `oh_kernel/options.py` by `python -m tests.options_page`.

A value is looked for in this order: the flag of a cell or command; `%openhands config NAME=VALUE`
or `%config OpenHands.NAME = VALUE`; the variable `OPENHANDS_NAME`, then the other variables named
below; `config.toml` in the user's configuration folder, or the file that `OPENHANDS_CONFIG_FILE`
names; the default.

The key and the address go only with the model they were set for. Another provider's key comes from
its own variable (`OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, ...) or from `%openhands login`.

Flags marked * are for one `%%openhands` cell too; `oh-kernel run` has them all.

| option | flag | values | default | what it says |
|---|---|---|---|---|
"""


def page() -> str:
    """The whole text of the page."""
    return HEAD + "".join(_row(option) for option in OPTIONS)


def _row(option: Option) -> str:
    flag = "none, as it is a secret" if option.secret else f"`{option.flag}`"
    if option.per_turn:
        flag += " *"
    values = ", ".join(f"`{choice}`" for choice in option.choices) or option.placeholder
    if option.minimum is not None:
        values += f", at least {option.minimum:g}"
    others = ", ".join(f"`{name}`" for name in option.aliases)
    also = f" (also {others})" if others else ""
    cells = [f"`{option.name}`", flag, values, shown(option.default), option.help + also]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
