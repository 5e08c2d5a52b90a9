//! How failures of the layers below become a [`StoreError`].

use std::fmt::Display;

use wattle_graph::id::ThreadId;
use wattle_run::ports::store::StoreError;

/// Names the operation that a failure of redb spoiled; for `map_err`.
pub(crate) fn while_trying<E>(operation: &'static str) -> impl FnOnce(E) -> StoreError
where
    E: Into<redb::Error>,
{
    move |error| match error.into() {
        redb::Error::Corrupted(message) => {
            corrupt("checkpoint store", format!("{message}; restore it from a backup"))
        }
        error => backend(operation, error),
    }
}

/// The file or its surroundings failed.
pub(crate) fn backend(operation: &'static str, error: impl Display) -> StoreError {
    StoreError::Backend { operation, message: error.to_string() }
}

/// Stored bytes make no sense.
pub(crate) fn corrupt(what: impl Into<String>, message: impl Display) -> StoreError {
    StoreError::Corrupt { what: what.into(), message: message.to_string() }
}

/// A batch makes no sense.
pub(crate) fn invalid(thread: &ThreadId, message: impl Into<String>) -> StoreError {
    StoreError::InvalidBatch { thread: thread.clone(), message: message.into() }
}
