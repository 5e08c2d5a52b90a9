//! Base64 as clients write it.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use wattle_graph::llm;

/// Characters that stand for three bytes.
const GROUP: usize = 4;

/// Characters whose bytes tell what kind of picture a file is.
const HEAD: usize = 16;

/// Base64 in the form that every provider takes: the standard alphabet, with padding and without
/// white space. `None` for what is none, or is empty.
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

/// The text that base64 stands for.
pub(super) fn text(data: &str) -> Option<String> {
    let bytes = STANDARD.decode(standard(data)?.as_bytes()).ok()?;
    String::from_utf8(bytes).ok()
}

/// The media type of a picture by its first bytes.
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
    fn spellings_of_base64_become_one() {
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
    fn pictures_are_known_by_their_beginning() {
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
