//! Dates in a data set: relative to the current day, or absolute.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use serde_json::Value;
use wattle_run::ports::Clock as _;

use crate::config::ClockConfig;
use crate::error::Error;
use crate::host::clock::HostClock;

/// The current time and a time zone.
#[derive(Clone, Debug)]
pub(crate) struct Today {
    /// Milliseconds since 1970.
    pub(crate) now_ms: i64,
    /// Time zone of dates without a time zone.
    pub(crate) zone: TimeZone,
}

impl Today {
    /// Returns the time and the time zone of the host's clock.
    pub(crate) fn from_clock(config: &ClockConfig) -> Result<Self, Error> {
        let clock = HostClock::new(config)?;
        let zone = TimeZone::get(clock.time_zone()).unwrap_or(TimeZone::UTC);
        Ok(Self { now_ms: clock.now_ms(), zone })
    }
}

/// A date in a data set.
#[derive(Clone, Debug)]
pub(crate) struct DateSpec {
    kind: DateKind,
    zone: Option<TimeZone>,
}

#[derive(Clone, Debug)]
enum DateKind {
    Relative(Span),
    MonthDay(i8, i8),
    Absolute(Date),
}

impl DateSpec {
    /// Parses `-1d`, `+2w`, `2025-01-15` or `01-15`. `zone` is the time zone in which the date is
    /// compared.
    pub(crate) fn parse(text: &str, zone: Option<&str>) -> Result<Self, String> {
        let kind =
            parse_relative(text).or_else(|| parse_absolute(text)).or_else(|| parse_month_day(text));
        let kind = kind.ok_or_else(|| {
            format!(
                "`{text}` is not a date: use `0d`, `-1d`, `+2w`, `-1m`, `2025-01-15` or `01-15`"
            )
        })?;
        let zone = zone
            .map(|name| TimeZone::get(name).map_err(|_| format!("there is no time zone `{name}`")));
        Ok(Self { kind, zone: zone.transpose()? })
    }

    /// Returns true if a JSON value is on this date. The value can be a date, a time that begins
    /// with the date, or a number of milliseconds since 1970.
    pub(crate) fn matches(&self, value: &Value, today: &Today) -> bool {
        let zone = self.zone.as_ref().unwrap_or(&today.zone);
        let Some(day) = self.date(today.now_ms, zone) else { return false };
        match value {
            Value::String(text) => text
                .strip_prefix(&day.to_string())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['T', ' '])),
            Value::Number(number) => {
                number.as_i64().and_then(|ms| date_of(ms, zone)).is_some_and(|it| it == day)
            }
            _ => false,
        }
    }

    fn date(&self, now_ms: i64, zone: &TimeZone) -> Option<Date> {
        let today = date_of(now_ms, zone)?;
        match &self.kind {
            DateKind::Relative(span) => today.checked_add(*span).ok(),
            DateKind::MonthDay(month, day) => Date::new(today.year(), *month, *day).ok(),
            DateKind::Absolute(date) => Some(*date),
        }
    }
}

fn date_of(ms: i64, zone: &TimeZone) -> Option<Date> {
    Some(Timestamp::from_millisecond(ms).ok()?.to_zoned(zone.clone()).date())
}

fn parse_relative(text: &str) -> Option<DateKind> {
    let unit = text.chars().last()?;
    let count: i32 = text.strip_suffix(unit)?.parse().ok()?;
    let span = Span::new();
    let span = match unit {
        'd' => span.try_days(count),
        'w' => span.try_weeks(count),
        'm' => span.try_months(count),
        'y' => span.try_years(count),
        _ => return None,
    };
    span.ok().map(DateKind::Relative)
}

fn parse_absolute(text: &str) -> Option<DateKind> {
    text.parse::<Date>().ok().filter(|date| date.to_string() == text).map(DateKind::Absolute)
}

fn parse_month_day(text: &str) -> Option<DateKind> {
    let (month, day) = text.split_once('-')?;
    if month.len() != 2 || day.len() != 2 {
        return None;
    }
    let (month, day) = (month.parse().ok()?, day.parse().ok()?);
    // 2024 is a leap year, so February 29 is valid.
    Date::new(2024, month, day).ok().map(|_| DateKind::MonthDay(month, day))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// 2025-01-15, 10:30 in Shanghai.
    const NOW_MS: i64 = 1_736_908_245_000;

    fn matches(day: &str, value: Value) -> bool {
        let zone = TimeZone::get("Asia/Shanghai").unwrap();
        DateSpec::parse(day, None).unwrap().matches(&value, &Today { now_ms: NOW_MS, zone })
    }

    #[test]
    fn dates_are_relative_to_today() {
        assert!(matches("0d", json!("2025-01-15")));
        assert!(matches("-1d", json!("2025-01-14T23:59:59+08:00")));
        assert!(matches("+1w", json!("2025-01-22 08:00")));
        assert!(matches("-1m", json!("2024-12-15")));
        assert!(matches("01-02", json!("2025-01-02")));
        assert!(matches("2024-02-29", json!("2024-02-29")));
        assert!(!matches("0d", json!("2025-01-150")));
        assert!(!matches("0d", json!(null)));
    }

    #[test]
    fn numbers_are_milliseconds_in_the_time_zone() {
        assert!(matches("-1d", json!(1_736_784_000_000_i64)), "midnight in Shanghai");
        assert!(!matches("-1d", json!(1_736_783_999_999_i64)));
        let zone = TimeZone::UTC;
        let day = DateSpec::parse("0d", Some("America/New_York")).unwrap();
        let today = Today { now_ms: NOW_MS, zone };
        assert!(day.matches(&json!("2025-01-14"), &today), "it is still evening there");
    }

    #[test]
    fn invalid_dates_are_refused() {
        for text in ["", "1", "1h", "13-40", "2025-1-2", "yesterday"] {
            assert!(DateSpec::parse(text, None).is_err(), "{text}");
        }
        assert!(DateSpec::parse("0d", Some("Mars/Base")).unwrap_err().contains("Mars/Base"));
    }
}
