//! Keys that were made by a command: what is kept of them, and what they look like.
//!
//! A key is never kept, only its digest. A fast digest without salt is right here, other than for
//! passwords: a key has 244 random bits, so nobody can try out what it may be, and no two are equal.

use serde::{Deserialize, Serialize};
use uuid::Uuid;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::Digest;

use crate::guard::limits::NAME_CHARS;
use crate::guard::rate::Rate;
use crate::guard::scope::KeyScope;
use crate::native::scope::check_tenant;

/// With which every key begins, so that scanners for leaked secrets find it.
const PREFIX: &str = "wtl_";

/// Digits of a key's public id: it tells a thousand keys apart and is easily typed.
const ID_DIGITS: usize = 8;

/// Digits of 32 bytes.
const SECRET_DIGITS: usize = 43;

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// What is kept of a key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeyRecord {
    /// Its public id, which is also a part of the key.
    pub id: String,
    /// The digest of the key.
    pub digest: Digest,
    /// What people call it.
    pub name: String,
    /// The tenant that it stands for; none if it stands for no tenant.
    pub tenant: Option<String>,
    /// What it opens.
    pub scopes: Vec<KeyScope>,
    /// How often it may be used; as the host says without it.
    pub rate: Option<Rate>,
    /// Bytes of a request's body, below the limit of the host.
    pub body_limit_bytes: Option<u64>,
    /// When it was made, milliseconds since 1970.
    pub created_ms: i64,
    /// When it ceases to open anything, milliseconds since 1970.
    pub expires_ms: Option<i64>,
    /// Ids of the keys by which it came to be: the one that made it is the last, the one that made
    /// that stands before it. None if it was made without a key that was made itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub makers: Vec<String>,
}

/// A key that is wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct WantedKey {
    pub(crate) name: String,
    pub(crate) tenant: Option<String>,
    pub(crate) scopes: Vec<KeyScope>,
    pub(crate) rate: Option<Rate>,
    pub(crate) body_limit_bytes: Option<u64>,
    pub(crate) expires_in_ms: Option<u64>,
}

impl KeyRecord {
    /// Whether it has ceased to open anything.
    pub fn is_expired(&self, now_ms: i64) -> bool {
        self.expires_ms.is_some_and(|expires_ms| expires_ms <= now_ms)
    }

    /// Narrows it to what its maker has, so that nobody gets further by a key of their own making,
    /// and notes by whom it was made.
    pub(crate) fn within(&mut self, maker: &Self) {
        self.makers = maker.makers.iter().chain([&maker.id]).cloned().collect();
        let within = |own: Rate| maker.rate.map_or(own, |most| own.within(most));
        self.rate = self.rate.map(within).or(maker.rate);
        self.body_limit_bytes = least(self.body_limit_bytes, maker.body_limit_bytes);
        self.expires_ms = least(self.expires_ms, maker.expires_ms);
    }
}

/// The lesser of two limits, where none is more than any.
fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

impl WantedKey {
    /// Makes the key: what is kept of it, and the key itself, which is shown once.
    ///
    /// # Errors
    ///
    /// `invalid` for a name, tenant or limit that is none.
    pub(crate) fn make(self, now_ms: i64) -> Result<(KeyRecord, String), Failure> {
        let invalid = |message: String| Failure::new(code::INVALID, message);
        let (chars, is_plain) = (self.name.chars().count(), !self.name.contains(char::is_control));
        if !(1..=NAME_CHARS).contains(&chars) || !is_plain {
            let rule = format!("a key's name has 1 to {NAME_CHARS} characters, on one line");
            return Err(invalid(rule));
        }
        if let Some(tenant) = &self.tenant {
            check_tenant(tenant).map_err(|problem| invalid(problem.detail.clone()))?;
        }
        if self.body_limit_bytes == Some(0) || self.expires_in_ms == Some(0) {
            return Err(invalid("a limit of a key is 0, so it would open nothing".into()));
        }
        let mut scopes = self.scopes;
        if scopes.is_empty() {
            scopes.push(KeyScope::Write);
        }
        scopes.sort_unstable();
        scopes.dedup();
        let (id, secret) = (fresh(ID_DIGITS), fresh(SECRET_DIGITS));
        let key = format!("{PREFIX}{id}_{secret}");
        let lifetime = self.expires_in_ms.map(|ms| i64::try_from(ms).unwrap_or(i64::MAX));
        let record = KeyRecord {
            id,
            digest: Digest::of(key.as_bytes()),
            name: self.name,
            tenant: self.tenant,
            scopes,
            rate: self.rate,
            body_limit_bytes: self.body_limit_bytes,
            created_ms: now_ms,
            expires_ms: lifetime.map(|lifetime| now_ms.saturating_add(lifetime)),
            makers: Vec::new(),
        };
        Ok((record, key))
    }
}

