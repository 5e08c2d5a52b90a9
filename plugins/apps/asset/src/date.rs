//! Calendar dates as `YYYY-MM-DD`, and the current date.

use wattle_plugin::clock::{Civil, ZoneSetting};
use wattle_plugin::prelude::Failure;

/// Time zone that decides what today is.
const ZONE: ZoneSetting = ZoneSetting::new("time_zone");

/// Returns the current date by the host's clock.
pub(crate) fn today() -> Result<String, Failure> {
    Ok(ZONE.now()?.civil.date())
}

/// Parses a date with the year first, any of the usual separators and an optional time after it.
/// Returns `None` for any other text.
pub(crate) fn normalize(text: &str) -> Option<String> {
    let date = text.trim().split([' ', 'T']).next()?;
    let date = date.trim_end_matches('日');
    let mut parts = date.split(['-', '/', '.', '年', '月']).map(str::parse::<u32>);
    let (year, month, day) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    let (month, day) = (u8::try_from(month).ok()?, u8::try_from(day).ok()?);
    let date = Civil::checked_date(i32::try_from(year).ok()?, month, day)?;
    (parts.next().is_none() && (1900..=9999).contains(&year)).then(|| date.date())
}

#[cfg(test)]
mod tests {
    use wattle_plugin::testing::FakeHost;

    use super::{normalize, today};

    #[test]
    fn today_is_the_date_in_the_configured_zone() {
        // 2025-01-14T18:30:00Z is the next morning in Shanghai.
        let host = FakeHost::new()
            .now_ms(1_736_879_400_000)
            .zone("America/New_York", -18_000)
            .zone("Asia/Shanghai", 28_800);
        assert_eq!(host.run(today).unwrap(), "2025-01-15");
        let host = host.setting("time_zone", "America/New_York");
        assert_eq!(host.run(today).unwrap(), "2025-01-14");
    }

    #[test]
    fn common_date_formats_are_parsed() {
        for text in
            ["2025-01-05", "2025/1/5", " 2025.1.5 10:30", "2025年1月5日", "2025-01-05T08:00"]
        {
            assert_eq!(normalize(text).as_deref(), Some("2025-01-05"), "{text}");
        }
        for text in ["", "yesterday", "2025-02-29", "2025-13-01", "01-05", "2025-01-05-06"] {
            assert_eq!(normalize(text), None, "{text}");
        }
        assert_eq!(normalize("2024-02-29").as_deref(), Some("2024-02-29"));
    }
}
