//! The deltas of a streamed completion that its guest has not read.
//!
//! The model call does not wait for the guest, which may request the whole completion without
//! reading its deltas. If more than [`UNREAD_DELTAS`] are unread, they are joined by kind. So they
//! take little more memory than the content of the completion.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use tokio::sync::Notify;
use wattle_graph::llm::Delta;

use crate::limit::UNREAD_DELTAS;

/// Adds deltas. Dropping the sender ends the deltas.
pub(super) struct DeltaSender(Arc<Shared>);

/// Reads deltas.
pub(super) struct DeltaReceiver(Arc<Shared>);

#[derive(Default)]
struct Shared {
    unread: Mutex<Unread>,
    changed: Notify,
}

#[derive(Default)]
struct Unread {
    /// The deltas of each call of [`DeltaSender::send`], or of several calls if they are joined.
    batches: VecDeque<Vec<Delta>>,
    /// Number of deltas in all batches.
    deltas: usize,
    /// True if no further deltas follow.
    is_complete: bool,
}

/// Returns the two sides of the deltas of one completion.
pub(super) fn unread_deltas() -> (DeltaSender, DeltaReceiver) {
    let shared = Arc::new(Shared::default());
    (DeltaSender(shared.clone()), DeltaReceiver(shared))
}

impl DeltaSender {
    /// Adds a batch of deltas. Does not wait for the reader.
    pub(super) fn send(&self, deltas: &[Delta]) {
        self.0.lock_unread().add(deltas.to_vec());
        self.0.changed.notify_one();
    }
}

impl Drop for DeltaSender {
    fn drop(&mut self) {
        self.0.lock_unread().is_complete = true;
        self.0.changed.notify_one();
    }
}

impl DeltaReceiver {
    /// Waits for the next batch. Returns `None` at the end.
    pub(super) async fn recv(&mut self) -> Option<Vec<Delta>> {
        loop {
            let next = self.0.lock_unread().take();
            if let Poll::Ready(batch) = next {
                return batch;
            }
            self.0.changed.notified().await;
        }
    }
}

impl Shared {
    /// Locks the unread deltas. No code that can panic runs under this lock.
    fn lock_unread(&self) -> MutexGuard<'_, Unread> {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Unread {
    fn add(&mut self, batch: Vec<Delta>) {
        self.deltas += batch.len();
        self.batches.push_back(batch);
        if self.deltas > UNREAD_DELTAS {
            let joined = Delta::join_by_kind(self.batches.drain(..).flatten());
            self.deltas = joined.len();
            self.batches.push_back(joined);
        }
    }

    /// Takes the next batch, or `None` at the end.
    fn take(&mut self) -> Poll<Option<Vec<Delta>>> {
        let batch = self.batches.pop_front();
        self.deltas -= batch.as_ref().map_or(0, Vec::len);
        if batch.is_some() || self.is_complete { Poll::Ready(batch) } else { Poll::Pending }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn text(text: &str) -> Delta {
        Delta::Text { text: text.to_owned() }
    }

    fn reasoning(text: &str) -> Delta {
        Delta::Reasoning { text: text.to_owned() }
    }

    #[tokio::test]
    async fn batches_arrive_in_their_order_and_end_with_the_sender() {
        let (sender, mut receiver) = unread_deltas();
        assert!(receiver.recv().now_or_never().is_none(), "the sender may add deltas");
        sender.send(&[text("a"), reasoning("b")]);
        sender.send(&[text("c")]);
        assert_eq!(receiver.recv().await, Some(vec![text("a"), reasoning("b")]));
        let wait = tokio::spawn(async move { (receiver.recv().await, receiver.recv().await) });
        drop(sender);
        assert_eq!(wait.await.unwrap(), (Some(vec![text("c")]), None));
    }

    /// A model that alternates between text and reasoning yields deltas that do not join with the
    /// deltas before them.
    #[tokio::test]
    async fn unread_deltas_of_alternating_kinds_are_joined_beyond_the_limit() {
        let (sender, mut receiver) = unread_deltas();
        let pairs = 5 * UNREAD_DELTAS;
        for _ in 0..pairs {
            sender.send(&[text("a")]);
            sender.send(&[reasoning("b")]);
            assert!(sender.0.lock_unread().deltas <= UNREAD_DELTAS);
        }
        drop(sender);
        let mut all = Vec::new();
        while let Some(batch) = receiver.recv().await {
            all.extend(batch);
        }
        assert!(all.len() <= UNREAD_DELTAS, "{}", all.len());
        let whole = [text(&"a".repeat(pairs)), reasoning(&"b".repeat(pairs))];
        assert_eq!(Delta::join_by_kind(all), whole);
    }
}
