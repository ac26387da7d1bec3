"""The JSON schema of a tool as a model gets it."""

import json
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from oh_kernel.tools.presets import ALL_TOOLS, tool_named
from oh_kernel.tools.schema import parameters, schema_of


class Leaf(BaseModel):
    name: str
    kind: str = "leaf"


class Tree(BaseModel):
    """A thing that holds things of its own kind."""

    kind: Literal["Tree"] = "Tree"
    title: str
    leaf: Leaf | None = None
    branches: list["Tree"] = Field(default_factory=list)
    size: int | None = Field(default=None, ge=1, description="How big.")
    counts: dict[str, int] = Field(default_factory=dict)


def of(model: type[BaseModel], *, asks_risk: bool = True) -> dict[str, Any]:
    return parameters(schema_of(model), asks_risk=asks_risk)


def test_risk_and_summary_stand_first_and_are_not_required() -> None:
    schema = of(Tree)
    assert list(schema["properties"])[:2] == ["security_risk", "summary"]
    assert schema["required"] == ["title"]
    assert "security_risk" not in of(Tree, asks_risk=False)["properties"]


def test_summary_of_its_own_is_kept() -> None:
    class Report(BaseModel):
        summary: int

    assert of(Report)["properties"]["summary"] == {"type": "integer"}
    assert of(Report)["required"] == ["summary"]


def test_own_kind_is_left_out_and_a_field_called_like_a_keyword_is_kept() -> None:
    fields = of(Tree)["properties"]
    assert "kind" not in fields
    assert fields["title"] == {"type": "string"}
    assert list(fields["leaf"]["properties"]) == ["name", "kind"]


def test_references_are_inlined_and_circles_end_as_objects() -> None:
    fields = of(Tree)["properties"]
    inner = fields["branches"]["items"]
    assert inner["properties"]["title"] == {"type": "string"}
    assert inner["properties"]["branches"]["items"] == {"type": "object"}
    assert "$" not in json.dumps(of(Tree))


def test_union_with_null_is_the_other_branch() -> None:
    assert of(Tree)["properties"]["size"] == {
        "type": "integer",
        "minimum": 1,
        "description": "How big.",
    }


def test_values_of_free_objects_keep_their_type() -> None:
    assert of(Tree)["properties"]["counts"]["additionalProperties"] == {"type": "integer"}


@pytest.mark.parametrize("name", ALL_TOOLS)
def test_schema_of_each_tool_is_one_that_every_provider_takes(name: str) -> None:
    tool = tool_named(name)
    schema = tool.spec().parameters
    text = json.dumps(schema)
    assert not [word for word in ('"$ref"', '"anyOf"', '"title": "', '"null"') if word in text]
    assert set(schema["required"]) <= set(schema["properties"])
    assert ("security_risk" in schema["properties"]) is not tool.hints.readOnlyHint
    assert "kind" not in schema["properties"]


@pytest.mark.parametrize("name", ALL_TOOLS)
def test_each_tool_has_the_name_and_the_module_of_the_table(name: str) -> None:
    tool = tool_named(name)
    assert tool.name == name
    assert tool.__module__ == f"oh_kernel.tools.{name}"
    stem = ALL_TOOLS[name].removesuffix("Tool")
    assert tool.action.__name__ == f"{stem}Action"
    assert tool.observation.__name__ == f"{stem}Observation"
    assert tool.executor.__name__ == f"{stem}Executor"
