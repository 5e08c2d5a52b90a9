//! Parses numbers in texts: `1,000`, `189.5`, `1.5万`, `两百`, `一千二`, `2k`.

/// A number in a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ParsedNumber {
    pub(super) value: f64,
    /// Index of the first character after the number.
    pub(super) end: usize,
    /// Whether it has Chinese numerals only, which may belong to a name.
    pub(super) numerals_only: bool,
}

/// Parses the number that begins at `start`.
pub(super) fn scan(chars: &[char], start: usize) -> Option<ParsedNumber> {
    scan_digits(chars, start).or_else(|| scan_numerals(chars, start))
}

fn scan_digits(chars: &[char], start: usize) -> Option<ParsedNumber> {
    let mut end = start;
    let mut text = String::new();
    while let Some(c) = chars.get(end) {
        match c {
            '0'..='9' => text.push(*c),
            '.' if !text.is_empty() && !text.contains('.') && is_digit(chars, end + 1) => {
                text.push('.');
            }
            ',' if !text.contains('.') && !text.is_empty() && is_group(chars, end + 1) => {}
            _ => break,
        }
        end += 1;
    }
    let value = text.parse::<f64>().ok()?;
    let (factor, end) = multiplier(chars, end);
    Some(ParsedNumber { value: value * factor, end, numerals_only: false })
}

fn is_digit(chars: &[char], at: usize) -> bool {
    chars.get(at).is_some_and(char::is_ascii_digit)
}

/// Returns true if exactly three digits follow, as in a group of thousands.
fn is_group(chars: &[char], at: usize) -> bool {
    (at..at + 3).all(|index| is_digit(chars, index)) && !is_digit(chars, at + 3)
}

/// Parses multipliers such as `万` or `k` directly after digits.
fn multiplier(chars: &[char], mut end: usize) -> (f64, usize) {
    let mut factor = 1.0;
    while let Some(unit) = chars.get(end).copied().and_then(unit_of) {
        factor *= unit;
        end += 1;
    }
    let letter = chars.get(end).is_some_and(|c| matches!(c, 'k' | 'K'));
    let word_continues = chars.get(end + 1).is_some_and(char::is_ascii_alphanumeric);
    if letter && !word_continues { (factor * 1_000.0, end + 1) } else { (factor, end) }
}

fn scan_numerals(chars: &[char], start: usize) -> Option<ParsedNumber> {
    let length = chars[start..].iter().take_while(|c| is_numeral(**c)).count();
    let value = chinese(&chars[start..start + length])?;
    Some(ParsedNumber { value, end: start + length, numerals_only: true })
}

fn is_numeral(c: char) -> bool {
    digit_of(c).is_some() || unit_of(c).is_some()
}

fn digit_of(c: char) -> Option<f64> {
    Some(match c {
        '零' | '〇' => 0.0,
        '一' => 1.0,
        '二' | '两' => 2.0,
        '三' => 3.0,
        '四' => 4.0,
        '五' => 5.0,
        '六' => 6.0,
        '七' => 7.0,
        '八' => 8.0,
        '九' => 9.0,
        _ => return None,
    })
}

fn unit_of(c: char) -> Option<f64> {
    Some(match c {
        '十' => 10.0,
        '百' => 100.0,
        '千' => 1_000.0,
        '万' => 10_000.0,
        '亿' => 100_000_000.0,
        _ => return None,
    })
}

/// Returns the value of a sequence of Chinese numerals.
///
/// A digit at the end counts in tenths of the preceding unit (`一千二` is 1200), unless a zero
/// precedes it (`一千零二`). Digits without units are decimal digits (`三二〇` is 320).
fn chinese(run: &[char]) -> Option<f64> {
    if run.is_empty() {
        return None;
    }
    let (mut total, mut section) = (0.0, 0.0);
    let mut digit: Option<f64> = None;
    let (mut last_unit, mut after_zero) = (1.0, false);
    for c in run {
        if let Some(value) = digit_of(*c) {
            after_zero |= value == 0.0;
            digit = Some(digit.map_or(value, |before| before * 10.0 + value));
            continue;
        }
        let unit = unit_of(*c)?;
        if unit >= 10_000.0 {
            total = (total + section + digit.unwrap_or(0.0)).max(1.0) * unit;
            section = 0.0;
        } else {
            section += digit.filter(|value| *value > 0.0).unwrap_or(1.0) * unit;
        }
        (digit, last_unit, after_zero) = (None, unit, false);
    }
    let scale = if last_unit >= 100.0 && !after_zero { last_unit / 10.0 } else { 1.0 };
    Some(total + section + digit.unwrap_or(0.0) * scale)
}

#[cfg(test)]
mod tests {
    use super::scan;

    fn check(text: &str, value: f64, rest: &str) {
        let chars: Vec<char> = text.chars().collect();
        let number = scan(&chars, 0).unwrap_or_else(|| panic!("no number in {text}"));
        assert!((number.value - value).abs() < 1e-9, "{text}: {} is not {value}", number.value);
        assert_eq!(chars[number.end..].iter().collect::<String>(), rest, "{text}");
    }

    #[test]
    fn digits_are_parsed() {
        check("100股", 100.0, "股");
        check("1,000 shares", 1_000.0, " shares");
        check("1,234,567.5", 1_234_567.5, "");
        check("100,50", 100.0, ",50");
        check("189.5.", 189.5, ".");
        check("1.5万股", 15_000.0, "股");
        check("3千", 3_000.0, "");
        check("2k shares", 2_000.0, " shares");
        check("2kg", 2.0, "kg");
    }

    #[test]
    fn numerals_are_parsed() {
        check("一百股", 100.0, "股");
        check("两百", 200.0, "");
        check("十二", 12.0, "");
        check("二十", 20.0, "");
        check("三百二十", 320.0, "");
        check("一千二", 1_200.0, "");
        check("一千零二", 1_002.0, "");
        check("一百五", 150.0, "");
        check("三二〇", 320.0, "");
        check("一万", 10_000.0, "");
        check("三万五", 35_000.0, "");
        check("十万", 100_000.0, "");
        check("两万三千四百五十六", 23_456.0, "");
        check("一亿", 100_000_000.0, "");
    }

    #[test]
    fn words_are_not_numbers() {
        for text in ["股", "腾讯", "", ".5", ",100"] {
            let chars: Vec<char> = text.chars().collect();
            assert_eq!(scan(&chars, 0), None, "{text}");
        }
    }
}
