//! Conversion of expressions to instants, with the calendar of a time zone.

use wattle_plugin::clock::{self, Civil};
use wattle_plugin::prelude::{Failure, settings};

use crate::calendar::Date;
use crate::expression::Expression;

/// Whether "today" means the current time. All other days mean their first instant. Most people who
/// say "today" mean now.
const TODAY_IS_NOW: bool = true;

/// Setting with the IANA name of the time zone.
const ZONE_SETTING: &str = "date_time_zone";

/// Default time zone: that of users who write 昨天.
const DEFAULT_ZONE: &str = "Asia/Shanghai";

/// Maximum length of a gap at midnight, in milliseconds: clocks were never advanced by more than a
/// day.
const LONGEST_GAP_MS: i64 = 24 * 3_600_000;

/// Returns the instant of an expression in milliseconds since 1970; `None` for a date that does not
/// exist.
pub(crate) fn resolve(expression: Expression, now_ms: i64) -> Result<Option<i64>, Failure> {
    let zone = zone()?;
    let today = clock::to_zone(now_ms, Some(&zone))?.civil;
    let date = match expression {
        Expression::Relative { days: 0 } if TODAY_IS_NOW => return Ok(Some(now_ms)),
        Expression::Relative { days } => date_of(&today).and_then(|today| today.plus_days(days)),
        Expression::Absolute { year, month, day } => {
            Date::new(year.unwrap_or_else(|| i64::from(today.year)), month, day)
        }
    };
    date.map(|date| first_instant(date, &zone)).transpose()
}

/// Returns the configured time zone. An empty setting counts as none.
fn zone() -> Result<String, Failure> {
    let zone = settings::get::<String>(ZONE_SETTING)?.filter(|zone| !zone.is_empty());
    Ok(zone.unwrap_or_else(|| DEFAULT_ZONE.to_owned()))
}

fn date_of(civil: &Civil) -> Option<Date> {
    Date::new(i64::from(civil.year), i64::from(civil.month), i64::from(civil.day))
}

/// Returns midnight, or the first instant of a day whose midnight does not exist.
fn first_instant(date: Date, zone: &str) -> Result<i64, Failure> {
    let midnight = civil(date);
    // In a gap the host returns an instant after the gap, which may be later than its end.
    let late = clock::from_zone(midnight, Some(zone))?;
    if clock::to_zone(late, Some(zone))?.civil == midnight {
        return Ok(late);
    }
    let (mut before, mut within) = (late - LONGEST_GAP_MS, late);
    while within - before > 1 {
        let middle = before.midpoint(within);
        if clock::to_zone(middle, Some(zone))?.civil < midnight {
            before = middle;
        } else {
            within = middle;
        }
    }
    Ok(within)
}

fn civil(date: Date) -> Civil {
    Civil::midnight(narrow(date.year), narrow(date.month), narrow(date.day))
}

/// Converts a part of a date, which is always in the range of its type.
fn narrow<T: TryFrom<i64> + Default>(part: i64) -> T {
    T::try_from(part).unwrap_or_default()
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
            (relative(-20_104), None),
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
