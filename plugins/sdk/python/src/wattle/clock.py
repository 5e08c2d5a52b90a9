"""The current time.

Every result is journaled, so a node that is executed again gets the same time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self, cast

from wattle import _host


@dataclass(frozen=True, order=True)
class Civil:
    """A date and time without a time zone, in the proleptic Gregorian calendar."""

    year: int
    """Year; negative before the year 0."""
    month: int
    """Month, 1 to 12."""
    day: int
    """Day of the month, 1 to 31."""
    hour: int = 0
    """Hour, 0 to 23."""
    minute: int = 0
    """Minute, 0 to 59."""
    second: int = 0
    """Second, 0 to 59."""
    millisecond: int = 0
    """Millisecond, 0 to 999."""

    @classmethod
    def midnight(cls, year: int, month: int, day: int) -> Self:
        """Creates the civil time of midnight at the beginning of a date."""
        return cls(year, month, day)

    def date(self) -> str:
        """Formats the date.

        >>> Civil.midnight(2026, 3, 1).date()
        '2026-03-01'
        """
        return f"{self.year:04}-{self.month:02}-{self.day:02}"


@dataclass(frozen=True)
class Zoned:
    """A civil time in a time zone."""

    civil: Civil
    """Local date and time."""
    offset_seconds: int
    """Offset from UTC in seconds, positive to the east."""
    weekday: int
    """Day of the week, 1 for Monday to 7 for Sunday."""
    zone: str
    """IANA name of the time zone."""


def now_ms() -> int:
    """Returns the time in milliseconds since 1970-01-01T00:00:00Z."""
    return cast(int, _host.interface("clock").now())


def monotonic_ns() -> int:
    """Returns a monotonic time in nanoseconds, for measuring durations."""
    return cast(int, _host.interface("clock").monotonic())


def time_zone() -> str:
    """Returns the IANA name of the operator's time zone, such as `Asia/Shanghai`."""
    return cast(str, _host.interface("clock").time_zone())


def to_zone(unix_ms: int, zone: str | None = None) -> Zoned:
    """Converts an instant, in milliseconds since 1970, to the civil time in a time zone.

    `None` selects the operator's time zone.
    """
    return cast(Zoned, _host.interface("clock").to_zone(unix_ms, zone))


def from_zone(civil: Civil, zone: str | None = None) -> int:
    """Converts a civil time in a time zone to an instant, in milliseconds since 1970.

    `None` selects the operator's time zone. A time in a gap becomes the later instant, a time in a
    fold the earlier one.
    """
    return cast(int, _host.interface("clock").from_zone(civil, zone))
