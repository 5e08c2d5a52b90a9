"""SQL values, and their conversions to types."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass
class Json:
    """A parameter that is a JSON value. Lists and dictionaries are JSON without it.

    As an annotation of a field, `Annotated[Any, sql.Json]`, it marks a column with a JSON document,
    which SQLite stores as text, see `Row.read`.
    """

    value: Any
    """The JSON value."""


class Other(str):
    """A value of another database type as text, such as a decimal number, a date or a time."""

    __slots__ = ()


Value: TypeAlias = (
    None | bool | int | float | str | bytes | list[Any] | dict[str, Any] | Json | Other
)
"""An SQL value. JSON in a result is a list, a dictionary or a `Json`."""


EXPECTED: dict[type, str] = {
    bool: "a boolean",
    int: "a whole number",
    float: "a number",
    str: "text",
    bytes: "bytes",
    list: "a JSON list",
    dict: "a JSON object",
}
"""Phrases for types in failures."""


def convert(value: Any, of: type) -> Any:
    if of is bool:
        is_bit = type(value) is int and value in (0, 1)
        return bool(value) if isinstance(value, bool) or is_bit else None
    if of is int:
        if type(value) is int:
            return value
        return _parsed(value, int)
    if of is float:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
        return _parsed(value, float)
    if of is str:
        return str(value) if isinstance(value, str) else None
    if of in (list, dict) and type(value) is str:
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if type(value) is of else None


def _parsed(value: Any, of: type) -> Any:
    try:
        return of(value) if isinstance(value, Other) else None
    except ValueError:
        return None


def kind(value: Any) -> str:
    for of, phrase in (
        (type(None), "null"),
        (bool, "a boolean"),
        (int, "an integer"),
        (float, "a real number"),
        (Other, "a value of the database's own type"),
        (str, "text"),
        (bytes, "bytes"),
    ):
        if isinstance(value, of):
            return phrase
    return "JSON"


def to_json(value: Value) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Json):
        return value.value
    return str(value) if isinstance(value, Other) else value
