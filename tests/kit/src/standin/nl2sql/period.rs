//! Periods of time in questions.

use jiff::ToSpan as _;
use jiff::civil::{Date, date};

use crate::standin::dates::MONTH_NAMES;

/// A period of days, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Period {
    pub(super) start: Date,
    pub(super) end: Date,
}

/// Computes a period from today.
type Reckon = fn(Date) -> Option<Period>;

/// Words for periods relative to today.
const RELATIVE: [(&str, Reckon); 14] = [
    ("今年", this_year),
    ("this year", this_year),
    ("去年", last_year),
    ("last year", last_year),
    ("本月", this_month),
    ("这个月", this_month),
    ("this month", this_month),
    ("上个月", last_month),
    ("上月", last_month),
    ("last month", last_month),
    ("昨天", yesterday),
    ("yesterday", yesterday),
    ("今天", today_only),
    ("today", today_only),
];

/// Returns true if a text names a period.
pub(super) fn has_any(lower: &str) -> bool {
    find(lower, date(2025, 1, 15)).is_some()
}

/// Returns the period that a text names. The most specific form is tried first, such as a month
/// before its year.
pub(super) fn find(lower: &str, today: Date) -> Option<Period> {
    last_days(lower, today)
        .or_else(|| month_of_year(lower))
        .or_else(|| english_month(lower))
        .or_else(|| {
            let found = RELATIVE.iter().find(|(word, _)| lower.contains(word))?;
            found.1(today)
        })
        .or_else(|| year(lower))
}

/// Parses `最近30天` and `last 30 days`.
fn last_days(lower: &str, today: Date) -> Option<Period> {
    let rest = ["最近", "近", "last "].iter().find_map(|word| lower.split_once(word))?.1;
    let (days, rest) = number(rest.trim_start())?;
    if !rest.trim_start().starts_with('天') && !rest.trim_start().starts_with("day") {
        return None;
    }
    let start = today.checked_sub(i64::from(days.saturating_sub(1)).days()).ok()?;
    Some(Period { start, end: today })
}

/// Parses `2024年3月` and `2024-03`.
fn month_of_year(lower: &str) -> Option<Period> {
    for (at, year) in years(lower) {
        let rest = lower[at + 4..].trim_start_matches(['年', '-', '/']);
        let Some((month, after)) = number(rest) else { continue };
        let is_written = after.starts_with('月') || lower[at + 4..].starts_with('-');
        if is_written && (1..=12).contains(&month) {
            return whole_month(year, i8::try_from(month).ok()?);
        }
    }
    None
}

/// Parses `March 2024`.
fn english_month(lower: &str) -> Option<Period> {
    let (_, year) = years(lower).next()?;
    let month = MONTH_NAMES.iter().position(|name| lower.contains(name))?;
    whole_month(year, i8::try_from(month + 1).ok()?)
}

/// Parses `2024年` and `in 2024`.
fn year(lower: &str) -> Option<Period> {
    let (_, year) = years(lower).next()?;
    whole_year(year)
}

/// Returns the numbers of exactly four digits that look like years, with their positions.
fn years(lower: &str) -> impl Iterator<Item = (usize, i16)> + '_ {
    lower.char_indices().filter_map(|(at, _)| {
        let digits = lower.get(at..at + 4)?;
        let is_own = !lower[..at].ends_with(|it: char| it.is_ascii_digit())
            && !lower[at + 4..].starts_with(|it: char| it.is_ascii_digit());
        let year: i16 = digits.parse().ok()?;
        (is_own && (1990..=2100).contains(&year)).then_some((at, year))
    })
}

fn number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

fn whole_year(year: i16) -> Option<Period> {
    let start = Date::new(year, 1, 1).ok()?;
    Some(Period { start, end: start.last_of_year() })
}

fn whole_month(year: i16, month: i8) -> Option<Period> {
    let start = Date::new(year, month, 1).ok()?;
    Some(Period { start, end: start.last_of_month() })
}

fn this_year(today: Date) -> Option<Period> {
    whole_year(today.year())
}

fn last_year(today: Date) -> Option<Period> {
    whole_year(today.year() - 1)
}

fn this_month(today: Date) -> Option<Period> {
    whole_month(today.year(), today.month())
}

fn last_month(today: Date) -> Option<Period> {
    let before = today.first_of_month().yesterday().ok()?;
    whole_month(before.year(), before.month())
}

fn yesterday(today: Date) -> Option<Period> {
    let day = today.yesterday().ok()?;
    Some(Period { start: day, end: day })
}

#[expect(clippy::unnecessary_wraps, reason = "all functions of the table have one type")]
fn today_only(today: Date) -> Option<Period> {
    Some(Period { start: today, end: today })
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::find;

    #[test]
    fn periods_are_found() {
        for (text, expected) in [
            ("2024年的订单", "2024-01-01 2024-12-31"),
            ("orders in 2023", "2023-01-01 2023-12-31"),
            ("2024年2月的订单", "2024-02-01 2024-02-29"),
            ("2024-03 的订单", "2024-03-01 2024-03-31"),
            ("orders of march 2024", "2024-03-01 2024-03-31"),
            ("今年的订单", "2025-01-01 2025-12-31"),
            ("去年每月的订单", "2024-01-01 2024-12-31"),
            ("上个月的订单", "2024-12-01 2024-12-31"),
            ("昨天的订单", "2025-01-14 2025-01-14"),
            ("最近7天的订单", "2025-01-09 2025-01-15"),
            ("orders of the last 30 days", "2024-12-17 2025-01-15"),
            ("金额大于20240元的订单", ""),
            ("所有订单", ""),
        ] {
            let found = find(text, date(2025, 1, 15));
            let shown = found.map(|it| format!("{} {}", it.start, it.end)).unwrap_or_default();
            assert_eq!(shown, expected, "{text}");
        }
    }
}
