//! Times as texts: UTC with milliseconds, so that the texts sort by time.

use wattle_plugin::prelude::{Failure, clock};

/// Returns a time as `2025-01-15T02:30:45.000Z`.
pub(crate) fn text(unix_ms: i64) -> Result<String, Failure> {
    let civil = clock::to_zone(unix_ms, Some("UTC"))?.civil;
    let (hour, minute, second) = (civil.hour, civil.minute, civil.second);
    let date = civil.date();
    Ok(format!("{date}T{hour:02}:{minute:02}:{second:02}.{:03}Z", civil.millisecond))
}

#[cfg(test)]
mod tests {
    use wattle_plugin::testing::FakeHost;

    use super::text;

    #[test]
    fn times_have_milliseconds() {
        let host = FakeHost::new().zone("Asia/Shanghai", 28_800);
        let shown = host.run(|| text(1_736_908_245_007));
        assert_eq!(shown.unwrap(), "2025-01-15T02:30:45.007Z");
    }
}
