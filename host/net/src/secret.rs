//! Secrets. Guests write placeholders; the host inserts the values when it sends a request, and
//! redacts the values in the response.

mod token;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use url::form_urlencoded;
use wattle_graph::failure::{Failure, code};
use wattle_run::credentials::MASK;
use wattle_run::ports::Clock;

pub(crate) use self::token::ManagedToken;
pub use self::token::{Rejection, TokenSource};
use crate::error::NetError;

/// Forms of the start of a placeholder. A guest that builds its URL with a library that
/// percent-encodes produces the second or the third form.
const PLACEHOLDER_STARTS: [&str; 3] = ["{{secret:", "%7B%7Bsecret%3A", "%7B%7Bsecret:"];

/// Forms of the end of a placeholder.
const PLACEHOLDER_ENDS: [&str; 2] = ["}}", "%7D%7D"];

/// Bytes of the longest form of the end.
const MAX_END_BYTES: usize = 6;

/// Maximum bytes of the name of a secret.
const MAX_NAME_BYTES: usize = 128;

/// Minimum bytes of a secret that is redacted in bodies. A shorter secret would match unrelated
/// text by chance, and a reader can guess it anyway.
const MIN_BODY_REDACT_BYTES: usize = 8;

/// All secrets by name. `Debug` does not show their values.
#[derive(Debug, Default)]
pub struct Secrets {
    values: BTreeMap<String, SecretString>,
    tokens: BTreeMap<String, ManagedToken>,
}

impl Secrets {
    /// Creates secrets from the values that the operator set. The caller omits secrets whose
    /// variable or file is missing: a request with such a secret fails as `unavailable`, with
    /// advice.
    ///
    /// # Errors
    ///
    /// Returns [`NetError::Secret`] for a name that guests cannot write, and for a value that is
    /// empty or contains control characters, which are not allowed in headers.
    pub fn new(values: BTreeMap<String, SecretString>) -> Result<Self, NetError> {
        for (name, value) in &values {
            let wrong = |reason| NetError::Secret { name: name.clone(), reason };
            if !is_name(name) {
                return Err(wrong("must be named with letters, digits, `_`, `-` and `.` only"));
            }
            let value = value.expose_secret();
            if value.is_empty() {
                return Err(wrong("is empty; set its variable or file, or remove it"));
            }
            if value.chars().any(char::is_control) {
                return Err(wrong("has a line break or another control character"));
            }
        }
        Ok(Self { values, tokens: BTreeMap::new() })
    }

    /// Adds managed tokens. A token is fetched at its first use and renewed before it expires.
    ///
    /// # Errors
    ///
    /// Returns [`NetError::Secret`] for a name that guests cannot write or that is taken, and for
    /// an invalid source.
    pub fn with_tokens(
        mut self,
        sources: BTreeMap<String, TokenSource>,
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, NetError> {
        for (name, source) in sources {
            let wrong = |reason| NetError::Secret { name: name.clone(), reason };
            if !is_name(&name) {
                return Err(wrong("must be named with letters, digits, `_`, `-` and `.` only"));
            }
            if self.values.contains_key(&name) {
                return Err(wrong("is both a value and a token; rename one of them"));
            }
            let token = ManagedToken::new(&name, source, clock.clone()).map_err(wrong)?;
            self.tokens.insert(name, token);
        }
        Ok(self)
    }

    /// Returns the managed token of a name.
    pub(crate) fn token(&self, name: &str) -> Option<&ManagedToken> {
        self.tokens.get(name)
    }

    /// Returns the names of the managed tokens whose placeholders occur in a text.
    pub(crate) fn token_names_in(&self, text: &str) -> BTreeSet<String> {
        // A name that occurs often is copied once.
        let names = placeholder_names(text).filter(|name| self.tokens.contains_key(*name));
        names.collect::<BTreeSet<&str>>().into_iter().map(str::to_owned).collect()
    }

    fn get(&self, name: &str) -> Result<&SecretString, Failure> {
        self.values.get(name).ok_or_else(|| {
            let message = format!(
                "the secret `{name}` is not set; write `{name} = {{ env = \"{name}\" }}` under \
                 `[secrets]` in wattle.toml and set that variable"
            );
            Failure::new(code::UNAVAILABLE, message)
        })
    }
}

/// Where a secret is inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    /// In a query, percent-encoded.
    Query,
    /// In a header or a text body, unchanged.
    Raw,
}

