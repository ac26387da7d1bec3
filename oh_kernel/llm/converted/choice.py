"""How is a model told of its tools: by its provider's means, in its prompt, or as code to write?"""

import re

from oh_kernel.llm import ollama
from oh_kernel.llm.base import LLM
from oh_kernel.llm.clients import OLLAMA_URL, split_name
from oh_kernel.llm.converted.llm import ConvertedLLM
from oh_kernel.llm.converted.watch import WatchedLLM
from oh_kernel.llm.converted.ways import CodeBlocks, Tags
from oh_kernel.providers import acts_by_code

# At their own addresses, the calls of these are never left in the text.
_DEPENDABLE = ("openai", "openai-responses", "anthropic", "google", "bedrock")
_FROM_FILES = ("scripted", "replay")

# Families that were not trained to call tools by a provider's means.
_WITHOUT_TOOLS = re.compile(
    r"(?:^|[:/])(?:codegemma|codellama|deepseek-coder|deepseek-r1|falcon|gemma-?[123]?\b|llama-?2\b"
    r"|openhands-lm|orca|phi-?[234]\b|starcoder|tinyllama|vicuna|wizard|yi\b)"
)


def with_tools(inner: LLM, model: str, mode: str, base_url: str | None) -> LLM:
    """`inner`, the model called `model`, with calls in the way that `mode` names.

    "auto" is native for all that are known to have tools, text where they lack them or only write
    their calls down, and code for those on this machine.
    """
    if acts_by_code(mode, model):
        return ConvertedLLM(inner, CodeBlocks())
    match mode:
        case "text":
            return ConvertedLLM(inner, Tags(model))
        case "auto" if _needs_watching(model, base_url):
            converted = ConvertedLLM(inner, Tags(model))
            return WatchedLLM(inner, converted, lambda: _has_tools(model, base_url))
        case _:
            return inner


def _needs_watching(model: str, base_url: str | None) -> bool:
    if model.partition(":")[0] in _FROM_FILES:
        return False
    return base_url is not None or split_name(model)[0] not in _DEPENDABLE


async def _has_tools(model: str, base_url: str | None) -> bool | None:
    """What the server says, else what the family of the model says; None for neither."""
    if model.startswith("ollama:"):
        said = await ollama.has_tools(base_url or OLLAMA_URL, split_name(model)[1])
        if said is not None:
            return said
    return False if _WITHOUT_TOOLS.search(model.lower()) else None
