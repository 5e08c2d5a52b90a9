//! Types that interfaces share: failures and blob references.

use wasmtime::component::ResourceTableError;
use wattle_graph::failure::{Failure, code};
use wattle_run::ports::blob::BlobRef;

use crate::bindings::wattle::plugin::types;
use crate::host_state::HostState;
use crate::import_error::ImportError;
use crate::json;
use crate::sanitize::parse_details;

impl types::Host for HostState {
    /// Returns the failure for the guest, or the error that ends the guest.
    fn convert_failure(&mut self, error: ImportError) -> wasmtime::Result<types::Failure> {
        match error {
            ImportError::Failure(failure) => Ok(failure.into()),
            ImportError::Trap(trapped) => Err(trapped.into()),
        }
    }
}

impl From<Failure> for types::Failure {
    fn from(failure: Failure) -> Self {
        Self {
            code: failure.code,
            message: failure.message,
            retryable: failure.retryable,
            details: failure.details.as_ref().map(json::to_text),
        }
    }
}

impl From<types::Failure> for Failure {
    /// Converts a failure of a guest.
    fn from(failure: types::Failure) -> Self {
        let details = failure.details.map(parse_details);
        Self { code: failure.code, message: failure.message, retryable: failure.retryable, details }
    }
}

/// Parses a blob reference of a guest.
pub(crate) fn parse_blob_ref(text: &str, function: &str) -> Result<BlobRef, Failure> {
    BlobRef::parse(text).ok_or_else(|| {
        Failure::new(
            code::INVALID,
            format!(
                "`{function}`: `{}` is not a blob reference; use a reference from `blob.put`",
                text.chars().take(80).collect::<String>()
            ),
        )
    })
}

/// Returns the failure of a guest that holds too many resources.
pub(crate) fn too_many_resources(function: &str, error: &ResourceTableError) -> Failure {
    Failure::new(
        code::LIMIT,
        format!(
            "`{function}`: too many open resources ({error}); drop the handles you no longer use"
        ),
    )
    .with_details(serde_json::json!({ "limit": "instances" }))
}

/// Returns the failure for a variant case that this host does not support. `field` names the
/// variant, `case` the case.
pub(crate) fn unsupported_case(function: &str, field: &str, case: &str) -> Failure {
    Failure::new(
        code::UNSUPPORTED,
        format!(
            "`{function}`: this host does not support the `{field}` `{}`",
            case.chars().take(80).collect::<String>()
        ),
    )
    .with_details(serde_json::json!({ "feature": format!("{function}:{field}") }))
}
