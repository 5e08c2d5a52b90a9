"""Calls of `memory`."""

from __future__ import annotations

from typing import Any

from wit_world.imports import memory as raw

from wattle import _json
from wattle._wire._convert import call, raw_extra, text, value
from wattle.memory import Item, Search

REFRESH_ON_READ = "refresh_on_read"
"""Extension field that enables a sliding expiry."""


def get(namespace: list[str], key: str) -> Item | None:
    """Reads a document."""
    found = call(raw.get, namespace, key)
    return None if found is None else _item(found)


def put(namespace: list[str], key: str, document: Any, ttl_ms: int | None) -> None:
    """Writes a document."""
    call(raw.put, namespace, key, _json.write("the document", document), ttl_ms)


def put_while_read(namespace: list[str], key: str, document: Any, ttl_ms: int) -> None:
    """Writes a document with a sliding expiry."""
    fields = raw_extra({REFRESH_ON_READ: True})
    call(raw.put_with, namespace, key, _json.write("the document", document), ttl_ms, fields)


def delete(namespace: list[str], key: str) -> None:
    """Deletes a document."""
    call(raw.delete, namespace, key)


def search(of: Search) -> list[Item]:
    """Finds documents."""
    request = raw.SearchRequest(
        list(of.prefix),
        text("the filter", of.filter),
        of.query,
        of.limit,
        of.offset,
        raw_extra(of.extra),
    )
    return [_item(found) for found in call(raw.search, request)]


def list_namespaces(
    prefix: list[str], max_depth: int | None, limit: int, offset: int
) -> list[list[str]]:
    """Lists namespaces."""
    return call(raw.list_namespaces, prefix, max_depth, limit, offset)


def _item(of: raw.Item) -> Item:
    return Item(list(of.namespace), of.key, value(of.value), of.created_ms, of.updated_ms, of.score)
