"""The export `reducer`."""

from __future__ import annotations

from wit_world.exports import reducer as raw

from wattle._export._answer import answer
from wattle._registry import plugin
from wattle.failure import Failure


class Reducer:
    """The reducers of the plugin."""

    def reducers(self) -> list[raw.ReducerInfo]:
        """Returns the descriptions of all reducers."""
        entries = plugin().reducers.values()
        return [raw.ReducerInfo(entry.name, entry.doc, []) for entry in entries]

    def reduce(self, reducer: str, current: str | None, updates: list[str]) -> str:
        """Calls the reducer with a name."""
        return answer(lambda: _reduce(reducer, current, updates))


def _reduce(reducer: str, current: str | None, updates: list[str]) -> str:
    entry = plugin().reducers.get(reducer)
    if entry is None:
        raise Failure.not_found(f"the plugin has no reducer `{reducer}`")
    return entry.reduce(current, updates)
