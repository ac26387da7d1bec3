"""How does a conversation come from another program's files, and go there, without loss?

The source of an import is never changed. What of it is damaged is copied to the conversation's
outputs under its old name, so that it is kept where this log is. An export is written beside its
place and moved there when it is whole; nothing that is there already is written over.
"""

import hashlib
import json
import os
import re
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path

from oh_kernel.errors import StoreError
from oh_kernel.events import new_id
from oh_kernel.store.base_state import KEPT_AS, state_of, without_secrets
from oh_kernel.store.conversations import ConversationInfo
from oh_kernel.store.layout import (
    EVENTS,
    OBSERVATIONS,
    STATE,
    Layout,
    LeftOut,
    read_folder,
    read_lines,
    told,
)
from oh_kernel.store.sqlite import EventStore

_FILE_ID = re.compile(r"[0-9a-fA-F-]{8,}")


@dataclass(frozen=True)
class ImportReport:
    """What was taken over, what was not, and where the damaged files are kept."""

    conversation_id: str
    events: int
    events_lost: int
    left_out: tuple[LeftOut, ...]
    put_aside: Path | None = None

    def __str__(self) -> str:
        lines = [f"{self.events} events taken over as conversation {self.conversation_id}."]
        if self.events_lost:
            lost = "1 event is" if self.events_lost == 1 else f"{self.events_lost} events are"
            lines.append(f"{lost} missing or cannot be read.")
        lines += [f"Left out: {one.name} {one.reason}." for one in self.left_out]
        if self.put_aside:
            lines.append(f"What is damaged is kept in {self.put_aside}.")
        return "\n".join(lines)


def import_conversation(store: EventStore, path: Path) -> ImportReport:
    """Take over the conversation in a folder of the reference's layout or a file of JSON lines.

    All of it or nothing. Raises StoreError when there is none or it is stored already.
    """
    if not path.exists():
        raise StoreError(f"{path} does not exist.", remedy="Name a folder or a .jsonl file.")
    layout = read_folder(path) if path.is_dir() else read_lines(path)
    if not layout.events:
        raise StoreError(
            f"{path} holds no event that can be read.", remedy="Name a folder or a .jsonl file."
        )
    conversation_id = layout.conversation_id or new_id()
    store.restore(
        conversation_id,
        layout.events,
        layout.next_index,
        columns=_columns(layout),
        meta={KEPT_AS: _state(layout)} if layout.state else {},
    )
    put_aside = _keep_files(store.outputs_of(conversation_id), layout)
    return ImportReport(
        conversation_id,
        len(layout.events),
        layout.next_index - len(layout.events),
        tuple(layout.left_out),
        put_aside,
    )


def export_folder(store: EventStore, info: ConversationInfo, parent: Path) -> Path:
    """Write a conversation into a new folder in `parent`, named by its id; gives the folder."""
    name = _hex(info.id)
    folder, partial = parent / name, parent / f".{name}.partial-{os.getpid()}"
    with told(parent):
        if folder.exists():
            raise StoreError(f"{folder} exists already.", remedy="Name another folder with -o.")
        parent.mkdir(parents=True, exist_ok=True)
        partial.mkdir(mode=0o700)
        try:
            _write(store, info, partial, folder)
            partial.rename(folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return folder


def _columns(layout: Layout) -> dict[str, str | None]:
    workspace = layout.state.get("workspace")
    folder = workspace.get("working_dir") if isinstance(workspace, dict) else None
    return {
        "title": layout.title or None,
        "workspace": folder if isinstance(folder, str) else None,
        "status": str(layout.state.get("execution_status") or "idle"),
    }


def _state(layout: Layout) -> str:
    return json.dumps(without_secrets(layout.state), ensure_ascii=False)


def _keep_files(outputs: Path, layout: Layout) -> Path | None:
    """Copy long outputs and, apart from them, what is damaged."""
    damaged = [one.path for one in layout.left_out if one.is_damaged and one.path]
    for files, folder in ((layout.outputs, outputs), (damaged, outputs / "damaged")):
        for file in files:
            with told(file):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                shutil.copyfile(file, folder / file.name)
    return outputs / "damaged" if damaged else None


def _write(store: EventStore, info: ConversationInfo, partial: Path, final: Path) -> None:
    (partial / EVENTS).mkdir(mode=0o700)
    tools: set[str] = set()
    last_message = None
    for index, text in store.iterate_numbered(info.id):
        event = json.loads(text)
        if event.get("kind") == "ActionEvent":
            tools.add(str(event.get("tool_name")))
        if event.get("kind") == "MessageEvent" and event.get("source") == "user":
            last_message = str(event["id"])
        _new_file(partial / EVENTS / _event_name(index, str(event.get("id"))), text)
    _new_file(partial / STATE, state_of(info, final, sorted(tools), last_message))
    outputs = store.outputs_of(info.id)
    for file in sorted(outputs.iterdir()) if outputs.is_dir() else []:
        if file.is_file() and not file.is_symlink():
            (partial / OBSERVATIONS).mkdir(mode=0o700, exist_ok=True)
            shutil.copyfile(file, partial / OBSERVATIONS / file.name)


def _event_name(index: int, event_id: str) -> str:
    """The name of an event's file. An id that could lead elsewhere gives way to its hash."""
    safe = event_id if _FILE_ID.fullmatch(event_id) else _digest(event_id)
    return f"event-{index:05d}-{safe}.json"


def _hex(conversation_id: str) -> str:
    """The folder's name: the id without dashes; of one that is no UUID, its hash."""
    try:
        return uuid.UUID(conversation_id).hex
    except ValueError:
        return _digest(conversation_id)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _new_file(path: Path, text: str) -> None:
    with path.open("x", encoding="utf-8", newline="") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(text)
