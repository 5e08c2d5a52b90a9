"""Recorded calls of a fake host, and the results of its SQL script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from wattle.log import Level
from wattle.sql import Rows, Value


@dataclass
class Logged:
    """A recorded log message."""

    level: Level
    """Severity of the message."""
    message: str
    """Text of the message."""
    fields: dict[str, Any] = field(default_factory=dict)
    """Structured fields."""


@dataclass
class Statement:
    """A recorded SQL statement. `BEGIN`, `COMMIT` and `ROLLBACK` are recorded as well."""

    database: str
    """Name of the database."""
    text: str
    """The SQL text."""
    parameters: Sequence[Value] = ()
    """Parameters of the statement."""
    in_transaction: bool = False
    """True if the statement was executed in a transaction."""


@dataclass
class SqlAnswer:
    """The scripted result of a statement."""

    rows: Rows = field(default_factory=Rows)
    """Rows of a query, or of a `RETURNING` clause."""
    rows_affected: int = 0
    """Number of changed rows."""

    @classmethod
    def affected(cls, rows: int) -> Self:
        """Creates the result of a statement that changed rows and returns none."""
        return cls(rows_affected=rows)
