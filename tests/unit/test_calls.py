"""What becomes of the tool calls of a reply."""

import json
from typing import Any, Literal

import pytest

from oh_kernel.agents.calls import ERROR_CHARS, events_of_calls
from oh_kernel.events import (
    Action,
    ActionEvent,
    AgentErrorEvent,
    Event,
    Message,
    MessageToolCall,
    Observation,
    SecurityRisk,
    TextContent,
    ToolAnnotations,
)
from oh_kernel.llm.base import Completion
from oh_kernel.tools.base import Tool, ToolContext, ToolExecutor


class PaintAction(Action):
    colour: str
    size: float = 1.0
    layers: list[int] | None = None
    mode: Literal["fill", "line"] = "fill"


class PaintObservation(Observation):
    """Nothing of its own."""


class PaintExecutor(ToolExecutor[PaintAction, PaintObservation]):
    async def run(self, action: PaintAction, context: ToolContext) -> PaintObservation:
        return PaintObservation.from_text(action.colour)


class PaintTool(Tool):
    name = "terminal"  # so that names of other products lead here
    prose = "Paints."
    action = PaintAction
    observation = PaintObservation
    executor = PaintExecutor
    hints = ToolAnnotations()


def events(*raw: tuple[str, str], text: str = "") -> list[Event]:
    made = [
        MessageToolCall(id=f"c{i}", name=name, arguments=arguments, origin="completion")
        for i, (name, arguments) in enumerate(raw)
    ]
    content = [TextContent(text=text)] if text else []
    message = Message(role="assistant", content=content, tool_calls=made)
    completion = Completion(message=message, response_id="r", model="m")
    return events_of_calls(completion, {"terminal": PaintTool}, lambda wanted: wanted)


def one(arguments: dict[str, Any] | str, name: str = "terminal") -> ActionEvent:
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
    event = events((name, raw))[0]
    assert isinstance(event, ActionEvent)
    return event


def error(arguments: dict[str, Any] | str, name: str = "terminal") -> str:
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
    call, answer = events((name, raw))
    assert isinstance(call, ActionEvent) and call.action is None
    assert isinstance(answer, AgentErrorEvent) and answer.tool_call_id == call.tool_call_id
    return answer.error


def test_risk_and_summary_are_taken_out_of_the_arguments() -> None:
    event = one({"security_risk": "HIGH", "summary": "paint it red", "colour": "red"})
    assert event.action == PaintAction(colour="red")
    assert (event.security_risk, event.summary) == (SecurityRisk.HIGH, "paint it red")


@pytest.mark.parametrize("risk", ["high", "High", "HIGH"])
def test_risk_in_other_letters_counts(risk: str) -> None:
    assert one({"security_risk": risk, "colour": "x"}).security_risk is SecurityRisk.HIGH


def test_risk_that_is_no_risk_is_unknown() -> None:
    assert one({"security_risk": "meh", "colour": "x"}).security_risk is SecurityRisk.UNKNOWN


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"colour": "x", "layers": "[1, 2]"}, PaintAction(colour="x", layers=[1, 2])),
        ({"colour": "x", "size": "2.5"}, PaintAction(colour="x", size=2.5)),
        ({"colour": "[1, 2]"}, PaintAction(colour="[1, 2]")),
        ({"colour": '{"a": 1}'}, PaintAction(colour='{"a": 1}')),
        ({"colour": "x", "layers": None}, PaintAction(colour="x")),
        ('{"colour": "a\nb\tc"}', PaintAction(colour="a\nb\tc")),
    ],
)
def test_what_can_mean_one_thing_only_is_mended(
    given: dict[str, Any] | str, expected: PaintAction
) -> None:
    assert one(given).action == expected


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({}, "colour"),
        ({"colour": "x", "tint": 1}, "tint"),
        ({"colour": "x", "mode": "spray"}, "mode"),
        ("", "colour"),
        (" \n", "colour"),
        ('["x"]', "not an object"),
        ('{"colour": "x', "unparseable JSON"),
        ('{"colour": "' + "x" * 50_000, "unparseable JSON"),
    ],
)
def test_the_rest_is_answered_with_what_is_wrong(given: dict[str, Any] | str, named: str) -> None:
    text = error(given)
    assert named in text
    assert len(text) < ERROR_CHARS + 300


def test_unknown_tool_is_told_which_there_are() -> None:
    assert error({}, name="nosuch") == "Tool 'nosuch' not found. Available: ['terminal']"


def test_name_of_another_product_leads_to_our_tool() -> None:
    assert one({"colour": "x"}, name="execute_bash").tool_name == "terminal"


def test_thought_stands_once_with_the_first_call() -> None:
    raw = json.dumps({"colour": "x"})
    first, second = events(("terminal", raw), ("terminal", raw), text="let me")
    assert isinstance(first, ActionEvent) and isinstance(second, ActionEvent)
    assert [part.text for part in first.thought] == ["let me"]
    assert second.thought == []


def test_errors_stand_after_all_calls() -> None:
    kinds = [event.kind for event in events(("x", "{}"), ("terminal", '{"colour": "x"}'))]
    assert kinds == ["ActionEvent", "ActionEvent", "AgentErrorEvent"]


@pytest.mark.parametrize("size", ["NaN", "Infinity", "1e400", "[" * 100_000 + "]" * 100_000])
def test_what_is_no_json_for_others_is_an_error_and_no_crash(size: str) -> None:
    call, error = events(("terminal", f'{{"colour": "red", "size": {size}}}'))
    assert isinstance(call, ActionEvent) and call.action is None
    assert isinstance(error, AgentErrorEvent) and len(error.error) < 2 * ERROR_CHARS


@pytest.mark.parametrize(
    "arguments",
    [
        {"colour": "red", "k" * 5000: 1},
        {"colour": "red", **{f"{i}" * 30: 1 for i in range(500)}},
        "\x00" * 3000,
        "9" * 6000,
    ],
    ids=["long_name", "many_names", "control_characters", "long_number"],
)
def test_an_error_quotes_little_of_what_the_model_made_up(arguments: dict[str, Any] | str) -> None:
    assert len(error(arguments)) <= ERROR_CHARS + 200


def test_half_a_surrogate_pair_in_arguments_becomes_a_replacement_character() -> None:
    action = one('{"colour": "x\\ud83d \\ud83d\\ude00"}').action
    assert isinstance(action, PaintAction) and action.colour == "x\ufffd \U0001f600"
