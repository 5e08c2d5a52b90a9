//! Settings with a time zone.

use crate::clock::{Zoned, now_in};
use crate::failure::Failure;
use crate::settings;

/// A setting of the app with the IANA name of a time zone.
///
/// ```
/// use wattle_plugin::clock::ZoneSetting;
/// use wattle_plugin::{Failure, testing::FakeHost};
///
/// const ZONE: ZoneSetting = ZoneSetting::new("time_zone").with_default("Asia/Shanghai");
///
/// // 2025-01-15T02:30:45Z, where clocks are eight hours ahead.
/// let host = FakeHost::new().now_ms(1_736_908_245_000).zone("Asia/Shanghai", 8 * 3600);
/// assert_eq!(host.run(|| ZONE.now())?.iso(), "2025-01-15T10:30:45+08:00");
/// # Ok::<_, Failure>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct ZoneSetting {
    name: &'static str,
    default: Option<&'static str>,
}

impl ZoneSetting {
    /// Describes the setting with a name. If it is missing or blank, the operator's time zone
    /// applies.
    pub const fn new(name: &'static str) -> Self {
        Self { name, default: None }
    }

    /// Sets the time zone that applies if the setting is missing or blank.
    pub const fn with_default(self, zone: &'static str) -> Self {
        Self { default: Some(zone), ..self }
    }

    /// Returns the time zone; `None` is the operator's time zone.
    ///
    /// # Errors
    ///
    /// `invalid` if the setting is not a text.
    pub fn zone(&self) -> Result<Option<String>, Failure> {
        Ok(settings::text(self.name)?.or_else(|| self.default.map(str::to_owned)))
    }

    /// Returns the current civil time in the time zone.
    ///
    /// # Errors
    ///
    /// `invalid` if the setting is not a text, or for an unknown time zone.
    pub fn now(&self) -> Result<Zoned, Failure> {
        now_in(self.zone()?.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::ZoneSetting;
    use crate::testing::FakeHost;

    const ZONE: ZoneSetting = ZoneSetting::new("time_zone");

    #[test]
    fn blank_setting_is_the_default_zone() {
        for (setting, zone_setting, zone) in [
            (None, ZONE, None),
            (Some(""), ZONE, None),
            (Some(" "), ZONE.with_default("UTC"), Some("UTC")),
            (None, ZONE.with_default("UTC"), Some("UTC")),
            (Some("Asia/Tokyo "), ZONE.with_default("UTC"), Some("Asia/Tokyo")),
        ] {
            let settings = setting.into_iter();
            let host = settings.fold(FakeHost::new(), |host, zone| host.setting("time_zone", zone));
            let found = host.run(|| zone_setting.zone()).unwrap();
            assert_eq!(found.as_deref(), zone, "{setting:?} {zone_setting:?}");
        }
        let host = FakeHost::new().setting("time_zone", 8);
        assert_eq!(host.run(|| ZONE.now()).unwrap_err().code, "invalid");
    }

    #[test]
    fn current_time_is_that_of_the_zone() {
        // 2025-01-14T18:30:00Z is the next morning in Shanghai.
        let host = FakeHost::new()
            .now_ms(1_736_879_400_000)
            .zone("America/New_York", -18_000)
            .zone("Asia/Shanghai", 28_800);
        assert_eq!(host.run(|| ZONE.now()).unwrap().civil.date(), "2025-01-15");
        let host = host.setting("time_zone", "America/New_York");
        assert_eq!(host.run(|| ZONE.now()).unwrap().civil.date(), "2025-01-14");
        let host = host.setting("time_zone", "Mars/Olympus");
        assert_eq!(host.run(|| ZONE.now()).unwrap_err().code, "invalid");
    }
}
