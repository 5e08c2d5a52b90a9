"""Calls of `emit`."""

from __future__ import annotations

from typing import Any

from wit_world.imports import emit as raw

from wattle import _json
from wattle._wire._convert import call


def custom(name: str, data: Any) -> None:
    """Appends an event."""
    call(raw.custom, name, _json.write("the data of the event", data))


def progress(message: str, fraction: float | None) -> None:
    """Reports progress."""
    call(raw.progress, message, fraction)
