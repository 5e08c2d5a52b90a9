//! The stored form of a document, and its expiry.

use serde_json::Value;
use wattle_graph::failure::{Failure, code};
use wattle_run::limit::MEMORY_ROW_BYTES;
use wattle_run::ports::memory::{Item, PutItem};

use crate::memory::path;

/// A read extends a sliding expiry only after the TTL divided by this number has passed, so that
/// frequent reads cause few writes.
const REFRESH_DIVISOR: u64 = 16;

/// The path and the key of a document.
pub(crate) type DocumentKey = (Vec<u8>, String);

/// The stored form of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredDocument {
    /// Time of the first write.
    pub created_ms: i64,
    /// Time of the last write.
    pub updated_ms: i64,
    /// Time from which the document counts as deleted; `None` if it does not expire.
    pub expires_ms: Option<i64>,
    /// TTL that every read restarts; `None` without a sliding expiry.
    pub refresh_ms: Option<u64>,
    /// The document as JSON.
    pub document: String,
}

/// Returns the number of bytes of a document that the usage of the memory counts.
pub(crate) fn stored_bytes(path: &[u8], key: &str, document: &str) -> u64 {
    MEMORY_ROW_BYTES + (path.len() + key.len() + document.len()) as u64
}

/// The decision about a conditional put or delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompareOutcome {
    /// The condition holds, so the change is written.
    Write,
    /// The document already has the requested state, so nothing is written.
    AlreadyDone,
    /// The stored document differs from the expected document, so nothing is written.
    Conflict,
}

impl StoredDocument {
    /// Returns the stored form of a document after a put that replaces `old`.
    pub(crate) fn after_put(old: Option<&Self>, put: &PutItem, now_ms: i64) -> Self {
        let old = old.filter(|old| old.is_alive(now_ms));
        Self {
            created_ms: old.map_or(now_ms, |old| old.created_ms),
            updated_ms: now_ms,
            expires_ms: put.ttl_ms.map(|ttl_ms| now_ms.saturating_add_unsigned(ttl_ms)),
            refresh_ms: put.ttl_ms.filter(|_| put.refresh_on_read),
            document: put.value.to_string(),
        }
    }

    /// Returns true if the document has not expired.
    pub(crate) fn is_alive(&self, now_ms: i64) -> bool {
        self.expires_ms.is_none_or(|expires_ms| expires_ms > now_ms)
    }

    /// Returns the new expiry after a read; `None` if the read does not change the expiry.
    pub(crate) fn refreshed_expiry(&self, now_ms: i64) -> Option<i64> {
        let (expires_ms, refresh_ms) = (self.expires_ms?, self.refresh_ms?);
        let fresh_ms = now_ms.saturating_add_unsigned(refresh_ms);
        let gained = fresh_ms.saturating_sub(expires_ms);
        let is_worth_it = gained > 0 && gained.unsigned_abs() >= refresh_ms / REFRESH_DIVISOR;
        (self.is_alive(now_ms) && is_worth_it).then_some(fresh_ms)
    }

    /// Decides a conditional put by the stored document and the document that the caller expects.
    pub(crate) fn compare_for_put(
        old: Option<&Self>,
        known: Option<&Value>,
        put: &PutItem,
        now_ms: i64,
    ) -> CompareOutcome {
        let old = old.filter(|old| old.is_alive(now_ms)).and_then(|old| old.value().ok());
        if old.as_ref() == known {
            CompareOutcome::Write
        } else if old.as_ref() == Some(&put.value) {
            CompareOutcome::AlreadyDone
        } else {
            CompareOutcome::Conflict
        }
    }

    /// Decides a conditional delete by the stored document and the document that the caller
    /// expects.
    pub(crate) fn compare_for_delete(
        old: Option<&Self>,
        known: &Value,
        now_ms: i64,
    ) -> CompareOutcome {
        match old.filter(|old| old.is_alive(now_ms)).map(Self::value) {
            None => CompareOutcome::AlreadyDone,
            Some(Ok(old)) if old == *known => CompareOutcome::Write,
            Some(_) => CompareOutcome::Conflict,
        }
    }

