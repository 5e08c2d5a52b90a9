"""Long-term memory across threads: JSON documents, each with a namespace and a key.

A plugin can access the granted namespaces of the tenant for which it runs. Reads are journaled, so
a node that is executed again reads the same documents. Writes are idempotent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast, overload

from wattle import _host, _json, _schema

T = TypeVar("T")

DEFAULT_LIMIT = 20
"""Default maximum number of search results."""


@dataclass
class Item:
    """A document."""

    namespace: list[str]
    """Namespace, such as `["users", "42"]`."""
    key: str
    """Key of the document, unique in the namespace."""
    value: Any
    """Value of the document."""
    created_ms: int
    """Time of the first write, in milliseconds since 1970."""
    updated_ms: int
    """Time of the last write, in milliseconds since 1970."""
    score: float | None = None
    """Fraction of the query words that the document contains; `None` without a query."""

    @overload
    def value_as(self, of: type[T]) -> T: ...

    @overload
    def value_as(self, of: Any) -> Any: ...

    def value_as(self, of: Any) -> Any:
        """Returns the value as a type."""
        return _schema.decode(f"the document `{self.key}`", of, self.value)


def get(namespace: Sequence[str], key: str) -> Item | None:
    """Reads a document. Returns `None` if it does not exist or has expired."""
    return cast(Item | None, _host.interface("memory").get(list(namespace), key))


def put(namespace: Sequence[str], key: str, value: Any) -> None:
    """Writes a document without expiry. Replaces an existing document."""
    value = _json.to_value("the document", value)
    _host.interface("memory").put(list(namespace), key, value, None)


def put_for(namespace: Sequence[str], key: str, value: Any, ttl_ms: int) -> None:
    """Writes a document that expires after `ttl_ms` milliseconds."""
    value = _json.to_value("the document", value)
    _host.interface("memory").put(list(namespace), key, value, ttl_ms)


def put_while_read(namespace: Sequence[str], key: str, value: Any, ttl_ms: int) -> None:
    """Writes a document with a sliding expiry.

    It expires `ttl_ms` milliseconds after the last read or search that returned it.
    """
    value = _json.to_value("the document", value)
    _host.interface("memory").put_while_read(list(namespace), key, value, ttl_ms)


def delete(namespace: Sequence[str], key: str) -> None:
    """Deletes a document. Succeeds even if the document does not exist."""
    _host.interface("memory").delete(list(namespace), key)


def list_namespaces(
    prefix: Sequence[str], *, max_depth: int | None = None, limit: int, offset: int = 0
) -> list[list[str]]:
    """Lists the namespaces under a prefix that contain documents, sorted by name.

    Returns at most `limit`, after the first `offset`. Namespaces longer than `max_depth` are
    truncated. A `*` in the prefix matches any single part.
    """
    memory = _host.interface("memory")
    found = memory.list_namespaces(list(prefix), max_depth, limit, offset)
    return cast(list[list[str]], found)


@dataclass
class Search:
    """A search for documents under a namespace prefix."""

    prefix: Sequence[str]
    """Prefix of the namespaces to search."""
    filter: dict[str, Any] | None = None
    """Maps each field to a value, or to operators and values such as `{"$gt": value}`.

    The operators are `$eq`, `$ne`, `$gt`, `$gte`, `$lt` and `$lte`. All conditions must hold. A
    missing field is treated as `null`.
    """
    query: str | None = None
    """Words by which documents are ranked.

    Documents with more of the words come first, and documents without any are not results. Without
    a query, the most recently written documents come first.
    """
    limit: int = DEFAULT_LIMIT
    """Maximum number of documents to return."""
    offset: int = 0
    """Number of documents to skip."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Extension fields."""

    def run(self) -> list[Item]:
        """Runs the search. Raises `invalid` if the filter has an unknown operator."""
        return cast(list[Item], _host.interface("memory").search(self))
