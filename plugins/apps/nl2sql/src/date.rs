//! The current time in the configured time zone, in the formats that are shown and stored.

use wattle_plugin::clock::Civil;
use wattle_plugin::prelude::{Failure, clock, settings};

/// The current local time.
pub(crate) struct Now {
    civil: Civil,
    offset_seconds: i32,
}

/// Returns the current time in the zone of the setting `time_zone`. If the setting is empty, the
/// time zone of the host applies.
pub(crate) fn now() -> Result<Now, Failure> {
    let zone = settings::get::<String>("time_zone")?.filter(|zone| !zone.is_empty());
    let zoned = clock::to_zone(clock::now_ms(), zone.as_deref())?;
    Ok(Now { civil: zoned.civil, offset_seconds: zoned.offset_seconds })
}

impl Now {
    /// Returns the date: `2025-01-15`.
    pub(crate) fn day(&self) -> String {
        self.civil.date()
    }

    /// Returns the time with its offset: `2025-01-15T10:30:45+08:00`.
    pub(crate) fn iso(&self) -> String {
        let Civil { hour, minute, second, .. } = self.civil;
        let minutes = self.offset_seconds.abs() / 60;
        let sign = if self.offset_seconds < 0 { '-' } else { '+' };
        let (east, rest) = (minutes / 60, minutes % 60);
        format!("{}T{hour:02}:{minute:02}:{second:02}{sign}{east:02}:{rest:02}", self.day())
    }

    /// Returns the time as digits for file names: `20250115103045`.
    pub(crate) fn digits(&self) -> String {
        let Civil { hour, minute, second, .. } = self.civil;
        format!("{}{hour:02}{minute:02}{second:02}", self.day().replace('-', ""))
    }
}

#[cfg(test)]
mod tests {
    use super::now;
    use crate::testing::host;

    #[test]
    fn times_include_the_offset() {
        let now = host().run(now).unwrap();
        assert_eq!(now.day(), "2025-01-15");
        assert_eq!(now.iso(), "2025-01-15T10:30:45+08:00");
        assert_eq!(now.digits(), "20250115103045");
    }
}
