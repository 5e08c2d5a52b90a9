//! Normalization of tickers, as services and people write them, into their usual form: `BRK.B` for
//! the United States, `0700.HK`, `600519.SS`, `000001.SZ` and `920748.BJ`.
//!
//! A text that can mean several securities is not guessed and stays as written.

mod exchange;

use crate::listings;
use crate::state::UNKNOWN_TICKER;
use crate::ticker::exchange::{Exchange, SYMBOL_LETTERS, is_mainland, is_number};
use crate::width;

/// Texts for a missing ticker.
const PLACEHOLDERS: [&str; 9] =
    [UNKNOWN_TICKER, "N/A", "N.A", "N.A.", "NONE", "NULL", "无", "暂无", "未知"];

/// Characters around a ticker that are not part of it.
const DECORATION: [char; 8] = ['$', '#', '(', ')', '[', ']', '【', '】'];

/// Separators between a code and the name of its exchange, or between a symbol and its share class.
const SIGNS: [char; 5] = ['.', ':', '-', '/', '_'];

/// Names of exchanges that can be attached to a number without a separator.
const ATTACHED: [&str; 4] = ["SH", "SZ", "BJ", "HK"];

/// Minimum digits of a number that can be a Hong Kong code without a separate exchange name.
const SHORTEST_NUMBER: usize = 3;

/// Maximum characters of a code of an exchange in another country, and maximum letters of its
/// suffix.
const FOREIGN_CODE: usize = 6;
const FOREIGN_SUFFIX: usize = 3;

/// Minimum digits of a code after the number of an exchange: `1.5` is a decimal number.
const NUMBERED_DIGITS: usize = 5;

/// Suffixes of countries whose codes can have six digits, as those of the mainland have.
const LONG_NUMBER_SUFFIXES: [&str; 4] = ["KS", "KQ", "TW", "TWO"];

/// One-letter suffixes of exchanges in other countries. Other letters also mark share classes,
/// units and warrants.
const FOREIGN_LETTERS: [&str; 6] = ["F", "J", "L", "S", "T", "V"];

/// Endings after a dot that are not exchanges: those of domain names and of company names.
const NO_SUFFIXES: [&str; 10] =
    ["COM", "NET", "ORG", "AI", "IO", "APP", "INC", "LTD", "LLC", "PLC"];

/// Endings of the symbols of depositary receipts.
const RECEIPTS: [&str; 2] = ["ADR", "ADS"];

/// Suffixes that do not mean another country: supported exchanges, and share classes.
const OWN_SUFFIXES: [&str; 7] = ["HK", "SS", "SZ", "BJ", "A", "B", "C"];

/// Maximum letters of a country after a symbol, as in `VOD LN`.
const COUNTRY_LETTERS: usize = 2;

/// Characters of an ISIN: two letters of the country, nine characters of the security and a check
/// digit.
const ISIN: usize = 12;

/// Maximum characters of a text that looks like a code.
const LONGEST_CODE: usize = 20;

/// Maximum letters of a code that has digits and lower-case letters.
const FEW_LETTERS: usize = 4;

/// Maximum letters of a symbol in mixed case: `Ibm` is a symbol, and `Apple` is a name.
const SHORT_SYMBOL: usize = 3;

/// Classification of a text that was given as a ticker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Given {
    /// A ticker, in the usual form.
    Whole(String),
    /// A short number, which is a Hong Kong code in the usual form if it is a ticker at all.
    Number(String),
    /// An index or an ISIN, as written. It is not changed.
    Other(String),
    /// A text that looks like a code and is not certainly a ticker, as written.
    Unsure(String),
    /// Words, such as the name of a company.
    Name,
    /// An empty text, or a text for a missing ticker.
    None,
}

impl Given {
    /// Returns the ticker, or the text that looks like one.
    pub(crate) fn code(self) -> Option<String> {
        match self {
            Self::Whole(it) | Self::Number(it) | Self::Other(it) | Self::Unsure(it) => Some(it),
            Self::Name | Self::None => None,
        }
    }
}

