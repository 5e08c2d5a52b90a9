//! Failures of the file, as callers of the memory get them.

use std::fmt::Display;
use std::path::Path;

use wattle_graph::failure::{Failure, code};
use wattle_run::ports::store::StoreError;

use crate::error::{corrupt, while_trying};

pub(super) const READ: &str = "read its file";

/// What a failure of the file is to others: damage, or what may pass.
pub(super) fn failure(error: StoreError) -> Failure {
    match error {
        StoreError::Corrupt { what, message } => {
            // What both kinds of files share names the other one.
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

/// Names the operation that a failure of redb spoiled; for `map_err`.
pub(super) fn cannot<E: Into<redb::Error>>(operation: &'static str) -> impl FnOnce(E) -> Failure {
    move |error| failure(while_trying(operation)(error))
}

/// The file is none of this memory, or nothing can be made of it.
pub(super) fn foreign(path: &Path, message: impl Display) -> StoreError {
    corrupt(
        format!("long-term memory `{}`", path.display()),
        format!("{message}; restore it from a backup, or move it away to start anew"),
    )
}

pub(super) fn closed() -> Failure {
    Failure::internal("long-term memory is closed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::backend;

    #[test]
    fn only_what_may_pass_is_worth_another_attempt() {
        let full = failure(backend(READ, "no space left"));
        assert_eq!((full.code.as_str(), full.retryable), (code::UNAVAILABLE, true));
        assert_eq!(full.message, "long-term memory cannot read its file: no space left");
        let damaged = failure(corrupt("checkpoint store", "a page is damaged"));
        assert_eq!((damaged.code.as_str(), damaged.retryable), (code::BROKEN, false));
        assert_eq!(damaged.message, "long-term memory cannot be read: a page is damaged");
    }
}
