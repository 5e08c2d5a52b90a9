//! Parses dates in texts, relative to the "today" of the prompt.

use jiff::{ToSpan, civil::Date};

/// A date in a text. `date` is `None` for a relative date if today is unknown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ParsedDate {
    pub(super) date: Option<Date>,
    /// Index of the first character after the date.
    pub(super) end: usize,
}

/// Relative dates and their offsets in days. A word precedes its own prefixes.
const WORDS: &[(&str, i64)] = &[
    ("the day before yesterday", -2),
    ("yesterday", -1),
    ("today", 0),
    ("大前天", -3),
    ("前天", -2),
    ("前日", -2),
    ("昨天", -1),
    ("昨日", -1),
    ("昨晚", -1),
    ("今天", 0),
    ("今日", 0),
    ("今早", 0),
    ("今晚", 0),
];

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// Maximum distance between an ISO date and the word that marks it as today, in characters.
const TODAY_REACH: usize = 24;

const TODAY_WORDS: &[&str] = &["今天", "今日", "当前", "现在", "today", "current", "now"];

/// Parses the date that begins at `start`.
pub(super) fn scan(chars: &[char], start: usize, today: Option<Date>) -> Option<ParsedDate> {
    if start > 0 && chars[start].is_ascii_alphanumeric() {
        // A date does not begin inside of a number or a word.
        let before = chars[start - 1];
        if before.is_ascii_alphanumeric() || (before == '.' && chars[start].is_ascii_digit()) {
            return None;
        }
    }
    full(chars, start)
        .or_else(|| days_ago(chars, start, today))
        .or_else(|| month_and_day(chars, start, today))
        .or_else(|| relative_word(chars, start, today))
        .or_else(|| english(chars, start, today))
}

/// Returns the date that a prompt calls today: an ISO date shortly after a word such as `今天` or
/// `today`.
pub(super) fn today_in(text: &str) -> Option<Date> {
    let chars: Vec<char> = text.to_lowercase().chars().collect();
    (0..chars.len()).find_map(|start| {
        if start > 0 && chars[start - 1].is_ascii_digit() {
            return None;
        }
        let date = full(&chars, start)?.date;
        let before: String = chars[start.saturating_sub(TODAY_REACH)..start].iter().collect();
        TODAY_WORDS.iter().any(|word| before.contains(word)).then_some(date)?
    })
}

/// Parses `2025-01-10`, `2025/1/10`, `2025.01.10` and `2025年1月10日`.
fn full(chars: &[char], start: usize) -> Option<ParsedDate> {
    let (year, at) = integer(chars, start, 4)?;
    let separator = *chars.get(at).filter(|c| matches!(c, '-' | '/' | '.' | '年'))?;
    if at - start != 4 {
        return None;
    }
    let (month, at) = integer(chars, at + 1, 2)?;
    let second = *chars.get(at)?;
    let expected = if separator == '年' { '月' } else { separator };
    if second != expected {
        return None;
    }
    let (day, at) = integer(chars, at + 1, 2)?;
    let date = valid(year, month, day)?;
    Some(ParsedDate { date: Some(date), end: skip_day_word(chars, at) })
}

/// Parses `1月10日` and `1/10`. The year is the latest one with which the date is not in the future.
fn month_and_day(chars: &[char], start: usize, today: Option<Date>) -> Option<ParsedDate> {
    let (month, at) = integer(chars, start, 2)?;
    let separator = *chars.get(at).filter(|c| matches!(c, '月' | '/'))?;
    let (day, at) = integer(chars, at + 1, 2)?;
    if separator == '/' && chars.get(at).is_some_and(|c| c.is_ascii_digit() || *c == '.') {
        return None;
    }
    // 2024 is a leap year, so 29 February is valid.
    valid(2024, month, day)?;
    Some(ParsedDate { date: latest(month, day, today), end: skip_day_word(chars, at) })
}

/// Parses `3天前` and `3 days ago`.
fn days_ago(chars: &[char], start: usize, today: Option<Date>) -> Option<ParsedDate> {
    let (days, at) = integer(chars, start, 3)?;
    let end = ["天前", "天以前", " 天前", " days ago", " day ago"]
        .iter()
        .find_map(|word| starts_with(chars, at, word).then(|| at + word.chars().count()))?;
    Some(ParsedDate { date: today.and_then(|today| shift(today, -i64::from(days))), end })
}

fn relative_word(chars: &[char], start: usize, today: Option<Date>) -> Option<ParsedDate> {
    let (word, days) = WORDS.iter().find(|(word, _)| starts_with(chars, start, word))?;
    let end = start + word.chars().count();
    Some(ParsedDate { date: today.and_then(|today| shift(today, *days)), end })
}