/// Returns a ticker in its usual form. Any other text is trimmed and stays as written.
pub(crate) fn normalize(text: &str) -> String {
    given(text).code().unwrap_or_else(|| text.trim().to_owned())
}

/// Returns true if a text is a ticker with the suffix of another country.
pub(crate) fn is_foreign(text: &str) -> bool {
    let Given::Whole(ticker) = given(text) else { return false };
    ticker.rsplit_once('.').is_some_and(|(_, suffix)| !OWN_SUFFIXES.contains(&suffix))
}

/// Classifies a text that a user or a model gave as a ticker.
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

/// Returns the text in ASCII width, with ASCII dots and hyphens, and without decoration and
/// invisible characters.
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
    /// Separator before the word; a space if there is none.
    sign: char,
    text: &'a str,
}

/// Splits a text into words of letters and digits. Returns `None` if the words are not separated by
/// single separators.
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

/// Returns the separator between two words, ignoring spaces around it; a space if there is no
/// other. Returns `None` for any other characters.
fn single_sign(between: &str) -> Option<char> {
    let mut signs = between.trim().chars();
    match (signs.next(), signs.next()) {
        (None, _) => Some(' '),
        (Some(sign), None) if SIGNS.contains(&sign) => Some(sign),
        _ => None,
    }
}

/// Removes the kind of security that Bloomberg writes at the end, as in `AAPL US Equity`.
fn without_kind<'a, 'b>(parts: &'a [Part<'b>]) -> &'a [Part<'b>] {
    match parts {
        [rest @ .., last] if rest.len() > 1 && last.text.eq_ignore_ascii_case("EQUITY") => rest,
        all => all,
    }
}

/// Returns the usual form of a text that is certainly a ticker.
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

/// Returns the ticker of a single word.
fn alone(word: &str) -> Option<String> {
    if is_number(word) { bare(word) } else { attached(word).or_else(|| symbol(word)) }
}

/// Returns the ticker of a number without an exchange. Hong Kong codes are padded with zeros to
/// four or five digits, and mainland codes determine their exchange.
fn bare(code: &str) -> Option<String> {
    let is_filled_up = code.starts_with('0') && (4..=5).contains(&code.len());
    let exchange = if is_filled_up { Exchange::HongKong } else { Exchange::Mainland };
    exchange.ticker(code)
}

/// Parses a code with an attached exchange name, such as `sh600519` and `00700HK`.
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