/// Maximum size of a text with its secrets inserted. A secret can be much longer than its
/// placeholder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SizeLimit {
    /// Name of the limit in the details of the failure.
    pub(crate) name: &'static str,
    pub(crate) bytes: u64,
}

impl SizeLimit {
    fn check(self, text: &str) -> Result<(), Failure> {
        if text.len() as u64 <= self.bytes {
            return Ok(());
        }
        let (name, bytes) = (self.name, self.bytes);
        let message = format!(
            "a part of the request has more than the allowed {bytes} bytes with its secrets \
             inserted"
        );
        let details = json!({ "limit": name, "allowed": bytes });
        Err(Failure::new(code::LIMIT, message).with_details(details))
    }
}

/// Replaces the placeholders of one exchange, and redacts the secrets that it inserted.
#[derive(Debug)]
pub(crate) struct SecretInjector<'a> {
    secrets: &'a Secrets,
    /// Managed tokens that were fetched for this exchange.
    tokens: BTreeMap<String, SecretString>,
    /// The values that were inserted, without duplicates.
    used: Vec<SecretString>,
}

impl<'a> SecretInjector<'a> {
    pub(crate) fn new(secrets: &'a Secrets) -> Self {
        Self { secrets, tokens: BTreeMap::new(), used: Vec::new() }
    }

    /// Adds a managed token. The placeholder of a token that was not added is an error.
    pub(crate) fn add_token(&mut self, name: &str, token: SecretString) {
        self.tokens.insert(name.to_owned(), token);
    }

    /// Returns a managed token, if it was added.
    pub(crate) fn token(&self, name: &str) -> Option<&SecretString> {
        self.tokens.get(name)
    }

    /// Removes a managed token, so that the renewed token can be added.
    pub(crate) fn remove_token(&mut self, name: &str) -> Option<SecretString> {
        self.tokens.remove(name)
    }

    /// Returns the names of the managed tokens that were added.
    pub(crate) fn token_names(&self) -> Vec<String> {
        self.tokens.keys().cloned().collect()
    }

    /// Replaces the placeholders in a text. `allowed` returns the failure for a secret that must
    /// not be sent. Placeholders within an inserted value are not replaced. Returns a failure with
    /// code `limit` as soon as the result exceeds the limit.
    pub(crate) fn inject(
        &mut self,
        text: &str,
        place: Position,
        limit: SizeLimit,
        allowed: &dyn Fn(&str) -> Result<(), Failure>,
    ) -> Result<String, Failure> {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(mention) = next_placeholder(rest) {
            allowed(mention.name)?;
            let secret = match self.tokens.get(mention.name) {
                Some(token) => token.clone(),
                None => self.secrets.get(mention.name)?.clone(),
            };
            out.push_str(mention.before);
            match place {
                Position::Query => out.push_str(&percent_encode(secret.expose_secret())),
                Position::Raw => out.push_str(secret.expose_secret()),
            }
            limit.check(&out)?;
            self.remember(secret);
            rest = mention.after;
        }
        out.push_str(rest);
        limit.check(&out)?;
        Ok(out)
    }

    /// Adds an inserted value to the values that are redacted.
    fn remember(&mut self, secret: SecretString) {
        let is_same = |used: &SecretString| used.expose_secret() == secret.expose_secret();
        if !self.used.iter().any(is_same) {
            self.used.push(secret);
        }
    }

    /// Redacts the secrets of this exchange in a text.
    pub(crate) fn redact(&self, text: &str) -> String {
        self.redact_long(text, 0)
    }

    /// Redacts the secrets in a URL or a header. Returns `None` if the redacted text contains a
    /// secret after percent-decoding, because a server can percent-encode only a part of a secret.
    pub(crate) fn redact_encoded(&self, text: &str) -> Option<String> {
        let clean = self.redact(text);
        let decoded = percent_decode(&clean);
        let spaced = decoded.replace('+', " ");
        let hidden = self.used.iter().map(ExposeSecret::expose_secret);
        let mut hidden = hidden.filter(|value| decoded.contains(*value) || spaced.contains(*value));
        hidden.next().is_none().then_some(clean)
    }

    /// Redacts the secrets in a body. Returns `None` if the body is not UTF-8 or contains no secret
    /// of at least [`MIN_BODY_REDACT_BYTES`].
    pub(crate) fn redact_body(&self, body: &[u8]) -> Option<String> {
        let text = std::str::from_utf8(body).ok()?;
        let clean = self.redact_long(text, MIN_BODY_REDACT_BYTES);
        (clean != text).then_some(clean)
    }

