"""HTTP requests of web handlers."""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar, overload

from wattle import _json, _schema, status
from wattle._whitespace import WHITESPACE
from wattle.failure import Failure

PAGE_BYTES = (4 << 20) - (256 << 10)
"""Budget for the items of a list in a response, in bytes of JSON.

The whole response has at most 4 MiB, unless the operator grants more, so 256 KiB remain for its
other fields.
"""

WHOLE_NUMBER = re.compile("[+-]?[0-9]+")
"""An integer in a query parameter. `int` takes other texts as well, such as `1_000`."""

I64 = range(-(2**63), 2**63)
"""The integers of 64 bits."""

U32 = range(2**32)
"""The integers of a page: at most 32 bits and not negative."""

T = TypeVar("T")

Pairs: TypeAlias = list[tuple[str, str]]
"""Names and values in order. A name may be repeated."""


@dataclass(frozen=True)
class PageQuery:
    """The page of a list that a request asks for, by the parameters `limit` and `offset`."""

    limit: int
    """Maximum number of items."""
    offset: int
    """Number of items before the page."""


@dataclass
class Request:
    """An HTTP request."""

    method: str
    """Method in upper case, such as `GET`."""
    path: str
    """Path relative to the mount of the app."""
    route: str = ""
    """Pattern of the matching route, such as `/api/items/{id}`."""
    params: Pairs = field(default_factory=list)
    """Path parameters, percent-decoded."""
    query_params: Pairs = field(default_factory=list)
    """Query parameters in order, percent-decoded."""
    headers: Pairs = field(default_factory=list)
    """Headers with names in lower case. Does not contain credentials for the host's API."""
    body: builtins.bytes = b""
    """The body."""
    tenant: str | None = None
    """Tenant of the request, if it has one."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Extension fields."""

    @overload
    def json(self, of: type[T]) -> T: ...

    @overload
    def json(self, of: Any = None) -> Any: ...

    def json(self, of: Any = None) -> Any:
        """Parses the JSON body as a type.

        Raises `invalid` with status 400 if the body is not JSON or does not fit the type. A handler
        that raises this failure responds with status 400.
        """
        what = "the request body"
        try:
            return _schema.decode(what, of, _json.read(what, self.text()))
        except Failure as failure:
            raise failure.with_status(status.BAD_REQUEST) from None

    def text(self) -> str:
        """Returns the body as text. Raises `invalid` with status 400 if it is not UTF-8."""
        try:
            return self.body.decode()
        except UnicodeDecodeError as error:
            failure = Failure.invalid(f"the request body is not UTF-8: {error}")
            raise failure.with_status(status.BAD_REQUEST) from None

    @overload
    def param(self, name: str) -> str: ...

    @overload
    def param(self, name: str, of: Callable[[str], T]) -> T: ...

    def param(self, name: str, of: Callable[[str], Any] = str) -> Any:
        """Parses a path parameter as a type, such as `int`.

        Raises `invalid` with status 400 if the route has no such parameter, or if its value cannot
        be parsed.

        >>> Request("GET", "/items/7", params=[("id", "7")]).param("id", int)
        7
        """
        text = _find(self.params, name)
        if text is None:
            failure = Failure.invalid(f"route `{self.route}` has no parameter `{name}`")
            raise failure.with_status(status.BAD_REQUEST)
        try:
            return of(text)
        except ValueError:
            failure = Failure.invalid(f"path parameter `{name}` has the invalid value `{text}`")
            raise failure.with_status(status.BAD_REQUEST) from None

    def query(self, name: str) -> str | None:
        """Returns the first query parameter with a name."""
        return _find(self.query_params, name)

    def number(self, name: str, within: range = I64) -> int | None:
        """Parses the first query parameter with a name as an integer. Returns `None` without one.

        Raises `invalid` with status 400 if the value is not an integer of the range, by default of
        64 bits.

        >>> request = Request("GET", "/items", query_params=[("after", "7")])
        >>> request.number("after"), request.number("before")
        (7, None)
        """
        text = self.query(name)
        if text is None:
            return None
        # The length is checked first, because `int` takes long to parse many digits.
        if len(text) < 40 and WHOLE_NUMBER.fullmatch(text) and int(text) in within:
            return int(text)
        failure = Failure.invalid(f"`{name}` must be a whole number")
        raise failure.with_status(status.BAD_REQUEST)

    def page(self, default: int, most: int) -> PageQuery:
        """Returns the page of a list that the request asks for.

        It has at least one and at most `most` items, by default `default`. Raises `invalid` with
        status 400 if `limit` or `offset` is not a whole number.

        >>> Request("GET", "/api/items", query_params=[("limit", "500")]).page(50, 200)
        PageQuery(limit=200, offset=0)
        """
        limit = self.number("limit", U32)
        limit = min(max(default if limit is None else limit, 1), max(most, 1))
        return PageQuery(limit, self.number("offset", U32) or 0)

    def has_tag(self, header: str, tag: str) -> bool:
        """Returns true if a header with entity tags has this one or `*`.

        Such headers are `if-match` and `if-none-match`. The tag includes its quotes and contains no
        comma. A weak tag, such as that of a proxy which compressed a response, is the same tag in
        `if-none-match` only.

        >>> request = Request("GET", "/", headers=[("if-none-match", '"6", "7"')])
        >>> request.has_tag("if-none-match", '"7"')
        True
        """
        is_weak = header.lower() == "if-none-match"
        known = [it.strip(WHITESPACE) for it in (self.header(header) or "").split(",")]
        return any(
            it in ("*", tag) or (is_weak and it.removeprefix("W/") == tag.removeprefix("W/"))
            for it in known
        )

    def header(self, name: str) -> str | None:
        """Returns the first header with a name, in upper or lower case."""
        return _find(self.headers, name.lower())


def _find(pairs: Pairs, name: str) -> str | None:
    return next((value for key, value in pairs if key == name), None)
