"""Calls of `log`."""

from __future__ import annotations

from typing import Any

from wit_world.imports import log as raw

from wattle._wire._convert import raw_extra, variant
from wattle.log import Level


def write(level: Level, message: str, fields: dict[str, Any]) -> None:
    """Writes a message."""
    text = message.encode(errors="replace").decode()
    raw.write(variant(raw, "Level", level.value), text, raw_extra(fields))
