"""Which tools does a conversation have: those it was given, or those that the settings say?"""

from collections.abc import Callable, Sequence

from oh_kernel.llm.base import LLM
from oh_kernel.settings import Settings
from oh_kernel.tools.base import Tool
from oh_kernel.tools.finish import FinishTool
from oh_kernel.tools.presets import tool_named, tools_of
from oh_kernel.tools.response_schema import ResponseSchema


def tool_choice(
    tools: str | Sequence[type[Tool] | str] | None, form: ResponseSchema | None, llm: LLM | None
) -> Callable[[Settings], Sequence[type[Tool]]]:
    """Which tools there are under which settings: those given, else what the settings say."""
    finish = FinishTool.with_schema(form) if form else FinishTool
    given = None
    if tools is not None and not isinstance(tools, str):
        named = [tool_named(tool) if isinstance(tool, str) else tool for tool in tools]
        given = list({tool.name: tool for tool in named}.values())  # a name is one tool

    def choose(settings: Settings) -> Sequence[type[Tool]]:
        chosen = tools_of(settings, llm.model if llm else None) if given is None else given
        return [*(tool for tool in chosen if tool.name != "finish"), finish] if form else chosen

    return choose
