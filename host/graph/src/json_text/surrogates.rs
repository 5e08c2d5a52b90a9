//! Surrogates in the escapes of JSON.
//!
//! JSON escapes a character beyond the first 65,536 as a pair of surrogates (`\ud83d\ude00`). A
//! program that cuts a text within a character writes one of them alone, which JSON parsers reject.

use std::ops::Range;

/// High surrogates, the first half of a pair.
pub const HIGH_SURROGATES: Range<u32> = 0xd800..0xdc00;
/// Low surrogates, the second half of a pair.
pub const LOW_SURROGATES: Range<u32> = 0xdc00..0xe000;

/// Replaces lone surrogates by U+FFFD without changing the length of the document. Returns `None`
/// if there are none.
pub fn replace_lone_surrogates(text: &str) -> Option<String> {
    replace_surrogates(text, |_, text| text.push_str("\\ufffd"))
}

/// Replaces escaped lone surrogates by what `put` writes. Returns `None` if there are none.
pub fn replace_surrogates(text: &str, put: impl Fn(u32, &mut String)) -> Option<String> {
    let (mut mended, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        mended.push_str(before);
        let (length, half) = match parse_unicode_escape(escape) {
            Some(high) if HIGH_SURROGATES.contains(&high) => {
                match parse_unicode_escape(&escape[6..]) {
                    Some(low) if LOW_SURROGATES.contains(&low) => (12, None),
                    _ => (6, Some(high)),
                }
            }
            Some(low) if LOW_SURROGATES.contains(&low) => (6, Some(low)),
            Some(_) => (6, None),
            // The escape includes the character after the backslash.
            None => (1 + escape[1..].chars().next().map_or(0, char::len_utf8), None),
        };
        match half {
            Some(half) => put(half, &mut mended),
            None => mended.push_str(&escape[..length]),
        }
        rest = &escape[length..];
    }
    mended.push_str(rest);
    (mended != text).then_some(mended)
}

/// Parses an escape `\uXXXX` at the start of `text`.
fn parse_unicode_escape(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some(())?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_are_replaced() {
        for (text, expected) in [
            (r#""caf\ud83d""#, Some(r#""caf\ufffd""#)),
            (r#""\ude00\ud83d\ude00""#, Some(r#""\ufffd\ud83d\ude00""#)),
            (r#""\ud83d\ude00 \\ud83d \u0041""#, None),
            ("", None),
        ] {
            assert_eq!(replace_lone_surrogates(text).as_deref(), expected, "{text}");
        }
    }
}
