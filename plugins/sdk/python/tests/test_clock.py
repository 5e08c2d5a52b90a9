"""Tests of dates and their texts, which are those of the other SDKs, and of days of a zone."""

import unittest

from tests.vectors import VECTORS
from wattle import Failure, _calendar, clock
from wattle.clock import Civil, Zoned, ZoneSetting
from wattle.testing import FakeHost


def noon(date: list[int]) -> Civil:
    year, month, day = date
    return Civil(year, month, day, 12)


class Texts(unittest.TestCase):
    def test_utc_has_milliseconds_or_seconds(self) -> None:
        for unix_ms, milliseconds, seconds in VECTORS["utc"]:
            self.assertEqual(clock.utc(unix_ms), milliseconds)
            self.assertEqual(clock.utc_seconds(unix_ms), seconds)

    def test_times_have_fixed_forms(self) -> None:
        for unix_ms, offset_seconds, iso, digits in VECTORS["iso"]:
            civil = clock._civil(unix_ms)
            zoned = Zoned(civil, offset_seconds, 1, "")
            self.assertEqual((zoned.iso(), civil.digits()), (iso, digits))


class Dates(unittest.TestCase):
    def test_days_are_added_across_months_and_years(self) -> None:
        for date, days, then in VECTORS["plus_days"]:
            expected = None if then is None else noon(then)
            self.assertEqual(noon(date).plus_days(days), expected, days)

    def test_only_dates_that_exist_are_created(self) -> None:
        for year, month, days in VECTORS["days_in_month"]:
            with self.subTest(f"{year}-{month}"):
                self.assertEqual(clock.days_in_month(year, month), days)
                last = None if days is None else Civil(year, month, days)
                self.assertEqual(Civil.checked_date(year, month, days or 1), last)
                self.assertIsNone(Civil.checked_date(year, month, (days or 0) + 1))
                self.assertIsNone(Civil.checked_date(year, month, 0))

    def test_days_of_four_hundred_years_follow_one_another(self) -> None:
        number = _calendar.days(1800, 1, 1)
        for year in range(1800, 2200):
            for month in range(1, 13):
                for day in range(1, (clock.days_in_month(year, month) or 0) + 1):
                    self.assertEqual(_calendar.date(number), (year, month, day))
                    number += 1
        self.assertEqual(_calendar.days(2200, 1, 1), number)


class DaysOfAZone(unittest.TestCase):
    def test_days_begin_in_the_time_zone(self) -> None:
        # 2025-01-14T18:30:00Z is the next morning in Shanghai.
        host = FakeHost().now_ms(1_736_879_400_000)
        with host.zone("America/New_York", -18_000).zone("Asia/Shanghai", 28_800):
            for zone, date, begins_ms in (
                (None, "2025-01-15", 1_736_870_400_000),
                ("America/New_York", "2025-01-14", 1_736_830_800_000),
            ):
                today = clock.now_in(zone).civil
                self.assertEqual(today.date(), date)
                self.assertEqual(clock.first_instant(today, zone), begins_ms)
            with self.assertRaises(Failure):
                clock.now_in("Mars/Olympus")

    def test_a_day_without_midnight_begins_at_the_end_of_the_gap(self) -> None:
        # Clocks go from 23:30 to 00:30 of the next day.
        gap_ms = 1_736_897_400_000

        def civil_at(unix_ms: int) -> Civil:
            return clock._civil(unix_ms + (0 if unix_ms < gap_ms else 3_600_000))

        midnight = Civil.midnight(2025, 1, 15)
        self.assertEqual(clock._first_from(midnight, gap_ms + 1_800_000, civil_at), gap_ms)


class Settings(unittest.TestCase):
    def test_a_blank_setting_is_the_default_zone(self) -> None:
        plain, utc = ZoneSetting("time_zone"), ZoneSetting("time_zone", default="UTC")
        for setting, zone_setting, zone in (
            (None, plain, None),
            ("", plain, None),
            (" ", utc, "UTC"),
            (None, utc, "UTC"),
            ("Asia/Tokyo ", utc, "Asia/Tokyo"),
        ):
            host = FakeHost()
            if setting is not None:
                host.setting("time_zone", setting)
            with host:
                self.assertEqual(zone_setting.zone(), zone, setting)
        with FakeHost().setting("time_zone", 8), self.assertRaises(Failure) as raised:
            plain.now()
        self.assertEqual(raised.exception.code, "invalid")

    def test_the_current_time_is_that_of_the_zone(self) -> None:
        zone = ZoneSetting("time_zone")
        # 2025-01-14T18:30:00Z is the next morning in Shanghai.
        host = FakeHost().now_ms(1_736_879_400_000)
        with host.zone("America/New_York", -18_000).zone("Asia/Shanghai", 28_800):
            self.assertEqual(zone.now().civil.date(), "2025-01-15")
            host.setting("time_zone", "America/New_York")
            self.assertEqual(zone.now().civil.date(), "2025-01-14")
            host.setting("time_zone", "Mars/Olympus")
            with self.assertRaises(Failure) as raised:
                zone.now()
        self.assertEqual(raised.exception.code, "invalid")


if __name__ == "__main__":
    unittest.main()
