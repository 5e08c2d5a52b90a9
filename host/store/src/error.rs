//! How failures of the layers below become a [`StoreError`].

use std::fmt::Display;
use std::io::ErrorKind;

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
        // The file is shorter than it says, or has something else in place of a page.
        redb::Error::Io(error) if is_damage(error.kind()) => {
            corrupt("checkpoint store", format!("{error}; restore it from a backup"))
        }
        // The page that names the tables is another: a store has them all, each of one type.
        error @ (redb::Error::TableTypeMismatch { .. }
        | redb::Error::TypeDefinitionChanged { .. }
        | redb::Error::TableIsMultimap(_)
        | redb::Error::TableIsNotMultimap(_)
        | redb::Error::TableDoesNotExist(_)) => {
            corrupt("checkpoint store", format!("{error}; restore it from a backup"))
        }
        error => backend(operation, error),
    }
}

/// Whether an error of the file says that it has other bytes than were written.
pub(crate) fn is_damage(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::InvalidData | ErrorKind::UnexpectedEof)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_another_type_is_damage() {
        for error in [
            redb::Error::TableDoesNotExist("log".to_owned()),
            redb::Error::TableIsMultimap("log".to_owned()),
        ] {
            let error = while_trying::<redb::Error>("read")(error);
            assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
            assert!(error.to_string().contains("log"), "{error}");
        }
        let error = while_trying::<redb::Error>("read")(redb::Error::PreviousIo);
        assert!(matches!(error, StoreError::Backend { .. }), "{error}");
    }
}
