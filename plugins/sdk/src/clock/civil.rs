//! Civil times, and their forms as texts.

use serde::{Deserialize, Serialize};

use crate::clock::calendar::{date, days, days_in_month};

/// Number of milliseconds of a day without a change of the clock.
pub(crate) const DAY_MS: i64 = 86_400_000;

/// A date and time without a time zone, in the proleptic Gregorian calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Civil {
    /// Year; negative before the year 0.
    pub year: i32,
    /// Month, 1 to 12.
    pub month: u8,
    /// Day of the month, 1 to 31.
    pub day: u8,
    /// Hour, 0 to 23.
    pub hour: u8,
    /// Minute, 0 to 59.
    pub minute: u8,
    /// Second, 0 to 59.
    pub second: u8,
    /// Millisecond, 0 to 999.
    pub millisecond: u16,
}

impl Civil {
    /// Creates the civil time of midnight at the beginning of a date.
    pub fn midnight(year: i32, month: u8, day: u8) -> Self {
        Self { year, month, day, hour: 0, minute: 0, second: 0, millisecond: 0 }
    }

    /// Creates the civil time of midnight at the beginning of a date, or returns `None` if the date
    /// does not exist.
    ///
    /// ```
    /// use wattle_plugin::clock::Civil;
    ///
    /// assert_eq!(Civil::checked_date(2024, 2, 29), Some(Civil::midnight(2024, 2, 29)));
    /// assert_eq!(Civil::checked_date(2025, 2, 29), None);
    /// ```
    pub fn checked_date(year: i32, month: u8, day: u8) -> Option<Self> {
        let last = days_in_month(year, month)?;
        (1..=last).contains(&day).then(|| Self::midnight(year, month, day))
    }

    /// Returns the same time of the day a number of days later, or earlier if negative. Returns
    /// `None` for a year out of range.
    ///
    /// ```
    /// use wattle_plugin::clock::Civil;
    ///
    /// let yesterday = Civil::midnight(2024, 3, 1).plus_days(-1);
    /// assert_eq!(yesterday, Some(Civil::midnight(2024, 2, 29)));
    /// ```
    pub fn plus_days(self, days_later: i64) -> Option<Self> {
        let (year, month, day) =
            date(days(self.year, self.month, self.day).checked_add(days_later)?)?;
        Some(Self { year, month, day, ..self })
    }

    /// Returns the civil time of an instant in UTC, in milliseconds since 1970.
    pub(crate) fn utc(unix_ms: i64) -> Self {
        // Milliseconds of 64 bits reach no year out of range.
        let (year, month, day) = date(unix_ms.div_euclid(DAY_MS)).unwrap_or_default();
        let ms = unix_ms.rem_euclid(DAY_MS);
        Self {
            year,
            month,
            day,
            hour: narrow(ms / 3_600_000),
            minute: narrow(ms / 60_000 % 60),
            second: narrow(ms / 1000 % 60),
            millisecond: narrow(ms % 1000),
        }
    }

    /// Formats the date, such as `2026-03-01`.
    pub fn date(&self) -> String {
        format!("{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }

    /// Formats the time of the day, such as `10:30:45`.
    pub fn time(&self) -> String {
        format!("{:02}:{:02}:{:02}", self.hour, self.minute, self.second)
    }

    /// Formats date and time as digits for names of files, such as `20260301103045`.
    pub fn digits(&self) -> String {
        let Self { year, month, day, hour, minute, second, .. } = self;
        format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}")
    }
}

/// Converts a part of a time, which is always in the range of its type.
fn narrow<T: TryFrom<i64> + Default>(part: i64) -> T {
    T::try_from(part).unwrap_or_default()
}

/// A civil time in a time zone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zoned {
    /// Local date and time.
    pub civil: Civil,
    /// Offset from UTC in seconds, positive to the east.
    pub offset_seconds: i32,
    /// Day of the week, 1 for Monday to 7 for Sunday.
    pub weekday: u8,
    /// IANA name of the time zone.
    pub zone: String,
}

impl Zoned {
    /// Formats the time with its offset from UTC, such as `2025-01-15T10:30:45+08:00`.
    pub fn iso(&self) -> String {
        let sign = if self.offset_seconds < 0 { '-' } else { '+' };
        let minutes = self.offset_seconds.abs() / 60;
        let (hours, minutes) = (minutes / 60, minutes % 60);
        format!("{}T{}{sign}{hours:02}:{minutes:02}", self.civil.date(), self.civil.time())
    }
}

#[cfg(test)]
mod tests {
    use super::{Civil, Zoned};
    use crate::vectors::vectors;

    /// Year, month and day.
    type Date = (i32, u8, u8);

    #[test]
    fn times_have_fixed_forms() {
        type Case = (i64, i32, String, String);
        for (unix_ms, offset_seconds, iso, digits) in vectors::<Vec<Case>>("iso") {
            let civil = Civil::utc(unix_ms);
            let zoned = Zoned { civil, offset_seconds, weekday: 1, zone: String::new() };
            assert_eq!((zoned.iso(), civil.digits()), (iso, digits));
        }
        assert_eq!(
            (Civil::utc(i64::MIN).year, Civil::utc(i64::MAX).year),
            (-292_275_055, 292_278_994)
        );
    }

    #[test]
    fn only_dates_that_exist_are_created() {
        for (year, month, day) in [(2024, 2, 29), (2000, 2, 29), (1970, 1, 1), (9999, 12, 31)] {
            assert!(Civil::checked_date(year, month, day).is_some(), "{year}-{month}-{day}");
        }
        for (year, month, day) in
            [(2025, 2, 29), (2100, 2, 29), (2025, 4, 31), (2025, 13, 1), (2025, 0, 1), (2025, 1, 0)]
        {
            assert_eq!(Civil::checked_date(year, month, day), None, "{year}-{month}-{day}");
        }
    }

    #[test]
    fn days_are_added_across_months_and_years() {
        let noon = |(year, month, day)| Civil { hour: 12, ..Civil::midnight(year, month, day) };
        for (day, days, then) in vectors::<Vec<(Date, i64, Option<Date>)>>("plus_days") {
            assert_eq!(noon(day).plus_days(days), then.map(noon), "{days}");
        }
        for days in [i64::MIN, i64::MAX] {
            assert_eq!(noon((2025, 1, 15)).plus_days(days), None, "{days}");
        }
    }
}
