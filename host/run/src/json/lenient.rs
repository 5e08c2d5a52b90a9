//! Lenient parsing of JSON from services and clients, including lone surrogates.
//!
//! A service that streams a text in pieces may split a character that JSON escapes as a surrogate
//! pair (`\ud83d\ude00`). A lone surrogate is not a character, so JSON parsers reject it. This
//! module maps it to a private-use character until [`SurrogateJoiner`] joins the pair. A
//! [request](parse_request) arrives in one piece, so a lone surrogate in it becomes U+FFFD.
//!
//! A byte order mark before a document is skipped. Programs on Windows write one.
//!
//! A [message](parse_message) may contain numbers that JSON does not have.
//!
//! A document that cannot be parsed is parsed once more if something in it can be replaced. A
//! document that exceeds a limit is not parsed again.

use std::borrow::Cow;

use memchr::memchr;
use serde_json::Value;
use wattle_graph::json_text::{
    HIGH_SURROGATES, LOW_SURROGATES, replace_lone_surrogates, replace_surrogates,
};

use crate::json::bounded::{JsonBudget, JsonError, JsonLimit};

/// Private-use character for the first surrogate, `\ud800`. The characters for all 2,048 surrogates
/// end with the last code point of Unicode's last plane, which is for private use.
const PRIVATE_USE_BASE: u32 = 0x10_f800;

/// The first byte of each of these characters in UTF-8.
const PRIVATE_USE_BYTE: u8 = 0xf4;

/// The byte order mark.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Parses a document.
///
/// # Errors
///
/// [`JsonError`]. A lone surrogate is not an error.
pub fn parse(text: &str) -> Result<Value, JsonError> {
    parse_within(text, &JsonBudget::default())
}

/// Parses a document within a budget that it shares with other documents.
///
/// # Errors
///
/// See [`parse`].
pub fn parse_within(text: &str, budget: &JsonBudget) -> Result<Value, JsonError> {
    parse_or_mend(text, budget, with_private_use)
}

/// Parses a document from bytes. Invalid UTF-8 becomes U+FFFD.
///
/// # Errors
///
/// See [`parse`].
pub fn parse_bytes(bytes: &[u8]) -> Result<Value, JsonError> {
    parse(&decode(bytes))
}

/// Decodes UTF-8. Invalid bytes become U+FFFD.
#[must_use]
pub fn decode(bytes: &[u8]) -> Cow<'_, str> {
    // Validating first is faster: `from_utf8_lossy` examines each byte on its own.
    str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// Parses a document that a client sent. If `deserialize` fails, it is called again with every lone
/// surrogate replaced by U+FFFD. JavaScript clients send lone surrogates when they cut a text
/// within a character. `deserialize` wraps its deserializer with the [budget](JsonBudget::bound).
///
/// Lines and columns in an error of `deserialize` refer to the original document.
///
/// # Errors
///
/// The limit of the budget if `deserialize` fails at it, or else the error of `deserialize`.
pub fn parse_request<T, E: From<JsonLimit>>(
    bytes: &[u8],
    budget: &JsonBudget,
    deserialize: impl Fn(&[u8]) -> Result<T, E>,
) -> Result<T, E> {
    let error = match deserialize(bytes) {
        Ok(parsed) => return Ok(parsed),
        Err(error) => error,
    };
    if let Some(exceeded) = budget.exceeded() {
        return Err(exceeded.into());
    }
    let mended = str::from_utf8(bytes).ok().and_then(replace_lone_surrogates);
    let Some(mended) = mended else { return Err(error) };
    budget.clear();
    deserialize(mended.as_bytes()).map_err(|error| budget.exceeded().map_or(error, E::from))
}

/// Parses a message of a program from bytes, as [`parse_bytes`] does. Numbers that JSON does not
/// have become `null`: Python writes `NaN` and `Infinity`, and a number may be out of range.
/// Completions of models are not parsed this way, since the model can be called again. Returns the
/// message, and whether a number was replaced.
///
/// # Errors
///
/// See [`parse`].
pub fn parse_message(bytes: &[u8]) -> Result<(Value, bool), JsonError> {
    let mut is_replaced = false;
    let mend = |text: &str| {
        let finite = with_finite_numbers(text);
        is_replaced = finite.is_some();
        with_private_use(finite.as_deref().unwrap_or(text)).or(finite)
    };
    let message = parse_or_mend(&decode(bytes), &JsonBudget::default(), mend)?;
    Ok((message, is_replaced))
}

/// Parses a document. If the document is not JSON, parses the result of `mend`.
fn parse_or_mend(
    text: &str,
    budget: &JsonBudget,
    mend: impl FnOnce(&str) -> Option<String>,
) -> Result<Value, JsonError> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    match budget.parse(text) {
        Err(JsonError::Syntax(error)) => match mend(text) {
            Some(mended) => budget.parse(&mended),
            None => Err(JsonError::Syntax(error)),
        },
        parsed => parsed,
    }
}

