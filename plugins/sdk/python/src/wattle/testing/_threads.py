"""Lists and updates of the threads of a fake host, with the semantics of the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wattle.failure import Failure
from wattle.runs import Thread, ThreadPage, ThreadSearch, ThreadSummary
from wattle.testing._state import current

Position = tuple[int, str]
"""The place of a thread in a list. Positions sort like the threads of the list."""


def search(search: ThreadSearch) -> ThreadPage:
    """Lists the threads of the script."""
    after = None if search.after is None else _read(search.after)
    metadata = _object(search.metadata)
    text = (search.text or "").lower()
    found = [
        thread
        for thread in current().state.threads.values()
        if search.graph in (None, thread.graph)
        and _contains(thread.metadata, metadata)
        and _has_text(thread, text)
        and (after is None or _position(thread) > after)
    ]
    found.sort(key=_position)
    page = found[: max(search.limit, 1)]
    next = f"{page[-1].updated_ms}.{page[-1].thread_id}" if len(page) < len(found) else None
    return ThreadPage([_summary(thread) for thread in page], next)


def update(thread_id: str, metadata: Any) -> None:
    """Adds metadata to a thread of the script."""
    added = _object(metadata)
    state = current().state
    thread = state.threads.get(thread_id)
    if thread is None:
        raise Failure.not_found(f"there is no thread `{thread_id}`, or it has expired")
    thread.metadata.update(added)
    thread.updated_ms = state.now_ms


def reject_if_interrupted(graph: str, thread_id: str | None) -> None:
    """Raises `conflict` if a thread of the script waits for answers."""
    thread = None if thread_id is None else current().state.threads.get(thread_id)
    if thread is None or thread.graph != graph or thread.status != "interrupted":
        return
    if thread.interrupts:
        text = f"thread `{thread_id}` is interrupted and waits for answers"
        raise Failure.conflict(text, details={"reason": "interrupted"})


def _position(thread: Thread) -> Position:
    return (-thread.updated_ms, thread.thread_id)


def _read(next: str) -> Position:
    updated_ms, dot, thread_id = next.partition(".")
    try:
        if dot:
            return (-int(updated_ms), thread_id)
    except ValueError:
        pass
    raise Failure.invalid("`after` must be the `next` of another page")


def _object(metadata: Any) -> dict[str, Any]:
    """Returns the fields of metadata. `None` has none."""
    if metadata is None or isinstance(metadata, dict):
        return metadata or {}
    raise Failure.invalid("`metadata` is not a JSON object")


def _contains(known: Any, wanted: Any) -> bool:
    """Returns true if a value contains another one. Objects may have additional fields."""
    if isinstance(known, dict) and isinstance(wanted, dict):
        return all(name in known and _contains(known[name], it) for name, it in wanted.items())
    return _is_equal(known, wanted)


def _is_equal(one: Any, other: Any) -> bool:
    """Returns true if two values are equal as JSON, where `true` is not 1 and 1 is not 1.0."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_equal(one[it], other[it]) for it in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_equal, one, other))
    return type(one) is type(other) and bool(one == other)


def _has_text(thread: Thread, text: str) -> bool:
    """Returns true if a thread contains a text in lower case."""

    def has(found: str) -> bool:
        return text in found.lower()

    names = (thread.thread_id, thread.run_id or "", thread.graph)
    return any(has(name) for name in names) or _any_text(thread.metadata, has)


def _any_text(value: Any, has: Callable[[str], bool]) -> bool:
    """Returns true if a condition holds for any text in a value."""
    match value:
        case str():
            return has(value)
        case list():
            return any(_any_text(item, has) for item in value)
        case dict():
            return any(_any_text(item, has) for item in value.values())
        case _:
            return False


def _summary(of: Thread) -> ThreadSummary:
    return ThreadSummary(
        of.thread_id,
        of.graph,
        of.status,
        of.run_id,
        of.created_ms,
        of.updated_ms,
        dict(of.metadata),
    )
