"""Results of statements: rows and their columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Generic, Self, TypeVar, cast, overload

from wattle import _json, _sql_value
from wattle import code as codes
from wattle._row_type import reader
from wattle._sql_value import EXPECTED, Json, Value
from wattle.failure import Failure

T = TypeVar("T")
C = TypeVar("C")


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

    @overload
    def read(self, of: type[T]) -> T: ...

    @overload
    def read(self, of: Any) -> Any: ...

    def read(self, of: Any) -> Any:
        """Returns the row as a value of a type whose fields have the names of the columns.

        Other columns are ignored. The values convert as in `get`, so a type fits rows of both
        databases. Text is also a JSON document where a type can be nothing else, such as a list. A
        field with any other JSON document has the type `Annotated[Any, sql.Json]`. Raises `invalid`
        if a field has no column, or if the value of a column does not fit its field.

        >>> @dataclass
        ... class Item:
        ...     id: int
        ...     is_sold: bool
        ...     price: float | None
        ...     labels: list[str]
        >>> # SQLite has no booleans and stores JSON as text.
        >>> rows = Rows.new(["id", "is_sold", "price", "labels"], [[7, 1, None, '["old"]']])
        >>> rows.one().read(Item)
        Item(id=7, is_sold=True, price=None, labels=['old'])
        """
        return reader(of).read(self._named())

    def to_json(self) -> dict[str, Any]:
        """Returns the row as a JSON object. Bytes become base64."""
        return {name: _sql_value.to_json(value) for name, value in self._named().items()}

    def _named(self) -> dict[str, Value]:
        names = (column.name for column in self._columns)
        return dict(zip(names, self._values, strict=False))

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

    def whole(self) -> Self:
        """Returns the rows if none is missing, for lists that a program takes for the whole.

        Raises `limit` if the result is truncated.

        >>> len(Rows.new(["id"], [[1]]).whole())
        1
        >>> Rows(truncated=True).whole()
        Traceback (most recent call last):
        wattle.failure.Failure: the result exceeds the limit on rows or size; query fewer rows
        """
        if self.truncated:
            raise _too_large()
        return self

    @overload
    def read_all(self, of: type[T]) -> list[T]: ...

    @overload
    def read_all(self, of: Any) -> list[Any]: ...

    def read_all(self, of: Any) -> list[Any]:
        """Returns the rows as values of a type, see `Row.read`."""
        return [row.read(of) for row in self]

    @overload
    def read_first(self, of: type[T]) -> T | None: ...

    @overload
    def read_first(self, of: Any) -> Any: ...

    def read_first(self, of: Any) -> Any:
        """Returns the first row as a value of a type, if there is one, see `Row.read`."""
        row = self.first()
        return None if row is None else row.read(of)

    @overload
    def page(self, of: type[T], limit: int, budget: int) -> Page[T]: ...

    @overload
    def page(self, of: Any, limit: int, budget: int) -> Page[Any]: ...

    def page(self, of: Any, limit: int, budget: int) -> Page[Any]:
        """Returns the first rows as a page of at most `limit` items.

        All items but the first fit into `budget` bytes of JSON, such as `web.PAGE_BYTES`. The query
        selects one row more than `limit`, which tells a full page from the last one. Raises `limit`
        if the result is truncated before its first row, because no next page could begin after it,
        and `invalid` if a row does not fit the type.

        >>> @dataclass
        ... class Entry:
        ...     id: int
        >>> page = Rows.new(["id"], [[7], [8]]).page(Entry, 1, 1_000)
        >>> page.items, page.next_cursor(lambda last: last.id)
        ([Entry(id=7)], 7)
        """
        if self.truncated and not self.values:
            raise _too_large()
        page: Page[Any] = Page([], self.truncated or len(self) > limit)
        for row in islice(self, limit):
            item = row.read(of)
            # Includes the comma after the item.
            size = _size(item) + 1
            if size > budget and page.items:
                page.has_more = True
                break
            budget = max(budget - size, 0)
            page.items.append(item)
        return page

    def newest(self, of: Any, budget: int) -> Newest:
        """Returns the rows, the newest first in the result, while they fit into `budget`.

        The budget is a number of bytes of JSON. Several lists of one response share it:
        `Newest.rest` is the budget of the next list. Raises `invalid` if a row does not fit the
        type.

        >>> @dataclass
        ... class Entry:
        ...     n: int
        >>> Rows.new(["n"], [[3], [2], [1]]).newest(Entry, 20)
        Newest(items=[{'n': 2}, {'n': 3}], truncated=True, rest=4)
        """
        newest = Newest([], self.truncated, budget)
        for row in self:
            item = _json.to_value("a row", row.read(of))
            # Includes the comma after the item.
            size = _size(item) + 1
            if size > newest.rest:
                newest.truncated = True
                break
            newest.rest -= size
            newest.items.append(item)
        newest.items.reverse()
        return newest

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


@dataclass
class Page(Generic[T]):
    """A page of a list."""

    items: list[T]
    """The items in the order of the rows."""
    has_more: bool
    """True if rows follow the page, also rows beyond the operator's limit on rows or size."""

    def next_cursor(self, of: Callable[[T], C]) -> C | None:
        """Returns the cursor of the next page, which `of` takes from the last item.

        Returns `None` for the last page.
        """
        return of(self.items[-1]) if self.has_more and self.items else None


@dataclass
class Newest:
    """The newest rows of a list as JSON."""

    items: list[Any]
    """The rows in order, the newest last."""
    truncated: bool
    """True if older rows are left out, also by the operator's limit on rows or size."""
    rest: int
    """Number of bytes of the budget that are left."""


def _too_large() -> Failure:
    """Returns the failure for a truncated result."""
    message = "the result exceeds the limit on rows or size; query fewer rows"
    return Failure(codes.LIMIT, message)


def _size(item: Any) -> int:
    """Returns the number of bytes of an item as JSON."""
    return len(_json.write("a row", item).encode())
