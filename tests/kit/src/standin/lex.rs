//! Splits a text about trades into tokens: dates, numbers, names, tickers and known words.

use jiff::civil::Date;

use super::{
    dates, numbers, securities,
    words::{self, Meaning},
};

/// A token of a text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A date, or `None` for a relative date if today is unknown.
    Date(Option<Date>),
    Number(f64),
    /// The unit of the preceding number: lots or shares.
    ShareUnit {
        lots: bool,
    },
    /// The sign that makes the preceding number a percentage.
    Percent,
    Word(Meaning),
    /// A ticker such as `0700.HK` or `AAPL`.
    Code(String),
    /// Any other text, which may be the name of a security.
    Name {
        text: String,
        known: bool,
    },
    /// A comma.
    Comma,
    /// A full stop, a semicolon or the end of a line.
    Stop,
}

/// Characters without a meaning at the edges of a name.
const LEADING: &str = "我了在以用把将又再也还就的是给请于从共已及有其中";
const TRAILING: &str = "了的股在以用价为是又于到有吗吧呢啊约";

/// Characters that precede a price if a number follows.
const PRICE_LETTERS: &str = "以在价于按";

/// Maximum number of Latin letters of a ticker without a suffix.
const MAX_LETTERS: usize = 5;

/// Returns all tokens of `text`.
pub(super) fn tokens(text: &str, today: Option<Date>) -> Vec<Token> {
    let chars: Vec<char> = text.chars().map(half_width).collect();
    let lower = chars.iter().map(char::to_ascii_lowercase).collect();
    let mut lexer = Lexer { chars, lower, today, at: 0, run: None, found: Vec::new() };
    while lexer.at < lexer.chars.len() {
        lexer.step();
    }
    lexer.end_run();
    lexer.found
}

/// Converts full-width digits, letters and signs to ASCII. Full-width commas are kept, because they
/// never group digits.
fn half_width(c: char) -> char {
    match c {
        '，' | '；' => c,
        '！'..='～' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        '　' => ' ',
        _ => c,
    }
}

struct Lexer {
    chars: Vec<char>,
    lower: Vec<char>,
    today: Option<Date>,
    at: usize,
    /// Start of the current name, and the part of it that is a known name.
    run: Option<Run>,
    found: Vec<Token>,
}

struct Run {
    start: usize,
    known: Option<(usize, usize)>,
}

impl Lexer {
    /// Consumes one token, or one more character of a name.
    fn step(&mut self) {
        let whole = self.currency_sign()
            || self.known_name()
            || self.date()
            || self.code()
            || self.number();
        if !whole {
            self.character();
        }
    }

    fn character(&mut self) {
        let c = self.chars[self.at];
        if self.run.is_some() && c == ' ' && self.latin_goes_on() {
            self.at += 1;
        } else if c == ' ' || c == '\t' || c == '\r' {
            self.emit_nothing(1);
        } else if let Some(token) = punctuation(c, self.chars.get(self.at + 1).copied()) {
            self.emit(token, 1);
        } else if c.is_ascii_alphanumeric() {
            self.latin_word();
        } else if let Some((meaning, length)) = words::chinese_at(&self.chars, self.at) {
            self.emit(Token::Word(meaning), length);
        } else if PRICE_LETTERS.contains(c) && self.number_follows() {
            self.emit(Token::Word(Meaning::PriceKey), 1);
        } else if c == '共' && self.number_follows() {
            self.emit(Token::Word(Meaning::OtherKey), 1);
        } else if c.is_alphanumeric() || (self.run.is_some() && is_latin_letter(c)) {
            self.run.get_or_insert(Run { start: self.at, known: None });
            self.at += 1;
        } else {
            self.emit_nothing(1);
        }
    }

    fn emit(&mut self, token: Token, length: usize) {
        self.end_run();
        self.found.push(token);
        self.at += length;
    }

    fn emit_nothing(&mut self, length: usize) {
        self.end_run();
        self.at += length;
    }

    /// Consumes a known name completely, so that no part of it is read as a word or a number.
    fn known_name(&mut self) -> bool {
        if !self.at_word_start() {
            return false;
        }
        let Some(length) = securities::name_at(&self.lower, self.at) else {
            return false;
        };
        if self.chars[self.at].is_ascii() && self.looks_like_ticker(length) {
            return false;
        }
        let end = self.at + length;
        let run = self.run.get_or_insert(Run { start: self.at, known: None });
        run.known = Some((run.known.map_or(self.at, |(start, _)| start), end));
        self.at = end;
        true
    }

    fn looks_like_ticker(&self, length: usize) -> bool {
        let word = &self.chars[self.at..self.at + length];
        length <= MAX_LETTERS && word.iter().all(char::is_ascii_uppercase)
    }