    /// Parses the document.
    ///
    /// # Errors
    ///
    /// `broken` if the document is damaged.
    pub(crate) fn value(&self) -> Result<Value, Failure> {
        serde_json::from_str(&self.document).map_err(|error| {
            let text = format!("a document of the long-term memory cannot be read: {error}");
            Failure::new(code::BROKEN, text)
        })
    }

    /// Converts the document to an [`Item`].
    ///
    /// # Errors
    ///
    /// `broken` if the document is damaged.
    pub(crate) fn item(&self, path: &[u8], key: &str) -> Result<Item, Failure> {
        Ok(Item {
            namespace: path::decode(path)?,
            key: key.to_owned(),
            value: self.value()?,
            created_ms: self.created_ms,
            updated_ms: self.updated_ms,
            score: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn put(ttl_ms: Option<u64>, refresh_on_read: bool) -> PutItem {
        PutItem {
            namespace: vec!["a".into()],
            key: "k".into(),
            value: json!({}),
            ttl_ms,
            refresh_on_read,
        }
    }

    #[test]
    fn creation_time_is_kept_until_expiry() {
        let first = StoredDocument::after_put(None, &put(Some(100), false), 1_000);
        let second = StoredDocument::after_put(Some(&first), &put(None, false), 1_099);
        assert_eq!((second.created_ms, second.updated_ms), (1_000, 1_099));
        assert_eq!(
            StoredDocument::after_put(Some(&first), &put(None, false), 1_100).created_ms,
            1_100
        );
    }

    #[test]
    fn put_if_replaces_the_expected_value() {
        let there = StoredDocument::after_put(None, &put(Some(100), false), 1_000);
        let new = PutItem { value: json!({ "n": 1.5 }), ..put(None, false) };
        let done = StoredDocument::after_put(None, &new, 1_000);
        let (old, other) = (json!({}), json!({ "n": 2 }));
        for (stored, known, now_ms, wanted) in [
            (None, None, 1_000, CompareOutcome::Write),
            (None, Some(&old), 1_000, CompareOutcome::Conflict),
            (Some(&there), Some(&old), 1_000, CompareOutcome::Write),
            (Some(&there), Some(&other), 1_000, CompareOutcome::Conflict),
            (Some(&there), None, 1_000, CompareOutcome::Conflict),
            (Some(&there), None, 1_100, CompareOutcome::Write),
            (Some(&there), Some(&old), 1_100, CompareOutcome::Conflict),
            (Some(&done), Some(&old), 1_000, CompareOutcome::AlreadyDone),
            (Some(&done), None, 1_000, CompareOutcome::AlreadyDone),
        ] {
            assert_eq!(
                StoredDocument::compare_for_put(stored, known, &new, now_ms),
                wanted,
                "{stored:?} {known:?}"
            );
        }
    }

    #[test]
    fn read_extends_expiry_after_the_refresh_threshold() {
        let stored = StoredDocument::after_put(None, &put(Some(1_600), true), 0);
        assert_eq!(stored.refreshed_expiry(99), None);
        assert_eq!(stored.refreshed_expiry(100), Some(1_700));
        assert_eq!(stored.refreshed_expiry(1_599), Some(3_199));
        assert_eq!(stored.refreshed_expiry(1_600), None);
        assert_eq!(
            StoredDocument::after_put(None, &put(Some(1_600), false), 0).refreshed_expiry(100),
            None
        );
        let forever = StoredDocument::after_put(None, &put(Some(u64::MAX), true), i64::MAX - 1);
        assert_eq!(forever.expires_ms, Some(i64::MAX));
        assert_eq!(forever.refreshed_expiry(i64::MAX - 1), None);
    }
}
