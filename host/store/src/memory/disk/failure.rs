//! Conversion of errors of the file into the failures that callers of the memory get.

use wattle_graph::failure::{Failure, code};
use wattle_run::ports::store::StoreError;

use crate::error::redb_error;

pub(super) const OP_READ: &str = "read its file";

/// Converts an error of the file. Damage becomes `broken`, and an error of the backend a retryable
/// `unavailable`.
pub(super) fn failure(error: StoreError) -> Failure {
    match error {
        StoreError::Corrupt { what, message } => {
            // Code that the checkpoint store and the memory share names the checkpoint store in its
            // errors.
            let what = what.replace("checkpoint store", "long-term memory");
            Failure::new(code::BROKEN, format!("{what} cannot be read: {message}"))
        }
        StoreError::Backend { operation, message } => {
            let text = format!("long-term memory cannot {operation}: {message}");
            Failure::new(code::UNAVAILABLE, text).retryable()
        }
        error => Failure::internal(error.to_string()),
    }
}

/// Returns a function for `map_err` that names the operation in which redb failed.
pub(super) fn redb_failure<E: Into<redb::Error>>(
    operation: &'static str,
) -> impl FnOnce(E) -> Failure {
    move |error| failure(redb_error(operation)(error))
}

pub(super) fn closed_failure() -> Failure {
    Failure::internal("long-term memory is closed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{backend, corrupt};

    #[test]
    fn only_backend_errors_are_retryable() {
        let full = failure(backend(OP_READ, "no space left"));
        assert_eq!((full.code.as_str(), full.retryable), (code::UNAVAILABLE, true));
        assert_eq!(full.message, "long-term memory cannot read its file: no space left");
        let damaged = failure(corrupt("checkpoint store", "a page is damaged"));
        assert_eq!((damaged.code.as_str(), damaged.retryable), (code::BROKEN, false));
        assert_eq!(damaged.message, "long-term memory cannot be read: a page is damaged");
    }
}
