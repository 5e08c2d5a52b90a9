//! The scopes of API keys.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The permission level of a key. `write` includes `read`, and `admin` includes both.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum KeyScope {
    /// Reading and searching.
    Read,
    /// Changes to threads, runs, assistants, crons and memory documents.
    Write,
    /// Management of the keys and model routes of the key's tenant. For a key without a tenant, all
    /// operator functions.
    Admin,
}

impl fmt::Display for KeyScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        })
    }
}
