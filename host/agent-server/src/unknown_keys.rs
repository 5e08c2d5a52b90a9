//! Keys of inputs and updates that name no channel of their graph.
//!
//! A LangGraph server ignores such keys, and its clients send one object to several graphs. This
//! server also ignores such keys, unless it is configured to reject them. The metadata of the run,
//! or a header of the response to an update, names the ignored keys.

use axum::http::{HeaderMap, HeaderValue};
use serde::Deserialize;
use serde_json::{Map, Value};
use url::form_urlencoded::byte_serialize;

/// Maximum number of ignored keys that a run or a response names. A client needs a few of them to
/// find its error, and metadata and headers must be small.
const MAX_NAMED_KEYS: usize = 20;

/// Maximum bytes of an ignored key in metadata and headers. A longer key is truncated.
const MAX_KEY_BYTES: usize = 64;

/// The entry after the last named key if more than [`MAX_NAMED_KEYS`] keys were ignored.
const MORE: &str = "...";

/// Metadata key of a run that contains the ignored keys.
const METADATA_KEY: &str = "ignored_keys";

/// Response header that names the keys of the JSON body that were ignored, such as `values.mood`.
const HEADER_NAME: &str = "x-wattle-ignored-keys";

/// What happens to a key of an input or an update that names no channel of the graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnknownKeys {
    /// The key is ignored, and the server reports the ignored keys to the client.
    #[default]
    Ignore,
    /// The request is rejected.
    Reject,
}

/// The keys of a request that were ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct IgnoredKeys {
    /// The ignored keys, each after the request field that contained it, such as `input.mood`.
    named: Vec<String>,
    /// Whether further keys were ignored.
    has_more: bool,
}

impl IgnoredKeys {
    /// Returns whether no key was ignored.
    pub(crate) fn is_empty(&self) -> bool {
        self.named.is_empty()
    }

    /// Returns whether a key in the request field `field` is kept. A key that names a channel is
    /// kept. Any other key is recorded as ignored.
    pub(crate) fn keep(&mut self, field: &str, key: &str, is_channel: bool) -> bool {
        if !is_channel {
            self.add(format!("{field}.{}", truncate(key)));
        }
        is_channel
    }

    fn add(&mut self, name: String) {
        if self.named.contains(&name) {
            return;
        }
        if self.named.len() < MAX_NAMED_KEYS {
            self.named.push(name);
        } else {
            self.has_more = true;
        }
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.named.iter().map(String::as_str).chain(self.has_more.then_some(MORE))
    }

    /// Adds the keys to the metadata of a run, if there are any.
    pub(crate) fn add_to_metadata(&self, metadata: &mut Map<String, Value>) {
        if !self.is_empty() {
            metadata.insert(METADATA_KEY.to_owned(), self.names().collect());
        }
    }

    /// Returns a response header with the keys, or no header if there are none. The keys are
    /// form-encoded, because they can contain any characters, and separated by commas.
    pub(crate) fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if !self.is_empty() {
            let names: Vec<String> =
                self.names().map(|name| byte_serialize(name.as_bytes()).collect()).collect();
            if let Ok(names) = HeaderValue::try_from(names.join(", ")) {
                headers.insert(HEADER_NAME, names);
            }
        }
        headers
    }
}

/// Returns the beginning of a key with at most [`MAX_KEY_BYTES`].
fn truncate(key: &str) -> &str {
    let end = key.char_indices().map(|(start, one)| start + one.len_utf8());
    let end = end.take_while(|end| *end <= MAX_KEY_BYTES).last();
    &key[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ignored(keys: impl IntoIterator<Item = String>) -> IgnoredKeys {
        let mut ignored = IgnoredKeys::default();
        for key in keys {
            assert!(!ignored.keep("input", &key, false));
        }
        ignored
    }

    #[test]
    fn ignored_keys_are_named_once_and_encoded_in_the_header() {
        let ignored = ignored(["mood", "a b", "mood", "\u{7ebf}"].map(str::to_owned));
        let mut metadata = Map::new();
        ignored.add_to_metadata(&mut metadata);
        let named = json!(["input.mood", "input.a b", "input.\u{7ebf}"]);
        assert_eq!(metadata[METADATA_KEY], named);
        assert_eq!(ignored.headers()[HEADER_NAME], "input.mood, input.a+b, input.%E7%BA%BF");
    }

    #[test]
    fn known_keys_are_not_reported_as_ignored() {
        let mut ignored = IgnoredKeys::default();
        assert!(ignored.keep("input", "word", true));
        let mut metadata = Map::new();
        ignored.add_to_metadata(&mut metadata);
        assert!(ignored.is_empty() && metadata.is_empty() && ignored.headers().is_empty());
    }

    #[test]
    fn long_keys_and_long_lists_of_keys_are_truncated() {
        let ignored = ignored((0..1_000).map(|n| format!("{n:04}{}", "\u{7ebf}".repeat(1_000))));
        let names: Vec<&str> = ignored.names().collect();
        assert_eq!((names.len(), names[MAX_NAMED_KEYS]), (MAX_NAMED_KEYS + 1, MORE));
        assert_eq!(names[0], format!("input.0000{}", "\u{7ebf}".repeat(20)));
        // A proxy accepts 8 KiB for all headers of a response.
        assert!(ignored.headers()[HEADER_NAME].len() < 6 << 10);
    }
}
