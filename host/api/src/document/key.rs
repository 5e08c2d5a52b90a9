//! JSON bodies of the API key endpoints.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::guard::key_record::{KeyRecord, NewKey};
use crate::guard::rate::Rate;
use crate::guard::scope::KeyScope;

/// An API key, without its secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct KeyDocument {
    /// Public id, which is also a part of the key.
    pub id: String,
    /// Display name.
    pub name: String,
    /// Tenant of the key; absent for a key without a tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Scopes of the key. `write` includes `read`, and `admin` includes both.
    pub scopes: Vec<KeyScope>,
    /// Rate limit, such as `10/s`; absent if the default of the host applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub rate: Option<Rate>,
    /// Maximum size of a request body in bytes; absent if the limit of the host applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_limit_bytes: Option<u64>,
    /// Time of creation, in milliseconds since 1970.
    pub created_ms: i64,
    /// Time of expiry, in milliseconds since 1970; absent if the key does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<i64>,
    /// Time of the last use, in milliseconds since 1970, with a resolution of a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_ms: Option<i64>,
    /// Id of the created key with which this key was created. That key may be revoked by now.
    /// Absent if this key was not created with a created key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<String>,
}

impl KeyDocument {
    /// Describes a key by its record.
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
            mut ancestors,
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
            made_by: ancestors.pop(),
        }
    }
}

/// The name of a created API key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeyNameDocument {
    /// Public id, as events record it.
    pub id: String,
    /// Display name.
    pub name: String,
}

/// Request to create an API key.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewKeyDocument {
    /// Display name: one line of 1 to 128 characters.
    pub name: String,
    /// Tenant of the key; the tenant of the request by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Scopes of the key; `write` by default.
    #[serde(default)]
    pub scopes: Vec<KeyScope>,
    /// Rate limit: a number and `/s`, `/m` or `/h`; `server.limits.rate` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub rate: Option<Rate>,
    /// Maximum size of a request body in bytes; effective if it is below `server.body_limit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_limit_bytes: Option<u64>,
    /// Lifetime in milliseconds; unlimited by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
}

impl From<NewKeyDocument> for NewKey {
    fn from(new: NewKeyDocument) -> Self {
        let NewKeyDocument { name, tenant, scopes, rate, body_limit_bytes, expires_in_ms } = new;
        Self { name, tenant, scopes, rate, body_limit_bytes, expires_in_ms }
    }
}

/// The result of a revocation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RevokedKeysDocument {
    /// Ids of the revoked keys.
    pub revoked: Vec<String>,
    /// Ids of active keys that the revoked keys created and that remain active.
    pub left: Vec<String>,
}

/// A created key. The secret is shown only in this response.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = MadeKeyDocument)]
pub struct CreatedKeyDocument {
    /// The key without its secret.
    #[serde(flatten)]
    pub known: KeyDocument,
    /// The secret key, as requests send it.
    pub key: String,
}
