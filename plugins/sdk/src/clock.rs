//! The current time, and dates in a time zone.
//!
//! Every result of the host is journaled, so a node that is executed again gets the same time.
//!
//! ```
//! use wattle_plugin::{Failure, clock, testing::FakeHost};
//!
//! // 2026-03-01T22:30:00Z, where clocks are eight hours ahead.
//! let host = FakeHost::new().now_ms(1_772_404_200_000).zone("Asia/Shanghai", 8 * 3600);
//! host.run(|| {
//!     assert_eq!(clock::time_zone(), "Asia/Shanghai");
//!     assert_eq!(clock::utc(clock::now_ms()), "2026-03-01T22:30:00.000Z");
//!
//!     let now = clock::to_zone(clock::now_ms(), None)?;
//!     assert_eq!(now.iso(), "2026-03-02T06:30:00+08:00");
//!     assert_eq!(clock::from_zone(now.civil, None)?, clock::now_ms());
//!     let yesterday = now.civil.plus_days(-1);
//!     assert_eq!(yesterday.map(|day| day.date()).as_deref(), Some("2026-03-01"));
//!     Ok::<_, Failure>(())
//! })?;
//! # Ok::<_, Failure>(())
//! ```

pub(crate) mod calendar;
pub(crate) mod civil;

pub use self::calendar::days_in_month;
pub use self::civil::{Civil, Zoned};
use crate::failure::Failure;
use crate::host;

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
    use super::{utc, utc_seconds};

    #[test]
    fn utc_has_milliseconds_or_seconds() {
        for (unix_ms, milliseconds, seconds) in [
            (1_736_908_245_007, "2025-01-15T02:30:45.007Z", "2025-01-15T02:30:45Z"),
            (0, "1970-01-01T00:00:00.000Z", "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59Z"),
        ] {
            assert_eq!(
                (utc(unix_ms).as_str(), utc_seconds(unix_ms).as_str()),
                (milliseconds, seconds)
            );
        }
    }
}
