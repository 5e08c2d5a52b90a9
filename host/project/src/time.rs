//! Times in the format of client protocols.

/// Formats milliseconds since 1970 as RFC 3339 in UTC, such as `2025-01-15T02:30:45.123Z`.
///
/// The algorithm counts years from March, so that the leap day is the last day of a year; see
/// Hinnant, "chrono-Compatible Low-Level Date Algorithms".
pub(crate) fn format_time_with_millis(ms: i64) -> String {
    const DAY_MS: i64 = 24 * 60 * 60 * 1000;
    /// Days from March 1 of the year 0 to January 1, 1970.
    const EPOCH_DAYS: i64 = 719_468;
    /// Days of 400 years, after which the calendar repeats.
    const ERA_DAYS: i64 = 146_097;
    let (days, ms) = (ms.div_euclid(DAY_MS) + EPOCH_DAYS, ms.rem_euclid(DAY_MS));
    let (era, day) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
    let ms = ms % 1000;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

#[cfg(test)]
mod tests {
    use super::format_time_with_millis;

    #[test]
    fn times_follow_the_gregorian_calendar() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_736_908_245_123, "2025-01-15T02:30:45.123Z"),
            (4_107_542_399_000, "2100-02-28T23:59:59.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(format_time_with_millis(ms), text);
        }
    }
}
