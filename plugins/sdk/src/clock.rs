//! Time. Every answer is journaled, so a re-executed node sees the same time.
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

/// A date and time in some zone (proleptic Gregorian calendar).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Civil {
    /// Negative before the year 0.
    pub year: i32,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59.
    pub second: u8,
    /// 0 to 999.
    pub millisecond: u16,
}

impl Civil {
    /// Midnight of a date.
    pub fn midnight(year: i32, month: u8, day: u8) -> Self {
        Self { year, month, day, hour: 0, minute: 0, second: 0, millisecond: 0 }
    }

    /// The date as `2026-03-01`.
    pub fn date(&self) -> String {
        format!("{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

/// A civil time with what its zone says of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zoned {
    /// What the clocks show.
    pub civil: Civil,
    /// Seconds east of UTC.
    pub offset_seconds: i32,
    /// 1 for Monday to 7 for Sunday.
    pub weekday: u8,
    /// IANA name of the zone.
    pub zone: String,
}

/// Milliseconds since 1970-01-01T00:00:00Z.
pub fn now_ms() -> i64 {
    host::clock::now()
}

/// Nanoseconds of a clock that never goes back, for durations.
pub fn monotonic_ns() -> u64 {
    host::clock::monotonic()
}

/// IANA name of the operator's time zone, such as `Asia/Shanghai`.
pub fn time_zone() -> String {
    host::clock::time_zone()
}

/// What the clocks of a zone show at an instant. Without a zone: the operator's.
pub fn to_zone(unix_ms: i64, zone: Option<&str>) -> Result<Zoned, Failure> {
    host::clock::to_zone(unix_ms, zone)
}

/// The instant at which the clocks of a zone show a civil time. In a gap the later, in a fold the
/// earlier instant is taken.
pub fn from_zone(civil: Civil, zone: Option<&str>) -> Result<i64, Failure> {
    host::clock::from_zone(civil, zone)
}
