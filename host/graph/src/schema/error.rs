//! Error of compiling a schema.

use crate::limit::Exceeded;

/// Error of compiling a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The value is not a schema, or uses a feature that this host does not accept.
    #[error("{0}")]
    Broken(String),
    /// The schema exceeds a limit.
    #[error("{0}")]
    Limit(Exceeded),
}

impl From<Exceeded> for SchemaError {
    fn from(exceeded: Exceeded) -> Self {
        Self::Limit(exceeded)
    }
}
