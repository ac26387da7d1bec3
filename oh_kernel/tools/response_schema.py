"""In which form does a caller want the answer, and does an answer have it?"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, cast

from pydantic import BaseModel

from oh_kernel.errors import SettingsError
from oh_kernel.tools.schema import parameters, schema_of

TAKEN = ("message", "security_risk", "kind")
_REMEDY = "Give a pydantic class, or a JSON schema of type object."


class ResponseSchema:
    """A pydantic class, or a JSON schema of type object.

    Raises SettingsError for a schema that no answer could be checked by.
    """

    def __init__(self, schema: type[BaseModel] | Mapping[str, Any]) -> None:
        self._model = schema if isinstance(schema, type) else None
        self.json = _json_schema(schema)
        _check_fields(self.json)
        self._check = _compiled(self.json) if self._model is None else self._by_model

    def checked(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """`answer` as JSON data, defaults filled in; raises ValueError with what is wrong."""
        return self._check(dict(answer))

    def read(self, answer: dict[str, Any]) -> BaseModel | dict[str, Any]:
        """A checked answer as the caller asked for it: an object of the class, or the data."""
        if self._model is None:
            return answer
        return self._model.model_validate(answer, by_alias=True, by_name=True)

    def _by_model(self, answer: dict[str, Any]) -> dict[str, Any]:
        assert self._model is not None
        read = self._model.model_validate(answer)
        # Without what the class computes, which it would not take back.
        return read.model_dump(mode="json", by_alias=True, round_trip=True)


def _json_schema(schema: object) -> dict[str, Any]:
    match schema:
        case type() if issubclass(schema, BaseModel):
            return schema_of(schema)
        case Mapping():
            return dict(schema)
        case _:
            raise SettingsError(f"response_schema is {schema!r:.100}.", remedy=_REMEDY)


def _check_fields(schema: Mapping[str, Any]) -> None:
    is_object = schema.get("type", "object") == "object"
    if not is_object or not isinstance(schema.get("properties"), dict):
        raise SettingsError(
            "response_schema names no fields.",
            remedy='Give a pydantic class, or {"type": "object", "properties": {...}}.',
        )
    for name in TAKEN:
        if name in schema["properties"]:
            raise SettingsError(
                f"response_schema has a field {name!r}, a name that finish has already.",
                remedy="Give the field another name.",
            )


def _compiled(schema: dict[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    import fastjsonschema  # which few answers need

    try:
        check = fastjsonschema.compile(schema, handlers={"http": _refuse, "https": _refuse})
        parameters(schema, asks_risk=False)  # what a model will be told
    except KeyError as error:
        raise SettingsError(
            f"response_schema refers to {error}, which is not under $defs.",
            remedy="Put what it refers to under $defs.",
        ) from error
    except (fastjsonschema.JsonSchemaDefinitionException, ValueError, re.error) as error:
        raise SettingsError(
            f"response_schema is no JSON schema: {error}.", remedy=_REMEDY
        ) from error
    return cast(Callable[[dict[str, Any]], dict[str, Any]], check)


def _refuse(address: str) -> NoReturn:
    raise SettingsError(
        f"response_schema refers to {address}, and nothing is fetched.",
        remedy="Put what it refers to under $defs.",
    )
