//! Tickers in their usual form, however a service or a person writes them: `BRK.B` for the United
//! States, `0700.HK`, `600519.SS`, `000001.SZ` and `920748.BJ`.
//!
//! What may mean several securities is not guessed. It stays as it was written.

mod exchange;

use crate::listings;
use crate::state::UNKNOWN_TICKER;
use crate::ticker::exchange::{Exchange, SYMBOL_LETTERS, is_mainland, is_number};
use crate::width;

/// What stands in place of a ticker that was not given.
const PLACEHOLDERS: [&str; 9] =
    [UNKNOWN_TICKER, "N/A", "N.A", "N.A.", "NONE", "NULL", "无", "暂无", "未知"];

/// Signs around a ticker that say only that it is one.
const DECORATION: [char; 8] = ['$', '#', '(', ')', '[', ']', '【', '】'];

/// Signs between a code and the name of its exchange, or between a symbol and its share class.
const SIGNS: [char; 5] = ['.', ':', '-', '/', '_'];

/// Names of exchanges that stand at a number without a sign between them.
const ATTACHED: [&str; 4] = ["SH", "SZ", "BJ", "HK"];

/// Digits of a number that may be a Hong Kong code without saying so, at least.
const SHORTEST_NUMBER: usize = 3;

/// Characters of a code of an exchange that is not ours, and letters of its suffix, at most.
const FOREIGN_CODE: usize = 6;
const FOREIGN_SUFFIX: usize = 3;

/// Digits of a code behind the number of an exchange, at least: `1.5` is a number.
const NUMBERED_DIGITS: usize = 5;

/// Suffixes of countries whose codes have as many digits as those of the mainland.
const LONG_NUMBER_SUFFIXES: [&str; 4] = ["KS", "KQ", "TW", "TWO"];

/// Suffixes of one letter that are exchanges of other countries. Other letters are share classes,
/// units and warrants as well.
const FOREIGN_LETTERS: [&str; 6] = ["F", "J", "L", "S", "T", "V"];

/// What stands behind a dot and is no exchange: ends of addresses and of names of companies.
const NO_SUFFIXES: [&str; 10] =
    ["COM", "NET", "ORG", "AI", "IO", "APP", "INC", "LTD", "LLC", "PLC"];

/// What some write behind the symbol of a depositary receipt.
const RECEIPTS: [&str; 2] = ["ADR", "ADS"];

/// Suffixes that are not another country's: exchanges of ours, and share classes.
const OWN_SUFFIXES: [&str; 7] = ["HK", "SS", "SZ", "BJ", "A", "B", "C"];

/// Letters of a country behind a symbol, at most, as in `VOD LN`.
const COUNTRY_LETTERS: usize = 2;

/// Characters of an ISIN: two letters of a country, nine of the security and a digit to check it.
const ISIN: usize = 12;

/// Characters of what looks like a code, at most.
const LONGEST_CODE: usize = 20;

/// Letters beside digits that are no word yet, at most.
const FEW_LETTERS: usize = 4;

/// Letters of a symbol that somebody may write as a name, with a capital in front, at most.
const SHORT_SYMBOL: usize = 3;

/// How surely a text is a ticker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Given {
    /// A ticker, in the usual form.
    Whole(String),
    /// A short number, which is a Hong Kong code if it is a ticker at all, in the usual form.
    Number(String),
    /// An index or an ISIN, as it was written. It is left alone.
    Other(String),
    /// What looks like a code and is none that we know for sure, as it was written.
    Unsure(String),
    /// Words, such as the name of a company.
    Name,
    /// Nothing, or a word for nothing.
    None,
}

impl Given {
    /// The ticker, or what looks like one.
    pub(crate) fn code(self) -> Option<String> {
        match self {
            Self::Whole(it) | Self::Number(it) | Self::Other(it) | Self::Unsure(it) => Some(it),
            Self::Name | Self::None => None,
        }
    }
}

/// Brings a ticker into the usual form. Everything else stays as it was written.
pub(crate) fn normalize(text: &str) -> String {
    given(text).code().unwrap_or_else(|| text.trim().to_owned())
}

/// Whether a text is a ticker with the suffix of another country.
pub(crate) fn is_foreign(text: &str) -> bool {
    let Given::Whole(ticker) = given(text) else { return false };
    ticker.rsplit_once('.').is_some_and(|(_, suffix)| !OWN_SUFFIXES.contains(&suffix))
}

