//! Records and format of created API keys.
//!
//! The host stores the digest of a key, never the key. A fast digest without a salt is sufficient,
//! unlike for passwords: a key has 244 random bits, so keys cannot be guessed, and no two are
//! equal.

use serde::{Deserialize, Serialize};
use uuid::Uuid;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::Digest;

use crate::guard::limits::MAX_KEY_NAME_CHARS;
use crate::guard::rate::Rate;
use crate::guard::scope::KeyScope;
use crate::guard::tenant_name::check_tenant;

/// Prefix of all keys, by which secret scanners recognize a leaked key.
const KEY_PREFIX: &str = "wtl_";

/// Number of digits in the public id of a key: enough to distinguish a thousand keys, and few
/// enough to type.
const ID_DIGITS: usize = 8;

/// Number of base-62 digits that encode 32 bytes.
const SECRET_DIGITS: usize = 43;

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The stored record of a key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeyRecord {
    /// Public id, which is also a part of the key.
    pub id: String,
    /// Digest of the key.
    pub digest: Digest,
    /// Display name.
    pub name: String,
    /// Tenant of the key; `None` for a key without a tenant.
    pub tenant: Option<String>,
    /// Scopes of the key.
    pub scopes: Vec<KeyScope>,
    /// Rate limit; `None` applies the default of the host.
    pub rate: Option<Rate>,
    /// Maximum size of a request body in bytes; `None` applies the limit of the host.
    pub body_limit_bytes: Option<u64>,
    /// Time of creation, in milliseconds since 1970.
    pub created_ms: i64,
    /// Time of expiry, in milliseconds since 1970; `None` for no expiry.
    pub expires_ms: Option<i64>,
    /// Ids of the ancestors, from the oldest one to the creator of this key. Empty if no created
    /// key created it.
    #[serde(default, rename = "makers", skip_serializing_if = "Vec::is_empty")]
    pub ancestors: Vec<String>,
}

/// Parameters of a new key.
#[derive(Clone, Debug, Default)]
pub(crate) struct NewKey {
    pub(crate) name: String,
    pub(crate) tenant: Option<String>,
    pub(crate) scopes: Vec<KeyScope>,
    pub(crate) rate: Option<Rate>,
    pub(crate) body_limit_bytes: Option<u64>,
    pub(crate) expires_in_ms: Option<u64>,
}

impl KeyRecord {
    /// Returns true if the key has expired.
    pub fn is_expired(&self, now_ms: i64) -> bool {
        self.expires_ms.is_some_and(|expires_ms| expires_ms <= now_ms)
    }

    /// Restricts the key to the limits of its creator, and records its ancestors. A key therefore
    /// never has more permissions than its creator.
    pub(crate) fn restrict_to(&mut self, creator: &Self) {
        self.ancestors = creator.ancestors.iter().chain([&creator.id]).cloned().collect();
        let capped = |own: Rate| creator.rate.map_or(own, |cap| own.capped_by(cap));
        self.rate = self.rate.map(capped).or(creator.rate);
        self.body_limit_bytes = min_limit(self.body_limit_bytes, creator.body_limit_bytes);
        self.expires_ms = min_limit(self.expires_ms, creator.expires_ms);
    }
}

/// Returns the lower of two limits; `None` is unlimited.
fn min_limit<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

impl NewKey {
    /// Generates the key. Returns its record, and the key itself, which is shown only once.
    ///
    /// # Errors
    ///
    /// `invalid` for an invalid name, tenant or limit.
    pub(crate) fn generate(self, now_ms: i64) -> Result<(KeyRecord, String), Failure> {
        let invalid = |message: String| Failure::new(code::INVALID, message);
        let (chars, is_plain) = (self.name.chars().count(), !self.name.contains(char::is_control));
        if !(1..=MAX_KEY_NAME_CHARS).contains(&chars) || !is_plain {
            let rule =
                format!("a key's name must be one line of 1 to {MAX_KEY_NAME_CHARS} characters");
            return Err(invalid(rule));
        }
        if let Some(tenant) = &self.tenant {
            check_tenant(tenant).map_err(|problem| invalid(problem.detail.clone()))?;
        }
        if self.body_limit_bytes == Some(0) || self.expires_in_ms == Some(0) {
            return Err(invalid("a limit of a key must be greater than 0".into()));
        }
        let mut scopes = self.scopes;
        if scopes.is_empty() {
            scopes.push(KeyScope::Write);
        }
        scopes.sort_unstable();
        scopes.dedup();
        let (id, secret) = (random_digits(ID_DIGITS), random_digits(SECRET_DIGITS));
        let key = format!("{KEY_PREFIX}{id}_{secret}");
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
            ancestors: Vec::new(),
        };
        Ok((record, key))
    }
}

