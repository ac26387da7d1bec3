"""The events equal those of the agent-server API in names, types, enums, defaults and requireds."""

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from oh_kernel import events
from oh_kernel.events import kinds
from oh_kernel.events.base import Wire
from oh_kernel.tools.presets import ALL_TOOLS

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
NESTED_OF_TOOLS = {
    "CmdOutputMetadata": "terminal",
    "FileEntry": "list_directory",
    "TaskItem": "task_tracker",
}
MODULE_OF = NESTED_OF_TOOLS | {
    f"{cls.removesuffix('Tool')}{part}": name
    for name, cls in ALL_TOOLS.items()
    for part in ("Action", "Observation", "Tool")
}
OF_TOOLS = [name for name in MODULE_OF if name in SCHEMAS]
# Tools that are ours, or that the version of the schema does not have yet.
BEYOND = ("ipython", "notebook_editor", "apply_patch")
NOT_HERE = ("Browser", "MCP")
# Fields of ours in types of the API; each stands in docs/differences.md.
ADDED = {"GrepAction": {"case_sensitive", "output", "context"}}
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


def of_tool(name: str) -> type[Wire]:
    model: type[Wire] = getattr(importlib.import_module(f"oh_kernel.tools.{MODULE_OF[name]}"), name)
    return model


@pytest.mark.parametrize("name", OF_TOOLS)
def test_tool_type_equals_the_api(name: str) -> None:
    schema = ours(of_tool(name))
    added = ADDED.get(name, set())
    assert added.isdisjoint(schema.get("required", []))
    schema["properties"] = {k: v for k, v in schema["properties"].items() if k not in added}
    assert schema == plain(SCHEMAS[name])


def sample(node: dict[str, Any]) -> Any:
    """Some value that the API's schema allows, with every field."""
    if "$ref" in node:
        return sample(SCHEMAS[node["$ref"].rsplit("/", 1)[-1]])
    if branches := node.get("anyOf") or node.get("oneOf"):
        return sample(branches[0])
    if "const" in node or "enum" in node:
        return node.get("const") or node["enum"][-1]
    match node["type"]:
        case "object":
            return {name: sample(field) for name, field in node.get("properties", {}).items()}
        case "array" if "prefixItems" in node:
            return [sample(item) for item in node["prefixItems"]]
        case "array":
            return [sample(node["items"])] * node.get("minItems", 1)
        case "string" if node.get("format") == "date-time":
            return "2026-01-31T14:20:59.214815"
        case kind:
            return {"string": "text", "integer": 1, "number": 1.5, "boolean": True}[kind]


@pytest.mark.parametrize("name", [name for name in OF_TOOLS if name.endswith("Observation")])
def test_event_that_others_wrote_of_a_tool_is_read_and_written_alike(name: str) -> None:
    event = sample(SCHEMAS["ObservationEvent"]) | {"observation": sample(SCHEMAS[name])}
    read = events.event_from_json(json.dumps(event))
    assert isinstance(read, events.ObservationEvent)
    assert type(read.observation) is of_tool(name)
    assert json.loads(read.to_json()) == event


@pytest.mark.parametrize("name", [name for name in OF_TOOLS if name.endswith("Action")])
def test_call_that_others_wrote_of_a_tool_is_read_and_written_alike(name: str) -> None:
    fields = {"thinking_blocks": [], "critic_result": None, "action": sample(SCHEMAS[name])}
    event = {k: v for k, v in (sample(SCHEMAS["ActionEvent"]) | fields).items() if v is not None}
    read = events.event_from_json(json.dumps(event))
    assert isinstance(read, events.ActionEvent)
    assert type(read.action) is of_tool(name)
    assert json.loads(read.to_json()) == event


def test_hints_and_risks_equal_the_api() -> None:
    hints = SCHEMAS["openhands__sdk__tool__tool__ToolAnnotations"]
    assert ours(events.ToolAnnotations) == plain(hints)
    assert list(events.SecurityRisk) == SCHEMAS["SecurityRisk"]["enum"]


def test_every_event_of_the_api_is_compared(capsys: pytest.CaptureFixture[str]) -> None:
    of_the_api = {ref["$ref"].rsplit("/", 1)[-1] for ref in SCHEMAS["Event"]["oneOf"]}
    assert of_the_api == set(EVENTS)
    with capsys.disabled():
        compared = f"{len(EVENTS)} events, {len(NESTED) + 2} nested types, {len(OF_TOOLS)} of tools"
        print(f"\ncompared {compared}")


def test_every_tool_of_the_api_is_compared_but_those_that_are_not_here() -> None:
    families = ("Action", "Observation", "Tool")
    of_the_api = {
        name
        for name in SCHEMAS
        if name.endswith(families) and name not in families and name not in EVENTS
        if not name.startswith((*NOT_HERE, "mcp"))
    }
    assert of_the_api - set(EVENTS) == set(OF_TOOLS) - set(NESTED_OF_TOOLS)
    assert {MODULE_OF[name] for name in OF_TOOLS} == set(ALL_TOOLS) - set(BEYOND)
