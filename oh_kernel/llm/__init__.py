"""How a model is asked: one small protocol, a real provider, and answers from files."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oh_kernel.llm.factory import open_llm
    from oh_kernel.llm.fallback import FallbackLLM
    from oh_kernel.llm.record import RecordingLLM
    from oh_kernel.llm.retry import RetryPolicy
    from oh_kernel.llm.scripted import ScriptedLLM

__all__ = ["FallbackLLM", "RecordingLLM", "RetryPolicy", "ScriptedLLM", "open_llm"]

_HOMES = {
    "FallbackLLM": "fallback",
    "RecordingLLM": "record",
    "RetryPolicy": "retry",
    "ScriptedLLM": "scripted",
    "open_llm": "factory",
}


def __getattr__(name: str) -> Any:
    """Import on demand: who needs the protocol alone does not pay for the rest."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
