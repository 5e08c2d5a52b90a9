//! What a key opens.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a key opens; each also opens what stands before it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum KeyScope {
    /// Reading and searching.
    Read,
    /// Everything that is done with threads, runs, assistants and documents.
    Write,
    /// Keys and model routes of its tenant; without a tenant everything that is the operator's.
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
