"""Which implementation answers for the name of a model?"""

from dataclasses import replace
from pathlib import Path

from oh_kernel.errors import ModelNotConfigured
from oh_kernel.llm.base import LLM
from oh_kernel.llm.clients import DEFAULT_TIMEOUT_S
from oh_kernel.llm.converted.choice import with_tools
from oh_kernel.llm.converted.ways import STOP_WORDS
from oh_kernel.llm.request_options import RequestOptions
from oh_kernel.llm.retry import RetryingLLM, RetryPolicy


def open_llm(
    model: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    retry: RetryPolicy | None = None,
    workspace: Path | str | None = None,
    takes_images: bool = True,
    stream: bool = True,
    options: RequestOptions | None = None,
    tool_calls: str = "native",
) -> LLM:
    """The model called `model`: `scripted:FILE`, `replay:FILE`, `local:FILE`, `provider:model`.

    Cheap: connecting, and importing what that takes, waits for the first request or `warm_up`.
    `workspace` is what scripts and recordings mean by theirs; `tool_calls` is the option of this
    name. Raises ModelNotConfigured for a name without a known provider.
    """
    scheme, _, rest = model.partition(":")
    if not model or not (rest or base_url or "/" in model):
        raise ModelNotConfigured(
            f"The name of the model is incomplete: {model!r}.",
            remedy="Name it provider:model, such as openai:gpt-6-luna or ollama:qwen3.",
        )
    inner: LLM
    match scheme:
        case "scripted":
            from oh_kernel.llm.scripted import ScriptedLLM

            inner = ScriptedLLM.from_file(rest, workspace=workspace)
        case "replay":
            from oh_kernel.llm.replay import ReplayLLM

            inner = ReplayLLM(rest, workspace=workspace)
        case "local":
            from oh_kernel.llm.local import LocalLLM

            inner = LocalLLM(rest, streams=stream)
        case _:
            from oh_kernel.llm.provider import ProviderLLM

            inner = ProviderLLM(
                model,
                base_url=base_url,
                api_key=api_key,
                timeout_s=timeout_s,
                takes_images=takes_images,
                streams=stream,
                options=replace(options or RequestOptions(), stop_words=_stop_words(tool_calls)),
            )
    return RetryingLLM(with_tools(inner, model, tool_calls, base_url), retry)


def _stop_words(tool_calls: str) -> tuple[str, ...]:
    return STOP_WORDS if tool_calls in ("text", "code") else ()