    fn date(&mut self) -> bool {
        if let Some(length) = self.time_of_day() {
            self.emit_nothing(length);
            return true;
        }
        let Some(found) = dates::scan(&self.lower, self.at, self.today) else {
            return false;
        };
        let length = found.end - self.at;
        self.emit(Token::Date(found.date), length);
        true
    }

    /// Returns the length of a time such as `10:30`, `10:30:05` or `T10:30:05Z`. Times are skipped.
    fn time_of_day(&self) -> Option<usize> {
        let rest = &self.chars[self.at..];
        let marker = usize::from(rest.first() == Some(&'T'));
        let shape: String = rest[marker..]
            .iter()
            .take_while(|c| c.is_ascii_digit() || **c == ':' || **c == '.')
            .collect();
        let parts: Vec<&str> = shape.split(':').collect();
        let two = |part: &str| (1..=2).contains(&part.len());
        let fits = (2..=3).contains(&parts.len())
            && two(parts[0])
            && parts[1].len() == 2
            && parts[0].bytes().all(|byte| byte.is_ascii_digit());
        let zone = usize::from(rest.get(marker + shape.len()) == Some(&'Z'));
        fits.then_some(marker + shape.len() + zone)
    }

    /// Consumes `0700.HK`, `600519.SH`, `SH600519`, `AAPL`, `BRK.B`, or a Chinese code of six
    /// digits.
    fn code(&mut self) -> bool {
        if !self.at_word_start() {
            return false;
        }
        let word: String = self.chars[self.at..]
            .iter()
            .take_while(|c| c.is_ascii_alphanumeric() || **c == '.')
            .collect();
        let word = word.trim_end_matches('.');
        let announced = self.number_is_announced();
        let unit_follows = self.unit_after(self.at + word.len());
        let code = suffixed(word)
            .or_else(|| prefixed(word))
            .or_else(|| letters(word, &self.lower, self.at))
            .or_else(|| bare_digits(word).filter(|_| !announced && !unit_follows));
        let Some(code) = code else { return false };
        let length = word.len();
        self.emit(Token::Code(code), length);
        true
    }

    fn number(&mut self) -> bool {
        let Some(found) = numbers::scan(&self.chars, self.at) else {
            return false;
        };
        if self.in_latin_word() || (found.numerals_only && !self.numerals_count(found.end)) {
            return false;
        }
        let length = found.end - self.at;
        self.emit(Token::Number(found.value), length);
        self.units();
        true
    }

    /// Consumes a unit directly after a number: `股`, `手`, `shares`, `元`, `%`.
    fn units(&mut self) {
        let start = self.skip_spaces(self.at);
        if let Some((lots, length)) = words::share_unit_at(&self.lower, start) {
            let names_a_stock = words::is_at(&self.chars, start, "股票");
            self.found.push(Token::ShareUnit { lots });
            self.at = start + if names_a_stock { 2 } else { length };
        } else if self.chars.get(start).is_some_and(|c| matches!(c, '元' | '块' | '刀'))
            && words::chinese_at(&self.chars, start).is_none()
        {
            self.found.push(Token::Word(Meaning::PriceMark));
            self.at = start + 1 + usize::from(self.chars.get(start + 1) == Some(&'钱'));
        } else if self.chars.get(start) == Some(&'%') {
            self.found.push(Token::Percent);
            self.at = start + 1;
        }
    }

    /// Returns true if Chinese numerals are a number. Otherwise they belong to a name such as
    /// `三一重工`.
    fn numerals_count(&self, end: usize) -> bool {
        let announced = self.run.is_none() && self.number_is_announced();
        announced || self.unit_after(end)
    }

    fn unit_after(&self, end: usize) -> bool {
        let start = self.skip_spaces(end);
        let money = self.chars.get(start).is_some_and(|c| matches!(c, '元' | '块' | '港' | '美'));
        money || words::share_unit_at(&self.lower, start).is_some()
    }

    fn latin_word(&mut self) {
        if self.at_word_start()
            && let Some((meaning, length)) = words::english_at(&self.lower, self.at)
        {
            self.emit(Token::Word(meaning), length);
            return;
        }
        self.run.get_or_insert(Run { start: self.at, known: None });
        while self.chars.get(self.at).is_some_and(|c| is_latin_letter(*c)) {
            self.at += 1;
        }
    }

    /// Returns true if the Latin name continues after a space, as in `Pop Mart`.
    fn latin_goes_on(&self) -> bool {
        let next = self.at + 1;
        let before = self.at.checked_sub(1).and_then(|at| self.chars.get(at));
        let follows = self.chars.get(next);
        before.is_some_and(char::is_ascii_alphanumeric)
            && follows.is_some_and(char::is_ascii_alphabetic)
            && words::english_at(&self.lower, next).is_none()
            && dates::scan(&self.lower, next, self.today).is_none()
    }

    fn at_word_start(&self) -> bool {
        let before = self.at.checked_sub(1).and_then(|at| self.chars.get(at));
        !self.chars[self.at].is_ascii_alphanumeric()
            || before.is_none_or(|c| !c.is_ascii_alphanumeric())
    }

