//! Civil times of zones with a fixed offset.

use crate::clock::calendar::days;
use crate::clock::civil::DAY_MS;
use crate::clock::{Civil, Zoned};

/// Converts an instant to the civil time of a zone.
pub(super) fn to_zone(unix_ms: i64, zone: &str, offset_seconds: i32) -> Zoned {
    let local_ms = unix_ms + i64::from(offset_seconds) * 1000;
    // 1970-01-01 was a Thursday.
    let weekday = (local_ms.div_euclid(DAY_MS) + 3).rem_euclid(7) + 1;
    Zoned {
        civil: Civil::utc(local_ms),
        offset_seconds,
        weekday: u8::try_from(weekday).unwrap_or_default(),
        zone: zone.to_owned(),
    }
}

/// Converts a civil time to an instant, in milliseconds since 1970.
pub(super) fn from_zone(civil: Civil, offset_seconds: i32) -> i64 {
    let seconds =
        i64::from(civil.hour) * 3600 + i64::from(civil.minute) * 60 + i64::from(civil.second)
            - i64::from(offset_seconds);
    let days = days(civil.year, civil.month, civil.day);
    days * DAY_MS + seconds * 1000 + i64::from(civil.millisecond)
}

#[cfg(test)]
mod tests {
    use super::{from_zone, to_zone};

    #[test]
    fn dates_convert_in_both_directions() {
        for (ms, date, weekday) in [
            (0, "1970-01-01", 4),
            (951_782_400_000, "2000-02-29", 2),
            (1_772_323_200_000, "2026-03-01", 7),
            (-86_400_000, "1969-12-31", 3),
        ] {
            let zoned = to_zone(ms, "UTC", 0);
            assert_eq!((zoned.civil.date().as_str(), zoned.weekday), (date, weekday));
            assert_eq!(from_zone(zoned.civil, 0), ms);
        }
    }

    #[test]
    fn offsets_shift_the_time() {
        let zoned = to_zone(1_772_323_199_999, "Asia/Tokyo", 9 * 3600);
        assert_eq!(zoned.civil.date(), "2026-03-01");
        assert_eq!((zoned.civil.hour, zoned.civil.millisecond), (8, 999));
        assert_eq!(from_zone(zoned.civil, 9 * 3600), 1_772_323_199_999);
    }
}
