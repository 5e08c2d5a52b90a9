//! What is kept of a document, and how long.

use serde_json::Value;
use wattle_graph::failure::{Failure, code};
use wattle_run::ports::memory::{Item, PutItem};

use crate::longterm::path;

/// A read begins a document's time anew only once this share of it is over, so that reading often
/// does not write often.
const REFRESH_SHARE: u64 = 16;

/// Where a document is: its path and its key.
pub(crate) type Place = (Vec<u8>, String);

/// What is kept of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// When it was first written.
    pub created_ms: i64,
    /// When it was last written.
    pub updated_ms: i64,
    /// From when on it is as good as deleted.
    pub expires_ms: Option<i64>,
    /// How long it is kept after a read; `None` if reading changes nothing.
    pub refresh_ms: Option<u64>,
    /// The document as JSON.
    pub document: String,
}

/// What a conditional put does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Swap {
    /// It writes.
    Write,
    /// What it would write is there.
    Done,
    /// Nothing: something else is there.
    Refuse,
}

impl Record {
    /// What a put makes of what was there.
    pub(crate) fn after(old: Option<&Self>, put: &PutItem, now_ms: i64) -> Self {
        let old = old.filter(|old| old.is_alive(now_ms));
        Self {
            created_ms: old.map_or(now_ms, |old| old.created_ms),
            updated_ms: now_ms,
            expires_ms: put.ttl_ms.map(|ttl_ms| now_ms.saturating_add_unsigned(ttl_ms)),
            refresh_ms: put.ttl_ms.filter(|_| put.refresh_on_read),
            document: put.value.to_string(),
        }
    }

    /// Whether it has not expired.
    pub(crate) fn is_alive(&self, now_ms: i64) -> bool {
        self.expires_ms.is_none_or(|expires_ms| expires_ms > now_ms)
    }

    /// When it expires after a read, if the read changes that.
    pub(crate) fn refreshed(&self, now_ms: i64) -> Option<i64> {
        let (expires_ms, refresh_ms) = (self.expires_ms?, self.refresh_ms?);
        let fresh_ms = now_ms.saturating_add_unsigned(refresh_ms);
        let gained = fresh_ms.saturating_sub(expires_ms);
        let is_worth_it = gained > 0 && gained.unsigned_abs() >= refresh_ms / REFRESH_SHARE;
        (self.is_alive(now_ms) && is_worth_it).then_some(fresh_ms)
    }

    /// What a conditional put does, by what is there and what its caller knows of that.
    pub(crate) fn swap(
        old: Option<&Self>,
        known: Option<&Value>,
        put: &PutItem,
        now_ms: i64,
    ) -> Swap {
        let old = old.filter(|old| old.is_alive(now_ms)).and_then(|old| old.value().ok());
        if old.as_ref() == known {
            Swap::Write
        } else if old.as_ref() == Some(&put.value) {
            Swap::Done
        } else {
            Swap::Refuse
        }
    }

    /// The same of a conditional deletion.
    pub(crate) fn removal(old: Option<&Self>, known: &Value, now_ms: i64) -> Swap {
        match old.filter(|old| old.is_alive(now_ms)).map(Self::value) {
            None => Swap::Done,
            Some(Ok(old)) if old == *known => Swap::Write,
            Some(_) => Swap::Refuse,
        }
    }

    /// The document itself.
    ///
    /// # Errors
    ///
    /// `broken` if it is damaged.
    pub(crate) fn value(&self) -> Result<Value, Failure> {
        serde_json::from_str(&self.document).map_err(|error| {
            let text = format!("a document of the long-term memory cannot be read: {error}");
            Failure::new(code::BROKEN, text)
        })
    }

    /// The document as its readers see it.
    ///
    /// # Errors
    ///
    /// `broken` if it is damaged.
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
    fn the_time_of_the_first_write_stays_until_it_expires() {
        let first = Record::after(None, &put(Some(100), false), 1_000);
        let second = Record::after(Some(&first), &put(None, false), 1_099);
        assert_eq!((second.created_ms, second.updated_ms), (1_000, 1_099));
        assert_eq!(Record::after(Some(&first), &put(None, false), 1_100).created_ms, 1_100);
    }

    #[test]
    fn a_conditional_put_writes_over_what_is_known() {
        let there = Record::after(None, &put(Some(100), false), 1_000);
        let new = PutItem { value: json!({ "n": 1.5 }), ..put(None, false) };
        let done = Record::after(None, &new, 1_000);
        let (old, other) = (json!({}), json!({ "n": 2 }));
        for (record, known, now_ms, wanted) in [
            (None, None, 1_000, Swap::Write),
            (None, Some(&old), 1_000, Swap::Refuse),
            (Some(&there), Some(&old), 1_000, Swap::Write),
            (Some(&there), Some(&other), 1_000, Swap::Refuse),
            (Some(&there), None, 1_000, Swap::Refuse),
            (Some(&there), None, 1_100, Swap::Write),
            (Some(&there), Some(&old), 1_100, Swap::Refuse),
            (Some(&done), Some(&old), 1_000, Swap::Done),
            (Some(&done), None, 1_000, Swap::Done),
        ] {
            assert_eq!(Record::swap(record, known, &new, now_ms), wanted, "{record:?} {known:?}");
        }
    }

    #[test]
    fn a_read_begins_the_time_anew_if_it_is_worth_a_write() {
        let record = Record::after(None, &put(Some(1_600), true), 0);
        assert_eq!(record.refreshed(99), None);
        assert_eq!(record.refreshed(100), Some(1_700));
        assert_eq!(record.refreshed(1_599), Some(3_199));
        assert_eq!(record.refreshed(1_600), None);
        assert_eq!(Record::after(None, &put(Some(1_600), false), 0).refreshed(100), None);
        let forever = Record::after(None, &put(Some(u64::MAX), true), i64::MAX - 1);
        assert_eq!(forever.expires_ms, Some(i64::MAX));
        assert_eq!(forever.refreshed(i64::MAX - 1), None);
    }
}
