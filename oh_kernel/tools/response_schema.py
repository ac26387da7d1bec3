"""In which form does a caller want the answer, and does an answer have it?"""

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, cast

from pydantic import BaseModel

from oh_kernel.errors import SettingsError
from oh_kernel.tools.schema import schema_of

TAKEN = ("message", "security_risk", "kind")


class ResponseSchema:
    """A pydantic class, or a JSON schema of type object.

    Raises SettingsError for a schema that no answer could be checked by.
    """

    def __init__(self, schema: type[BaseModel] | Mapping[str, Any]) -> None:
        self._model = schema if isinstance(schema, type) else None
        self.json = schema_of(schema) if isinstance(schema, type) else dict(schema)
        _check_fields(self.json)
        self._check = _compiled(self.json) if self._model is None else self._by_model

    def checked(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """`answer` as JSON data, defaults filled in; raises ValueError with what is wrong."""
        return self._check(dict(answer))

    def read(self, answer: dict[str, Any]) -> BaseModel | dict[str, Any]:
        """A checked answer as the caller asked for it: an object of the class, or the data."""
        return answer if self._model is None else self._model.model_validate(answer)

    def _by_model(self, answer: dict[str, Any]) -> dict[str, Any]:
        assert self._model is not None
        return self._model.model_validate(answer).model_dump(mode="json", by_alias=True)


def _check_fields(schema: Mapping[str, Any]) -> None:
    if not isinstance(schema.get("properties"), dict):
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
    except fastjsonschema.JsonSchemaDefinitionException as error:
        raise SettingsError(
            f"response_schema is no JSON schema: {error}.",
            remedy="Give a pydantic class, or a JSON schema of type object.",
        ) from error
    return cast(Callable[[dict[str, Any]], dict[str, Any]], check)


def _refuse(address: str) -> NoReturn:
    raise SettingsError(
        f"response_schema refers to {address}, and nothing is fetched.",
        remedy="Put what it refers to under $defs.",
    )