/// Parses `Jan 10, 2025`, `January 10th` and `10 Jan 2025`.
fn english(chars: &[char], start: usize, today: Option<Date>) -> Option<ParsedDate> {
    let (month, day, at) = if let Some((month, at)) = month_name(chars, start) {
        let (day, at) = integer(chars, skip_spaces(chars, at), 2)?;
        (month, day, at)
    } else {
        let (day, at) = integer(chars, start, 2)?;
        let (month, at) = month_name(chars, skip_spaces(chars, at))?;
        (month, day, at)
    };
    valid(2024, month, day)?;
    let at = ["st", "nd", "rd", "th"]
        .iter()
        .find_map(|word| starts_with(chars, at, word).then_some(at + 2))
        .unwrap_or(at);
    let year_at = skip_spaces(chars, if chars.get(at) == Some(&',') { at + 1 } else { at });
    if let Some((year, end)) = integer(chars, year_at, 4)
        && end - year_at == 4
        && (1990..2100).contains(&year)
    {
        return Some(ParsedDate { date: valid(year, month, day), end });
    }
    Some(ParsedDate { date: latest(month, day, today), end: at })
}

/// Full names of the months.
pub(super) const MONTH_NAMES: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

fn month_name(chars: &[char], start: usize) -> Option<(u16, usize)> {
    let word: String = chars
        .get(start..)?
        .iter()
        .take_while(|c| c.is_ascii_alphabetic())
        .map(char::to_ascii_lowercase)
        .collect();
    let index = MONTHS.iter().zip(MONTH_NAMES).position(|(short, full)| {
        word == *short || word == full || word == "sept" && full == "september"
    })?;
    let month = u16::try_from(index + 1).ok()?;
    let end = start + word.len();
    Some((month, if chars.get(end) == Some(&'.') { end + 1 } else { end }))
}

fn latest(month: u16, day: u16, today: Option<Date>) -> Option<Date> {
    let today = today?;
    let year = u16::try_from(today.year()).ok()?;
    valid(year, month, day).filter(|date| *date <= today).or_else(|| valid(year - 1, month, day))
}

fn valid(year: u16, month: u16, day: u16) -> Option<Date> {
    Date::new(year.try_into().ok()?, month.try_into().ok()?, day.try_into().ok()?).ok()
}

fn shift(today: Date, days: i64) -> Option<Date> {
    today.checked_add(days.days()).ok()
}

fn integer(chars: &[char], start: usize, max_digits: usize) -> Option<(u16, usize)> {
    let digits: String = chars.get(start..)?.iter().take_while(|c| c.is_ascii_digit()).collect();
    if digits.is_empty() || digits.len() > max_digits {
        return None;
    }
    Some((digits.parse().ok()?, start + digits.len()))
}

fn skip_spaces(chars: &[char], mut at: usize) -> usize {
    while chars.get(at) == Some(&' ') {
        at += 1;
    }
    at
}

fn skip_day_word(chars: &[char], at: usize) -> usize {
    if chars.get(at).is_some_and(|c| matches!(c, '日' | '号')) { at + 1 } else { at }
}

fn starts_with(chars: &[char], start: usize, word: &str) -> bool {
    let mut rest = chars.iter().skip(start);
    word.chars().all(|expected| rest.next().is_some_and(|c| c.eq_ignore_ascii_case(&expected)))
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::{scan, today_in};

    fn check(text: &str, expected: &str) {
        let chars: Vec<char> = text.chars().collect();
        let parsed = scan(&chars, 0, Some(date(2025, 1, 15)));
        let shown = parsed.and_then(|parsed| parsed.date).map(|date| date.to_string());
        assert_eq!(shown.as_deref().unwrap_or(""), expected, "{text}");
    }

    #[test]
    fn absolute_dates_are_parsed() {
        check("2025-01-10", "2025-01-10");
        check("2025/1/10 买", "2025-01-10");
        check("2025.01.10", "2025-01-10");
        check("2025年1月10日买入", "2025-01-10");
        check("1月10日", "2025-01-10");
        check("12月31号", "2024-12-31");
        check("1/10", "2025-01-10");
        check("Jan 10, 2024", "2024-01-10");
        check("January 3rd", "2025-01-03");
        check("10 Dec", "2024-12-10");
    }

    #[test]
    fn relative_dates_are_parsed() {
        check("昨天", "2025-01-14");
        check("前天", "2025-01-13");
        check("大前天", "2025-01-12");
        check("今天", "2025-01-15");
        check("Yesterday", "2025-01-14");
        check("the day before yesterday", "2025-01-13");
        check("3天前", "2025-01-12");
        check("10 days ago", "2025-01-05");
    }

    #[test]
    fn other_numbers_are_not_dates() {
        for text in ["320", "2025", "13月1日", "100股", "2025-13-01", "1.5", "may buy"] {
            check(text, "");
        }
    }

    #[test]
    fn relative_dates_without_today_are_recognized_but_unknown() {
        let chars: Vec<char> = "昨天买".chars().collect();
        let parsed = scan(&chars, 0, None).unwrap();
        assert_eq!((parsed.date, parsed.end), (None, 2));
    }

    #[test]
    fn today_is_taken_from_the_prompt() {
        let today = Some(date(2025, 1, 15));
        assert_eq!(today_in("你是助手。今天是 2025-01-15，请解析"), today);
        assert_eq!(today_in("Today's date is 2025-01-15."), today);
        assert_eq!(today_in("当前日期：2025年1月15日"), today);
        assert_eq!(today_in("format YYYY-MM-DD, e.g. 2020-05-05; today: 2025-01-15"), today);
        assert_eq!(today_in("买入于 2025-01-10"), None);
    }
}
