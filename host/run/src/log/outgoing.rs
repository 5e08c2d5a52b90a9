//! Batches on their way to the store.
//!
//! A batch is measured before it is sent. That reads all values that its checkpoint writes, and a
//! long batch waits for a turn of its caller, as the store does to encode it.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::Shared;
use wattle_graph::id::ThreadId;

use crate::blocking::{are_large_values, block_in_place_in_turn};
use crate::log::batch_size::{checkpoint_memory_bytes, sized_values, text_bytes};
use crate::log::log_size::LogSize;
use crate::ports::store::{Batch, Ticket};
use crate::state_cache::{StateCache, WeighedState};

/// A batch for the store.
pub(super) struct OutgoingBatch {
    /// The store, and the states to which that of the batch is added.
    pub(super) states: StateCache,
    pub(super) thread: ThreadId,
    pub(super) incarnation: String,
    /// The size of the thread's log, if it has a limit.
    pub(super) size: Option<Arc<LogSize>>,
    pub(super) batch: Batch,
}

/// A batch that the store has accepted.
pub(super) struct AcceptedBatch {
    /// Resolves when the batch is durable.
    pub(super) ticket: Shared<Ticket>,
    /// Approximate size of its checkpoint in memory, in bytes.
    pub(super) checkpoint_bytes: u64,
}

impl OutgoingBatch {
    /// Sends the batch to the store, with the state of its checkpoint.
    pub(super) async fn send(self) -> AcceptedBatch {
        let Self { states, thread, incarnation, size, batch } = self;
        let Measured { checkpoint_bytes, text_bytes, state } =
            measure(&thread, &incarnation, &batch).await;
        if let Some(size) = &size {
            size.add(text_bytes);
        }
        let ticket = states.store().append(&thread, batch).await.shared();
        if let Some(state) = state {
            states.add(state, Some(ticket.clone()));
        }
        AcceptedBatch { ticket, checkpoint_bytes }
    }
}

/// The sizes of a batch, and the state of its checkpoint.
struct Measured {
    checkpoint_bytes: u64,
    text_bytes: u64,
    state: Option<WeighedState>,
}

async fn measure(thread: &ThreadId, incarnation: &str, batch: &Batch) -> Measured {
    let made = batch.checkpoint.as_ref();
    let read = made.into_iter().flat_map(|made| {
        let decoded = WeighedState::decoded_values(made);
        sized_values(made).chain(decoded)
    });
    let work = || Measured {
        checkpoint_bytes: made.map_or(0, checkpoint_memory_bytes),
        text_bytes: text_bytes(batch),
        state: made.map(|made| WeighedState::new(thread, incarnation, made)),
    };
    block_in_place_in_turn(batch.caller, are_large_values(read), work).await
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::future::join_all;
    use futures::poll;
    use serde_json::{Value, json};
    use wattle_graph::checkpoint::ChannelValue;

    use super::*;
    use crate::blocking::hold_all_turns;

    /// Returns a batch with a checkpoint that writes a list, and keeps the first `old` of its items
    /// from an earlier one.
    fn batch(old: usize, new: usize) -> Batch {
        let items: Vec<Value> = (0..old + new).map(|number| json!(number)).collect();
        let meta = json!({
            "id": 2, "parent": 1, "step": 1, "source": "loop", "run": "r", "at_ms": 0, "next": [],
            "versions": { "list": 2 },
        });
        let tails = json!({ "list": { "base": 1, "keep": old } });
        let made = json!({ "meta": meta, "values": { "list": items }, "tails": tails });
        Batch { checkpoint: Some(serde_json::from_value(made).unwrap()), ..Batch::default() }
    }

    #[tokio::test]
    async fn measuring_a_long_batch_waits_for_a_turn() {
        let (thread, held) = (ThreadId::new("t").unwrap(), hold_all_turns().await);
        let (short, long, decoded) = (batch(0, 100), batch(0, 2_000), batch(2_000, 1));
        for of_checkpoint in [&short, &Batch::default()] {
            let measured = measure(&thread, "i", of_checkpoint).await;
            assert_eq!(measured.state.is_some(), of_checkpoint.checkpoint.is_some());
        }
        let mut waiting = [&long, &decoded].map(|batch| Box::pin(measure(&thread, "i", batch)));
        for measuring in &mut waiting {
            assert!(poll!(measuring).is_pending());
        }
        drop(held);
        for (measured, batch) in join_all(waiting).await.into_iter().zip([&long, &decoded]) {
            let made = batch.checkpoint.as_ref().unwrap();
            assert_eq!(measured.checkpoint_bytes, checkpoint_memory_bytes(made));
            assert_eq!(measured.text_bytes, text_bytes(batch));
            assert!(made.values.values().all(ChannelValue::is_weighed));
        }
        // The values know their weight now, and one item is new.
        let held = hold_all_turns().await;
        let mut again = pin!(measure(&thread, "i", &decoded));
        assert!(poll!(again.as_mut()).is_ready());
        drop(held);
    }
}
