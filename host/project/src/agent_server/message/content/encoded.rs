//! Base64 data that clients send.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use wattle_graph::llm;

/// Number of base64 characters that encode three bytes.
const GROUP: usize = 4;

/// Number of leading characters from which the media type of an image is detected.
const HEAD: usize = 16;

/// Converts base64 to the form that every provider accepts: the standard alphabet, with padding and
/// without white space. Returns `None` if the text is empty or not base64.
pub(super) fn standard(text: &str) -> Option<Cow<'_, str>> {
    if is_standard(text) {
        return Some(Cow::Borrowed(text));
    }
    let mut clean = String::with_capacity(text.len() + GROUP);
    for byte in text.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
        clean.push(match byte {
            b'-' => '+',
            b'_' => '/',
            other => char::from(other),
        });
    }
    clean.truncate(clean.trim_end_matches('=').len());
    clean.push_str(match clean.len() % GROUP {
        2 => "==",
        3 => "=",
        _ => "",
    });
    is_standard(&clean).then_some(Cow::Owned(clean))
}

/// Decodes base64 to text. Returns `None` if it is not UTF-8.
pub(super) fn text(data: &str) -> Option<String> {
    let bytes = STANDARD.decode(standard(data)?.as_bytes()).ok()?;
    String::from_utf8(bytes).ok()
}

/// Detects the media type of an image from its first bytes.
pub(super) fn picture_type(data: &str) -> Option<&'static str> {
    let head = STANDARD.decode(data.get(..data.len().min(HEAD))?).ok()?;
    llm::picture_type(&head)
}

fn is_standard(text: &str) -> bool {
    let letters = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    !letters.is_empty() && text.len().is_multiple_of(GROUP) && letters.bytes().all(is_letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_normalized() {
        for (written, expected) in [
            ("aGVsbG8=", Some("aGVsbG8=")),
            ("aGVs\nbG8=\r\n", Some("aGVsbG8=")),
            ("aGVsbG8", Some("aGVsbG8=")),
            ("aGVsbG8==", Some("aGVsbG8=")),
            ("-_-_", Some("+/+/")),
            ("aGVsb", None),
            ("aG=sbG8=", None),
            ("hello world!", None),
            ("/pictures/a.png", None),
            ("p\u{f6}st", None),
            ("====", None),
            (" ", None),
            ("", None),
        ] {
            assert_eq!(standard(written).as_deref(), expected, "{written}");
        }
        assert_eq!(text("aMO2\n").as_deref(), Some("h\u{f6}"));
        assert_eq!(text("/w=="), None);
    }

    #[test]
    fn image_type_is_detected_from_bytes() {
        for (data, expected) in [
            ("iVBORw0KGgo=", Some("image/png")),
            ("/9j/4AAQSkZJRgABAQAAAQABAAD", Some("image/jpeg")),
            ("R0lGODlhAQABAAAAACw=", Some("image/gif")),
            ("UklGRiQAAABXRUJQVlA4IBgAAAAw", Some("image/webp")),
            ("UklGRiQAAABXQVZFZm10IBAAAAAB", None),
            ("aGVsbG8=", None),
            ("", None),
        ] {
            assert_eq!(picture_type(data), expected, "{data}");
        }
    }
}