    fn redact_long(&self, text: &str, bytes: usize) -> String {
        let used = self.used.iter().map(ExposeSecret::expose_secret);
        let mut forms: Vec<String> = used
            .filter(|value| value.len() >= bytes)
            .flat_map(|value| [value.to_owned(), percent_encode(value), form_encode(value)])
            .collect();
        // A secret can be a part of another one, so the longest is redacted first.
        forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
        forms.dedup();
        forms.iter().fold(text.to_owned(), |text, form| text.replace(form.as_str(), MASK))
    }
}

/// Returns true if a text contains a placeholder.
pub(crate) fn has_placeholder(text: &str) -> bool {
    next_placeholder(text).is_some()
}

/// Returns the names in the placeholders of a text.
pub(crate) fn placeholder_names(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mention = next_placeholder(rest)?;
        rest = mention.after;
        Some(mention.name)
    })
}

struct Placeholder<'a> {
    before: &'a str,
    name: &'a str,
    after: &'a str,
}

fn next_placeholder(text: &str) -> Option<Placeholder<'_>> {
    let (bytes, mut from) = (text.as_bytes(), 0);
    while let Some((start, opening)) = find_first(&bytes[from..], &PLACEHOLDER_STARTS) {
        let start = from + start;
        let inner = start + opening;
        // A name ends within this part, so the time is linear in the length of the text.
        let part = &bytes[inner..bytes.len().min(inner + MAX_NAME_BYTES + MAX_END_BYTES)];
        if let Some((length, closing)) = find_first(part, &PLACEHOLDER_ENDS)
            && is_name(&text[inner..inner + length])
        {
            return Some(Placeholder {
                before: &text[..start],
                name: &text[inner..inner + length],
                after: &text[inner + length + closing..],
            });
        }
        from = inner;
    }
    None
}

/// Returns the start of the first occurrence of any of the words, ignoring ASCII case, and the
/// length of the found word.
fn find_first(bytes: &[u8], words: &[&str]) -> Option<(usize, usize)> {
    (0..bytes.len()).find_map(|start| {
        // All words start with one of these bytes, which never occur inside of a multibyte
        // character.
        if !matches!(bytes[start], b'{' | b'}' | b'%') {
            return None;
        }
        words.iter().find_map(|word| {
            let found = bytes.get(start..start + word.len())?;
            found.eq_ignore_ascii_case(word.as_bytes()).then_some((start, word.len()))
        })
    })
}

fn is_name(name: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}

fn form_encode(value: &str) -> String {
    form_urlencoded::byte_serialize(value.as_bytes()).collect()
}

/// Percent-encodes a value for a query. A plus sign means a space in forms only.
fn percent_encode(value: &str) -> String {
    form_encode(value).replace('+', "%20")
}

