"""SQL statements on granted databases, SQLite and PostgreSQL.

Parameters are written as `$1`, `$2` and so on in both dialects.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias, TypeVar, cast, overload

from wattle import _host
from wattle.failure import Failure

T = TypeVar("T")


@dataclass
class Json:
    """A parameter that is a JSON value. Lists and dictionaries are JSON without it."""

    value: Any
    """The JSON value."""


class Other(str):
    """A value of another database type as text, such as a decimal number, a date or a time."""

    __slots__ = ()


Value: TypeAlias = (
    None | bool | int | float | str | bytes | list[Any] | dict[str, Any] | Json | Other
)
"""An SQL value. JSON in a result is a list, a dictionary or a `Json`."""


@dataclass
class Column:
    """A column of a result."""

    name: str
    """Name of the column."""
    type_name: str = ""
    """Type in the database, in lower case. Empty if the database does not report it."""


class Row:
    """A row of a result."""

    def __init__(self, columns: Sequence[Column], values: Sequence[Value]) -> None:
        self._columns = columns
        self._values = values

    def __getitem__(self, column: str) -> Any:
        """Returns the value of a column. Raises `invalid` if the result has no such column."""
        for known, value in zip(self._columns, self._values, strict=False):
            if known.name == column:
                return value.value if isinstance(value, Json) else value
        raise Failure.invalid(f"the query has no column `{column}`; name it in the `SELECT`")

    @overload
    def get(self, column: str, of: type[T]) -> T: ...

    @overload
    def get(self, column: str, of: type[T], *, nullable: bool) -> T | None: ...

    def get(self, column: str, of: type[T], *, nullable: bool = False) -> T | None:
        """Returns the value of a column as `bool`, `int`, `float`, `str`, `bytes`, `list` or
        `dict`.

        The conversions cover differences between the databases: SQLite has no booleans and stores
        JSON as text, and PostgreSQL returns decimal numbers as values of another type. `nullable`
        accepts null. Raises `invalid` if the value does not fit the type.
        """
        value = self[column]
        if value is None and nullable:
            return None
        converted = _convert(value, of)
        if converted is None:
            raise Failure.invalid(
                f"column `{column}` is {_kind(value)}, expected {EXPECTED.get(of, of.__name__)}"
            )
        return cast(T, converted)

    def to_json(self) -> dict[str, Any]:
        """Returns the row as a JSON object. Bytes become base64."""
        names = (column.name for column in self._columns)
        return {name: _to_json(value) for name, value in zip(names, self._values, strict=False)}

    def __repr__(self) -> str:
        return f"Row({self.to_json()!r})"


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


def _convert(value: Any, of: type) -> Any:
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


def _kind(value: Any) -> str:
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


def _to_json(value: Value) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Json):
        return value.value
    return str(value) if isinstance(value, Other) else value


@dataclass
class Rows:
    """Rows of a query.

    >>> [row["id"] for row in Rows.new(["id"], [[1], [2]])]
    [1, 2]
    """

    columns: list[Column] = field(default_factory=list)
    """Columns of the result."""
    values: list[list[Value]] = field(default_factory=list)
    """Values of each row, in the order of the columns."""
    truncated: bool = False
    """True if rows are missing because the result exceeds the operator's limit on rows or size."""

    @classmethod
    def new(cls, columns: Sequence[str], values: Sequence[Sequence[Value]]) -> Self:
        """Builds rows, for tests."""
        return cls([Column(name) for name in columns], [list(row) for row in values])

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Row]:
        return (Row(self.columns, values) for values in self.values)

    def first(self) -> Row | None:
        """Returns the first row, if there is one."""
        return next(iter(self), None)

    def one(self) -> Row:
        """Returns the first row. Raises `not-found` if there are no rows."""
        row = self.first()
        if row is None:
            raise Failure.not_found("the query found no row")
        return row

    def column(self, name: str, of: type[T]) -> list[T]:
        """Returns the values of a column as a type."""
        return [row.get(name, of) for row in self]

    def to_json(self) -> list[dict[str, Any]]:
        """Returns the rows as JSON objects."""
        return [row.to_json() for row in self]


@dataclass
class Executed:
    """The effect of a statement that writes."""

    rows_affected: int = 0
    """Number of rows that the statement changed."""
    returned: Rows = field(default_factory=Rows)
    """Rows of a `RETURNING` clause. Empty if the statement has none."""


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
