//! The clock of the host: the clock of the machine, or a fixed time.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use wattle_run::ports::Clock;

use crate::config::ClockConfig;
use crate::error::Error;

/// Time zone if the time zone of the machine is unknown.
const FALLBACK_ZONE: &str = "UTC";

/// The clock of the host.
#[derive(Debug)]
pub struct HostClock {
    fixed_ms: Option<i64>,
    zone: String,
    start: Instant,
}

impl HostClock {
    /// Creates the configured clock.
    ///
    /// # Errors
    ///
    /// [`Error::Setup`] if the fixed time is invalid.
    pub fn new(config: &ClockConfig) -> Result<Self, Error> {
        let parse = |text: &String| {
            text.parse::<Timestamp>().map(Timestamp::as_millisecond).map_err(|error| Error::Setup {
                what: "the clock",
                message: format!("`clock.fixed` is not a time with an offset: {error}"),
            })
        };
        let machine = || TimeZone::system().iana_name().map(ToOwned::to_owned);
        Ok(Self {
            fixed_ms: config.fixed.as_ref().map(parse).transpose()?,
            zone: config.time_zone.clone().or_else(machine).unwrap_or_else(|| FALLBACK_ZONE.into()),
            start: Instant::now(),
        })
    }
}

impl Clock for HostClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the time")]
    fn now_ms(&self) -> i64 {
        self.fixed_ms.unwrap_or_else(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
        })
    }

    fn monotonic_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn time_zone(&self) -> &str {
        &self.zone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_clock_returns_the_configured_time() {
        let config = ClockConfig {
            time_zone: Some("Asia/Shanghai".into()),
            fixed: Some("2025-01-15T10:30:45+08:00".into()),
        };
        let clock = HostClock::new(&config).unwrap();
        assert_eq!(clock.now_ms(), 1_736_908_245_000);
        assert_eq!(clock.time_zone(), "Asia/Shanghai");
    }
}
