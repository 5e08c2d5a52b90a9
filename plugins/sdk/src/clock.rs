//! The current time. Every result is journaled, so a node that is executed again gets the same
//! time.
//!
//! ```
//! use wattle_plugin::{Failure, clock, testing::FakeHost};
//!
//! // 2026-03-01T22:30:00Z, where clocks are eight hours ahead.
//! let host = FakeHost::new().now_ms(1_772_404_200_000).zone("Asia/Shanghai", 8 * 3600);
//! host.run(|| {
//!     assert_eq!(clock::time_zone(), "Asia/Shanghai");
//!     let today = clock::to_zone(clock::now_ms(), None)?;
//!     assert_eq!(today.civil.date(), "2026-03-02");
//!     assert_eq!(clock::from_zone(today.civil, None)?, clock::now_ms());
//!     Ok::<_, Failure>(())
//! })?;
//! # Ok::<_, Failure>(())
//! ```

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::host;

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

    /// Formats the date, such as `2026-03-01`.
    pub fn date(&self) -> String {
        format!("{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
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
