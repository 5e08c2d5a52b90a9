//! What a plugin requests, and what of it the operator has not granted.

use crate::grant::{GrantKey, Grants};

/// The permissions that a plugin requests in an app.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GrantRequest {
    /// Requested permissions.
    pub needs: Grants,
    /// Requested permissions that are not granted.
    pub missing: Vec<MissingGrant>,
    /// Further notes for the operator, such as an invalid manifest.
    pub notes: Vec<String>,
}

/// A requested permission that is not granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingGrant {
    /// Name of the permission, such as `llm`.
    pub need: &'static str,
    /// Line of TOML that grants the permission.
    pub line: String,
    /// Table of the configuration to which the operator adds the line.
    pub table: GrantKey,
}
