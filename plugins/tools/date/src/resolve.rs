//! Conversion of expressions to instants, with the calendar of a time zone.

use wattle_plugin::clock::{self, Civil, ZoneSetting};
use wattle_plugin::prelude::Failure;

use crate::expression::Expression;

/// Years for which there are timestamps: from the epoch to the last year of four digits.
const YEARS: std::ops::RangeInclusive<i32> = 1970..=9999;

/// Whether "today" means the current time. All other days mean their first instant. Most people who
/// say "today" mean now.
const TODAY_IS_NOW: bool = true;

/// Time zone of the calendar, by default that of users who write 昨天.
const ZONE: ZoneSetting = ZoneSetting::new("date_time_zone").with_default("Asia/Shanghai");

/// Returns the instant of an expression in milliseconds since 1970; `None` for a date that does not
/// exist.
pub(crate) fn resolve(expression: Expression, now_ms: i64) -> Result<Option<i64>, Failure> {
    let zone = ZONE.zone()?;
    let today = clock::to_zone(now_ms, zone.as_deref())?.civil;
    let date = match expression {
        Expression::Relative { days: 0 } if TODAY_IS_NOW => return Ok(Some(now_ms)),
        Expression::Relative { days } => today.plus_days(days),
        Expression::Absolute { year, month, day } => {
            date(year.unwrap_or_else(|| i64::from(today.year)), month, day)
        }
    };
    let date = date.filter(|date| YEARS.contains(&date.year));
    date.map(|date| clock::first_instant(date, zone.as_deref())).transpose()
}

/// Returns a date, or `None` if it does not exist.
fn date(year: i64, month: i64, day: i64) -> Option<Civil> {
    let (month, day) = (u8::try_from(month).ok()?, u8::try_from(day).ok()?);
    Civil::checked_date(i32::try_from(year).ok()?, month, day)
}

#[cfg(test)]
mod tests {
    use wattle_plugin::testing::FakeHost;

    use super::{Expression, resolve};

    /// 2025-01-15 10:30:45.123 in Shanghai.
    const NOW_MS: i64 = 1_736_908_245_123;

    fn relative(days: i64) -> Expression {
        Expression::Relative { days }
    }

    fn absolute(year: Option<i64>, month: i64, day: i64) -> Expression {
        Expression::Absolute { year, month, day }
    }

    #[test]
    fn expressions_resolve_by_the_calendar() {
        let host = FakeHost::new().zone("Asia/Shanghai", 28_800);
        for (expression, instant) in [
            (relative(0), Some(NOW_MS)),
            (relative(-1), Some(1_736_784_000_000)),
            (relative(-2), Some(1_736_697_600_000)),
            (relative(1), Some(1_736_956_800_000)),
            (relative(-15), Some(1_735_574_400_000)),
            (absolute(None, 1, 2), Some(1_735_747_200_000)),
            (absolute(Some(2024), 2, 29), Some(1_709_136_000_000)),
            // Only "today" means now.
            (absolute(None, 1, 15), Some(1_736_870_400_000)),
            (absolute(None, 2, 30), None),
            (absolute(None, 4, 31), None),
            (absolute(Some(1969), 12, 31), None),
            (absolute(Some(10_000), 1, 1), None),
            (relative(-20_103), Some(-28_800_000)),
            (relative(-20_104), None),
            (relative(2_912_793), Some(253_402_185_600_000)),
            (relative(2_912_794), None),
            (relative(i64::MIN), None),
            (relative(i64::MAX), None),
        ] {
            let resolved = host.run(|| resolve(expression, NOW_MS)).unwrap();
            assert_eq!(resolved, instant, "{expression:?}");
        }
    }

    #[test]
    fn s2_07_without_a_year_it_is_the_current_one_also_near_its_turn() {
        let host = FakeHost::new().zone("Asia/Shanghai", 28_800);
        let december_30 =
            |year, now_ms| host.run(|| resolve(absolute(year, 12, 30), now_ms)).unwrap();
        // 10:30:45.123 on 2 January 2026 in Shanghai, and 00:30 there while it was still 2025 in
        // UTC.
        for now_ms in [1_767_321_045_123, 1_767_198_600_000] {
            assert_eq!(december_30(None, now_ms), Some(1_798_560_000_000));
            assert_eq!(december_30(Some(2025), now_ms), Some(1_767_024_000_000));
        }
    }

    #[test]
    fn time_zone_is_configurable() {
        let host = FakeHost::new().zone("UTC", 0).zone("Asia/Tokyo", 32_400);
        let host = host.setting("date_time_zone", "UTC");
        let yesterday = host.run(|| resolve(relative(-1), NOW_MS)).unwrap();
        assert_eq!(yesterday, Some(1_736_812_800_000));
        let host = host.setting("date_time_zone", "Mars/Olympus");
        assert!(host.run(|| resolve(relative(-1), NOW_MS)).is_err());
        let host = host.setting("date_time_zone", "").zone("Asia/Shanghai", 28_800);
        let yesterday = host.run(|| resolve(relative(-1), NOW_MS)).unwrap();
        assert_eq!(yesterday, Some(1_736_784_000_000));
    }
}
