"""What is told to those who watch a conversation, and stored by nobody?"""

from dataclasses import dataclass

from oh_kernel.llm.base import Delta


@dataclass(frozen=True)
class ToolOutput:
    """A piece of what a running tool prints; not stored."""

    call_id: str
    text: str


@dataclass(frozen=True)
class NativeOutput:
    """A running tool is about to show something by itself, such as a plot."""

    call_id: str


Passing = Delta | ToolOutput | NativeOutput
"""What listeners are told of and nobody stores."""
