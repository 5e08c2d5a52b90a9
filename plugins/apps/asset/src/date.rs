//! Calendar dates as `YYYY-MM-DD`, and the current date.

use wattle_plugin::prelude::{Failure, clock, settings};

/// Returns the current date by the host's clock, in the time zone of the setting `time_zone`. If
/// the setting is empty, the time zone of the host applies.
pub(crate) fn today() -> Result<String, Failure> {
    let zone = settings::get::<String>("time_zone")?.filter(|zone| !zone.is_empty());
    Ok(clock::to_zone(clock::now_ms(), zone.as_deref())?.civil.date())
}

/// Returns the current time as `YYYY-MM-DDThh:mm:ssZ`.
pub(crate) fn now() -> Result<String, Failure> {
    let civil = clock::to_zone(clock::now_ms(), Some("UTC"))?.civil;
    let (hour, minute, second) = (civil.hour, civil.minute, civil.second);
    Ok(format!("{}T{hour:02}:{minute:02}:{second:02}Z", civil.date()))
}

/// Parses a date with the year first, any of the usual separators and an optional time after it.
/// Returns `None` for any other text.
pub(crate) fn normalize(text: &str) -> Option<String> {
    let date = text.trim().split([' ', 'T']).next()?;
    let date = date.trim_end_matches('日');
    let mut parts = date.split(['-', '/', '.', '年', '月']).map(str::parse::<u32>);
    let (year, month, day) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    let is_date = parts.next().is_none()
        && (1900..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days_of(year, month)).contains(&day);
    is_date.then(|| format!("{year:04}-{month:02}-{day:02}"))
}

fn days_of(year: u32, month: u32) -> u32 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use wattle_plugin::testing::FakeHost;

    use super::{normalize, now, today};

    #[test]
    fn today_is_the_date_in_the_configured_zone() {
        // 2025-01-14T18:30:00Z is the next morning in Shanghai.
        let host = FakeHost::new()
            .now_ms(1_736_879_400_000)
            .zone("America/New_York", -18_000)
            .zone("Asia/Shanghai", 28_800);
        assert_eq!(host.run(today).unwrap(), "2025-01-15");
        assert_eq!(host.run(now).unwrap(), "2025-01-14T18:30:00Z");
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
