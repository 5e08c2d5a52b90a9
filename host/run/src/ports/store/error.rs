//! Errors of a store.

use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{CheckpointId, RunId, ThreadId};

/// An error of a store.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The batch does not continue from the newest event of the thread: another writer wrote to it,
    /// or an earlier batch of the same writer was not written.
    #[error(
        "write conflict on thread `{thread}`: batch starts at event {found}, newest event is \
         {newest}"
    )]
    Conflict {
        /// The thread.
        thread: ThreadId,
        /// Newest event in the store.
        newest: u64,
        /// First event of the batch; for a batch without events, the event that would follow the
        /// batch.
        found: u64,
    },
    /// Another holder has the lease of the thread.
    #[error("thread `{thread}` is leased by host `{holder}`")]
    Leased {
        /// The thread.
        thread: ThreadId,
        /// The holder of the lease.
        holder: String,
    },
    /// The lease of the batch has ended, and another holder has acquired the lease of the thread.
    #[error(
        "write to thread `{thread}` is fenced: another host holds the lease (own epoch {epoch})"
    )]
    Fenced {
        /// The thread.
        thread: ThreadId,
        /// Epoch of the batch; 0 if it had none.
        epoch: u64,
    },
    /// A run cannot start now: it is not pending, or other runs of the thread are pending.
    #[error("run `{run}` of thread `{thread}` is not the next to start")]
    OutOfTurn {
        /// The thread.
        thread: ThreadId,
        /// The run.
        run: RunId,
    },
    /// Stored data of a thread does not match its seal: it was changed.
    #[error("thread `{thread}` was changed outside of the host at event {seq}: {message}")]
    Broken {
        /// The thread.
        thread: ThreadId,
        /// First event that the broken seal covers.
        seq: u64,
        /// What does not match.
        message: String,
    },
    /// The batch is invalid.
    #[error("batch for thread `{thread}` is not valid: {message}")]
    InvalidBatch {
        /// The thread.
        thread: ThreadId,
        /// What is wrong.
        message: String,
    },
    /// An operation on the file or the server of the store failed.
    #[error("checkpoint store cannot {operation}: {message}")]
    Backend {
        /// What was tried.
        operation: &'static str,
        /// What went wrong.
        message: String,
    },
    /// This kind of store does not support the operation.
    #[error("checkpoint store cannot {operation}: {message}")]
    Unsupported {
        /// The operation.
        operation: &'static str,
        /// Which store supports it, and what to do instead.
        message: &'static str,
    },
    /// The stored data has a newer format.
    #[error(
        "checkpoint store `{path}` has format {found}, newer than {known}, the newest this \
         version of wattle reads; use a newer wattle"
    )]
    NewerFormat {
        /// Path of the store.
        path: String,
        /// Format in the store.
        found: u32,
        /// Newest supported format.
        known: u32,
    },
    /// Stored bytes cannot be read.
    #[error("stored {what} cannot be read: {message}")]
    Corrupt {
        /// The data that was read.
        what: String,
        /// What is wrong with it.
        message: String,
    },
    /// The size of the events since a checkpoint exceeds the maximum that is read at once.
    #[error(
        "thread `{thread}` has {} MiB of events since checkpoint {checkpoint}, and at most {} MiB \
         are read at once: its superstep is too large to continue. Fork the thread from an earlier \
         checkpoint, or delete it",
        bytes >> 20, limit >> 20
    )]
    TooLarge {
        /// The thread.
        thread: ThreadId,
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// Bytes of JSON or of memory.
        bytes: u64,
        /// Maximum bytes that are read.
        limit: u64,
    },
    /// The store was closed.
    #[error("checkpoint store is closed")]
    Closed,
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let word = match &error {
            StoreError::Leased { .. }
            | StoreError::Fenced { .. }
            | StoreError::OutOfTurn { .. } => code::BUSY,
            StoreError::Broken { .. } | StoreError::Corrupt { .. } => code::BROKEN,
            StoreError::TooLarge { .. } => code::LIMIT,
            StoreError::Unsupported { .. } => code::UNSUPPORTED,
            StoreError::Backend { .. } => code::UNAVAILABLE,
            _ => code::INTERNAL,
        };
        let failure = Self::new(word, error.to_string());
        // A full disk or an unreachable server may recover.
        let passes = matches!(error, StoreError::Backend { .. });
        if passes { failure.retryable() } else { failure }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_backend_errors_of_a_store_are_retryable() {
        let message = String::new();
        let (operation, thread) = ("read", ThreadId::new("t").unwrap());
        for (error, word, retryable) in [
            (StoreError::Backend { operation, message: message.clone() }, code::UNAVAILABLE, true),
            (StoreError::Unsupported { operation, message: "" }, code::UNSUPPORTED, false),
            (StoreError::Corrupt { what: message.clone(), message }, code::BROKEN, false),
            (StoreError::Fenced { thread, epoch: 1 }, code::BUSY, false),
            (StoreError::Closed, code::INTERNAL, false),
        ] {
            let failure = Failure::from(error);
            assert_eq!((failure.code.as_str(), failure.retryable), (word, retryable));
        }
    }
}
