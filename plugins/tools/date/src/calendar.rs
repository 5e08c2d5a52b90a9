//! The Gregorian calendar: valid dates, and the days between them.

/// Years for which there are timestamps: from the epoch to the last year of four digits.
const YEARS: std::ops::RangeInclusive<i64> = 1970..=9999;

/// Days of 400 years, after which the calendar repeats.
const ERA_DAYS: i64 = 146_097;

/// Days from 0000-03-01, where the count starts, to 1970-01-01.
const EPOCH_DAYS: i64 = 719_468;

/// Days of the five months from March on; the lengths of months repeat with them.
const FIVE_MONTHS: i64 = 153;

/// A valid date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Date {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
}

impl Date {
    /// Creates a date. Returns `None` if the date does not exist or its year is out of range.
    pub(crate) fn new(year: i64, month: i64, day: i64) -> Option<Self> {
        let exists = YEARS.contains(&year)
            && (1..=12).contains(&month)
            && (1..=days_of(year, month)).contains(&day);
        exists.then_some(Self { year, month, day })
    }

    /// Returns the date that is `days` days later, or earlier if negative. Returns `None` if its
    /// year is out of range.
    pub(crate) fn plus_days(self, days: i64) -> Option<Self> {
        let days = self.since_epoch().checked_add(days)?;
        // The arithmetic below would overflow far outside the range.
        if !(0..=ERA_DAYS * 25).contains(&days) {
            return None;
        }
        let (year, month, day) = civil(days);
        Self::new(year, month, day)
    }

    /// Returns the days since 1970-01-01. The algorithm counts years from March, so that the leap
    /// day is the last day of a year.
    fn since_epoch(self) -> i64 {
        let year = self.year - i64::from(self.month <= 2);
        let shifted = if self.month > 2 { self.month - 3 } else { self.month + 9 };
        let day_of_year = (FIVE_MONTHS * shifted + 2) / 5 + self.day - 1;
        let year_of_era = year.rem_euclid(400);
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        year.div_euclid(400) * ERA_DAYS + day_of_era - EPOCH_DAYS
    }
}

/// Returns year, month and day of a day, which is counted from 1970-01-01.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH_DAYS;
    let day_of_era = days.rem_euclid(ERA_DAYS);
    let leap_days = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / FIVE_MONTHS;
    let day = day_of_year - (FIVE_MONTHS * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + days.div_euclid(ERA_DAYS) * 400 + i64::from(month <= 2), month, day)
}

fn days_of(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::Date;

    fn date(year: i64, month: i64, day: i64) -> Date {
        Date::new(year, month, day).unwrap()
    }

    #[test]
    fn only_valid_dates_are_created() {
        for (year, month, day) in [(2024, 2, 29), (2000, 2, 29), (1970, 1, 1), (9999, 12, 31)] {
            assert!(Date::new(year, month, day).is_some(), "{year}-{month}-{day}");
        }
        for (year, month, day) in
            [(2025, 2, 29), (2100, 2, 29), (2025, 4, 31), (2025, 13, 1), (2025, 1, 0), (1969, 1, 1)]
        {
            assert!(Date::new(year, month, day).is_none(), "{year}-{month}-{day}");
        }
    }

    #[test]
    fn days_are_added_across_months_and_years() {
        for (days, then) in [
            (0, date(2025, 1, 15)),
            (-15, date(2024, 12, 31)),
            (45, date(2025, 3, 1)),
            (-322, date(2024, 2, 28)),
            (-321, date(2024, 2, 29)),
            (365, date(2026, 1, 15)),
        ] {
            assert_eq!(date(2025, 1, 15).plus_days(days), Some(then), "{days}");
        }
    }

    #[test]
    fn dates_out_of_range_are_rejected() {
        let day = date(2025, 1, 15);
        for days in [i64::MIN, -20_104, 2_912_794, i64::MAX] {
            assert_eq!(day.plus_days(days), None, "{days}");
        }
        assert_eq!(date(1970, 1, 2).plus_days(-1), Some(date(1970, 1, 1)));
        assert_eq!(date(9999, 12, 30).plus_days(1), Some(date(9999, 12, 31)));
    }

    #[test]
    fn adding_and_subtracting_a_day_round_trips() {
        let mut day = date(1970, 1, 1);
        for _ in 0..40_000 {
            let next = day.plus_days(1).unwrap();
            assert_eq!(next.plus_days(-1), Some(day));
            day = next;
        }
        assert_eq!(day, date(2079, 7, 8));
    }
}
