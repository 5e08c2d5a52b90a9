//! The host's clock in the operator's zone, in the forms that are shown and stored.

use wattle_plugin::clock::Civil;
use wattle_plugin::prelude::{Failure, clock, settings};

/// What the clocks of the operator show now.
pub(crate) struct Now {
    civil: Civil,
    offset_seconds: i32,
}

/// The present instant, in the zone of the setting `time_zone` or else the host's.
pub(crate) fn now() -> Result<Now, Failure> {
    let zone = settings::get::<String>("time_zone")?.filter(|zone| !zone.is_empty());
    let zoned = clock::to_zone(clock::now_ms(), zone.as_deref())?;
    Ok(Now { civil: zoned.civil, offset_seconds: zoned.offset_seconds })
}

impl Now {
    /// `2025-01-15`.
    pub(crate) fn day(&self) -> String {
        self.civil.date()
    }

    /// `2025-01-15T10:30:45+08:00`.
    pub(crate) fn iso(&self) -> String {
        let Civil { hour, minute, second, .. } = self.civil;
        let minutes = self.offset_seconds.abs() / 60;
        let sign = if self.offset_seconds < 0 { '-' } else { '+' };
        let (east, rest) = (minutes / 60, minutes % 60);
        format!("{}T{hour:02}:{minute:02}:{second:02}{sign}{east:02}:{rest:02}", self.day())
    }

    /// `20250115103045`, for file names.
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
    fn times_say_their_offset() {
        let now = host().run(now).unwrap();
        assert_eq!(now.day(), "2025-01-15");
        assert_eq!(now.iso(), "2025-01-15T10:30:45+08:00");
        assert_eq!(now.digits(), "20250115103045");
    }
}
