"""Calls of `clock`."""

from __future__ import annotations

from dataclasses import astuple

from wit_world.imports import clock as raw

from wattle._wire._convert import call
from wattle.clock import Civil, Zoned


def now() -> int:
    """Returns the wall clock."""
    return raw.now()


def monotonic() -> int:
    """Returns the monotonic clock."""
    return raw.monotonic()


def time_zone() -> str:
    """Returns the operator's time zone."""
    return raw.time_zone()


def to_zone(unix_ms: int, zone: str | None) -> Zoned:
    """Converts an instant to a civil time."""
    found = call(raw.to_zone, unix_ms, zone)
    civil = found.civil
    local = Civil(
        civil.year,
        civil.month,
        civil.day,
        civil.hour,
        civil.minute,
        civil.second,
        civil.millisecond,
    )
    return Zoned(local, found.offset_seconds, found.weekday, found.zone)


def from_zone(civil: Civil, zone: str | None) -> int:
    """Converts a civil time to an instant."""
    return call(raw.from_zone, raw.Civil(*astuple(civil)), zone)