/// Returns `digits` base-62 digits of 32 random bytes: two UUIDs, in each of which six of the 128
/// bits are fixed.
fn random_digits(digits: usize) -> String {
    let bytes = [Uuid::new_v4(), Uuid::new_v4()].map(Uuid::into_bytes).concat();
    base62(bytes, digits)
}

/// Returns the least significant digits of a big-endian number in base 62, starting with the least
/// significant one.
fn base62(mut number: Vec<u8>, digits: usize) -> String {
    let mut text = String::with_capacity(digits);
    for _ in 0..digits {
        let mut rest = 0;
        for byte in &mut number {
            let value = rest << 8 | usize::from(*byte);
            // The quotient is below 256, because the remainder carried into it is below 62.
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

    fn new_key(name: &str) -> NewKey {
        NewKey { name: name.into(), ..NewKey::default() }
    }

    #[test]
    fn base62_writes_the_least_significant_digit_first() {
        assert_eq!(base62(vec![0, 61], 2), "z0");
        assert_eq!(base62(vec![0, 62], 2), "01");
        assert_eq!(base62(vec![1, 0], 2), "84");
        assert_eq!(base62(vec![255; 32], SECRET_DIGITS).len(), SECRET_DIGITS);
    }

    #[test]
    fn key_contains_its_id_and_record_only_its_digest() {
        let (record, key) = new_key("ci").generate(7).unwrap();
        let (id, secret) = key.strip_prefix("wtl_").unwrap().split_once('_').unwrap();
        assert_eq!((id, id.len(), secret.len()), (record.id.as_str(), ID_DIGITS, SECRET_DIGITS));
        assert_eq!(record.digest, Digest::of(key.as_bytes()));
        assert!(!serde_json::to_string(&record).unwrap().contains(secret));
        assert_eq!((record.scopes, record.created_ms), (vec![KeyScope::Write], 7));
        assert_ne!(new_key("ci").generate(7).unwrap().1, key);
    }

    #[test]
    fn invalid_names_tenants_and_limits_are_rejected() {
        for name in ["", "two\nlines", &"x".repeat(MAX_KEY_NAME_CHARS + 1)] {
            assert!(new_key(name).generate(0).is_err(), "{name:?}");
        }
        assert!(NewKey { tenant: Some("a/b".into()), ..new_key("x") }.generate(0).is_err());
        assert!(NewKey { expires_in_ms: Some(0), ..new_key("x") }.generate(0).is_err());
    }

    #[test]
    fn key_is_restricted_to_the_limits_of_its_creator() {
        let (creator, _) = NewKey {
            rate: "10/s".parse().ok(),
            body_limit_bytes: Some(100),
            expires_in_ms: Some(50),
            ..new_key("creator")
        }
        .generate(0)
        .unwrap();
        let (mut wide, _) = new_key("wide").generate(10).unwrap();
        wide.restrict_to(&creator);
        assert_eq!((wide.rate, wide.body_limit_bytes), (creator.rate, Some(100)));
        assert_eq!(wide.expires_ms, Some(50));
        let slow = NewKey { rate: "1/s".parse().ok(), body_limit_bytes: Some(7), ..new_key("x") };
        let (mut slow, _) = slow.generate(0).unwrap();
        slow.restrict_to(&creator);
        assert_eq!((slow.rate, slow.body_limit_bytes), ("1/s".parse().ok(), Some(7)));
    }

    #[test]
    fn key_records_its_ancestors_in_order() {
        let (mut key, _) = new_key("first").generate(0).unwrap();
        let mut ids = Vec::new();
        for _ in 0..3 {
            let (mut next, _) = new_key("next").generate(0).unwrap();
            next.restrict_to(&key);
            ids.push(key.id);
            assert_eq!(next.ancestors, ids);
            key = next;
        }
    }

    #[test]
    fn record_without_ancestors_is_read() {
        let (record, _) = new_key("x").generate(0).unwrap();
        let mut stored = serde_json::to_value(&record).unwrap();
        assert!(stored.as_object_mut().unwrap().remove("makers").is_none(), "it is not written");
        assert_eq!(serde_json::from_value::<KeyRecord>(stored).unwrap(), record);
    }

    #[test]
    fn key_expires() {
        let (key, _) = NewKey { expires_in_ms: Some(5), ..new_key("x") }.generate(10).unwrap();
        assert!(!key.is_expired(14) && key.is_expired(15));
        assert!(!new_key("x").generate(0).unwrap().0.is_expired(i64::MAX));
    }
}
