//! The current time, and dates in a time zone.
//!
//! Every result of the host is journaled, so a node that is executed again gets the same time.
//!
//! ```
//! use wattle_plugin::clock::{self, Civil, ZoneSetting};
//! use wattle_plugin::{Failure, testing::FakeHost};
//!
//! // An app has a setting for its time zone. Without it, the operator's zone applies.
//! const ZONE: ZoneSetting = ZoneSetting::new("time_zone");
//!
//! // 2026-03-01T22:30:00Z, where clocks are eight hours ahead.
//! let host = FakeHost::new().now_ms(1_772_404_200_000).zone("Asia/Shanghai", 8 * 3600);
//! host.run(|| {
//!     assert_eq!(clock::time_zone(), "Asia/Shanghai");
//!     assert_eq!(clock::utc(clock::now_ms()), "2026-03-01T22:30:00.000Z");
//!
//!     let zone = ZONE.zone()?;
//!     let now = clock::now_in(zone.as_deref())?;
//!     assert_eq!(now.iso(), "2026-03-02T06:30:00+08:00");
//!     assert_eq!(clock::from_zone(now.civil, zone.as_deref())?, clock::now_ms());
//!
//!     // Yesterday, from its first instant on.
//!     let yesterday = now.civil.plus_days(-1);
//!     assert_eq!(yesterday.map(|day| day.date()).as_deref(), Some("2026-03-01"));
//!     let begins_ms = clock::first_instant(Civil::midnight(2026, 3, 1), zone.as_deref())?;
//!     assert_eq!(clock::utc_seconds(begins_ms), "2026-02-28T16:00:00Z");
//!     Ok::<_, Failure>(())
//! })?;
//! # Ok::<_, Failure>(())
//! ```

pub(crate) mod calendar;
pub(crate) mod civil;
mod zone_setting;

pub use self::calendar::days_in_month;
pub use self::civil::{Civil, Zoned};
pub use self::zone_setting::ZoneSetting;
use crate::failure::Failure;
use crate::host;

/// Maximum length of a gap at midnight, in milliseconds: clocks were never advanced by more than a
/// day.
const LONGEST_GAP_MS: i64 = 24 * 3_600_000;

/// Returns the time in milliseconds since 1970-01-01T00:00:00Z.
pub fn now_ms() -> i64 {
    host::clock::now()
}

/// Returns a monotonic time in nanoseconds, for measuring durations.
pub fn monotonic_ns() -> u64 {
    host::clock::monotonic()
}

/// Returns the IANA name of the operator's time zone, such as `Asia/Shanghai`.
pub fn time_zone() -> String {
    host::clock::time_zone()
}

/// Returns the current civil time in a time zone. `None` selects the operator's time zone.
///
/// # Errors
///
/// `invalid` for an unknown time zone.
pub fn now_in(zone: Option<&str>) -> Result<Zoned, Failure> {
    to_zone(now_ms(), zone)
}

/// Converts an instant, in milliseconds since 1970, to the civil time in a time zone. `None`
/// selects the operator's time zone.
pub fn to_zone(unix_ms: i64, zone: Option<&str>) -> Result<Zoned, Failure> {
    host::clock::to_zone(unix_ms, zone)
}

/// Converts a civil time in a time zone to an instant, in milliseconds since 1970. `None` selects
/// the operator's time zone. A time in a gap becomes the later instant, a time in a fold the
/// earlier one.
pub fn from_zone(civil: Civil, zone: Option<&str>) -> Result<i64, Failure> {
    host::clock::from_zone(civil, zone)
}

/// Returns the first instant of a day in a time zone, in milliseconds since 1970: midnight, or the
/// end of the gap if clocks are advanced at midnight. `None` selects the operator's time zone. The
/// time of the day of `day` is ignored.
///
/// # Errors
///
/// `invalid` for an unknown time zone or a date that does not exist.
pub fn first_instant(day: Civil, zone: Option<&str>) -> Result<i64, Failure> {
    let midnight = Civil::midnight(day.year, day.month, day.day);
    // In a gap the host returns an instant after the gap, which may be later than its end.
    let late = from_zone(midnight, zone)?;
    if to_zone(late, zone)?.civil == midnight {
        return Ok(late);
    }
    first_from(midnight, late, |unix_ms| Ok(to_zone(unix_ms, zone)?.civil))
}

/// Returns the first instant whose civil time is `from` or later. `late` is such an instant, and
/// the instant [`LONGEST_GAP_MS`] before it is none.
fn first_from(
    from: Civil,
    late: i64,
    civil_at: impl Fn(i64) -> Result<Civil, Failure>,
) -> Result<i64, Failure> {
    let (mut before, mut within) = (late - LONGEST_GAP_MS, late);
    while within - before > 1 {
        let middle = before.midpoint(within);
        if civil_at(middle)? < from {
            before = middle;
        } else {
            within = middle;
        }
    }
    Ok(within)
}

/// Formats an instant, in milliseconds since 1970, as `2025-01-15T02:30:45.007Z`. Such texts sort
/// by time. The calculation calls no function of the host.
pub fn utc(unix_ms: i64) -> String {
    let civil = Civil::utc(unix_ms);
    format!("{}T{}.{:03}Z", civil.date(), civil.time(), civil.millisecond)
}

/// Formats an instant, in milliseconds since 1970, to the second: `2025-01-15T02:30:45Z`. The
/// calculation calls no function of the host.
pub fn utc_seconds(unix_ms: i64) -> String {
    let civil = Civil::utc(unix_ms);
    format!("{}T{}Z", civil.date(), civil.time())
}

#[cfg(test)]
mod tests {
    use super::{Civil, first_from, first_instant, now_in, utc, utc_seconds};
    use crate::testing::FakeHost;
    use crate::vectors::vectors;

    #[test]
    fn utc_has_milliseconds_or_seconds() {
        for (unix_ms, milliseconds, seconds) in vectors::<Vec<(i64, String, String)>>("utc") {
            assert_eq!((utc(unix_ms), utc_seconds(unix_ms)), (milliseconds, seconds));
        }
    }

    #[test]
    fn days_begin_in_the_time_zone() {
        // 2025-01-14T18:30:00Z is the next morning in Shanghai.
        let host = FakeHost::new()
            .now_ms(1_736_879_400_000)
            .zone("America/New_York", -18_000)
            .zone("Asia/Shanghai", 28_800);
        for (zone, date, begins_ms) in [
            (None, "2025-01-15", 1_736_870_400_000),
            (Some("America/New_York"), "2025-01-14", 1_736_830_800_000),
        ] {
            let today = host.run(|| now_in(zone)).unwrap().civil;
            assert_eq!(today.date(), date);
            assert_eq!(host.run(|| first_instant(today, zone)), Ok(begins_ms));
        }
        assert!(host.run(|| now_in(Some("Mars/Olympus"))).is_err());
    }

    #[test]
    fn first_instant_of_a_day_without_midnight_is_the_end_of_the_gap() {
        // Clocks go from 23:30 to 00:30 of the next day.
        let gap_ms = 1_736_897_400_000;
        let civil_at = |unix_ms: i64| {
            let advanced_ms = if unix_ms < gap_ms { 0 } else { 3_600_000 };
            Ok(Civil::utc(unix_ms + advanced_ms))
        };
        let midnight = Civil::midnight(2025, 1, 15);
        assert_eq!(first_from(midnight, gap_ms + 1_800_000, civil_at), Ok(gap_ms));
    }
}
