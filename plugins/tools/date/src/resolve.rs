//! The instant that an expression stands for, by the calendar of a zone.

use wattle_plugin::clock::{self, Civil};
use wattle_plugin::prelude::{Failure, settings};

use crate::calendar::Date;
use crate::expression::Expression;

/// What "today" stands for: this very moment, since somebody who says it mostly means now, and not
/// the midnight before, as for every other day.
const TODAY_IS_NOW: bool = true;

/// Setting with the IANA name of the zone whose calendar counts.
const ZONE_SETTING: &str = "date_time_zone";

/// The zone without a setting: that of those who write 昨天.
const DEFAULT_ZONE: &str = "Asia/Shanghai";

/// Milliseconds within which a day begins whose midnight does not exist: no clock was ever put
/// forward by more than a day.
const LONGEST_GAP_MS: i64 = 24 * 3_600_000;

/// The instant in milliseconds since 1970; `None` for a date that does not exist.
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

/// The operator's word for the zone; an empty one is none.
fn zone() -> Result<String, Failure> {
    let zone = settings::get::<String>(ZONE_SETTING)?.filter(|zone| !zone.is_empty());
    Ok(zone.unwrap_or_else(|| DEFAULT_ZONE.to_owned()))
}

fn date_of(civil: &Civil) -> Option<Date> {
    Date::new(i64::from(civil.year), i64::from(civil.month), i64::from(civil.day))
}

/// Midnight, or where clocks are put forward over it the first instant of the day.
fn first_instant(date: Date, zone: &str) -> Result<i64, Failure> {
    let midnight = civil(date);
    // Over a gap the host takes an instant after it, which may be later than the gap's end.
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

/// A part of a date, which is in the range of its type by the date's own invariant.
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
    fn instants_are_those_of_the_calendar() {
        let host = FakeHost::new().zone("Asia/Shanghai", 28_800);
        for (expression, instant) in [
            (relative(0), Some(NOW_MS)),
            (relative(-1), Some(1_736_784_000_000)),
            (relative(-2), Some(1_736_697_600_000)),
            (relative(1), Some(1_736_956_800_000)),
            (relative(-15), Some(1_735_574_400_000)),
            (absolute(None, 1, 2), Some(1_735_747_200_000)),
            (absolute(Some(2024), 2, 29), Some(1_709_136_000_000)),
            // Only the word "today" means now.
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
        // 10:30:45.123 on 2 January 2026 in Shanghai, and half past midnight there, while it was 2025 in UTC.
        for now_ms in [1_767_321_045_123, 1_767_198_600_000] {
            assert_eq!(december_30(None, now_ms), Some(1_798_560_000_000));
            assert_eq!(december_30(Some(2025), now_ms), Some(1_767_024_000_000));
        }
    }

    #[test]
    fn the_zone_can_be_set() {
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
