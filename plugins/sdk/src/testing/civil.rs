//! Calendar arithmetic for zones with a fixed offset.

use crate::clock::{Civil, Zoned};

const DAY_MS: i64 = 86_400_000;
/// Number of days in 400 Gregorian years.
const ERA_DAYS: i64 = 146_097;
/// Number of days from 0000-03-01, where the years of the algorithm begin, to 1970-01-01.
const EPOCH_DAYS: i64 = 719_468;
/// Number of days in five months from March on. The lengths of the months repeat after these.
const FIVE_MONTHS: i64 = 153;

/// Converts an instant to the civil time of a zone.
pub(super) fn to_zone(unix_ms: i64, zone: &str, offset_seconds: i32) -> Zoned {
    let local = unix_ms + i64::from(offset_seconds) * 1000;
    let days = local.div_euclid(DAY_MS);
    let ms = local.rem_euclid(DAY_MS);
    let (year, month, day) = date(days);
    let civil = Civil {
        year: narrow(year),
        month: narrow(month),
        day: narrow(day),
        hour: narrow(ms / 3_600_000),
        minute: narrow(ms / 60_000 % 60),
        second: narrow(ms / 1000 % 60),
        millisecond: narrow(ms % 1000),
    };
    // 1970-01-01 was a Thursday.
    let weekday = narrow((days + 3).rem_euclid(7) + 1);
    Zoned { civil, offset_seconds, weekday, zone: zone.to_owned() }
}

/// Converts a number that is always in range, except for a year. A year out of range becomes 0.
fn narrow<T: TryFrom<i64> + Default>(number: i64) -> T {
    T::try_from(number).unwrap_or_default()
}

/// Converts a civil time to an instant, in milliseconds since 1970.
pub(super) fn from_zone(civil: Civil, offset_seconds: i32) -> i64 {
    let seconds =
        i64::from(civil.hour) * 3600 + i64::from(civil.minute) * 60 + i64::from(civil.second)
            - i64::from(offset_seconds);
    days(civil) * DAY_MS + seconds * 1000 + i64::from(civil.millisecond)
}

/// Returns the year, month and day for a number of days since 1970-01-01. The algorithm begins
/// years in March, so that the leap day is the last day of a year.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH_DAYS;
    let era = days.div_euclid(ERA_DAYS);
    let day_of_era = days.rem_euclid(ERA_DAYS);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / FIVE_MONTHS;
    let day = day_of_year - (FIVE_MONTHS * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Returns the number of days from 1970-01-01 to a date.
fn days(civil: Civil) -> i64 {
    let month = i64::from(civil.month);
    let year = i64::from(civil.year) - i64::from(month <= 2);
    let year_of_era = year.rem_euclid(400);
    let shifted = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (FIVE_MONTHS * shifted + 2) / 5 + i64::from(civil.day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    year.div_euclid(400) * ERA_DAYS + day_of_era - EPOCH_DAYS
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
