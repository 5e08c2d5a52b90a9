//! Redacts credentials in what a service sends back.
//!
//! A service may echo the credentials of a request: a whole key, a part of it, or a key with its
//! middle left out. The text of a service becomes part of failures, which reach callers, models,
//! journals and logs. [`Credentials::redact`] is for such text. [`Credentials::redact_exact`] is
//! for data, in which a substring that equals a part of a key by chance must stay.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

/// The replacement of a secret.
pub const MASK: &str = "***";

/// Length of the part of a secret that is redacted wherever it occurs, in bytes. A secret that is
/// shorter is redacted only as a whole word, since it occurs in other words by chance.
const PIECE_BYTES: usize = size_of::<u64>();

/// Minimum length of a header value to be a secret. A shorter value, such as `1` or `en`, is an
/// option.
const MIN_HEADER_SECRET_BYTES: usize = 4;

/// Secrets that are sent to a service. `Debug` prints none of them. Clones are cheap.
#[derive(Clone, Default)]
pub struct Credentials(Arc<Secrets>);

#[derive(Default)]
struct Secrets {
    /// All substrings of [`PIECE_BYTES`] bytes of the longer secrets, as big-endian numbers.
    pieces: HashSet<u64>,
    long: Vec<String>,
    short: Vec<String>,
}

impl Credentials {
    /// Creates credentials from secrets. Empty secrets are ignored.
    pub fn new<T: Into<String>>(secrets: impl IntoIterator<Item = T>) -> Self {
        let secrets = secrets.into_iter().map(Into::into).filter(|it: &String| !it.is_empty());
        let (mut long, short): (Vec<String>, Vec<String>) =
            secrets.partition(|secret| secret.len() >= PIECE_BYTES);
        // Longest first, since one secret can contain another.
        long.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        let pieces = long.iter().flat_map(|secret| secret.as_bytes().windows(PIECE_BYTES));
        let pieces = pieces.map(|piece| piece.iter().copied().fold(0, pushed)).collect();
        Self(Arc::new(Secrets { pieces, long, short }))
    }

    /// Returns the text of a service with secrets, and parts of them of eight bytes or more,
    /// replaced by [`MASK`].
    #[must_use]
    pub fn redact(&self, text: &str) -> String {
        let mut hidden: Vec<Range<usize>> = Vec::new();
        let mut last = 0;
        for (at, byte) in text.bytes().enumerate() {
            last = pushed(last, byte);
            let end = at + 1;
            if end < PIECE_BYTES || !self.0.pieces.contains(&last) {
                continue;
            }
            let start = end - PIECE_BYTES;
            match hidden.last_mut().filter(|before| before.end >= start) {
                Some(before) => before.end = end,
                None => hidden.push(start..end),
            }
        }
        let mut out = String::with_capacity(text.len());
        let mut from = 0;
        for range in hidden {
            // A substring of bytes may start and end within a character.
            let start = text.floor_char_boundary(range.start).max(from);
            let end = text.ceil_char_boundary(range.end);
            out.push_str(&text[from..start]);
            out.push_str(MASK);
            from = end;
        }
        out.push_str(&text[from..]);
        self.0.short.iter().fold(out, |text, secret| mask_word(&text, secret))
    }

    /// Returns true if [`redact_exact`](Self::redact_exact) can find anything: there is a secret of
    /// eight bytes or more.
    pub fn can_redact_exact(&self) -> bool {
        !self.0.long.is_empty()
    }

