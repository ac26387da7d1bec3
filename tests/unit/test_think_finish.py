"""The two tools that only speak, and answers in a given form."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, computed_field, model_validator

from oh_kernel.conversation.conversation import Conversation
from oh_kernel.errors import SettingsError
from oh_kernel.events import AgentErrorEvent, SystemPromptEvent, event_from_json
from oh_kernel.tools.finish import FinishAction, FinishExecutor, FinishTool
from oh_kernel.tools.response_schema import ResponseSchema
from oh_kernel.tools.think import ThinkAction, ThinkExecutor, ThinkTool
from tests.conversations import Scripted, call, calls, say


def test_think_answers_that_the_thought_is_logged(tmp_path: Path) -> None:
    answer = ThinkExecutor(workspace=tmp_path)(ThinkAction(thought="first the tests"))
    assert answer.text == "Your thought has been logged."
    assert not answer.is_error


def test_finish_gives_the_message_back(tmp_path: Path) -> None:
    answer = FinishExecutor(workspace=tmp_path)(FinishAction(message="All 3 tests pass."))
    assert answer.text == "All 3 tests pass."
    assert not answer.is_error


def test_both_are_read_only_and_ask_for_one_text() -> None:
    for tool, field in ((ThinkTool, "thought"), (FinishTool, "message")):
        parameters = tool.spec().parameters
        assert tool.hints.readOnlyHint
        assert parameters["required"] == [field]
        assert "security_risk" not in parameters["properties"]


# Answers in a given form


class Part(BaseModel):
    name: str
    weight: float = Field(default=1.0, gt=0)


class Report(BaseModel):
    """What the test asks for."""

    count: int = Field(description="How many there are.")
    parts: list[Part] = Field(default_factory=list)
    summary: str = ""

    @model_validator(mode="after")
    def _counted(self) -> "Report":
        if self.parts and len(self.parts) != self.count:
            raise ValueError("count is not the number of parts")
        return self


AS_JSON_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "count": {"type": "integer"},
        "parts": {"type": "array", "items": {"$ref": "#/$defs/part"}, "default": []},
    },
    "required": ["count"],
    "additionalProperties": False,
    "$defs": {"part": {"type": "object", "properties": {"name": {"type": "string"}}}},
}


def test_fields_of_the_form_stand_beside_the_message() -> None:
    spec = FinishTool.with_schema(Report).spec()
    assert list(spec.parameters["properties"]) == ["message", "count", "parts", "summary"]
    assert spec.parameters["required"] == ["message", "count"]
    assert spec.parameters["properties"]["parts"]["items"]["properties"]["name"]
    assert "answer as data" in spec.description
    assert FinishTool.spec().description in spec.description


def test_form_changes_nothing_of_the_tool_in_the_log() -> None:
    asked = FinishTool.with_schema(Report).define()
    assert (asked.kind, asked.title) == ("FinishTool", "finish")
    assert "structured_output" not in FinishAction(message="x").to_json()


@pytest.mark.parametrize("form", [Report, AS_JSON_SCHEMA], ids=["class", "json_schema"])
def test_answer_is_checked_and_stands_in_the_action(form: Any) -> None:
    action = FinishTool.with_schema(form).action_of({"message": "m", "count": 2})
    assert isinstance(action, FinishAction)
    assert action.structured_output is not None
    assert action.structured_output["count"] == 2 and action.structured_output["parts"] == []


@pytest.mark.parametrize("form", [Report, AS_JSON_SCHEMA], ids=["class", "json_schema"])
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"message": "m"}, "count"),
        ({"message": "m", "count": "many"}, "count"),
        ({"message": "m", "count": 1, "parts": [{"name": 5}]}, "name"),
        ({"count": 1}, "message"),
    ],
)
def test_what_is_amiss_is_named(form: Any, arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        FinishTool.with_schema(form).action_of(arguments)


@pytest.mark.parametrize(
    ("form", "named"),
    [
        ({"type": "object"}, "names no fields"),
        ({"properties": {"a": {"type": "colour"}}}, "no JSON schema"),
        ({"properties": {"message": {"type": "string"}}}, "'message'"),
        ({"properties": {"a": {"$ref": "https://example.org/x.json"}}}, "example.org"),
        ({"properties": {"a": {"$ref": "other.json"}}}, "other.json"),
        ({"properties": {"a": {}, "b": {"$ref": "#/properties/a"}}}, "not under \\$defs"),
        ({"properties": {"a": {"type": "string", "pattern": "("}}}, "no JSON schema"),
        ({"type": "array", "properties": {"a": {}}}, "names no fields"),
        (int, "int"),
        ("count", "count"),
    ],
)
def test_form_that_cannot_be_used_is_refused_at_once(form: Any, named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        FinishTool.with_schema(form)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


WRONG = call("finish", {"message": "done", "count": 1, "parts": ["a", "b"]}, id="wrong")
RIGHT = call(
    "finish", {"message": "done", "count": "2", "parts": '[{"name": "a"}, {"name": "b"}]'}, id="ok"
)


def test_answer_of_a_conversation_in_the_form_of_a_class(work: Path) -> None:
    """A wrong answer goes back to the model; what text can mean is read; a restart keeps it."""
    expected = Report(count=2, parts=[Part(name="a"), Part(name="b")])
    with Scripted(work, [calls(WRONG), calls(RIGHT)], response_schema=Report) as scripted:
        assert scripted.conversation.structured_output is None
        assert scripted.ask() == "finished"
        wrong = scripted.results["wrong"]
        assert isinstance(wrong, AgentErrorEvent)
        assert wrong.error.startswith("Error validating tool 'finish': parts.0")
        assert scripted.conversation.structured_output == expected
        assert scripted.conversation.answer == "done"
        stored = [event.to_json() for event in scripted.conversation.events]
        assert [event_from_json(text).to_json() for text in stored] == stored
        cid, store = scripted.conversation.id, scripted.conversation.settings.store_path
    with Conversation(
        work, conversation_id=cid, store_path=store, response_schema=Report
    ) as conversation:
        assert conversation.structured_output == expected
    with Conversation(work, conversation_id=cid, store_path=store) as conversation:
        assert conversation.structured_output == expected.model_dump()


def test_answer_of_a_conversation_in_the_form_of_a_json_schema(work: Path) -> None:
    with Scripted(work, [calls(RIGHT)], response_schema=AS_JSON_SCHEMA) as scripted:
        scripted.ask()
        output = scripted.conversation.structured_output
    assert output == {"count": 2, "parts": [{"name": "a"}, {"name": "b"}]}


def test_plain_answer_gives_no_data(work: Path) -> None:
    turns = [calls(RIGHT), say("no data")]
    with Scripted(work, turns, response_schema=Report) as scripted:
        scripted.ask()
        scripted.ask("again")
        assert scripted.conversation.structured_output is None


def test_tool_with_a_form_among_given_tools(work: Path) -> None:
    with Scripted(
        work, [calls(RIGHT)], tools=["think", FinishTool.with_schema(Report)]
    ) as scripted:
        scripted.ask()
        output = scripted.conversation.structured_output
        assert isinstance(output, dict) and output["count"] == 2
        prompts = [e for e in scripted.conversation.events if isinstance(e, SystemPromptEvent)]
        assert [tool.kind for tool in prompts[0].tools] == ["ThinkTool", "FinishTool"]


class Named(BaseModel):
    model_config = ConfigDict(extra="forbid")

    width: int = Field(validation_alias="w")

    @computed_field  # type: ignore[prop-decorator]  # mypy cannot; pydantic documents it so
    @property
    def doubled(self) -> int:
        return 2 * self.width


def test_class_with_other_names_and_computed_fields_is_read_back() -> None:
    form = ResponseSchema(Named)
    read = form.read(form.checked({"w": 2}))
    assert isinstance(read, Named) and (read.width, read.doubled) == (2, 4)


class MayBeNone(BaseModel):
    found: str | None


def test_null_is_an_answer_where_one_must_be_given(work: Path) -> None:
    answer = calls(call("finish", {"message": "none", "found": None}))
    with Scripted(work, [answer], response_schema=MayBeNone) as scripted:
        assert scripted.ask() == "finished"
        assert scripted.conversation.structured_output == MayBeNone(found=None)


def test_form_that_takes_anything(work: Path) -> None:
    answer = calls(call("finish", {"message": "m", "any": [1, None]}))
    with Scripted(work, [answer], response_schema={"properties": {"any": True}}) as scripted:
        assert scripted.ask() == "finished"
        assert scripted.conversation.structured_output == {"any": [1, None]}
