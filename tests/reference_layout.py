"""The recorded conversation of the reference in the folder layout in which it stores one."""

import json
import uuid
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parent / "fixtures" / "reference_conversation"
RECORDED_EVENTS: list[dict[str, Any]] = [
    json.loads(line) for line in (RECORDED / "events.jsonl").read_text("utf-8").splitlines()
]
RECORDED_STATE: dict[str, Any] = json.loads((RECORDED / "base_state.json").read_text("utf-8"))


def lay_out(
    parent: Path,
    events: list[dict[str, Any]] | None = None,
    state: dict[str, Any] | None = None,
) -> Path:
    """The folder of a conversation with these events, by default the recorded ones."""
    state = RECORDED_STATE if state is None else state
    folder = parent / uuid.UUID(RECORDED_STATE["id"]).hex
    (folder / "events").mkdir(parents=True)
    (folder / "base_state.json").write_text(json.dumps(state, indent=1), "utf-8")
    for number, event in enumerate(RECORDED_EVENTS if events is None else events):
        path = folder / "events" / f"event-{number:05d}-{event['id']}.json"
        path.write_text(json.dumps(event), "utf-8")
    return folder


def snapshot(folder: Path) -> dict[str, bytes]:
    """The content of every file below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def parsed(folder: Path) -> dict[str, Any]:
    """The JSON of every JSON file below a folder."""
    return {name: json.loads(data) for name, data in snapshot(folder).items() if "json" in name}
