//! The text of cursors of searches.

use std::fmt::Display;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Encodes the number and the id of a cursor as text of letters, digits, `-` and `_`.
pub(super) fn encode_cursor(number: i64, id: impl Display) -> String {
    URL_SAFE_NO_PAD.encode(format!("{number}.{id}"))
}

/// Decodes the number and the id of a cursor. Returns `None` if no cursor has this text.
pub(super) fn decode_cursor<I: FromStr>(text: &str) -> Option<(i64, I)> {
    let decoded = String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
    let (number, id) = decoded.split_once('.')?;
    Some((number.parse().ok()?, id.parse().ok()?))
}
