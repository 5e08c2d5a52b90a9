"""Arithmetic of the proleptic Gregorian calendar, also for years that `datetime` does not have."""

from __future__ import annotations

ERA_DAYS = 146_097
"""Number of days in 400 Gregorian years."""

EPOCH_DAYS = 719_468
"""Number of days from 0000-03-01, where the years of the algorithm begin, to 1970-01-01."""

FIVE_MONTHS = 153
"""Number of days in five months from March on. The lengths of the months repeat after these."""

YEARS = range(-(2**31), 2**31)
"""The years of the other SDKs, which have 32 bits."""


def date(days: int) -> tuple[int, int, int] | None:
    """Returns the year, month and day for a number of days since 1970-01-01.

    Returns `None` for a year out of range. The algorithm begins years in March, so that the leap
    day is the last day of a year.
    """
    era, day_of_era = divmod(days + EPOCH_DAYS, ERA_DAYS)
    leap_days = day_of_era // 1460 - day_of_era // 36_524 + day_of_era // 146_096
    year_of_era = (day_of_era - leap_days) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // FIVE_MONTHS
    day = day_of_year - (FIVE_MONTHS * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    year = year_of_era + era * 400 + int(month <= 2)
    return (year, month, day) if year in YEARS else None


def days(year: int, month: int, day: int) -> int:
    """Returns the number of days from 1970-01-01 to a date."""
    year -= int(month <= 2)
    shifted = month - 3 if month > 2 else month + 9
    day_of_year = (FIVE_MONTHS * shifted + 2) // 5 + day - 1
    era, year_of_era = divmod(year, 400)
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * ERA_DAYS + day_of_era - EPOCH_DAYS