/// Returns the ticker of a code at a named exchange.
fn listed(exchange: Exchange, code: &[Part<'_>]) -> Option<String> {
    match (exchange, code) {
        (Exchange::America, _) => american(code),
        (_, [number]) => exchange.ticker(number.text),
        _ => None,
    }
}

/// Parses a code after the number of an exchange, such as `1.600519`, `116.00700` and `105.AAPL`.
fn numbered(number: &str, code: &[Part<'_>]) -> Option<String> {
    let [first, ..] = code else { return None };
    let is_code = first.text.len() >= NUMBERED_DIGITS || is_letters(first.text);
    if first.sign != '.' || !is_code {
        return None;
    }
    Exchange::numbered(number).iter().find_map(|exchange| listed(*exchange, code))
}

/// Parses a depositary receipt such as `BABA ADR`, if the table has the symbol. `TSMC ADR` has a
/// name instead.
fn receipt(parts: &[Part<'_>]) -> Option<String> {
    let [name, kind] = parts else { return None };
    if !RECEIPTS.contains(&kind.text.to_ascii_uppercase().as_str()) {
        return None;
    }
    symbol(name.text).filter(|ticker| listings::has(ticker))
}

/// Parses an American symbol with an exchange or a share class.
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
    // Some services write `usAAPL`.
    let word = word.strip_prefix("us").filter(|rest| is_capitals(rest)).unwrap_or(word);
    let fits = is_letters(word) && word.len() <= SYMBOL_LETTERS && !is_mixed(word);
    let ticker = word.to_ascii_uppercase();
    // `Uber` is a name and a ticker, `Apple` is a name.
    (fits && (!is_proper(word) || listings::has(&ticker))).then_some(ticker)
}

/// Parses a symbol with a lower-case share class, such as `BRKb`. The caller knows from an exchange
/// that the symbol is American.
fn small_class(word: &str) -> Option<String> {
    let (symbol, class) = word.split_at(word.len().checked_sub(1)?);
    let is_class = matches!(class, "a" | "b" | "c") && may_have_classes(symbol);
    (is_class && is_capitals(symbol)).then(|| format!("{symbol}.{}", class.to_ascii_uppercase()))
}

/// Parses a symbol with a share class, such as `BRK.B`, `BRK-B`, `BRK/B`, `BRK_B` and `BRK B`.
/// After a separator other than the dot, a letter can also be a series of preferred shares, as in
/// `JPM-C`, or a part of a name, as in `Plan B`. It is a share class only if the table has the
/// ticker.
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

/// Parses a code with the suffix of another country, such as `SAP.DE`.
fn foreign(parts: &[Part<'_>]) -> Option<String> {
    let [code, suffix] = parts else { return None };
    let exchange = Exchange::behind(suffix.sign, suffix.text);
    // `.CN` is also a Canadian exchange.
    let is_ours = exchange.is_some_and(|it| it != Exchange::Mainland || is_number(code.text));
    let is_short = code.text.len() <= FOREIGN_CODE;
    let fits = suffix.sign == '.' && is_short && !is_proper(code.text);
    let is_foreign = fits && !is_ours && is_foreign_suffix(code.text, suffix.text);
    is_foreign.then(|| format!("{}.{}", code.text, suffix.text).to_ascii_uppercase())
}

/// Returns true if a word after a code and a dot can be an exchange of another country. Fund houses
/// and publishers of indices also write suffixes after six digits, as in `110011.OF`.
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

/// Returns true for an index such as `^GSPC`.
fn is_index(plain: &str) -> bool {
    plain.starts_with('^') && plain.len() > 1
}

fn is_isin(plain: &str) -> bool {
    let has_country = plain.bytes().take(2).all(|byte| byte.is_ascii_alphabetic());
    let is_checked = plain.bytes().next_back().is_some_and(|byte| byte.is_ascii_digit());
    let has_characters = plain.bytes().all(|byte| byte.is_ascii_alphanumeric());
    plain.len() == ISIN && has_country && is_checked && has_characters
}

/// Returns true if a text looks like a code rather than like words.
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

/// Returns true if the separators between words are those of a code in any case, as in `jpm-c`,
/// `lon:vod`, `VOD LN Equity` and `JD.com`, or if a single word is as short as a symbol.
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

/// Returns true if a word can be a country, or a series as in `JPM C`.
fn is_country(part: &Part<'_>) -> bool {
    part.text.len() <= COUNTRY_LETTERS && is_capitals(part.text)
}

/// Returns true if a word is an exchange whose codes are numbers: `tencent.hk` is a name.
fn is_numbered(part: &Part<'_>) -> bool {
    let exchange = Exchange::behind(part.sign, part.text);
    exchange.is_some_and(|it| it != Exchange::America)
}

/// Returns true if a word has mixed case as in a name: `Apple`, `BofA`.
fn is_proper(word: &str) -> bool {
    word.len() > SHORT_SYMBOL && has_both_cases(word)
}

fn has_both_cases(word: &str) -> bool {
    let has_capital = word.bytes().any(|byte| byte.is_ascii_uppercase());
    has_capital && word.bytes().any(|byte| byte.is_ascii_lowercase())
}

/// Returns true if a word begins with capitals and has lower-case letters, which mark a share class
/// or a series at some services.
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
