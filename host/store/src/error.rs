//! Conversion of errors of redb and of the file system into a [`StoreError`].

use std::fmt::Display;
use std::io::ErrorKind;

use wattle_graph::id::ThreadId;
use wattle_run::ports::store::StoreError;

/// Returns a conversion from a redb error into a [`StoreError`] that names the failed operation,
/// for `map_err`.
pub(crate) fn redb_error<E>(operation: &'static str) -> impl FnOnce(E) -> StoreError
where
    E: Into<redb::Error>,
{
    move |error| match error.into() {
        redb::Error::Corrupted(message) => {
            corrupt("checkpoint store", format!("{message}; restore it from a backup"))
        }
        // The file is shorter than its header says, or a page does not have the content that redb
        // wrote.
        redb::Error::Io(error) if is_damage(error.kind()) => {
            corrupt("checkpoint store", format!("{error}; restore it from a backup"))
        }
        // Every store has all tables with the expected types, so the page that lists the tables is
        // damaged.
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

/// Returns whether an I/O error means that the file has other bytes than were written.
pub(crate) fn is_damage(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::InvalidData | ErrorKind::UnexpectedEof)
}

/// Builds the error for a failure of the file or of the system below it.
pub(crate) fn backend(operation: &'static str, error: impl Display) -> StoreError {
    StoreError::Backend { operation, message: error.to_string() }
}

/// Builds the error for stored bytes that are invalid.
pub(crate) fn corrupt(what: impl Into<String>, message: impl Display) -> StoreError {
    StoreError::Corrupt { what: what.into(), message: message.to_string() }
}

/// Builds the error for a batch that is invalid.
pub(crate) fn invalid(thread: &ThreadId, message: impl Into<String>) -> StoreError {
    StoreError::InvalidBatch { thread: thread.clone(), message: message.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_or_mistyped_tables_are_reported_as_damage() {
        for error in [
            redb::Error::TableDoesNotExist("log".to_owned()),
            redb::Error::TableIsMultimap("log".to_owned()),
        ] {
            let error = redb_error::<redb::Error>("read")(error);
            assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
            assert!(error.to_string().contains("log"), "{error}");
        }
        let error = redb_error::<redb::Error>("read")(redb::Error::PreviousIo);
        assert!(matches!(error, StoreError::Backend { .. }), "{error}");
    }
}
