//! Documents of API keys, and requests for them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::guard::kept::{KeyRecord, WantedKey};
use crate::guard::rate::Rate;
use crate::guard::scope::KeyScope;

/// A key, without what would open anything.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct KeyDocument {
    /// Its public id, which is also a part of the key.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// The tenant that it stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// What it opens; each scope also opens what those before it open.
    pub scopes: Vec<KeyScope>,
    /// How often it may be used, such as `10/s`; as the host says without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub rate: Option<Rate>,
    /// Bytes of a request's body, if it has a limit of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_limit_bytes: Option<u64>,
    /// When it was made, milliseconds since 1970.
    pub created_ms: i64,
    /// When it ceases to open anything, milliseconds since 1970; never without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<i64>,
    /// When it was last used, milliseconds since 1970, to the minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_ms: Option<i64>,
    /// The id of the key with which it was made, if that was itself made so. It may be revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<String>,
}

impl KeyDocument {
    /// A record as a document.
    pub fn new(record: KeyRecord, used_ms: Option<i64>) -> Self {
        let KeyRecord {
            id,
            digest: _,
            name,
            tenant,
            scopes,
            rate,
            body_limit_bytes,
            created_ms,
            expires_ms,
            mut makers,
        } = record;
        Self {
            id,
            name,
            tenant,
            scopes,
            rate,
            body_limit_bytes,
            created_ms,
            expires_ms,
            used_ms,
            made_by: makers.pop(),
        }
    }
}

/// A key that is wanted.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewKeyDocument {
    /// What people call it: 1 to 128 characters.
    pub name: String,
    /// The tenant that it shall stand for; that of the request without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// What it shall open; `write` without any.
    #[serde(default)]
    pub scopes: Vec<KeyScope>,
    /// How often it may be used: a number and `/s`, `/m` or `/h`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub rate: Option<Rate>,
    /// Bytes of a request's body, below the limit of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_limit_bytes: Option<u64>,
    /// How long it shall open anything, in milliseconds; for ever without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
}

impl From<NewKeyDocument> for WantedKey {
    fn from(new: NewKeyDocument) -> Self {
        let NewKeyDocument { name, tenant, scopes, rate, body_limit_bytes, expires_in_ms } = new;
        Self { name, tenant, scopes, rate, body_limit_bytes, expires_in_ms }
    }
}

/// Keys that were revoked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RevokedKeysDocument {
    /// Their ids.
    pub revoked: Vec<String>,
    /// Ids of keys that came to be by them and still open something.
    pub left: Vec<String>,
}

/// A key that was made. Only this answer shows it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MadeKeyDocument {
    /// What is known of it from now on.
    #[serde(flatten)]
    pub known: KeyDocument,
    /// The key itself.
    pub key: String,
}
