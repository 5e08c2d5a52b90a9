//! A month in the app's time zone: its days, and the instants at which they begin.

use wattle_plugin::clock::{self, Civil, ZoneSetting};
use wattle_plugin::prelude::Failure;

/// Time zone in which days begin: that of the tool `date`.
const ZONE: ZoneSetting = ZoneSetting::new("date_time_zone").with_default("Asia/Shanghai");

/// Years that a month can have. The clock of the host ends with the year 9999, which therefore has
/// a last month without an end.
const YEARS: std::ops::RangeInclusive<i32> = 1970..=9998;

/// A month of a year.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Month {
    year: i32,
    month: u8,
}

impl Month {
    /// Parses a month such as `2025-01`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (year, month) = text.split_once('-')?;
        let digits = |text: &str, length| {
            text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit())
        };
        if !digits(year, 4) || !digits(month, 2) {
            return None;
        }
        let (year, month) = (year.parse().ok()?, month.parse().ok()?);
        (YEARS.contains(&year) && (1..=12).contains(&month)).then_some(Self { year, month })
    }

    /// Returns the month of a date.
    fn of(civil: &Civil) -> Self {
        Self { year: civil.year, month: civil.month }
    }

    /// Returns the month as `2025-01`.
    pub(crate) fn text(self) -> String {
        format!("{:04}-{:02}", self.year, self.month)
    }

    fn next(self) -> Self {
        match self.month {
            12 => Self { year: self.year + 1, month: 1 },
            month => Self { month: month + 1, ..self },
        }
    }

    fn midnight(self, day: u8) -> Civil {
        Civil::midnight(self.year, self.month, day)
    }
}

/// A month in the app's time zone.
#[derive(Debug)]
pub(crate) struct Calendar {
    pub(crate) month: Month,
    /// IANA name of the time zone.
    pub(crate) zone: String,
    /// Current date as `2025-01-15`.
    pub(crate) today: String,
    /// First instant of each day and of the day after the last, in milliseconds since the Unix
    /// epoch.
    begins_ms: Vec<i64>,
}

impl Calendar {
    /// Creates the calendar of a month, by default of the current one.
    pub(crate) fn new(month: Option<Month>) -> Result<Self, Failure> {
        let zone = ZONE.zone()?;
        let now = clock::now_in(zone.as_deref())?;
        let month = month.unwrap_or_else(|| Month::of(&now.civil));
        let last = clock::days_in_month(month.year, month.month).unwrap_or_default();
        let midnights = (1..=last).map(|day| month.midnight(day));
        let midnights = midnights.chain([month.next().midnight(1)]);
        let begins_ms = midnights.map(|day| clock::first_instant(day, zone.as_deref()));
        let begins_ms = begins_ms.collect::<Result<_, _>>()?;
        Ok(Self { month, today: now.civil.date(), zone: now.zone, begins_ms })
    }

    /// Returns the first instant of the month and that of the next month, in milliseconds since the
    /// Unix epoch.
    pub(crate) fn period(&self) -> (i64, i64) {
        let (first, last) = (self.begins_ms.first(), self.begins_ms.last());
        (first.copied().unwrap_or_default(), last.copied().unwrap_or_default())
    }

    /// Returns the date of an instant, or `None` outside of the month.
    pub(crate) fn date(&self, date_ms: i64) -> Option<String> {
        let (from, to) = self.period();
        let day = self.begins_ms.partition_point(|begins| *begins <= date_ms);
        let is_inside = (from..to).contains(&date_ms);
        is_inside.then(|| format!("{}-{day:02}", self.month.text()))
    }
}

#[cfg(test)]
mod tests {
    use wattle_plugin::testing::FakeHost;

    use super::{Calendar, Month};

    /// 2025-01-15 10:30:45.123 in Shanghai.
    const NOW_MS: i64 = 1_736_908_245_123;

    fn calendar(month: Option<&str>) -> Calendar {
        let host = FakeHost::new().now_ms(NOW_MS).zone("Asia/Shanghai", 28_800);
        host.run(|| Calendar::new(month.and_then(Month::parse))).unwrap()
    }

    #[test]
    fn only_months_are_parsed() {
        for text in ["1970-01", "2025-01", "9998-12"] {
            assert_eq!(Month::parse(text).map(Month::text).as_deref(), Some(text));
        }
        for text in ["", "2025", "2025-1", "2025-13", "2025-00", "+025-01", "2025-01-01"] {
            assert_eq!(Month::parse(text), None, "{text}");
        }
        for text in ["1969-12", "9999-01", "9999-12"] {
            assert_eq!(Month::parse(text), None, "{text}");
        }
    }

    #[test]
    fn month_begins_and_ends_at_midnight_in_the_zone() {
        let january = calendar(None);
        assert_eq!((january.month.text().as_str(), &*january.today), ("2025-01", "2025-01-15"));
        assert_eq!(january.period(), (1_735_660_800_000, 1_738_339_200_000));
        assert_eq!(calendar(Some("2024-12")).period().1, 1_735_660_800_000);
        assert_eq!(calendar(Some("2024-02")).begins_ms.len(), 30, "29 days and the end");
        assert_eq!(january.date(1_735_660_800_000).as_deref(), Some("2025-01-01"));
        assert_eq!(january.date(1_738_339_199_999).as_deref(), Some("2025-01-31"));
        assert_eq!(january.date(1_738_339_200_000), None);
    }
}
