//! Compressed responses. Requests ask for no content coding, and the host decompresses nothing.
//! Some gateways compress nevertheless, and others keep the header of a response that they
//! decompress.

use reqwest::header::{CONTENT_ENCODING, HeaderMap};

/// The content codings that compress (RFC 9110, 8.4.1; RFC 7932; RFC 8878).
const COMPRESSIONS: [&str; 7] =
    ["br", "compress", "deflate", "gzip", "x-compress", "x-gzip", "zstd"];

/// Number of bytes at the start of a body that are examined.
const HEAD_BYTES: usize = 1024;

/// Returns the content codings of a response that compress, as its headers name them; `None` if
/// there are none.
pub(super) fn coding(headers: &HeaderMap) -> Option<String> {
    let values = headers.get_all(CONTENT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let codings = values.flat_map(|value| value.split(',')).map(str::trim);
    let is_compression =
        |coding: &&str| COMPRESSIONS.iter().any(|known| known.eq_ignore_ascii_case(coding));
    let found: Vec<&str> = codings.filter(is_compression).collect();
    (!found.is_empty()).then(|| found.join(", "))
}

/// Returns whether a body is not text: its start is not UTF-8, or has control characters.
pub(super) fn is_binary(body: &[u8]) -> bool {
    let is_odd = |character: char| {
        // U+FFFD replaces invalid bytes in a body that is already decoded.
        character == char::REPLACEMENT_CHARACTER
            || (character.is_control() && !character.is_whitespace())
    };
    let head = &body[..body.len().min(HEAD_BYTES)];
    match str::from_utf8(head) {
        Ok(text) => text.chars().any(is_odd),
        // The head may end within a character.
        Err(error) if error.error_len().is_none() => is_binary(&head[..error.valid_up_to()]),
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    #[test]
    fn only_codings_that_compress_are_returned() {
        for (value, expected) in [
            ("gzip", Some("gzip")),
            ("GZIP", Some("GZIP")),
            ("identity, br", Some("br")),
            ("gzip,zstd", Some("gzip, zstd")),
            ("identity", None),
            ("utf-8", None),
            ("", None),
        ] {
            let headers = [(CONTENT_ENCODING, HeaderValue::from_static(value))];
            let headers: HeaderMap = headers.into_iter().collect();
            assert_eq!(coding(&headers).as_deref(), expected, "{value}");
        }
        assert_eq!(coding(&HeaderMap::new()), None);
    }

    #[test]
    fn compressed_bytes_are_no_text() {
        for text in ["", "{\n\t\"a\": \"é\"\r\n}", "\u{feff}data: x\n\n"] {
            assert!(!is_binary(text.as_bytes()), "{text:?}");
        }
        for before in HEAD_BYTES - 3..=HEAD_BYTES {
            let text = "x".repeat(before) + "好";
            assert!(!is_binary(text.as_bytes()), "{before} bytes before a character");
        }
        for bytes in
            [b"\x1f\x8b\x08\x00".as_slice(), b"\x28\xb5\x2f\xfd".as_slice(), "a\u{fffd}".as_bytes()]
        {
            assert!(is_binary(bytes), "{bytes:?}");
        }
    }
}
