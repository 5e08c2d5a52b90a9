"""The long-term memory of a fake host.

It has the semantics of the host, except that a word is a sequence of letters and digits.
"""

from __future__ import annotations

import copy
import json
import re
from types import SimpleNamespace
from typing import Any

from wattle.failure import Failure
from wattle.memory import Item, Search
from wattle.testing._state import Kept, current

ANY_PART = "*"
"""Matches any single part of a namespace."""

OPERATORS = ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte")

Condition = tuple[str, str, Any]
"""A field, an operator and a value."""


def _alive() -> list[Kept]:
    state = current().state
    return [kept for kept in state.memory.values() if _is_alive(kept, state.now_ms)]


def _is_alive(kept: Kept, now_ms: int) -> bool:
    return kept.expires_ms is None or kept.expires_ms > now_ms


def _read(kept: Kept) -> Item:
    """Returns a document, and restarts its sliding expiry."""
    if kept.refresh_ms is not None:
        kept.expires_ms = current().state.now_ms + kept.refresh_ms
    return copy.deepcopy(kept.item)


def _get(namespace: list[str], key: str) -> Item | None:
    state = current().state
    kept = state.memory.get((tuple(namespace), key))
    return _read(kept) if kept is not None and _is_alive(kept, state.now_ms) else None


def _put(
    namespace: list[str], key: str, value: Any, ttl_ms: int | None, refresh_ms: int | None = None
) -> None:
    state = current().state
    place = (tuple(namespace), key)
    old = state.memory.get(place)
    is_new = old is None or not _is_alive(old, state.now_ms)
    created_ms = state.now_ms if old is None or is_new else old.item.created_ms
    item = Item(list(namespace), key, value, created_ms, state.now_ms)
    expires_ms = None if ttl_ms is None else state.now_ms + ttl_ms
    state.memory[place] = Kept(item, expires_ms, refresh_ms)


def _delete(namespace: list[str], key: str) -> None:
    current().state.memory.pop((tuple(namespace), key), None)


def _search(search: Search) -> list[Item]:
    prefix = list(search.prefix)
    conditions = [] if search.filter is None else _conditions(search.filter)
    found = []
    for kept in _alive():
        is_under = kept.item.namespace[: len(prefix)] == prefix
        if is_under and all(_holds(condition, kept.item.value) for condition in conditions):
            found.append(_read(kept))
    if search.query is not None:
        wanted = _words(search.query)
        for item in found:
            item.score = _score(wanted, item)
        found = [item for item in found if item.score is not None]
    found.sort(key=lambda item: (-(item.score or 0.0), -item.updated_ms))
    return found[search.offset : search.offset + search.limit]


def _list_namespaces(
    prefix: list[str], max_depth: int | None, limit: int, offset: int
) -> list[list[str]]:
    found = set()
    for kept in _alive():
        namespace = kept.item.namespace
        pairs = zip(namespace, prefix, strict=False)
        fits = all(wanted in (ANY_PART, part) for part, wanted in pairs)
        if fits and len(namespace) >= len(prefix):
            found.add(tuple(namespace[:max_depth]))
    return [list(namespace) for namespace in sorted(found)[offset : offset + limit]]


def _words(text: str) -> set[str]:
    return set(re.findall(r"[^\W_]+", text.lower()))


def _score(wanted: set[str], item: Item) -> float | None:
    """Returns the fraction of the words that a document contains; `None` if it contains none.

    The words of a document are those of its key, field names and values.
    """
    held = _words(f"{item.key} {json.dumps(item.value, ensure_ascii=False)}")
    hits = len(wanted & held)
    return hits / len(wanted) if hits else None


def _conditions(filter: Any) -> list[Condition]:
    if not isinstance(filter, dict):
        raise _invalid(json.dumps(filter))
    conditions: list[Condition] = []
    for name, value in filter.items():
        if isinstance(value, dict) and any(key.startswith("$") for key in value):
            for operator, operand in value.items():
                if operator not in OPERATORS:
                    raise _invalid(operator)
                conditions.append((name, operator, operand))
        elif name.startswith("$"):
            raise _invalid(name)
        else:
            conditions.append((name, "$eq", value))
    return conditions


def _invalid(what: str) -> Failure:
    return Failure.invalid(
        "a filter maps fields to values, or to the operators `$eq`, `$ne`, `$gt`, `$gte`, `$lt` "
        f"and `$lte`, not to `{what}`"
    )


def _holds(condition: Condition, document: Any) -> bool:
    name, operator, value = condition
    found = document.get(name) if isinstance(document, dict) else None
    is_equal = found == value and isinstance(found, bool) == isinstance(value, bool)
    if operator in ("$eq", "$ne"):
        return is_equal == (operator == "$eq")
    are_numbers = all(type(it) in (int, float) for it in (found, value))
    if not are_numbers and not (isinstance(found, str) and isinstance(value, str)):
        return False
    found_value: Any = found
    if operator in ("$gt", "$gte"):
        return bool(found_value > value or (operator == "$gte" and found_value == value))
    return bool(found_value < value or (operator == "$lte" and found_value == value))


MEMORY = SimpleNamespace(
    get=_get,
    put=_put,
    put_while_read=lambda namespace, key, value, ttl_ms: _put(
        namespace, key, value, ttl_ms, ttl_ms
    ),
    delete=_delete,
    search=_search,
    list_namespaces=_list_namespaces,
)
"""The implementation of the import `memory`."""