/// Decodes percent-encoded bytes.
fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let pair = bytes.get(at + 1..at + 3).filter(|_| byte == b'%');
        let value = pair
            .and_then(|pair| std::str::from_utf8(pair).ok())
            .and_then(|pair| u8::from_str_radix(pair, 16).ok());
        out.push(value.unwrap_or(byte));
        at += if value.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(pairs: &[(&str, &str)]) -> Secrets {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).into()));
        Secrets::new(pairs.collect()).unwrap()
    }

    const LIMIT: SizeLimit = SizeLimit { name: "request_bytes", bytes: 100 };

    fn fill(secrets: &Secrets, text: &str, place: Position) -> Result<String, String> {
        let allowed = |name: &str| match name {
            "DENIED" => Err(Failure::new(code::DENIED, "no")),
            _ => Ok(()),
        };
        let filled = SecretInjector::new(secrets).inject(text, place, LIMIT, &allowed);
        filled.map_err(|failure| failure.code)
    }

    #[test]
    fn placeholders_are_replaced_once() {
        let secrets = secrets(&[("A", "a b&{{secret:B}}"), ("B", "bee"), ("DENIED", "x")]);
        let cases = [
            ("x {{secret:B}} y {{secret:B}}", Position::Raw, Ok("x bee y bee")),
            ("{{secret:A}}", Position::Raw, Ok("a b&{{secret:B}}")),
            ("k={{secret:A}}&l=1", Position::Query, Ok("k=a%20b%26%7B%7Bsecret%3AB%7D%7D&l=1")),
            ("k=%7B%7Bsecret%3AB%7D%7D", Position::Query, Ok("k=bee")),
            ("k=%7b%7bsecret:B%7d%7d", Position::Query, Ok("k=bee")),
            ("{{secret:B", Position::Raw, Ok("{{secret:B")),
            ("{{secret:no name}} {{secret:B}}", Position::Raw, Ok("{{secret:no name}} bee")),
            ("{{secret:}}\u{e9}{{", Position::Raw, Ok("{{secret:}}\u{e9}{{")),
            ("{{secret:DENIED}}", Position::Raw, Err("denied")),
            ("{{secret:MISSING}}", Position::Raw, Err("unavailable")),
        ];
        for (text, place, expected) in cases {
            let filled = fill(&secrets, text, place);
            assert_eq!(filled.as_deref().map_err(String::as_str), expected, "{text}");
        }
    }

    #[test]
    fn size_of_a_text_with_its_secrets_is_limited() {
        let secrets = secrets(&[("A", "0123456789")]);
        let exact = "{{secret:A}}".repeat(10);
        assert_eq!(fill(&secrets, &exact, Position::Raw).map(|text| text.len()), Ok(100));
        for long in [format!("{exact}{{{{secret:A}}}}"), format!("{exact}x"), "x".repeat(101)] {
            assert_eq!(fill(&secrets, &long, Position::Raw), Err("limit".to_owned()), "{long}");
        }
    }

    #[test]
    fn repeated_secrets_are_redacted_once() {
        let secrets = secrets(&[("A", "first one"), ("B", "other one")]);
        let mut injector = SecretInjector::new(&secrets);
        let text = "{{secret:A}}{{secret:B}}".repeat(5);
        injector.inject(&text, Position::Raw, LIMIT, &|_| Ok(())).unwrap();
        assert_eq!(injector.used.len(), 2);
        assert_eq!(injector.redact("first one, other one"), "***, ***");
    }

    /// The time to find the end of each placeholder must not depend on the length of the text.
    #[test]
    fn placeholders_without_an_end_are_skipped_in_linear_time() {
        let text = "{{secret:".repeat(50_000);
        assert!(!has_placeholder(&text));
        assert!(!has_placeholder(&format!("{text}}}}}")));
        let name = "a".repeat(MAX_NAME_BYTES);
        for (opening, closing) in PLACEHOLDER_STARTS.iter().zip(["}}", "%7D%7D", "}}"]) {
            let placeholder = format!("{text}{opening}{name}{closing}\u{e9}");
            assert_eq!(placeholder_names(&placeholder).collect::<Vec<_>>(), [&name]);
            assert!(!has_placeholder(&format!("{opening}{name}a{closing}")));
        }
    }

    #[test]
    fn used_secrets_are_redacted_in_every_encoding() {
        let secrets = secrets(&[("A", "long secret/1"), ("B", "long secret/12"), ("C", "shy")]);
        let mut injector = SecretInjector::new(&secrets);
        for name in ["A", "B", "C"] {
            let placeholder = format!("{{{{secret:{name}}}}}");
            injector.inject(&placeholder, Position::Raw, LIMIT, &|_| Ok(())).unwrap();
        }
        let text = "long secret/12 long%20secret%2F1 long+secret%2F1 shy";
        assert_eq!(injector.redact(text), "*** *** *** ***");
        assert_eq!(injector.redact_body(text.as_bytes()).unwrap(), "*** *** *** shy");
        assert_eq!(injector.redact_body(b"nothing shy"), None);
        assert_eq!(injector.redact_body(b"\xff long secret/1"), None);
        assert_eq!(SecretInjector::new(&secrets).redact(text), text);
        assert_eq!(injector.redact_encoded("/a?b=long+secret%2F1&c").unwrap(), "/a?b=***&c");
        for partly in ["/a?b=long%20secret/1", "/a?long+secret%2f1", "/%6Cong secret/1"] {
            assert_eq!(injector.redact_encoded(partly), None, "{partly}");
        }
        assert_eq!(injector.redact_encoded("100%, 5%zz %").unwrap(), "100%, 5%zz %");
    }

    #[test]
    fn invalid_secrets_are_rejected() {
        for (name, value) in [("A B", "x"), ("", "x"), ("A", ""), ("A", "line\n")] {
            let values = [(name.to_owned(), SecretString::from(value))].into();
            assert!(Secrets::new(values).is_err(), "{name}");
        }
        let shown = format!("{:?}", secrets(&[("A", "hidden value")]));
        assert!(!shown.contains("hidden"), "{shown}");
    }
}
