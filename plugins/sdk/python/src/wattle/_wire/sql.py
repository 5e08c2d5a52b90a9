"""Calls of `sql`."""

from __future__ import annotations

from typing import Any

from wit_world.imports import sql as raw

from wattle import _json
from wattle._wire._convert import call, value
from wattle.failure import Failure
from wattle.sql import Column, Executed, Json, Other, Rows, Value


def query(database: str, statement: str, parameters: list[Value]) -> Rows:
    """Executes a statement that reads."""
    return _rows(call(raw.query, database, statement, _raw_values(parameters)))


def execute(database: str, statement: str, parameters: list[Value]) -> Executed:
    """Executes a statement that writes."""
    return _executed(call(raw.execute, database, statement, _raw_values(parameters)))


def dialect(database: str) -> str:
    """Returns the dialect of a database."""
    return call(raw.dialect, database)


class Transaction:
    """A transaction of the host."""

    def __init__(self, resource: raw.Transaction) -> None:
        """Keeps the resource of the host."""
        self._resource = resource

    def query(self, statement: str, parameters: list[Value]) -> Rows:
        """Executes a statement that reads."""
        return _rows(call(self._resource.query, statement, _raw_values(parameters)))

    def execute(self, statement: str, parameters: list[Value]) -> Executed:
        """Executes a statement that writes."""
        return _executed(call(self._resource.execute, statement, _raw_values(parameters)))

    def commit(self) -> None:
        """Commits the transaction."""
        call(self._resource.commit)

    def rollback(self) -> None:
        """Rolls back the transaction."""
        call(self._resource.rollback)

    def close(self) -> None:
        """Drops the resource, which rolls back a transaction without a commit."""
        self._resource.__exit__(None, None, None)


def begin(database: str) -> Transaction:
    """Starts a transaction."""
    return Transaction(call(raw.begin, database))


def _raw_values(of: list[Value]) -> list[Any]:
    return [_raw_value(it) for it in of]


def _raw_value(of: Value) -> Any:
    match of:
        case None:
            return raw.Value_Null()
        case bool():
            return raw.Value_Boolean(of)
        case int():
            if not -(1 << 63) <= of < 1 << 63:
                raise Failure.invalid(
                    f"the parameter {of} is no integer of 64 bits; pass it as text"
                )
            return raw.Value_Integer(of)
        case float():
            return raw.Value_Real(of)
        case Other():
            return raw.Value_Other(str(of))
        case str():
            return raw.Value_Text(of)
        case bytes() | bytearray() | memoryview():
            return raw.Value_Bytes(bytes(of))
        case Json():
            return raw.Value_Json(_json.write("a parameter", of.value))
        case _:
            return raw.Value_Json(_json.write("a parameter", of))


def _value(of: Any) -> Value:
    match of:
        case raw.Value_Null():
            return None
        case raw.Value_Json():
            document = value(of.value)
            return document if isinstance(document, list | dict) else Json(document)
        case raw.Value_Other():
            return Other(of.value)
        case _:
            found: Value = of.value
            return found


def _rows(of: raw.Rows) -> Rows:
    columns = [Column(column.name, column.type_name) for column in of.columns]
    return Rows(columns, [[_value(it) for it in row] for row in of.rows], of.truncated)


def _executed(of: raw.Executed) -> Executed:
    return Executed(of.rows_affected, _rows(of.returned))