/// Replaces lone surrogates by private-use characters. Returns `None` if there are none.
fn with_private_use(text: &str) -> Option<String> {
    replace_surrogates(text, |half, text| text.extend(to_private_use(half)))
}

/// Replaces numbers that are not finite by `null`. Returns `None` if there are none.
fn with_finite_numbers(text: &str) -> Option<String> {
    let (mut mended, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(|sign: char| sign == '"' || is_token_char(sign)) {
        let (before, token) = rest.split_at(at);
        mended.push_str(before);
        let length = if token.starts_with('"') {
            string_literal_len(token)
        } else {
            token.find(|sign: char| !is_token_char(sign))
        };
        let (token, after) = token.split_at(length.unwrap_or(token.len()));
        let is_finite = token.parse::<f64>().map_or(true, f64::is_finite);
        mended.push_str(if is_finite { token } else { "null" });
        rest = after;
    }
    mended.push_str(rest);
    (mended != text).then_some(mended)
}

/// Returns true if a character can be part of a number or a name outside of strings.
fn is_token_char(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || matches!(sign, '+' | '-' | '.')
}

/// Returns the length of the string literal at the start of `text`, or `None` if the literal is not
/// closed.
fn string_literal_len(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    let end = text[1..].find(|sign: char| {
        let ends = sign == '"' && !is_escaped;
        is_escaped = sign == '\\' && !is_escaped;
        ends
    });
    end.map(|end| end + 2)
}

fn to_private_use(half: u32) -> Option<char> {
    char::from_u32(half - HIGH_SURROGATES.start + PRIVATE_USE_BASE)
}

/// Returns the surrogate that a private-use character represents.
fn from_private_use(character: char) -> Option<u32> {
    u32::from(character).checked_sub(PRIVATE_USE_BASE).map(|place| place + HIGH_SURROGATES.start)
}

/// Joins the surrogate pairs of one text that arrives in pieces.
#[derive(Debug, Default)]
pub struct SurrogateJoiner {
    /// High surrogate whose low surrogate may follow in the next piece.
    high: Option<u32>,
}

impl SurrogateJoiner {
    /// Returns the piece with surrogate pairs joined. A lone surrogate becomes U+FFFD.
    pub fn feed<'a>(&mut self, piece: &'a str) -> Cow<'a, str> {
        let has_none = self.high.is_none() && memchr(PRIVATE_USE_BYTE, piece.as_bytes()).is_none();
        if piece.is_empty() || has_none {
            return Cow::Borrowed(piece);
        }
        let mut whole = String::with_capacity(piece.len());
        for character in piece.chars() {
            let unit = from_private_use(character);
            if let (Some(high), Some(low)) =
                (self.high, unit.filter(|unit| LOW_SURROGATES.contains(unit)))
            {
                self.high = None;
                let code = 0x1_0000
                    + ((high - HIGH_SURROGATES.start) << 10)
                    + (low - LOW_SURROGATES.start);
                whole.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                continue;
            }
            whole.push_str(self.finish());
            match unit {
                Some(high) if HIGH_SURROGATES.contains(&high) => self.high = Some(high),
                Some(_) => whole.push(char::REPLACEMENT_CHARACTER),
                None => whole.push(character),
            }
        }
        Cow::Owned(whole)
    }

    /// Returns U+FFFD if the last piece ended with a high surrogate, else an empty string.
    pub fn finish(&mut self) -> &'static str {
        if self.high.take().is_some() { "\u{fffd}" } else { "" }
    }
}

/// Joins the surrogate pairs of a complete text.
pub fn join_surrogates(text: &str) -> String {
    let mut halves = SurrogateJoiner::default();
    let mut whole = halves.feed(text).into_owned();
    whole.push_str(halves.finish());
    whole
}