/// What a user or a model gave as a ticker.
pub(crate) fn given(text: &str) -> Given {
    let written = text.trim();
    let plain = plain(written);
    if PLACEHOLDERS.contains(&plain.to_uppercase().as_str()) {
        Given::None
    } else if let Some(ticker) = whole(&plain) {
        Given::Whole(ticker)
    } else if let Some(ticker) = short_number(&plain) {
        Given::Number(ticker)
    } else if is_index(&plain) || is_isin(&plain) {
        Given::Other(written.to_owned())
    } else if is_code(&plain) || is_marked(&plain) {
        Given::Unsure(written.to_owned())
    } else if plain.chars().any(char::is_alphanumeric) {
        Given::Name
    } else {
        Given::None
    }
}

/// The text in ASCII width, with plain dots and hyphens, and without decoration and characters that
/// nobody sees.
fn plain(text: &str) -> String {
    let sign = |c: char| match c {
        '\u{200B}'..='\u{200F}' | '\u{FEFF}' => None,
        '\u{2010}'..='\u{2015}' | '\u{2212}' => Some('-'),
        '\u{3002}' | '\u{FF61}' | '\u{B7}' | '\u{30FB}' => Some('.'),
        _ => Some(c),
    };
    let text: String = width::narrow(text).chars().filter_map(sign).collect();
    text.trim_matches(|c: char| c.is_whitespace() || DECORATION.contains(&c)).to_owned()
}

/// A word of a ticker.
struct Part<'a> {
    /// The sign before it; a space if there is none.
    sign: char,
    text: &'a str,
}

/// The words of a text of letters, digits and single signs between them.
fn parts(text: &str) -> Option<Vec<Part<'_>>> {
    let mut parts = Vec::new();
    let (mut sign, mut rest) = (' ', text);
    loop {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        if word.is_empty() {
            return None;
        }
        parts.push(Part { sign, text: word });
        let Some(next) = behind.find(|c: char| c.is_ascii_alphanumeric()) else {
            return behind.is_empty().then_some(parts);
        };
        sign = single_sign(&behind[..next])?;
        rest = &behind[next..];
    }
}

/// The sign between two words. Spaces beside it do not count.
fn single_sign(between: &str) -> Option<char> {
    let mut signs = between.trim().chars();
    match (signs.next(), signs.next()) {
        (None, _) => Some(' '),
        (Some(sign), None) if SIGNS.contains(&sign) => Some(sign),
        _ => None,
    }
}

/// The words without the kind of security that Bloomberg writes at last, as in `AAPL US Equity`.
fn without_kind<'a, 'b>(parts: &'a [Part<'b>]) -> &'a [Part<'b>] {
    match parts {
        [rest @ .., last] if rest.len() > 1 && last.text.eq_ignore_ascii_case("EQUITY") => rest,
        all => all,
    }
}

/// The usual form of what is surely a ticker.
fn whole(plain: &str) -> Option<String> {
    let parts = parts(plain)?;
    let parts = without_kind(&parts);
    let [first, rest @ ..] = parts else { return None };
    let [second, ..] = rest else { return alone(first.text) };
    let [body @ .., last] = parts else { return None };
    let before = Exchange::before(first.text, second.sign).and_then(|it| listed(it, rest));
    let behind = || Exchange::behind(last.sign, last.text).and_then(|it| listed(it, body));
    before
        .or_else(behind)
        .or_else(|| numbered(first.text, rest))
        .or_else(|| american(parts))
        .or_else(|| receipt(parts))
        .or_else(|| foreign(parts))
}

/// The ticker of a single word.
fn alone(word: &str) -> Option<String> {
    if is_number(word) { bare(word) } else { attached(word).or_else(|| symbol(word)) }
}

/// The ticker of a number without an exchange. Hong Kong's are filled up with zeros, to four digits
/// or to five; the mainland's tell their exchange.
fn bare(code: &str) -> Option<String> {
    let is_filled_up = code.starts_with('0') && (4..=5).contains(&code.len());
    let exchange = if is_filled_up { Exchange::HongKong } else { Exchange::Mainland };
    exchange.ticker(code)
}

/// As `sh600519` and `00700HK`.
fn attached(word: &str) -> Option<String> {
    let is_border = |pair: &[u8]| pair[0].is_ascii_digit() != pair[1].is_ascii_digit();
    let border = word.as_bytes().windows(2).position(is_border)? + 1;
    let (start, end) = word.split_at(border);
    let (name, code) = if is_number(start) { (end, start) } else { (start, end) };
    if !ATTACHED.contains(&name.to_ascii_uppercase().as_str()) || code.len() < SHORTEST_NUMBER {
        return None;
    }
    Exchange::named(name)?.ticker(code)
}

