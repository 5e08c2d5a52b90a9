"""Rows as values of types. A column is a field."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from functools import cache
from typing import Any

from mashumaro.types import Alias

from wattle import _json, _schema, _sql_value
from wattle._sql_value import Json, Other, Value
from wattle.failure import Failure

FORMS: dict[str, type] = {
    "array": list,
    "boolean": bool,
    "integer": int,
    "number": float,
    "object": dict,
}
"""Types of JSON Schema to which more than one kind of value converts."""


class Reader:
    """Reads rows as values of one type."""

    def __init__(self, of: Any) -> None:
        self._codec = _schema.codec(of)
        properties = self._codec.schema.get("properties", {})
        self._forms = {name: _form(schema) for name, schema in properties.items()}
        self._documents = set(_documents(of))

    def read(self, row: dict[str, Value]) -> Any:
        """Converts the values of columns to the type."""
        fields = {name: self._field(name, value) for name, value in row.items()}
        try:
            return self._codec.convert(fields)
        except _schema.Mismatch as error:
            column = f"column `{error.path}`: " if error.path else ""
            raise Failure.invalid(f"read a row: {column}{error.reason}") from None

    def _field(self, name: str, value: Value) -> Any:
        """Returns the value of a column as JSON."""
        if name in self._documents and isinstance(value, str) and not isinstance(value, Other):
            try:
                return _json.read("the document", value)
            except Failure as failure:
                raise failure.context(f"read a row: column `{name}`") from None
        form = self._forms.get(name)
        converted = None if form is None else _sql_value.convert(value, form)
        return _sql_value.to_json(value) if converted is None else converted


@cache
def _reader(of: Any) -> Reader:
    return Reader(of)


def reader(of: Any) -> Reader:
    """Returns the reader of a type, which is made once."""
    try:
        return _reader(of)
    except TypeError:
        # A type that cannot be hashed, see `_schema.codec`.
        return Reader(of)


def _form(schema: dict[str, Any]) -> type | None:
    """Returns the type to which a value converts if the type of its field can be nothing else."""
    if "$ref" in schema:
        return dict
    types = schema.get("type", [])
    names = [name for name in ([types] if isinstance(types, str) else types) if name != "null"]
    return FORMS.get(names[0]) if len(names) == 1 else None


def _documents(of: Any) -> Iterator[str]:
    """Returns the columns of the fields with any JSON document."""
    if not isinstance(of, type):
        return
    for name, hint in typing.get_type_hints(of, include_extras=True).items():
        notes = getattr(hint, "__metadata__", ())
        if Json in notes:
            yield next((note.name for note in notes if isinstance(note, Alias)), name)
