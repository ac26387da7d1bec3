"""Which of our errors does a provider's failure become?

A provider's error code decides first; where providers send none, the wording of the refusal does
(there is no other way to tell a prompt that is too long from any other bad request).
"""

import json
import re
from typing import Any

from oh_kernel.errors import (
    ContentPolicyRefused,
    ContextWindowExceeded,
    ModelAuthError,
    ModelError,
    ModelRateLimited,
    ModelRequestRefused,
    ModelUnavailable,
    PictureRefused,
)
from oh_kernel.providers import how_to_login

MAX_MESSAGE_CHARS = 500

_CONTEXT_CODES = {
    "context_length_exceeded",  # OpenAI and compatible ones
    "exceed_context_size_error",  # llama.cpp
    "model_context_window_exceeded",  # Z.ai
    "model_max_prompt_tokens_exceeded",  # GitHub Models
    "request_too_large",  # Anthropic, by bytes
    "string_above_max_length",  # OpenAI, one text
    "tokens_limit_reached",
}
# The wordings themselves stand in tests/unit/test_failures.py, each with its provider.
_CONTEXT_WORDS = re.compile(
    r"prompt (is )?too long|prompt has \S+ tokens|prompt exceeds|maximum prompt length"
    r"|context (window|length|limit|size)|maximum model length|context[ _]overflow"
    r"|inputs? (is|are|was) too (long|large)|too many (input )?tokens|exceeded model token limit"
    r"|input (token count|tokens? exceed|length and)|(range of )?input length should be"
    r"|number of (input )?tokens.{0,40}exceed|exceeds the (limit of \d|maximum number of tokens)"
    r"|`?inputs`? tokens|reduce the length|tokens to keep from the initial prompt"
    r"|max_(new_)?tokens must be at least 1, got -",
    re.IGNORECASE,
)
_POLICY_CODES = {
    "content_filter",
    "content_policy_violation",
    "invalid_prompt",
    "moderation_blocked",
    "sensitive_words_detected",
}
_POLICY_WORDS = re.compile(
    r"content management policy|content (filter|polic)|usage polic|flagged|safety system"
    r"|moderation",
    re.IGNORECASE,
)
_PICTURE_WORDS = re.compile(r"\b(image|picture)s?\b", re.IGNORECASE)
_QUOTA_CODES = {"insufficient_quota", "billing_hard_limit_reached", "billing_error"}
_RETRIED_STATUSES = {408, 409, 425, 429}
# Long enough to be no word of a program: recordings are cleaned by it too.
KEY_LIKE = re.compile(
    r"\bsk-[\w*.-]{12,}|\bgsk_\w{12,}|\bxai-\w{12,}|\bAIza[\w-]{20,}|(?i:bearer) [\w.~+/=-]{16,}"
)


def from_exception(error: Exception, model: str, secret: str | None, url: str = "") -> ModelError:
    """The error to raise for what the model library or its HTTP client raised, asking `url`."""
    # Only called after a request was made, so the model library is imported already.
    from pydantic_ai import exceptions as library

    match error:
        case library.ModelHTTPError():
            return _from_http(error, model, secret)
        case library.ModelContextWindowExceededError():
            return _refusal(400, _text_of(error.body) or error.message, "", model, secret)
        case library.ModelTimeoutError() | TimeoutError():
            return ModelUnavailable(
                f"{model} did not answer in time.",
                remedy="Try again, or raise the timeout (option timeout_s).",
            )
        case library.ModelConnectionError():
            return ModelUnavailable(
                f"{model} cannot be reached{_at(url)}: {clean(_cause(error), secret)}.",
                remedy=_remedy_for_unreached(model, url),
            )
        case library.ModelAPIError():
            code = error.provider_error_code or error.provider_error_type or ""
            return _from_category(error, _text_of(error.body) or error.message, code, model, secret)
        case library.UnexpectedModelBehavior():
            return ModelUnavailable(f"{model} sent a broken reply: {clean(error.message, secret)}.")
        case TypeError() | LookupError() | AttributeError() | ValueError():
            return ModelUnavailable(f"{model} sent a broken reply: {clean(str(error), secret)}.")
        case library.UserError():
            return ModelRequestRefused(
                f"{model} cannot take this request: {clean(error.message, secret)}"
            )
        case _:
            return ModelUnavailable(
                f"The connection to {model}{_at(url)} failed: {clean(_cause(error), secret)}.",
                remedy=_remedy_for_unreached(model, url),
            )


def for_status(
    status: int,
    text: str,
    *,
    model: str,
    code: str = "",
    retry_after_s: float | None = None,
    secret: str | None = None,
) -> ModelError:
    """The error for an HTTP status and the provider's words."""
    said = clean(text, secret)
    if code in _QUOTA_CODES or status == 402:
        return ModelRequestRefused(
            f"The account for {model} is used up: {said}", remedy="Add credit, or choose a model."
        )
    if status in _RETRIED_STATUSES or status >= 500:
        kind = ModelRateLimited if status == 429 else ModelUnavailable
        failure = kind(f"{model} answered {status}: {said}", remedy="Try again later.")
        failure.retry_after_s = retry_after_s
        return failure
    return _refusal(status, text, code, model, secret)