    /// Returns the data of a service with all secrets replaced by [`MASK`], or `None` if the data
    /// contains no secret. Secrets shorter than eight bytes are not replaced.
    #[must_use]
    pub fn redact_exact(&self, data: &str) -> Option<String> {
        let is_in = self.0.long.iter().any(|secret| data.contains(secret.as_str()));
        is_in.then(|| {
            let secrets = self.0.long.iter();
            secrets.fold(data.to_owned(), |data, secret| data.replace(secret.as_str(), MASK))
        })
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

/// Returns the secrets in the value of a header: the part after the scheme, such as `Bearer`, or
/// the whole value. For the scheme `Basic` these are also the decoded pair and the password.
pub fn header_secrets(value: &str) -> Vec<String> {
    let scheme = value.split_once(' ').filter(|(scheme, rest)| {
        scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !rest.contains(' ')
    });
    let (scheme, secret) = scheme.unwrap_or(("", value));
    let mut secrets = vec![secret.to_owned()];
    if scheme.eq_ignore_ascii_case("basic")
        && let Ok(pair) = BASE64.decode(secret)
        && let Ok(pair) = String::from_utf8(pair)
    {
        secrets.extend(pair.split_once(':').map(|(_, password)| password.to_owned()));
        secrets.push(pair);
    }
    secrets.retain(|secret| secret.len() >= MIN_HEADER_SECRET_BYTES);
    secrets
}

/// Returns a message about refused credentials without abbreviated keys, such as `sk-...6789` and
/// `sk-ab***89`.
#[must_use]
pub fn mask_abbreviated_keys(words: &str) -> String {
    let is_cut = |word: &str| word.contains('*') || word.trim_end_matches('.').contains("..");
    let shown = words.split(' ').map(|word| if is_cut(word) { MASK } else { word });
    shown.collect::<Vec<_>>().join(" ")
}

/// Shifts one byte into the last eight bytes.
fn pushed(last: u64, byte: u8) -> u64 {
    last << 8 | u64::from(byte)
}

/// Replaces a secret by [`MASK`] where it is a whole word.
fn mask_word(text: &str, secret: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for (at, _) in text.match_indices(secret) {
        let end = at + secret.len();
        let is_word = !text[..at].ends_with(char::is_alphanumeric)
            && !text[end..].starts_with(char::is_alphanumeric);
        if is_word {
            out.push_str(&text[from..at]);
            out.push_str(MASK);
            from = end;
        }
    }
    out.push_str(&text[from..]);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEY: &str = "sk-very-secret-0123456789";

    #[test]
    fn redact_removes_parts_of_secrets() {
        let credentials = Credentials::new([KEY, "abc", "schlüssel-äöü", ""]);
        for (words, expected) in [
            ("bad key sk-very-secret-0123456789.", "bad key ***."),
            ("{\"key\":\"sk-very-secret-0123456789\"}", "{\"key\":\"***\"}"),
            ("the key \"23456789\" is expired", "the key \"***\" is expired"),
            ("sk-very-s and 0123456789", "*** and ***"),
            ("sk-very is short", "sk-very is short"),
            ("abc, abcd, (abc)", "***, abcd, (***)"),
            ("no lüssel-äöü here", "no *** here"),
            ("Country not supported...", "Country not supported..."),
        ] {
            assert_eq!(credentials.redact(words), expected);
            assert_eq!(Credentials::default().redact(words), words);
        }
        assert!(!format!("{credentials:?}").contains("secret"));
    }

    #[test]
    fn redact_exact_redacts_whole_secrets() {
        let credentials = Credentials::new([KEY, "abc"]);
        let data = format!("[{KEY}, abc, secret-0123456789]");
        assert_eq!(credentials.redact_exact(&data).unwrap(), "[***, abc, secret-0123456789]");
        assert_eq!(credentials.redact_exact("abc"), None);
        assert!(credentials.can_redact_exact() && !Credentials::new(["abc"]).can_redact_exact());
    }

    #[test]
    fn abbreviated_keys_are_redacted() {
        for (words, expected) in [
            ("key provided: sk-ve***6789. See docs.", "key provided: *** See docs."),
            ("Received API Key = sk-...6789, Key", "Received API Key = *** Key"),
            ("territory not supported...", "territory not supported..."),
        ] {
            assert_eq!(mask_abbreviated_keys(words), expected);
        }
    }

    #[test]
    fn secrets_of_an_authorization_header_depend_on_its_scheme() {
        for (value, secrets) in [
            ("Bearer abc-1", vec!["abc-1"]),
            ("abc-1", vec!["abc-1"]),
            ("a=1; b=2", vec!["a=1; b=2"]),
            ("one two three", vec!["one two three"]),
            ("Basic bWU6cGFzcw==", vec!["bWU6cGFzcw==", "pass", "me:pass"]),
            ("Basic no", vec![]),
            ("en", vec![]),
        ] {
            assert_eq!(header_secrets(value), secrets, "{value}");
        }
    }

    proptest! {
        #[test]
        fn parts_of_a_secret_are_hidden_at_any_position(
            before in ".{0,20}", secret in "\\PC{8,40}", after in ".{0,20}", start in 0usize..40,
        ) {
            let credentials = Credentials::new([secret.as_str()]);
            let start = secret.floor_char_boundary(start);
            let piece = &secret[start..];
            let hidden = credentials.redact(&format!("{before}{piece}{after}"));
            prop_assert!(piece.len() < PIECE_BYTES || !hidden.contains(piece), "{hidden}");
        }
    }
}
