//! Arithmetic of the proleptic Gregorian calendar.

/// Number of days in 400 Gregorian years.
const ERA_DAYS: i64 = 146_097;

/// Number of days from 0000-03-01, where the years of the algorithm begin, to 1970-01-01.
const EPOCH_DAYS: i64 = 719_468;

/// Number of days in five months from March on. The lengths of the months repeat after these.
const FIVE_MONTHS: i64 = 153;

/// Returns the number of days of a month, or `None` for a month out of range.
///
/// ```
/// use wattle_plugin::clock::days_in_month;
///
/// assert_eq!(days_in_month(2024, 2), Some(29));
/// assert_eq!(days_in_month(2024, 13), None);
/// ```
pub fn days_in_month(year: i32, month: u8) -> Option<u8> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if is_leap => Some(29),
        2 => Some(28),
        4 | 6 | 9 | 11 => Some(30),
        1 | 3 | 5 | 7 | 8 | 10 | 12 => Some(31),
        _ => None,
    }
}

/// Returns the year, month and day for a number of days since 1970-01-01, or `None` for a year out
/// of range. The algorithm begins years in March, so that the leap day is the last day of a year.
pub(crate) fn date(days: i64) -> Option<(i32, u8, u8)> {
    let days = days.checked_add(EPOCH_DAYS)?;
    let era = days.div_euclid(ERA_DAYS);
    let day_of_era = days.rem_euclid(ERA_DAYS);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / FIVE_MONTHS;
    let day = day_of_year - (FIVE_MONTHS * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    Some((i32::try_from(year).ok()?, u8::try_from(month).ok()?, u8::try_from(day).ok()?))
}

/// Returns the number of days from 1970-01-01 to a date.
pub(crate) fn days(year: i32, month: u8, day: u8) -> i64 {
    let month = i64::from(month);
    let year = i64::from(year) - i64::from(month <= 2);
    let shifted = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (FIVE_MONTHS * shifted + 2) / 5 + i64::from(day) - 1;
    let year_of_era = year.rem_euclid(400);
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    year.div_euclid(400) * ERA_DAYS + day_of_era - EPOCH_DAYS
}

#[cfg(test)]
mod tests {
    use super::{date, days, days_in_month};
    use crate::vectors::vectors;

    #[test]
    fn months_have_their_number_of_days() {
        for (year, month, expected) in vectors::<Vec<(i32, u8, Option<u8>)>>("days_in_month") {
            assert_eq!(days_in_month(year, month), expected, "{year}-{month}");
        }
    }

    #[test]
    fn numbers_of_days_and_dates_convert_in_both_directions() {
        for (number, day) in [
            (0, (1970, 1, 1)),
            (-1, (1969, 12, 31)),
            (11_016, (2000, 2, 29)),
            (-719_468, (0, 3, 1)),
            (-719_528, (0, 1, 1)),
        ] {
            assert_eq!(date(number), Some(day));
            assert_eq!(days(day.0, day.1, day.2), number);
        }
        assert_eq!((date(i64::MAX), date(i64::MIN), date(1 << 50)), (None, None, None));
    }

    #[test]
    fn days_of_four_hundred_years_follow_one_another() {
        let mut number = days(1800, 1, 1);
        for year in 1800..2200 {
            for month in 1..=12 {
                for day in 1..=days_in_month(year, month).unwrap() {
                    assert_eq!(date(number), Some((year, month, day)));
                    assert_eq!(days(year, month, day), number);
                    number += 1;
                }
            }
        }
    }
}
