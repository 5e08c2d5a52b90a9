//! Services that reject `stream_options`.
//!
//! In OpenAI's format, a stream has usage only if the request has `stream_options`. Some services
//! do not know this field and reject the request. The host then sends the request without the
//! field, and leaves the field out of later requests for the same model.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use wattle_graph::failure::Failure;

use crate::provider::error::rejection_words;

/// The name of the field.
const FIELD: &str = "stream_options";

/// The models of one provider whose service rejects the field. A gateway has several services.
#[derive(Debug, Default)]
pub(super) struct StreamOptions {
    rejected_for: Mutex<HashSet<String>>,
}

impl StreamOptions {
    /// Returns whether requests for a model have the field.
    pub(super) fn are_sent(&self, model: &str) -> bool {
        !self.rejected_for().contains(model)
    }

    /// Leaves the field out of later requests for a model, because a request without the field has
    /// succeeded.
    pub(super) fn leave_out(&self, provider: &str, model: &str) {
        if self.rejected_for().insert(model.to_owned()) {
            tracing::info!(
                provider,
                model,
                "requests have no `stream_options`, which the service rejects; usage of streams \
                 may be missing"
            );
        }
    }

    fn rejected_for(&self) -> MutexGuard<'_, HashSet<String>> {
        self.rejected_for.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether a service rejects a request and names the field.
pub(super) fn are_rejected(failure: &Failure) -> bool {
    rejection_words(failure).is_some_and(|words| words.contains(FIELD))
}