    /// Returns true if a digit belongs to a name such as `ASML2` or `T-1`.
    fn in_latin_word(&self) -> bool {
        let before = &self.chars[..self.at];
        let before = before.strip_suffix(&['-']).unwrap_or(before);
        self.run.is_some() && before.last().is_some_and(char::is_ascii_alphanumeric)
    }

    /// Returns true if the last token is a word such as `price` or `quantity`.
    fn number_is_announced(&self) -> bool {
        use Meaning::{OtherKey, PriceKey, QuantityKey};
        matches!(self.found.last(), Some(Token::Word(OtherKey | PriceKey | QuantityKey)))
    }

    /// Consumes `$`, `HK$` or `US$`, after which the number is a price.
    fn currency_sign(&mut self) -> bool {
        let sign = ["hk$", "us$", "$", "¥", "￥", "@"]
            .iter()
            .find(|sign| words::is_at(&self.lower, self.at, sign))
            .map(|sign| sign.chars().count());
        let Some(length) = sign else { return false };
        self.emit(Token::Word(Meaning::PriceKey), length);
        true
    }

    fn number_follows(&self) -> bool {
        let next = self.skip_spaces(self.at + 1);
        let sign = usize::from(self.chars.get(next).is_some_and(|c| matches!(c, '$' | '¥')));
        self.chars.get(next + sign).is_some_and(char::is_ascii_digit)
    }

    fn skip_spaces(&self, mut at: usize) -> usize {
        while self.chars.get(at) == Some(&' ') {
            at += 1;
        }
        at
    }

    /// Ends the current name and emits it without its edges.
    fn end_run(&mut self) {
        let Some(run) = self.run.take() else { return };
        let (mut start, mut end) = (run.start, self.at);
        let (first_known, last_known) = run.known.unwrap_or((end, start));
        while start < end && start < first_known && is_edge(self.chars[start], LEADING) {
            start += 1;
        }
        while end > start && end > last_known && is_edge(self.chars[end - 1], TRAILING) {
            end -= 1;
        }
        if start < end {
            let text = self.chars[start..end].iter().collect();
            self.found.push(Token::Name { text, known: run.known.is_some() });
        }
    }
}

fn is_edge(c: char, edges: &str) -> bool {
    c == ' ' || c == '-' || edges.contains(c)
}

fn is_latin_letter(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '&' | '\'' | '-')
}

fn punctuation(c: char, next: Option<char>) -> Option<Token> {
    Some(match c {
        ',' | '，' | '、' => Token::Comma,
        ';' | '；' | '。' | '\n' | '!' | '?' => Token::Stop,
        '.' if next.is_none_or(char::is_whitespace) => Token::Stop,
        _ => return None,
    })
}

/// Parses a ticker with the suffix of its market. The services write `.SS` for `.SH`.
fn suffixed(word: &str) -> Option<String> {
    let (code, market) = word.rsplit_once('.')?;
    let market = market.to_ascii_uppercase();
    let digits = (1..=6).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_digit());
    match market.as_str() {
        "HK" | "SS" | "SZ" if digits => Some(format!("{code}.{market}")),
        "SH" if digits => Some(format!("{code}.SS")),
        "US" | "O" | "N" if code.bytes().all(|byte| byte.is_ascii_uppercase()) => {
            Some(code.to_owned())
        }
        _ => None,
    }
}

/// Parses `SH600519`, `sz300750` and `HK00700`.
fn prefixed(word: &str) -> Option<String> {
    let (market, digits) = word.split_at_checked(2)?;
    let length = digits.len();
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    match market.to_ascii_uppercase().as_str() {
        "SH" if length == 6 => Some(format!("{digits}.SS")),
        "SZ" if length == 6 => Some(format!("{digits}.SZ")),
        "HK" if (4..=5).contains(&length) => Some(format!("{digits}.HK")),
        _ => None,
    }
}

/// Parses up to five capital letters, with or without a share class: `AAPL`, `BRK.B`.
fn letters(word: &str, lower: &[char], at: usize) -> Option<String> {
    let (code, class) = word.split_once('.').unwrap_or((word, "A"));
    let capitals = |part: &str| part.bytes().all(|byte| byte.is_ascii_uppercase());
    let fits = (1..=MAX_LETTERS).contains(&code.len()) && class.len() == 1;
    let is_word = words::english_at(lower, at).is_some_and(|(_, length)| length >= code.len());
    (fits && capitals(code) && capitals(class) && !is_word).then(|| word.to_owned())
}

/// Parses codes without a market. Codes of Shanghai and Shenzhen have six digits, those of Hong
/// Kong often five.
fn bare_digits(word: &str) -> Option<String> {
    if !word.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let fits = match word.len() {
        6 => word.starts_with(['0', '3', '6']),
        5 => word.starts_with('0'),
        _ => false,
    };
    fits.then(|| word.to_owned())
}
