//! Character references of HTML: decoded where a URL or a style is interpreted, encoded where text
//! is put into a page.

/// References that a model or an attacker writes for characters of markup. Other names are kept,
/// because no URL or style begins with one of their characters.
const NAMED: [(&str, char); 6] =
    [("amp", '&'), ("lt", '<'), ("gt", '>'), ("quot", '"'), ("apos", '\''), ("nbsp", '\u{a0}')];

/// Decodes the references in an attribute's value.
pub(super) fn decode(raw: &str) -> String {
    let mut decoded = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('&') {
        decoded.push_str(&rest[..at]);
        rest = &rest[at..];
        let (character, length) = reference(rest).unwrap_or(('&', 1));
        decoded.push(character);
        rest = &rest[length..];
    }
    decoded.push_str(rest);
    decoded
}

/// Returns the character of the reference at the start of a text, and its length in bytes.
fn reference(text: &str) -> Option<(char, usize)> {
    text.strip_prefix("&#").map_or_else(|| named(text), |digits| numeric(text, digits))
}

/// Decodes a numeric reference. Browsers accept a number without a semicolon, too.
fn numeric(text: &str, digits: &str) -> Option<(char, usize)> {
    let (digits, radix) = match digits.strip_prefix(['x', 'X']) {
        Some(digits) => (digits, 16),
        None => (digits, 10),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let (number, rest) = digits.split_at(end);
    if number.is_empty() {
        return None;
    }
    let code = u32::from_str_radix(number, radix).ok().filter(|code| *code != 0);
    let character = code.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER);
    Some((character, text.len() - rest.strip_prefix(';').unwrap_or(rest).len()))
}

/// Decodes a named reference. Without a semicolon, no letter, digit or `=` may follow the name,
/// which would be that of a query parameter: `?a=1&lt=2`.
fn named(text: &str) -> Option<(char, usize)> {
    NAMED.into_iter().find_map(|(name, character)| {
        let rest = text.strip_prefix('&')?.strip_prefix(name)?;
        let length = text.len() - rest.len();
        match rest.chars().next() {
            Some(';') => Some((character, length + 1)),
            Some(next) if next == '=' || next.is_ascii_alphanumeric() => None,
            _ => Some((character, length)),
        }
    })
}

/// Encodes plain text for an attribute's value in double quotes, or for text between tags.
pub(super) fn encode(text: &str) -> String {
    quote(&text.replace('&', "&amp;"))
}

/// Encodes text that already has references for double quotes. The result has no character that
/// could begin or end a tag.
pub(super) fn quote(raw: &str) -> String {
    raw.replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    #[test]
    fn references_are_decoded_as_in_browsers() {
        for (raw, expected) in [
            ("a&amp;b", "a&b"),
            ("a&ampb", "a&ampb"),
            ("a&amp", "a&"),
            ("?a=1&lt=2", "?a=1&lt=2"),
            ("java&#115;cript&#x3A;x", "javascript:x"),
            ("java&#0000115cript", "javascript"),
            ("&#0;&#xD800;&#99999999999;", "\u{fffd}\u{fffd}\u{fffd}"),
            ("&#;&#x;&", "&#;&#x;&"),
            ("&Ouml;&quot;", "&Ouml;\""),
        ] {
            assert_eq!(decode(raw), expected, "{raw}");
        }
    }

    #[test]
    fn encoded_text_decodes_to_itself() {
        for text in ["", "a&b", "&amp;", "<\"'>", "&#60;", "?a=1&lt=2&copy=3"] {
            assert_eq!(decode(&encode(text)), text);
        }
    }
}
