"""What stands in `base_state.json` beside the events, for a program that reads that layout?

For a conversation that came from there it is what came, brought up to date; for another, the least
that such a program opens. No secret is in it.
"""

import json
import re
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from oh_kernel.store.conversations import ConversationInfo

HIDDEN = "**********"
KEPT_AS = "base_state"  # in the conversation's meta: its text, since merging would drop nulls

_SECRET = re.compile(r"(^|_)(api_?key|key|secret|token|password|authorization|credentials?)$", re.I)
_ALL_SECRET = {"env", "headers", "secret_sources", "extra_headers"}
_TOOLS = ("terminal", "file_editor", "task_tracker", "glob", "grep", "apply_patch")


def without_secrets(value: Any, *, inside: bool = False) -> Any:
    """`value` with each text hidden that has a secret's name, or stands among nothing but such.

    >>> without_secrets({"api_key": "sk-1", "headers": {"a": "b"}, "model": "m"})
    {'api_key': '**********', 'headers': {'a': '**********'}, 'model': 'm'}
    """
    match value:
        case dict():
            return {name: _hidden(name, inner, inside) for name, inner in value.items()}
        case list():
            return [without_secrets(inner, inside=inside) for inner in value]
        case str() if inside:
            return HIDDEN
        case _:
            return value


def state_of(
    info: ConversationInfo, folder: Path, tools: Sequence[str], last_user_message_id: str | None
) -> str:
    """The text of base_state.json for a conversation that is written to `folder`."""
    came = info.meta.get(KEPT_AS)
    state = json.loads(came) if isinstance(came, str) else _made(info, folder, tools)
    if info.status:
        state["execution_status"] = info.status
    if last_user_message_id:
        state["last_user_message_id"] = last_user_message_id
    return json.dumps(state, ensure_ascii=False)


def _hidden(name: str, value: Any, inside: bool) -> Any:
    if isinstance(value, str) and _SECRET.search(name):
        return HIDDEN
    return without_secrets(value, inside=name != "kind" and (inside or name in _ALL_SECRET))


def _made(info: ConversationInfo, folder: Path, tools: Sequence[str]) -> dict[str, Any]:
    model = (info.model or "unknown").replace(":", "/", 1)
    return {
        "id": str(uuid.UUID(hex=folder.name)),
        "agent": {
            "kind": "Agent",
            "llm": {"model": model, "usage_id": "agent"},
            "tools": [{"name": name, "params": {}} for name in _TOOLS if name in tools],
        },
        "workspace": {"working_dir": info.workspace or ".", "kind": "LocalWorkspace"},
        "persistence_dir": str(folder),
        "max_iterations": 500,
        "stuck_detection": True,
        "execution_status": "idle",
        "confirmation_policy": {"kind": "AlwaysConfirm"},
        "activated_knowledge_skills": [],
        "blocked_actions": {},
        "blocked_messages": {},
        "stats": {"usage_to_metrics": {}},
        "secret_registry": {"secret_sources": {}},
        "agent_state": {},
    }