/// The ticker at an exchange that was named.
fn listed(exchange: Exchange, code: &[Part<'_>]) -> Option<String> {
    match (exchange, code) {
        (Exchange::America, _) => american(code),
        (_, [number]) => exchange.ticker(number.text),
        _ => None,
    }
}

/// As `1.600519`, `116.00700` and `105.AAPL`, with the number of an exchange before the code.
fn numbered(number: &str, code: &[Part<'_>]) -> Option<String> {
    let [first, ..] = code else { return None };
    let is_code = first.text.len() >= NUMBERED_DIGITS || is_letters(first.text);
    if first.sign != '.' || !is_code {
        return None;
    }
    Exchange::numbered(number).iter().find_map(|exchange| listed(*exchange, code))
}

/// As `BABA ADR`, if the list has the symbol: `TSMC ADR` has a name.
fn receipt(parts: &[Part<'_>]) -> Option<String> {
    let [name, kind] = parts else { return None };
    if !RECEIPTS.contains(&kind.text.to_ascii_uppercase().as_str()) {
        return None;
    }
    symbol(name.text).filter(|ticker| listings::has(ticker))
}

/// An American symbol with an exchange or with a share class.
fn american(parts: &[Part<'_>]) -> Option<String> {
    match parts {
        [only] => symbol(only.text).or_else(|| small_class(only.text)),
        [body @ .., last] if Exchange::behind(last.sign, last.text) == Some(Exchange::America) => {
            american(body)
        }
        [name, class] => share_class(name, class),
        _ => None,
    }
}

fn symbol(word: &str) -> Option<String> {
    // As in `usAAPL`.
    let word = word.strip_prefix("us").filter(|rest| is_capitals(rest)).unwrap_or(word);
    let fits = is_letters(word) && word.len() <= SYMBOL_LETTERS && !is_mixed(word);
    let ticker = word.to_ascii_uppercase();
    // `Uber` is a name and a ticker, `Apple` is a name.
    (fits && (!is_proper(word) || listings::has(&ticker))).then_some(ticker)
}

/// As `BRKb`, where an exchange tells that this is an American symbol.
fn small_class(word: &str) -> Option<String> {
    let (symbol, class) = word.split_at(word.len().checked_sub(1)?);
    let is_class = matches!(class, "a" | "b" | "c") && may_have_classes(symbol);
    (is_class && is_capitals(symbol)).then(|| format!("{symbol}.{}", class.to_ascii_uppercase()))
}

/// As `BRK.B`, `BRK-B`, `BRK/B`, `BRK_B` and `BRK B`. Behind other signs than the dot, a letter may
/// be a series of preferred shares, as in `JPM-C`, or a part of a name, as in `Plan B`: it is a
/// class if the list has it.
fn share_class(name: &Part<'_>, class: &Part<'_>) -> Option<String> {
    let letter = class.text.to_ascii_uppercase();
    if !matches!(letter.as_str(), "A" | "B" | "C") {
        return None;
    }
    let ticker = format!("{}.{letter}", symbol(name.text)?);
    (class.sign == '.' || listings::has(&ticker)).then_some(ticker)
}

fn may_have_classes(symbol: &str) -> bool {
    (2..SYMBOL_LETTERS).contains(&symbol.len())
}

/// A code with the suffix of another country, as `SAP.DE`.
fn foreign(parts: &[Part<'_>]) -> Option<String> {
    let [code, suffix] = parts else { return None };
    let exchange = Exchange::behind(suffix.sign, suffix.text);
    // `.CN` is a Canadian exchange as well.
    let is_ours = exchange.is_some_and(|it| it != Exchange::Mainland || is_number(code.text));
    let is_short = code.text.len() <= FOREIGN_CODE;
    let fits = suffix.sign == '.' && is_short && !is_proper(code.text);
    let is_foreign = fits && !is_ours && is_foreign_suffix(code.text, suffix.text);
    is_foreign.then(|| format!("{}.{}", code.text, suffix.text).to_ascii_uppercase())
}

/// Whether a word behind a code and a dot may be an exchange of another country. Fund houses and
/// publishers of indices write suffixes behind six digits, too, as in `110011.OF`.
fn is_foreign_suffix(code: &str, word: &str) -> bool {
    let suffix = word.to_ascii_uppercase();
    let is_one_of = |suffixes: &[&str]| suffixes.contains(&suffix.as_str());
    let is_exchange = match suffix.len() {
        1 => is_one_of(&FOREIGN_LETTERS),
        length => length <= FOREIGN_SUFFIX && !is_one_of(&NO_SUFFIXES) && !is_one_of(&RECEIPTS),
    };
    let has_such_codes = !is_mainland(code) || is_one_of(&LONG_NUMBER_SUFFIXES);
    is_letters(word) && !has_both_cases(word) && is_exchange && has_such_codes
}

fn short_number(plain: &str) -> Option<String> {
    if plain.len() < SHORTEST_NUMBER { None } else { Exchange::HongKong.ticker(plain) }
}

/// As `^GSPC`.
fn is_index(plain: &str) -> bool {
    plain.starts_with('^') && plain.len() > 1
}

fn is_isin(plain: &str) -> bool {
    let has_country = plain.bytes().take(2).all(|byte| byte.is_ascii_alphabetic());
    let is_checked = plain.bytes().next_back().is_some_and(|byte| byte.is_ascii_digit());
    let has_characters = plain.bytes().all(|byte| byte.is_ascii_alphanumeric());
    plain.len() == ISIN && has_country && is_checked && has_characters
}

/// Whether a text looks like a code rather than like words.
fn is_code(plain: &str) -> bool {
    if !plain.is_ascii() || plain.len() > LONGEST_CODE {
        return false;
    }
    let letters = plain.bytes().filter(u8::is_ascii_alphabetic).count();
    if plain.bytes().any(|byte| byte.is_ascii_digit()) {
        return letters <= FEW_LETTERS || !plain.bytes().any(|byte| byte.is_ascii_lowercase());
    }
    let has_space = plain.bytes().any(|byte| byte.is_ascii_whitespace());
    let is_small = |pair: &[u8]| pair.iter().all(u8::is_ascii_lowercase);
    let has_word = plain.as_bytes().windows(2).any(is_small);
    let has_sign = plain.bytes().any(|byte| byte.is_ascii_punctuation());
    letters > 0 && !has_space && !has_word && (has_sign || is_mixed(plain))
}

/// Whether the signs between words are those of a code, in whatever case, as in `jpm-c`, `lon:vod`,
/// `VOD LN Equity` and `JD.com`, or a name is as short as a symbol.
fn is_marked(plain: &str) -> bool {
    let Some(parts) = parts(plain).filter(|_| plain.len() <= LONGEST_CODE) else { return false };
    let words = without_kind(&parts);
    let has_kind = words.len() < parts.len();
    if has_kind || parts.iter().any(|part| part.sign == ':') {
        return true;
    }
    let (code, mark) = match words {
        [only] => return is_letters(only.text) && only.text.len() <= SYMBOL_LETTERS,
        [code, mark] => (code, mark),
        _ => return false,
    };
    match mark.sign {
        '.' => is_letters(mark.text) && mark.text.len() <= FOREIGN_SUFFIX && !is_numbered(mark),
        '-' | '/' | '_' => is_letters(code.text) && may_have_classes(code.text) && is_letter(mark),
        ' ' => is_capitals(code.text) && code.text.len() <= FOREIGN_CODE && is_country(mark),
        _ => false,
    }
}

fn is_letter(part: &Part<'_>) -> bool {
    part.text.len() == 1 && is_letters(part.text)
}

/// Whether a word may be a country, or a series as in `JPM C`.
fn is_country(part: &Part<'_>) -> bool {
    part.text.len() <= COUNTRY_LETTERS && is_capitals(part.text)
}

/// Whether a word is an exchange that lists numbers alone: `tencent.hk` is a name.
fn is_numbered(part: &Part<'_>) -> bool {
    let exchange = Exchange::behind(part.sign, part.text);
    exchange.is_some_and(|it| it != Exchange::America)
}

/// Capitals and small letters as in a name: `Apple`, `BofA`.
fn is_proper(word: &str) -> bool {
    word.len() > SHORT_SYMBOL && has_both_cases(word)
}

fn has_both_cases(word: &str) -> bool {
    let has_capital = word.bytes().any(|byte| byte.is_ascii_uppercase());
    has_capital && word.bytes().any(|byte| byte.is_ascii_lowercase())
}

/// Capitals and then small letters, which mean a share class or a series to some services.
fn is_mixed(word: &str) -> bool {
    let starts_big = word.bytes().take(2).all(|byte| byte.is_ascii_uppercase());
    starts_big && word.bytes().any(|byte| byte.is_ascii_lowercase())
}

fn is_capitals(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_uppercase())
}

fn is_letters(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests;