def for_document(media_type: str, text: str, model: str, secret: str | None) -> ModelError:
    """The error for a document that came, with status 200, in place of a stream of events."""
    said = _text_in_json(text)
    words = f": {clean(said, secret)}" if said else ""
    return ModelRequestRefused(
        f"{model} answered with a document ({media_type}) instead of a stream{words}.",
        remedy="Check the base URL; for a server that cannot stream, set stream=no.",
    )


def clean(text: str, secret: str | None = None) -> str:
    """`text` in one line, cut, without the key and without anything that looks like one."""
    if text.lstrip().startswith("<"):
        text = "an HTML page instead of an answer"  # a proxy or a wrong base URL
    if secret:
        text = text.replace(secret, "***")
    text = KEY_LIKE.sub("***", " ".join(text.split()))
    if len(text) > MAX_MESSAGE_CHARS:
        return text[:MAX_MESSAGE_CHARS] + f"... ({len(text) - MAX_MESSAGE_CHARS} more characters)"
    return text


def _from_http(error: Any, model: str, secret: str | None) -> ModelError:
    code = error.provider_error_code or error.provider_error_type or ""
    text = _text_of(error.body) or error.message
    failure = for_status(
        error.status_code,
        text,
        model=model,
        code=str(code),
        retry_after_s=error.retry_after,
        secret=secret,
    )
    if error.suggested_model_id:
        failure.remedy = f"Did you mean {error.suggested_model_id}?"
    return failure


def _from_category(error: Any, text: str, code: str, model: str, secret: str | None) -> ModelError:
    """An error inside a stream that carries no status."""
    from pydantic_ai import exceptions as library

    match error:
        case library.ModelAuthenticationError():
            status = 401
        case library.ModelNotFoundError():
            status = 404
        case library.ModelQuotaExceededError():
            status = 402
        case library.ModelRequestRejectedError():
            status = 400
        case library.ModelRateLimitError():
            status = 429
        case _:
            status = 500
    if status == 500:
        return ModelUnavailable(f"{model} broke off: {clean(text, secret)}.")
    return for_status(status, text, model=model, code=code, secret=secret)


def _refusal(status: int, text: str, code: str, model: str, secret: str | None) -> ModelError:
    said = clean(text, secret)
    if code in _CONTEXT_CODES or status == 413 or _CONTEXT_WORDS.search(text):
        return ContextWindowExceeded(
            f"The conversation is too long for {model}: {said}",
            remedy="Start a new conversation (%openhands new), or choose a model that takes more.",
        )
    if code in _POLICY_CODES or (status in (400, 403) and _POLICY_WORDS.search(text)):
        return ContentPolicyRefused(
            f"{model} refuses the request because of its content: {said}",
            remedy="Say it in other words, or start a new conversation.",
        )
    if status in (401, 403):
        return ModelAuthError(
            f"The provider of {model} refused the key ({status}): {said}",
            remedy=f"Set another key: {how_to_login()}, or the provider's variable.",
        )
    if status == 404:
        return ModelRequestRefused(
            f"The provider does not know {model} ({status}): {said}",
            remedy=_remedy_for_unknown(model),
        )
    kind = PictureRefused if _PICTURE_WORDS.search(text) else ModelRequestRefused
    return kind(
        f"{model} refused the request ({status}): {said}",
        remedy="Send another message to go on, or start a new conversation.",
    )


def _at(url: str) -> str:
    """Where a model was looked for, without a password in the address."""
    shown = re.sub(r"//[^/@]*@", "//", url).rstrip("/")
    return f" at {shown}" if shown else ""


def _remedy_for_unreached(model: str, url: str) -> str:
    if not re.match(r"https?://(localhost|127\.|\[::1\])", url):
        return "Check the network, the proxy and the base URL (option base_url)."
    start = "ollama serve" if model.startswith("ollama:") else "start the server there"
    return (
        f"Is it running? If not: {start}. Else set the base URL (option base_url) to where it is."
    )


def _remedy_for_unknown(model: str) -> str:
    if model.startswith("ollama:"):
        return f"Get the model: ollama pull {model.removeprefix('ollama:')}."
    return "Check the name of the model and the base URL."


def _text_of(body: object) -> str:
    """The provider's own words out of an error body of any shape."""
    match body:
        case {"error": inner}:
            return _text_of(inner)
        case {"message": str(text)} | {"detail": str(text)}:
            return text
        case str(text):
            return _text_in_json(text) or text
        case [first, *_]:
            return _text_of(first)
        case _:
            return ""


def _text_in_json(text: str) -> str:
    """Some client libraries leave the body as it came."""
    if not text.startswith(("{", "[")):
        return ""
    try:
        return _text_of(json.loads(text))
    except ValueError:
        return ""


def _cause(error: BaseException) -> str:
    """The words of the innermost exception: the outer ones only say "connection error"."""
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error).rstrip(".") or type(error).__name__
