"""What does a person set of each request, whichever provider answers it?"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from oh_kernel.llm.convert import Kind

AUTO = "auto"


@dataclass(frozen=True)
class RequestOptions:
    """None and "auto" leave it to the provider."""

    temperature: float | None = None
    reasoning_effort: str = AUTO
    max_output_tokens: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    stop_words: tuple[str, ...] = ()

    def for_library(self, kind: Kind) -> dict[str, Any]:
        """The settings of the model library; the Responses API knows no stop words."""
        effort = None if self.reasoning_effort == AUTO else self.reasoning_effort
        given = {
            "temperature": self.temperature,
            "thinking": False if effort == "none" else effort,
            "max_tokens": self.max_output_tokens,
            "extra_headers": dict(self.headers) or None,
            "stop_sequences": list(self.stop_words) if kind != "responses" else None,
        }
        return {name: value for name, value in given.items() if value not in (None, [])}
