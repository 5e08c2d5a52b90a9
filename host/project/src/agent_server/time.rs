//! Times in the form of the Agent Server API.

use jiff::Timestamp;

/// Formats milliseconds since 1970 in UTC, such as `2026-11-21T20:46:20.022000+00:00`. A time that
/// the calendar cannot represent becomes the first or last time of the calendar.
pub fn format_time_with_micros(ms: i64) -> String {
    let end = if ms < 0 { Timestamp::MIN } else { Timestamp::MAX };
    let time = Timestamp::from_millisecond(ms).unwrap_or(end);
    time.strftime("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string()
}

#[cfg(test)]
mod tests {
    use super::format_time_with_micros;

    #[test]
    fn times_have_microseconds_and_an_offset() {
        assert_eq!(format_time_with_micros(1_736_908_245_123), "2025-01-15T02:30:45.123000+00:00");
        assert_eq!(format_time_with_micros(0), "1970-01-01T00:00:00.000000+00:00");
        assert!(format_time_with_micros(i64::MAX).starts_with("9999"));
    }
}