/// The last digits of 32 random bytes: two random ids, of whose 256 bits six each are fixed.
fn fresh(digits: usize) -> String {
    let bytes = [Uuid::new_v4(), Uuid::new_v4()].map(Uuid::into_bytes).concat();
    base62(bytes, digits)
}

/// The last digits of a number that is written in bytes, by division as on paper.
fn base62(mut number: Vec<u8>, digits: usize) -> String {
    let mut text = String::with_capacity(digits);
    for _ in 0..digits {
        let mut rest = 0;
        for byte in &mut number {
            let value = rest << 8 | usize::from(*byte);
            // Below 256, since the rest is below 62.
            *byte = (value / DIGITS.len()) as u8;
            rest = value % DIGITS.len();
        }
        text.push(char::from(DIGITS[rest]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(name: &str) -> WantedKey {
        WantedKey { name: name.into(), ..WantedKey::default() }
    }

    #[test]
    fn numbers_become_digits_the_last_one_first() {
        assert_eq!(base62(vec![0, 61], 2), "z0");
        assert_eq!(base62(vec![0, 62], 2), "01");
        assert_eq!(base62(vec![1, 0], 2), "84");
        assert_eq!(base62(vec![255; 32], SECRET_DIGITS).len(), SECRET_DIGITS);
    }

    #[test]
    fn a_key_has_its_id_in_it_and_only_its_digest_is_kept() {
        let (record, key) = wanted("ci").make(7).unwrap();
        let (id, secret) = key.strip_prefix("wtl_").unwrap().split_once('_').unwrap();
        assert_eq!((id, id.len(), secret.len()), (record.id.as_str(), ID_DIGITS, SECRET_DIGITS));
        assert_eq!(record.digest, Digest::of(key.as_bytes()));
        assert!(!serde_json::to_string(&record).unwrap().contains(secret));
        assert_eq!((record.scopes, record.created_ms), (vec![KeyScope::Write], 7));
        assert_ne!(wanted("ci").make(7).unwrap().1, key);
    }

    #[test]
    fn what_would_be_no_key_is_refused() {
        for name in ["", "two\nlines", &"x".repeat(NAME_CHARS + 1)] {
            assert!(wanted(name).make(0).is_err(), "{name:?}");
        }
        assert!(WantedKey { tenant: Some("a/b".into()), ..wanted("x") }.make(0).is_err());
        assert!(WantedKey { expires_in_ms: Some(0), ..wanted("x") }.make(0).is_err());
    }

    #[test]
    fn a_key_gets_no_further_than_its_maker() {
        let (maker, _) = WantedKey {
            rate: "10/s".parse().ok(),
            body_limit_bytes: Some(100),
            expires_in_ms: Some(50),
            ..wanted("maker")
        }
        .make(0)
        .unwrap();
        let (mut wide, _) = wanted("wide").make(10).unwrap();
        wide.within(&maker);
        assert_eq!((wide.rate, wide.body_limit_bytes), (maker.rate, Some(100)));
        assert_eq!(wide.expires_ms, Some(50));
        let slow = WantedKey { rate: "1/s".parse().ok(), body_limit_bytes: Some(7), ..wanted("x") };
        let (mut slow, _) = slow.make(0).unwrap();
        slow.within(&maker);
        assert_eq!((slow.rate, slow.body_limit_bytes), ("1/s".parse().ok(), Some(7)));
    }

    #[test]
    fn a_key_knows_by_which_it_came_to_be() {
        let (mut key, _) = wanted("first").make(0).unwrap();
        let mut ids = Vec::new();
        for _ in 0..3 {
            let (mut next, _) = wanted("next").make(0).unwrap();
            next.within(&key);
            ids.push(key.id);
            assert_eq!(next.makers, ids);
            key = next;
        }
    }

    #[test]
    fn a_record_of_an_older_host_is_read() {
        let (record, _) = wanted("x").make(0).unwrap();
        let mut stored = serde_json::to_value(&record).unwrap();
        assert!(stored.as_object_mut().unwrap().remove("makers").is_none(), "none are not written");
        assert_eq!(serde_json::from_value::<KeyRecord>(stored).unwrap(), record);
    }

    #[test]
    fn time_ends_a_key() {
        let (key, _) = WantedKey { expires_in_ms: Some(5), ..wanted("x") }.make(10).unwrap();
        assert!(!key.is_expired(14) && key.is_expired(15));
        assert!(!wanted("x").make(0).unwrap().0.is_expired(i64::MAX));
    }
}
