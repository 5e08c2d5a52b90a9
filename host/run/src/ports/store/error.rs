//! Why a store does not answer.

use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{CheckpointId, RunId, ThreadId};

/// What a store can answer in place of what was asked for.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The batch does not go on from the thread's newest event: somebody else wrote.
    #[error("thread `{thread}` was written by somebody else: event {found} follows {newest}")]
    Conflict {
        /// The thread.
        thread: ThreadId,
        /// Newest event in the store.
        newest: u64,
        /// First event of the batch.
        found: u64,
    },
    /// Somebody else holds the lease of the thread.
    #[error("thread `{thread}` is at work on host `{holder}`")]
    Leased {
        /// The thread.
        thread: ThreadId,
        /// Who has it.
        holder: String,
    },
    /// The lease under which a batch was written is over: somebody else has the thread now.
    #[error("thread `{thread}` was taken over by another host: lease {epoch} is over")]
    Fenced {
        /// The thread.
        thread: ThreadId,
        /// The lease of the batch; 0 if it had none.
        epoch: u64,
    },
    /// A run cannot begin now: it is not pending any more, or others of the thread are pending.
    #[error("run `{run}` of thread `{thread}` is not the next to begin")]
    OutOfTurn {
        /// The thread.
        thread: ThreadId,
        /// The run.
        run: RunId,
    },
    /// What is stored of a thread does not fit its seal: it was changed.
    #[error("thread `{thread}` was changed behind the host's back at event {seq}: {message}")]
    Broken {
        /// The thread.
        thread: ThreadId,
        /// First event that the broken seal covers.
        seq: u64,
        /// What does not fit.
        message: String,
    },
    /// The batch itself makes no sense.
    #[error("batch for thread `{thread}` is not valid: {message}")]
    InvalidBatch {
        /// The thread.
        thread: ThreadId,
        /// What is wrong.
        message: String,
    },
    /// The file or server failed.
    #[error("checkpoint store cannot {operation}: {message}")]
    Backend {
        /// What was tried.
        operation: &'static str,
        /// What went wrong.
        message: String,
    },
    /// No store of this kind does it.
    #[error("checkpoint store cannot {operation}: {message}")]
    Unsupported {
        /// What was wanted.
        operation: &'static str,
        /// What does it, and what to do instead.
        message: &'static str,
    },
    /// The stored data are of a newer format.
    #[error(
        "checkpoint store `{path}` has format {found}, newer than {known}, the newest this \
         version of wattle reads; use a newer wattle"
    )]
    NewerFormat {
        /// Where.
        path: String,
        /// Format in the store.
        found: u32,
        /// Newest format known.
        known: u32,
    },
    /// Stored bytes cannot be read.
    #[error("stored {what} cannot be read: {message}")]
    Corrupt {
        /// What was read.
        what: String,
        /// What is wrong with it.
        message: String,
    },
    /// What happened since a checkpoint is more than is read at once.
    #[error(
        "thread `{thread}` has {} MiB of events since checkpoint {checkpoint}, and at most {} MiB \
         are read at once: its superstep is too large to go on. Fork the thread from an earlier \
         checkpoint, or delete it",
        bytes >> 20, limit >> 20
    )]
    TooLarge {
        /// The thread.
        thread: ThreadId,
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// Bytes of JSON.
        bytes: u64,
        /// The most that are read.
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
        // A full disk, or a server that is away: it may work later.
        let passes = matches!(error, StoreError::Backend { .. });
        if passes { failure.retryable() } else { failure }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_pass_is_worth_another_attempt() {
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
