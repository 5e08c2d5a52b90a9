//! The scopes of API keys.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The permission level of a key. Each level includes the levels before it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum KeyScope {
    /// Reading and searching.
    Read,
    /// All work on threads, runs, assistants and documents.
    Write,
    /// Keys and model routes of the tenant of the key. Without a tenant, everything that requires
    /// the operator.
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
