"""How are secrets hidden in text, also in text that comes in pieces?"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable

from oh_kernel.sessions.encodings import HIDDEN, SHORTEST, forms_of

__all__ = ["HIDDEN", "SHORTEST", "Forms", "StreamMask", "forms_of"]

# What may stand within a value without being part of it: colours and other escape sequences (at
# the end of the text also the beginning of one), and the line ends of what was wrapped.
_NOISE = re.compile(
    r"\x1b\[[0-?]*[ -/]*(?:[@-~]|\Z)"
    r"|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\|\Z)"
    r"|\x1b\Z"
    r"|[\r\n]+[ \t]*"
)
# Where our tools leave out the middle of an output or the rest of a line. Half of a value may stand
# beside it.
_CUT = re.compile(
    r"\s*<response clipped>.*?</NOTE>\n?|\s?\[line cut: [^\]]*\] ?|\s\[\.\.\. cut[^\]]*\]\n"
    r"|\n\.\.\. \(cut\)",
    re.DOTALL,
)
_LINE_END = re.compile(r"[\r\n]")
# A shorter value is not looked for across the end of a line, where other words might make it up.
_WRAPPED_MIN_CHARS = 12
_KEY_CHARS = 3


class Forms:
    """All that is to be hidden, in each of its forms. Never changes, so any thread may use it.

    >>> Forms(["hunter22"]).hide("aHVudGVyMjI= is hunter\\x1b[1m22")
    '<secret-hidden> is <secret-hidden>'
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        found = {form for value in values for form in forms_of(value)}
        # Whether a form may go over the end of a line, by the form without such.
        self._forms = {
            plain: len(plain) >= _WRAPPED_MIN_CHARS or plain != form
            for form in found
            if len(plain := _NOISE.sub("", form)) >= SHORTEST
        }
        self._longest = max(map(len, self._forms), default=0)
        self._by_beginning: dict[str, list[str]] = defaultdict(list)
        for form in self._forms:
            for count in range(1, _KEY_CHARS + 1):
                self._by_beginning[form[:count]].append(form)

    def __bool__(self) -> bool:
        return bool(self._forms)

    def found_in(self, text: str) -> bool:
        """Whether any of it is in `text`."""
        return bool(self.spans(text) or self._halves(text))

    def hide(self, text: str) -> str:
        """`text` with `<secret-hidden>` in place of all that is to be hidden."""
        spans = self.spans(text)
        if halves := self._halves(text):
            spans = _merged([*spans, *halves])
        return _without(text, spans, len(text))

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where in `text` something is to be hidden, from where to where; none overlap."""
        plain = _without_noise(text)
        hits = [form for form in self._forms if form in plain]
        if not hits:
            return []
        places = _Places(text)
        found = [
            span
            for form in hits
            for span in places.spans(_all_of(form, plain), len(form))
            if self._forms[form] or not _LINE_END.search(text, *span)
        ]
        return _merged(found)

    def _halves(self, text: str) -> list[tuple[int, int]]:
        """Where only the beginning or the end of something is left, beside a cut."""
        if "clipped>" not in text and "cut" not in text:
            return []
        found = []
        for cut in _CUT.finditer(text):
            before = text[max(0, cut.start() - 2 * self._longest) : cut.start()]
            left = len(before) - self.beginning(before)
            found.append((cut.start() - left, cut.start()))
            found.append((cut.end(), cut.end() + self._end_at(text[cut.end() :])))
        return [(start, end) for start, end in found if end - start >= SHORTEST]

    def _end_at(self, text: str) -> int:
        """How much of the beginning of `text` may be the end of something."""
        first = text[:SHORTEST]
        ends = [form[at:] for form in self._forms for at in _all_of(first, form)]
        return max((len(end) for end in ends if text.startswith(end)), default=0)

    def beginning(self, text: str) -> int:
        """Where the end of `text` may be the beginning of something; its length if it is not."""
        places = _Places(text)
        plain = places.plain
        for at in range(max(0, len(plain) - self._longest + 1), len(plain)):
            forms = self._by_beginning.get(plain[at : at + _KEY_CHARS])
            if forms and any(form.startswith(plain[at:]) for form in forms):
                return places.of(at)
        return len(text)


class StreamMask:
    """Hides the forms of secrets, those that pieces cut in two as well.

    What may be the beginning of one is held back until more has come.

        >>> mask = StreamMask(["hunter22"])
        >>> mask.feed("password: hun"), mask.feed("ter22, hun"), mask.flush()
        ('password: ', '<secret-hidden>, ', 'hun')
    """

    def __init__(self, values: Iterable[str] | Forms = ()) -> None:
        self.forms = values if isinstance(values, Forms) else Forms(values)
        self._held = ""

    def feed(self, text: str) -> str:
        """The text that is certain once `text` has come in."""
        if not self.forms:
            return text
        text = self._held + text
        spans = self.forms.spans(text)
        cut = self.forms.beginning(text)
        # One that the cut goes through may turn out to be longer.
        cut = min([cut, *(start for start, end in spans if start < cut < end)])
        self._held = text[cut:]
        return _without(text, [span for span in spans if span[1] <= cut], cut)

    def flush(self) -> str:
        """What was held back, now that nothing follows."""
        held, self._held = self._held, ""
        return self.forms.hide(held) if held else ""


class _Places:
    """A text without noise, and where its characters stood in it."""

    def __init__(self, text: str) -> None:
        pieces, self._plain_starts, self._starts = [], [0], [0]
        at = length = 0
        for noise in _NOISE.finditer(text) if _may_have_noise(text) else ():
            pieces.append(text[at : noise.start()])
            length += noise.start() - at
            at = noise.end()
            self._plain_starts.append(length)
            self._starts.append(at)
        self.plain = "".join([*pieces, text[at:]])

    def of(self, position: int) -> int:
        """Where the character stood that is now at `position`."""
        piece = bisect_right(self._plain_starts, position) - 1
        return self._starts[piece] + position - self._plain_starts[piece]

    def spans(self, positions: Iterable[int], length: int) -> Iterable[tuple[int, int]]:
        return ((self.of(at), self.of(at + length - 1) + 1) for at in positions)


def _without_noise(text: str) -> str:
    if "\x1b" in text:
        return _NOISE.sub("", text)
    # The same, many times as fast.
    first, *others = text.replace("\r", "\n").split("\n")
    return first + "".join([line.lstrip(" \t") for line in others]) if others else text


def _may_have_noise(text: str) -> bool:
    return "\n" in text or "\x1b" in text or "\r" in text


def _all_of(form: str, text: str) -> Iterable[int]:
    at = text.find(form)
    while at >= 0:
        yield at
        at = text.find(form, at + 1)


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _without(text: str, spans: list[tuple[int, int]], end: int) -> str:
    """`text` up to `end`, with each span hidden."""
    done, at = [], 0
    for start, stop in spans:
        done += [text[at:start], HIDDEN]
        at = stop
    return "".join([*done, text[at:end]])
