"""SQL statements on granted databases, SQLite and PostgreSQL.

Parameters are written as `$1`, `$2` and so on in both dialects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

from wattle import _host
from wattle._rows import Column, Executed, Newest, Page, Row, Rows
from wattle._sql_value import Json, Other, Value

__all__ = [
    "Column",
    "Database",
    "Dialect",
    "Executed",
    "Json",
    "Newest",
    "Other",
    "Page",
    "Row",
    "Rows",
    "Transaction",
    "Value",
    "database",
]


class Dialect:
    """The dialects of SQL. A dialect that this version does not know is its name."""

    SQLITE = "sqlite"
    """SQLite."""
    POSTGRES = "postgres"
    """PostgreSQL."""


class Transaction:
    """A transaction.

    Its commit is recorded in the database itself, so that a node that is executed again after a
    crash does not repeat it. Leaving a transaction as a context manager without a commit rolls it
    back.
    """

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    def query(self, statement: str, parameters: Sequence[Value] = ()) -> Rows:
        """Executes a statement that reads."""
        return cast(Rows, self._handle.query(statement, list(parameters)))

    def execute(self, statement: str, parameters: Sequence[Value] = ()) -> Executed:
        """Executes a statement that writes."""
        return cast(Executed, self._handle.execute(statement, list(parameters)))

    def commit(self) -> None:
        """Commits the transaction. The transaction ends even if the commit fails."""
        self._handle.commit()

    def rollback(self) -> None:
        """Rolls back the transaction."""
        self._handle.rollback()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._handle.close()


@dataclass
class Database:
    """A database, identified by its name in the manifest of the app."""

    name: str
    """Name of the database."""

    def query(self, statement: str, parameters: Sequence[Value] = ()) -> Rows:
        """Executes a statement that reads."""
        return cast(Rows, _host.interface("sql").query(self.name, statement, list(parameters)))

    def execute(self, statement: str, parameters: Sequence[Value] = ()) -> Executed:
        """Executes a statement that writes, in its own transaction."""
        executed = _host.interface("sql").execute(self.name, statement, list(parameters))
        return cast(Executed, executed)

    def begin(self) -> Transaction:
        """Starts a transaction."""
        return Transaction(_host.interface("sql").begin(self.name))

    def dialect(self) -> str:
        """Returns the dialect of the database, see `Dialect`."""
        return cast(str, _host.interface("sql").dialect(self.name))


def database(name: str) -> Database:
    """Returns a handle to the database with a name. The first call checks the name."""
    return Database(name)
