"""Refusals of a request that is too long are told from all others, whoever words them."""

import pytest

from oh_kernel.errors import ContextWindowExceeded, ModelError
from oh_kernel.llm.failures import for_status

OVERFLOWS = {
    "OpenAI chat": "This model's maximum context length is 8192 tokens. However, your messages "
    "resulted in 8227 tokens. Please reduce the length of the messages.",
    "OpenAI responses": "Your input exceeds the context window of this model. Please adjust your "
    "input and try again.",
    "Anthropic": "prompt is too long: 210000 tokens > 200000 maximum",
    "Anthropic, with its reply": "input length and `max_tokens` exceed context limit: 195000 + "
    "8192 > 200000, decrease input length or `max_tokens` and try again",
    "Bedrock": "Input is too long for requested model.",
    "Bedrock, other models": "The model returned the following errors: too many input tokens",
    "Google": "The input token count (1196265) exceeds the maximum number of tokens allowed "
    "(1048575).",
    "Groq": "Please reduce the length of the messages or completion.",
    "Mistral": "Prompt contains 300000 tokens, too large for model with 131072 maximum context "
    "length",
    "xAI": "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "Ollama": "prompt too long; exceeded max context length by 4096 tokens",
    "Ollama, embedded": "the input length exceeds the context length",
    "vLLM": "This model's maximum context length is 16384 tokens. However, you requested 122946 "
    "tokens (112946 in the messages, 10000 in the completion).",
    "vLLM, newer": "This model's maximum context length is 2048 tokens. However, your request has "
    "8 input tokens plus 2045 'max_tokens'. Please reduce one or the other.",
    "vLLM, engine": "The decoder prompt (length 40000) is longer than the maximum model length of "
    "32768. Make sure that `max_model_len` is no smaller than the number of text tokens.",
    "vLLM, no room": "max_tokens must be at least 1, got -186.",
    "llama.cpp": "the request exceeds the available context size, try increasing it",
    "llama.cpp, counted": "request (9120 tokens) exceeds the available context size (8192 tokens), "
    "try increasing it",
    "LM Studio": "The number of tokens to keep from the initial prompt is greater than the context "
    "length.",
    "OpenRouter": "This endpoint's maximum context length is 131072 tokens. However, you requested "
    "about 140000 tokens (130000 of text input, 10000 in the output).",
    "DeepSeek": "This model's maximum context length is 65536 tokens. However, you requested 70000 "
    "tokens (62000 in the messages, 8000 in the completion).",
    "TGI": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096.",
    "Moonshot": "Invalid request: Your request exceeded model token limit: 262144 (requested: "
    "300000)",
    "MiniMax": "invalid params, context window exceeds limit (2013)",
    "GitHub Copilot": "prompt token count of 140000 exceeds the limit of 128000",
    "Qwen": "Range of input length should be [1, 98304]",
}
OTHERS = [
    "invalid request",
    "max_tokens is too large: 100000. This model supports at most 16384 completion tokens.",
    "Unsupported value: 'temperature' does not support 0.2 with this model.",
    "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after",
    "Invalid value for 'tools[0].function.name': string does not match pattern.",
    "tool_choice must be auto when thinking is on",
]


@pytest.mark.parametrize("provider", OVERFLOWS)
def test_request_that_is_too_long(provider: str) -> None:
    assert isinstance(refused(OVERFLOWS[provider]), ContextWindowExceeded)


@pytest.mark.parametrize("text", OTHERS)
def test_other_refusals_are_not_taken_for_it(text: str) -> None:
    assert not isinstance(refused(text), ContextWindowExceeded)


@pytest.mark.parametrize("code", ["context_length_exceeded", "exceed_context_size_error"])
def test_code_of_the_provider_decides_whatever_the_words(code: str) -> None:
    assert isinstance(refused("no", code), ContextWindowExceeded)
    assert isinstance(refused("no", status=413), ContextWindowExceeded)


def refused(text: str, code: str = "", status: int = 400) -> ModelError:
    return for_status(status, text, model="openai:m", code=code)
