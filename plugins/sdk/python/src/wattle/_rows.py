"""Results of statements: rows and their columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar, cast, overload

from wattle import _sql_value
from wattle._sql_value import EXPECTED, Json, Value
from wattle.failure import Failure

T = TypeVar("T")


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
        converted = _sql_value.convert(value, of)
        if converted is None:
            raise Failure.invalid(
                f"column `{column}` is {_sql_value.kind(value)}, "
                f"expected {EXPECTED.get(of, of.__name__)}"
            )
        return cast(T, converted)

    def to_json(self) -> dict[str, Any]:
        """Returns the row as a JSON object. Bytes become base64."""
        names = (column.name for column in self._columns)
        return {
            name: _sql_value.to_json(value)
            for name, value in zip(names, self._values, strict=False)
        }

    def __repr__(self) -> str:
        return f"Row({self.to_json()!r})"


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
