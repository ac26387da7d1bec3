"""What is shown of text that is on its way, so that no secret is seen in two halves?"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from oh_kernel.conversation.passing import NativeOutput, Passing, ToolOutput
from oh_kernel.events import ActionEvent, Event, MessageEvent, ToolResultEvent
from oh_kernel.llm.base import ReasoningDelta, TextDelta, ToolCallDelta
from oh_kernel.sessions.masking import StreamMask

_Piece = TextDelta | ReasoningDelta | ToolCallDelta | ToolOutput
_Key = tuple[str, object]


class MaskedStreams:
    """The streams of a conversation: the reply that is coming in, the output of each call.

    What may be the beginning of a secret waits until it is clear what it is, or its stream ends.
    """

    def __init__(self, new_mask: Callable[[], StreamMask]) -> None:
        self._new_mask = new_mask
        self._streams: dict[_Key, tuple[StreamMask, _Piece]] = {}

    def feed(self, passing: Passing) -> Iterator[Passing]:
        """What can be shown now that `passing` has come."""
        match passing:
            case TextDelta() | ReasoningDelta() | ToolCallDelta() | ToolOutput():
                yield from self._fed(passing)
            case NativeOutput(call_id=call_id):
                yield from self._ended(("output", call_id))
                yield passing
            case _:  # the reply begins anew
                self._drop_reply()
                yield passing

    def before(self, event: Event) -> Iterator[Passing]:
        """What was held back of the streams that `event` ends."""
        if isinstance(event, ToolResultEvent):
            yield from self._ended(("output", event.tool_call_id))
        elif isinstance(event, ActionEvent) or (
            isinstance(event, MessageEvent) and event.source == "agent"
        ):
            yield from self._reply_but(None)

    def _fed(self, piece: _Piece) -> Iterator[Passing]:
        key = _key(piece)
        if not isinstance(piece, ToolOutput):
            yield from self._reply_but(key)
        mask = self._streams[key][0] if key in self._streams else self._new_mask()
        shown = _with_text(piece, mask.feed(_text(piece)))
        self._streams[key] = mask, piece
        if _text(shown) or isinstance(shown, ToolCallDelta):
            yield shown

    def _ended(self, key: _Key) -> Iterator[Passing]:
        if key in self._streams:
            mask, piece = self._streams.pop(key)
            if rest := mask.flush():
                yield _with_text(piece, rest)

    def _reply_but(self, kept: _Key | None) -> Iterator[Passing]:
        """End the streams of the reply, all but one: they come one after the other."""
        for key in [key for key in self._streams if key[0] != "output" and key != kept]:
            yield from self._ended(key)

    def _drop_reply(self) -> None:
        self._streams = {k: stream for k, stream in self._streams.items() if k[0] == "output"}


def _key(piece: _Piece) -> _Key:
    match piece:
        case ToolOutput(call_id=call_id):
            return "output", call_id
        case ToolCallDelta(index=index):
            return "arguments", index
    return type(piece).__name__, None


def _text(piece: _Piece) -> str:
    return piece.arguments if isinstance(piece, ToolCallDelta) else piece.text


def _with_text(piece: _Piece, text: str) -> _Piece:
    if isinstance(piece, ToolCallDelta):
        return replace(piece, arguments=text)
    return replace(piece, text=text)
