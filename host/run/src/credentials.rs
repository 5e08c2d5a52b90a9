//! Credentials, kept out of what a service says.
//!
//! A service may repeat the credentials that it gets: a whole key, a piece of it, or a key with its middle left out.
//! Its words become part of failures, which callers, models, journals and logs get. [`Credentials::hide`] is for such
//! words, [`Credentials::erase`] for data, where a piece that is the same by chance must stay.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

/// What stands in the place of a secret.
pub const MASK: &str = "***";

/// Bytes in a row that a text shares with a secret to show a piece of it. A shorter secret counts as a whole word
/// only, since it is part of other words by chance.
const PIECE_BYTES: usize = size_of::<u64>();

/// Bytes that the value of a header has at least to be a secret. A shorter one, such as `1` or `en`, is an option.
const HEADER_BYTES: usize = 4;

/// Secrets that a service is sent. Shows none of them when it is printed; clones are cheap.
#[derive(Clone, Default)]
pub struct Credentials(Arc<Secrets>);

#[derive(Default)]
struct Secrets {
    /// All [`PIECE_BYTES`] in a row of longer secrets, as big-endian numbers.
    pieces: HashSet<u64>,
    long: Vec<String>,
    short: Vec<String>,
}

impl Credentials {
    /// Credentials of these secrets. Empty ones are left out.
    pub fn new<T: Into<String>>(secrets: impl IntoIterator<Item = T>) -> Self {
        let secrets = secrets.into_iter().map(Into::into).filter(|it: &String| !it.is_empty());
        let (mut long, short): (Vec<String>, Vec<String>) =
            secrets.partition(|secret| secret.len() >= PIECE_BYTES);
        // One secret may be a part of another.
        long.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        let pieces = long.iter().flat_map(|secret| secret.as_bytes().windows(PIECE_BYTES));
        let pieces = pieces.map(|piece| piece.iter().copied().fold(0, pushed)).collect();
        Self(Arc::new(Secrets { pieces, long, short }))
    }

    /// A text of a service without secrets and pieces of them.
    #[must_use]
    pub fn hide(&self, text: &str) -> String {
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
            // A piece may begin and end inside of a character.
            let start = text.floor_char_boundary(range.start).max(from);
            let end = text.ceil_char_boundary(range.end);
            out.push_str(&text[from..start]);
            out.push_str(MASK);
            from = end;
        }
        out.push_str(&text[from..]);
        self.0.short.iter().fold(out, |text, secret| without_word(&text, secret))
    }

    /// Whether [`erase`](Self::erase) looks for anything: there is a secret of eight bytes or more.
    pub fn erases(&self) -> bool {
        !self.0.long.is_empty()
    }

    /// Data of a service without whole secrets, or `None` if there is none in it. Secrets of less than eight bytes
    /// stay.
    #[must_use]
    pub fn erase(&self, data: &str) -> Option<String> {
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

/// The secrets in the value of a header: what follows the scheme, such as `Bearer`, or all of it; of the scheme `Basic`
/// also the pair and the password.
pub fn of_header(value: &str) -> Vec<String> {
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
    secrets.retain(|secret| secret.len() >= HEADER_BYTES);
    secrets
}

/// Words about refused credentials without those that have their middle left out, such as `sk-...6789` and
/// `sk-ab***89`.
#[must_use]
pub fn without_cut_words(words: &str) -> String {
    let is_cut = |word: &str| word.contains('*') || word.trim_end_matches('.').contains("..");
    let shown = words.split(' ').map(|word| if is_cut(word) { MASK } else { word });
    shown.collect::<Vec<_>>().join(" ")
}

/// The last bytes with one more.
fn pushed(last: u64, byte: u8) -> u64 {
    last << 8 | u64::from(byte)
}

/// A text with a mask in the place of a secret that stands alone.
fn without_word(text: &str, secret: &str) -> String {
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
    fn words_show_no_piece_of_a_secret() {
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
            assert_eq!(credentials.hide(words), expected);
            assert_eq!(Credentials::default().hide(words), words);
        }
        assert!(!format!("{credentials:?}").contains("secret"));
    }

    #[test]
    fn data_shows_no_whole_secret() {
        let credentials = Credentials::new([KEY, "abc"]);
        let data = format!("[{KEY}, abc, secret-0123456789]");
        assert_eq!(credentials.erase(&data).unwrap(), "[***, abc, secret-0123456789]");
        assert_eq!(credentials.erase("abc"), None);
        assert!(credentials.erases() && !Credentials::new(["abc"]).erases());
    }

    #[test]
    fn words_with_their_middle_left_out_are_hidden() {
        for (words, expected) in [
            ("key provided: sk-ve***6789. See docs.", "key provided: *** See docs."),
            ("Received API Key = sk-...6789, Key", "Received API Key = *** Key"),
            ("territory not supported...", "territory not supported..."),
        ] {
            assert_eq!(without_cut_words(words), expected);
        }
    }

    #[test]
    fn a_header_has_its_secret_after_the_scheme() {
        for (value, secrets) in [
            ("Bearer abc-1", vec!["abc-1"]),
            ("abc-1", vec!["abc-1"]),
            ("a=1; b=2", vec!["a=1; b=2"]),
            ("one two three", vec!["one two three"]),
            ("Basic bWU6cGFzcw==", vec!["bWU6cGFzcw==", "pass", "me:pass"]),
            ("Basic no", vec![]),
            ("en", vec![]),
        ] {
            assert_eq!(of_header(value), secrets, "{value}");
        }
    }

    proptest! {
        #[test]
        fn a_secret_is_hidden_wherever_it_stands(
            before in ".{0,20}", secret in "\\PC{8,40}", after in ".{0,20}", start in 0usize..40,
        ) {
            let credentials = Credentials::new([secret.as_str()]);
            let start = secret.floor_char_boundary(start);
            let piece = &secret[start..];
            let hidden = credentials.hide(&format!("{before}{piece}{after}"));
            prop_assert!(piece.len() < PIECE_BYTES || !hidden.contains(piece), "{hidden}");
        }
    }
}
