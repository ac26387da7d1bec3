"""What does a folder or a file of events hold that another program wrote?

Nothing in it is changed. An event that cannot be read is left out and named; the others keep the
numbers that their files have.

    <conversation id, hex>/base_state.json
                          /events/event-00000-<event id>.json
                          /observations/...
"""

import contextlib
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from oh_kernel.errors import StoreError
from oh_kernel.events import UnknownEvent
from oh_kernel.events.text import parsed_json

STATE, EVENTS, OBSERVATIONS = "base_state.json", "events", "observations"
EVENT_NAME = re.compile(r"event-(\d{5,9})-([0-9a-fA-F-]{8,})\.json")
_EXPECTED = {STATE, EVENTS, OBSERVATIONS, "meta.json"}
_OTHERS_LOCKS = {".eventlog.lock", "owner_lease.json", ".owner_lease.lock"}


class LeftOut(NamedTuple):
    """Something that was not taken over, and why. `path` is None for a line of a file."""

    name: str
    reason: str
    path: Path | None = None
    is_damaged: bool = False


class Numbered(NamedTuple):
    """An event as the text it came in, and the index it has."""

    number: int
    event: UnknownEvent


@dataclass
class Layout:
    """A conversation as another program left it."""

    conversation_id: str | None = None
    state: dict[str, Any] = field(default_factory=dict)
    title: str = ""
    events: list[Numbered] = field(default_factory=list)
    next_index: int = 0
    left_out: list[LeftOut] = field(default_factory=list)
    outputs: list[Path] = field(default_factory=list)


def read_folder(folder: Path) -> Layout:
    """The conversation in a folder of the layout above; raises StoreError when there is none."""
    if not (folder / EVENTS).is_dir():
        raise StoreError(
            f"{folder} holds no conversation: it has no folder named {EVENTS}.",
            remedy="Name the folder that has base_state.json and events in it.",
        )
    layout = Layout()
    _read_state(folder, layout)
    layout.conversation_id = _uuid(layout.state.get("id")) or _uuid(folder.resolve().name)
    _read_events(folder / EVENTS, layout)
    layout.outputs = [path for path in _files_in(folder / OBSERVATIONS) if _is_plain(path)]
    for path in _files_in(folder):
        if path.name not in _EXPECTED | _OTHERS_LOCKS:
            layout.left_out.append(LeftOut(path.name, "is no part of the log", path))
    return layout


def read_lines(file: Path) -> Layout:
    """The conversation in a file with the JSON of one event a line."""
    layout = Layout()
    with told(file):
        lines = file.read_bytes().splitlines()
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            layout.events.append(Numbered(number, event_in(line)))
        except ValueError as error:
            layout.left_out.append(LeftOut(f"line {number + 1}", str(error), is_damaged=True))
    _keep_first_of_each(layout)
    layout.next_index = len(lines)
    return layout


def event_in(data: bytes) -> UnknownEvent:
    """The event with this JSON, its text untouched; ValueError says what is wrong with it.

    Line breaks between its parts become spaces: an event is one line.
    """
    if not data.strip(b" \t\r\n\0"):
        raise ValueError("is empty")
    try:
        text = data.decode("utf-8-sig").strip()
        parsed = parsed_json(text)
    except ValueError as error:
        raise ValueError("is not whole or was never JSON") from error
    if not isinstance(parsed, dict) or not all(
        isinstance(parsed.get(name), str) and parsed[name] for name in ("id", "kind")
    ):
        raise ValueError("is JSON but no event: it has no id or no kind")
    return UnknownEvent.from_text(re.sub(r"\s*[\r\n]\s*", " ", text), parsed)


def _read_state(folder: Path, layout: Layout) -> None:
    for name in (STATE, "meta.json"):
        path = folder / name
        if not path.exists():
            continue
        try:
            data = parsed_json(path.read_text("utf-8"))
        except (ValueError, OSError):
            data = None
        if not isinstance(data, dict):
            reason = "is not whole or was never JSON"
            layout.left_out.append(LeftOut(name, reason, path, is_damaged=True))
        elif name == STATE:
            layout.state = data
        else:
            layout.title = str(data.get("title") or "")


def _read_events(folder: Path, layout: Layout) -> None:
    for path in _files_in(folder):
        name = EVENT_NAME.fullmatch(path.name)
        if name is None or not _is_plain(path):
            if path.name not in _OTHERS_LOCKS:
                layout.left_out.append(LeftOut(path.name, "is no event", path))
            continue
        layout.next_index = max(layout.next_index, int(name[1]) + 1)
        try:
            layout.events.append(Numbered(int(name[1]), event_in(path.read_bytes())))
        except (ValueError, OSError) as error:
            reason = str(error) if isinstance(error, ValueError) else f"{error.strerror}"
            layout.left_out.append(LeftOut(path.name, reason, path, is_damaged=True))
    _keep_first_of_each(layout)
    _part_equal_numbers(layout)


def _keep_first_of_each(layout: Layout) -> None:
    """Of several events with one id the first stays."""
    layout.events.sort(key=lambda one: (one.number, one.event.timestamp, one.event.id))
    seen: dict[str, int] = {}
    kept = []
    for one in layout.events:
        if one.event.id in seen:
            reason = f"has the id of event {seen[one.event.id]}"
            layout.left_out.append(LeftOut(f"event {one.number}", reason))
            continue
        seen[one.event.id] = one.number
        kept.append(one)
    layout.events = kept


def _part_equal_numbers(layout: Layout) -> None:
    """Where two writers used a number twice, all are numbered again, in the same order."""
    numbers = [one.number for one in layout.events]
    if len(set(numbers)) == len(numbers):
        return
    layout.events = [Numbered(n, one.event) for n, one in enumerate(layout.events)]
    layout.next_index = len(layout.events)
    layout.left_out.append(
        LeftOut("the numbers of the events", "were used twice; the events were numbered again")
    )


@contextlib.contextmanager
def told(path: Path) -> Iterator[None]:
    """Have an error of the disk say which file it was about."""
    try:
        yield
    except OSError as error:
        where = error.filename or path
        raise StoreError(
            f"{where} cannot be read or written: {error.strerror}.",
            remedy="Check its rights and the disk, or name another place.",
        ) from error


def _files_in(folder: Path) -> list[Path]:
    with told(folder):
        return sorted(folder.iterdir()) if folder.is_dir() else []


def _is_plain(path: Path) -> bool:
    """Whether it is a file and no link, which could lead anywhere."""
    return path.is_file() and not path.is_symlink()


def _uuid(value: object) -> str | None:
    """The id in its usual spelling, if it is one: nothing else may name files."""
    try:
        return str(uuid.UUID(value)) if isinstance(value, str) else None
    except ValueError:
        return None