/// Joins the surrogate pairs in all strings and names of a complete document.
pub fn join_surrogates_in(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(join_surrogates(&text)),
        Value::Array(items) => items.into_iter().map(join_surrogates_in).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| (join_surrogates(&name), join_surrogates_in(value)))
            .collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn lone_surrogates_are_accepted() {
        let read = |text: &str| join_surrogates_in(parse(text).unwrap());
        assert_eq!(read(r#""caf\ud83d""#), json!("caf\u{fffd}"));
        assert_eq!(read(r#""\ude00\ud83d\ude00 \ud83d!""#), json!("\u{fffd}\u{1f600} \u{fffd}!"));
        assert_eq!(read(r#""\ud83d\ud83d\ude00""#), json!("\u{fffd}\u{1f600}"));
        assert_eq!(
            read(r#"{"a\udc00": "\\ud83d", "b": "\n"}"#),
            json!({"a\u{fffd}": "\\ud83d", "b": "\n"})
        );
        for wrong in [r#""\ud83"#, r#""\u{1f600}""#, "\"\\", "{\"a\": \\ud83d}"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_bytes(b"\"a\xff\"").unwrap(), json!("a\u{fffd}"));
    }

    #[test]
    fn requests_replace_lone_surrogates_and_keep_positions() {
        fn read_bytes(bytes: &[u8]) -> Result<Value, JsonError> {
            let budget = JsonBudget::default();
            parse_request(bytes, &budget, |bytes| budget.parse_slice(bytes))
        }
        let read = |text: &str| read_bytes(text.as_bytes());
        assert_eq!(
            read(r#""\ude00\ud83d\ude00 \ud83d!""#).unwrap(),
            json!("\u{fffd}\u{1f600} \u{fffd}!")
        );
        assert_eq!(read(r#"{"\uD83D": "\\ud83d"}"#).unwrap(), json!({"\u{fffd}": "\\ud83d"}));
        // A private-use character that a client sends is kept.
        assert_eq!(
            read("[\"\\ud83d\", \"\u{10f83d}\"]").unwrap(),
            json!(["\u{fffd}", "\u{10f83d}"])
        );
        let Err(JsonError::Syntax(error)) = read(r#"["\ud83d", x]"#) else { panic!() };
        assert_eq!((error.line(), error.column()), (1, 12));
        assert!(read_bytes(b"\"a\xff\"").is_err());
    }

    #[test]
    fn document_above_the_limit_is_not_parsed_again() {
        let calls = Cell::new(0);
        let budget = JsonBudget::new(1);
        let read: Result<Value, JsonError> = parse_request(br#"["\ud83d", 0]"#, &budget, |bytes| {
            calls.set(calls.get() + 1);
            budget.parse_slice(bytes)
        });
        assert!(matches!(read, Err(JsonError::Limit(_))), "{read:?}");
        assert_eq!(calls.get(), 1);
    }

    #[test]
    fn byte_order_mark_is_skipped() {
        assert_eq!(
            parse_bytes(b"\xef\xbb\xbf{\"a\": \"\xef\xbb\xbf\"}").unwrap(),
            json!({"a": "\u{feff}"})
        );
        assert_eq!(
            parse("\u{feff}\"\\ud83d\"").map(join_surrogates_in).unwrap(),
            json!("\u{fffd}")
        );
        assert!(parse("\u{feff}\u{feff}1").is_err());
    }

    #[test]
    fn numbers_that_are_not_finite_become_null() {
        let text =
            r#"{"a": [NaN,-Infinity, 1e400], "NaN": "say \"NaN\", NaN", "b": -1.5e3, "c": true}"#;
        let expected =
            json!({"a": [null, null, null], "NaN": "say \"NaN\", NaN", "b": -1500.0, "c": true});
        assert_eq!(parse_message(text.as_bytes()).unwrap(), (expected, true));
        assert_eq!(
            parse_message(b"[NaN, \"\\ud83d\"]").map(|(read, _)| join_surrogates_in(read)).unwrap(),
            json!([null, "\u{fffd}"])
        );
        assert!(parse_bytes(text.as_bytes()).is_err());
        for wrong in ["{NaN: 1}", "[NaN NaN]", "[nan_]", "[\"NaN]", "[NaN, \"\\"] {
            assert!(parse_message(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn split_surrogate_pairs_are_joined() {
        let mut halves = SurrogateJoiner::default();
        let mut joined = String::new();
        for piece in [r#""caf\ud83d""#, r#""""#, r#""\ude00!\ud83d""#, r#""x""#] {
            let Value::String(piece) = parse(piece).unwrap() else { panic!("{piece}") };
            joined.push_str(&halves.feed(&piece));
        }
        joined.push_str(halves.finish());
        assert_eq!(joined, "caf\u{1f600}!\u{fffd}x");
    }

    proptest! {
        #[test]
        fn surrogate_pairs_cut_at_any_position_are_joined(
            text in "[a-z\u{e9}\u{4f60}\u{1f600}\u{10000}\u{10f7ff}]{0,12}",
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        ) {
            let units: Vec<u16> = text.encode_utf16().collect();
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(units.len() + 1)).collect();
            places.extend([0, units.len()]);
            places.sort_unstable();
            let (mut halves, mut joined) = (SurrogateJoiner::default(), String::new());
            for pair in places.windows(2) {
                let escaped: String =
                    units[pair[0]..pair[1]].iter().map(|unit| format!("\\u{unit:04x}")).collect();
                let piece = parse(&format!("\"{escaped}\"")).unwrap();
                joined.push_str(&halves.feed(piece.as_str().unwrap()));
            }
            joined.push_str(halves.finish());
            prop_assert_eq!(joined, text);
        }

        #[test]
        fn arbitrary_input_never_panics(text in r#"[\\u0-9a-fA-F"d{}]{0,24}"#) {
            let _ = parse(&text).map(join_surrogates_in);
            let _ = parse_message(text.as_bytes());
        }
    }
}
