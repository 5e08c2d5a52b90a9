"""The current time, and dates in a time zone.

Every result is journaled, so a node that is executed again gets the same time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Self, cast

from wattle import _calendar, _host

DAY_MS = 86_400_000
"""Number of milliseconds of a day without a change of the clock."""

LONGEST_GAP_MS = 24 * 3_600_000
"""Maximum length of a gap at midnight, in milliseconds.

Clocks were never advanced by more than a day.
"""


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

    @classmethod
    def checked_date(cls, year: int, month: int, day: int) -> Self | None:
        """Creates the civil time of midnight at the beginning of a date.

        Returns `None` if the date does not exist.

        >>> Civil.checked_date(2024, 2, 29) == Civil.midnight(2024, 2, 29)
        True
        >>> Civil.checked_date(2025, 2, 29)
        """
        last = days_in_month(year, month)
        return cls(year, month, day) if last is not None and 1 <= day <= last else None

    def plus_days(self, days: int) -> Self | None:
        """Returns the same time of the day a number of days later, or earlier if negative.

        Returns `None` for a year out of range.

        >>> Civil.midnight(2024, 3, 1).plus_days(-1).date()
        '2024-02-29'
        """
        date = _calendar.date(_calendar.days(self.year, self.month, self.day) + days)
        if date is None:
            return None
        year, month, day = date
        return replace(self, year=year, month=month, day=day)

    def date(self) -> str:
        """Formats the date.

        >>> Civil.midnight(2026, 3, 1).date()
        '2026-03-01'
        """
        return f"{self.year:04}-{self.month:02}-{self.day:02}"

    def time(self) -> str:
        """Formats the time of the day, such as `10:30:45`."""
        return f"{self.hour:02}:{self.minute:02}:{self.second:02}"

    def digits(self) -> str:
        """Formats date and time as digits for names of files.

        >>> Civil(2026, 3, 1, 10, 30, 45).digits()
        '20260301103045'
        """
        date = f"{self.year:04}{self.month:02}{self.day:02}"
        return date + self.time().replace(":", "")


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

    def iso(self) -> str:
        """Formats the time with its offset from UTC, such as `2025-01-15T10:30:45+08:00`."""
        sign = "-" if self.offset_seconds < 0 else "+"
        hours, minutes = divmod(abs(self.offset_seconds) // 60, 60)
        return f"{self.civil.date()}T{self.civil.time()}{sign}{hours:02}:{minutes:02}"


@dataclass(frozen=True)
class ZoneSetting:
    """A setting of the app with the IANA name of a time zone.

    Create it at the top of a module, so that the component imports `settings`.

    >>> from wattle.testing import FakeHost
    >>> ZONE = ZoneSetting("time_zone", default="Asia/Shanghai")
    >>> # 2025-01-15T02:30:45Z, where clocks are eight hours ahead.
    >>> with FakeHost().now_ms(1_736_908_245_000).zone("Asia/Shanghai", 8 * 3600):
    ...     ZONE.now().iso()
    '2025-01-15T10:30:45+08:00'
    """

    name: str
    """Name of the setting."""
    default: str | None = None
    """The time zone that applies if the setting is missing or blank.

    `None` selects the operator's time zone.
    """

    def __post_init__(self) -> None:
        # A component with a clock imports `settings` only if it has such a setting.
        import_module("wattle.settings")

    def zone(self) -> str | None:
        """Returns the time zone; `None` is the operator's time zone.

        Raises `invalid` if the setting is not a text.
        """
        from wattle import settings

        return settings.text(self.name) or self.default

    def now(self) -> Zoned:
        """Returns the current civil time in the time zone.

        Raises `invalid` if the setting is not a text, or for an unknown time zone.
        """
        return now_in(self.zone())


def now_ms() -> int:
    """Returns the time in milliseconds since 1970-01-01T00:00:00Z."""
    return cast(int, _host.interface("clock").now())


def monotonic_ns() -> int:
    """Returns a monotonic time in nanoseconds, for measuring durations."""
    return cast(int, _host.interface("clock").monotonic())


def time_zone() -> str:
    """Returns the IANA name of the operator's time zone, such as `Asia/Shanghai`."""
    return cast(str, _host.interface("clock").time_zone())


def now_in(zone: str | None = None) -> Zoned:
    """Returns the current civil time in a time zone.

    `None` selects the operator's time zone. With a `ZoneSetting`, the zone is a setting of the app.
    Raises `invalid` for an unknown time zone.

    >>> from wattle.testing import FakeHost
    >>> with FakeHost().now_ms(1_736_908_245_000).zone("Asia/Shanghai", 8 * 3600):
    ...     now_in().iso()
    '2025-01-15T10:30:45+08:00'
    """
    return to_zone(now_ms(), zone)


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


def first_instant(day: Civil, zone: str | None = None) -> int:
    """Returns the first instant of a day in a time zone, in milliseconds since 1970.

    It is midnight, or the end of the gap if clocks are advanced at midnight. `None` selects the
    operator's time zone. The time of the day of `day` is ignored. Raises `invalid` for an unknown
    time zone or a date that does not exist.
    """
    midnight = Civil.midnight(day.year, day.month, day.day)
    # In a gap the host returns an instant after the gap, which may be later than its end.
    late = from_zone(midnight, zone)
    if to_zone(late, zone).civil == midnight:
        return late
    return _first_from(midnight, late, lambda unix_ms: to_zone(unix_ms, zone).civil)


def days_in_month(year: int, month: int) -> int | None:
    """Returns the number of days of a month, or `None` for a month out of range.

    >>> days_in_month(2024, 2)
    29
    """
    if month == 2:
        is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        return 29 if is_leap else 28
    if month in (4, 6, 9, 11):
        return 30
    return 31 if month in (1, 3, 5, 7, 8, 10, 12) else None


def utc(unix_ms: int) -> str:
    """Formats an instant, in milliseconds since 1970.

    Such texts sort by time. The calculation calls no function of the host.

    >>> utc(1_736_908_245_007)
    '2025-01-15T02:30:45.007Z'
    """
    civil = _civil(unix_ms)
    return f"{civil.date()}T{civil.time()}.{civil.millisecond:03}Z"


def utc_seconds(unix_ms: int) -> str:
    """Formats an instant, in milliseconds since 1970, to the second.

    The calculation calls no function of the host.

    >>> utc_seconds(1_736_908_245_007)
    '2025-01-15T02:30:45Z'
    """
    civil = _civil(unix_ms)
    return f"{civil.date()}T{civil.time()}Z"


def _first_from(start: Civil, late: int, civil_at: Callable[[int], Civil]) -> int:
    """Returns the first instant whose civil time is `start` or later.

    `late` is such an instant, and the instant `LONGEST_GAP_MS` before it is none.
    """
    before, within = late - LONGEST_GAP_MS, late
    while within - before > 1:
        middle = (before + within) // 2
        if civil_at(middle) < start:
            before = middle
        else:
            within = middle
    return within


def _civil(unix_ms: int) -> Civil:
    """Returns the civil time of an instant in UTC."""
    days, ms = divmod(unix_ms, DAY_MS)
    year, month, day = _calendar.date(days) or (0, 0, 0)
    seconds, millisecond = divmod(ms, 1000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return Civil(year, month, day, hour, minute, second, millisecond)
