"""The events equal those of the agent-server API in names, types, enums, defaults and requireds."""

import json
from pathlib import Path
from typing import Any

import pytest

from oh_kernel import events
from oh_kernel.events import kinds
from oh_kernel.events.base import Wire
from oh_kernel.tools import (
    edit,
    file_editor,
    finish,
    list_directory,
    planning_file_editor,
    read_file,
    terminal,
    think,
    write_file,
)

SCHEMAS: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "fixtures/events.schema.json").read_text("utf-8")
)["components"]["schemas"]

EVENTS = (
    "ActionEvent",
    "AgentErrorEvent",
    "Condensation",
    "CondensationRequest",
    "CondensationSummaryEvent",
    "ConversationErrorEvent",
    "ConversationStateUpdateEvent",
    "LLMCompletionLogEvent",
    "MessageEvent",
    "ObservationEvent",
    "PauseEvent",
    "SystemPromptEvent",
    "TokenEvent",
    "UserRejectObservation",
)
NESTED = (
    "CriticResult",
    "ImageContent",
    "Message",
    "MessageToolCall",
    "ReasoningItemModel",
    "RedactedThinkingBlock",
    "TextContent",
    "ThinkingBlock",
)
TOOLS = {
    terminal: ("TerminalAction", "TerminalObservation", "TerminalTool", "CmdOutputMetadata"),
    file_editor: ("FileEditorAction", "FileEditorObservation", "FileEditorTool"),
    read_file: ("ReadFileAction", "ReadFileObservation", "ReadFileTool"),
    write_file: ("WriteFileAction", "WriteFileObservation", "WriteFileTool"),
    edit: ("EditAction", "EditObservation", "EditTool"),
    list_directory: (
        *("ListDirectoryAction", "ListDirectoryObservation", "ListDirectoryTool"),
        "FileEntry",
    ),
    planning_file_editor: (
        *("PlanningFileEditorAction", "PlanningFileEditorObservation"),
        "PlanningFileEditorTool",
    ),
    think: ("ThinkAction", "ThinkObservation", "ThinkTool"),
    finish: ("FinishAction", "FinishObservation", "FinishTool"),
}
IGNORED = ("additionalProperties", "title", "description", "readOnly", "discriminator", "format")


def plain(node: Any) -> Any:
    """A schema without what the comparison leaves out, its unions in one order."""
    if isinstance(node, list):
        return [plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return {"$ref": node["$ref"].rsplit("/", 1)[-1].split("__")[-1]}
    kept = {k: plain_member(k, v) for k, v in node.items() if k not in IGNORED}
    if kept.get("default", ...) in (None, []):
        kept.pop("default")
    branches = kept.pop("oneOf", None) or kept.pop("anyOf", None)
    if branches:
        kept["anyOf"] = sorted(branches, key=json.dumps)
    return kept


def plain_member(key: str, value: Any) -> Any:
    if key == "properties":
        return {name: plain(item) for name, item in value.items()}
    return sorted(value) if key == "required" else plain(value)


def ours(model: type[Wire]) -> dict[str, Any]:
    """Our schema of `model`, its families of kinds named as the API names them."""
    schema = model.model_json_schema(mode="serialization")
    schema.pop("$defs", None)
    return plain(schema)


@pytest.mark.parametrize("name", EVENTS)
def test_event_equals_the_api(name: str) -> None:
    assert ours(getattr(kinds, name)) == plain(SCHEMAS[name])


@pytest.mark.parametrize("name", NESTED)
def test_nested_type_equals_the_api(name: str) -> None:
    model = kinds.CriticResult if name == "CriticResult" else getattr(events, name)
    assert ours(model) == plain(SCHEMAS[name])


@pytest.mark.parametrize("name", [name for names in TOOLS.values() for name in names])
def test_tool_type_equals_the_api(name: str) -> None:
    module = next(module for module, names in TOOLS.items() if name in names)
    assert ours(getattr(module, name)) == plain(SCHEMAS[name])


def test_hints_and_risks_equal_the_api() -> None:
    hints = SCHEMAS["openhands__sdk__tool__tool__ToolAnnotations"]
    assert ours(events.ToolAnnotations) == plain(hints)
    assert list(events.SecurityRisk) == SCHEMAS["SecurityRisk"]["enum"]


def test_every_event_of_the_api_is_compared(capsys: pytest.CaptureFixture[str]) -> None:
    of_the_api = {ref["$ref"].rsplit("/", 1)[-1] for ref in SCHEMAS["Event"]["oneOf"]}
    assert of_the_api == set(EVENTS)
    tools = sum(len(names) for names in TOOLS.values())
    with capsys.disabled():
        print(f"\ncompared {len(EVENTS)} events, {len(NESTED) + 2} nested types, {tools} of tools")
