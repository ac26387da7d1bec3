"""Which JSON schema does a model get for an action?

Providers differ in what they accept, so references are inlined, unions with null become the other
branch, and titles and the discriminator `kind` are left out. `security_risk` and `summary` are
asked for with every call and stand first, where a reply that is cut off still has them.
"""

from functools import cache
from typing import Any

from pydantic import BaseModel

# What the words mean stands once, in the system prompt; repeated here, each call would pay for it.
SECURITY_RISK = {"type": "string", "enum": ["LOW", "MEDIUM", "HIGH"]}
SUMMARY = {"type": "string", "description": "What this call does, in about 10 words."}


def parameters(arguments: dict[str, Any], *, asks_risk: bool) -> dict[str, Any]:
    """The JSON schema `arguments` of an action in the form that every provider takes."""
    flat = _flat(arguments, definitions_of(arguments), ())
    fields = {name: value for name, value in flat["properties"].items() if name != "kind"}
    extra: dict[str, Any] = {"security_risk": SECURITY_RISK} if asks_risk else {}
    if "summary" not in fields:
        extra["summary"] = SUMMARY
    return {
        "type": "object",
        "properties": {**extra, **fields},
        "required": [name for name in flat.get("required", []) if name != "kind"],
    }


@cache
def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of `model` with its fields at the root, also if it contains itself.

    Made once, since each call of a tool is read by it; not to be changed.
    """
    schema = model.model_json_schema()
    if "$ref" not in schema:
        return schema
    definitions = schema["$defs"]
    root: dict[str, Any] = definitions[schema["$ref"].rsplit("/", 1)[-1]]
    return {**root, "$defs": definitions}


def definitions_of(schema: dict[str, Any]) -> dict[str, Any]:
    """What references in `schema` may name, under its newer and its older key."""
    return {**schema.get("definitions", {}), **schema.get("$defs", {})}


def _flat(node: Any, definitions: dict[str, Any], seen: tuple[str, ...]) -> Any:
    if isinstance(node, list):
        return [_flat(item, definitions, seen) for item in node]
    if not isinstance(node, dict):
        return node
    if reference := node.get("$ref"):
        name = reference.rsplit("/", 1)[-1]
        if name in seen:  # a type that contains itself
            return {"type": "object"}
        target = {**definitions[name], **{k: v for k, v in node.items() if k != "$ref"}}
        return _flat(target, definitions, (*seen, name))
    if branches := node.get("anyOf"):
        first: dict[str, Any] = next((b for b in branches if b.get("type") != "null"), {})
        outer = {k: v for k, v in node.items() if k not in ("anyOf", "default", "title")}
        return _flat({**first, **outer}, definitions, seen)
    return {k: _flat_member(k, v, definitions, seen) for k, v in node.items() if _kept(k, v)}


def _flat_member(key: str, value: Any, definitions: dict[str, Any], seen: tuple[str, ...]) -> Any:
    if key == "properties":  # names of fields, which may be called like keywords
        return {name: _flat(item, definitions, seen) for name, item in value.items()}
    return _flat(value, definitions, seen)


def _kept(key: str, value: Any) -> bool:
    if key == "additionalProperties":  # a mere yes or no is left to validation
        return isinstance(value, dict)
    return key not in ("title", "$defs", "definitions") and not (
        key == "default" and value in (None, [], "")
    )
