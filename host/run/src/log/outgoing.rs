//! Sends batches to the store.
//!
//! A batch is measured before it is sent, which reads all values that its checkpoint writes. A store
//! in a file then encodes these values. For a long batch, both are one piece of work: they wait for
//! one turn of the caller.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::Shared;
use wattle_graph::id::ThreadId;

use crate::blocking::{are_large_values, block_in_place_in_turn, is_long_parse};
use crate::caller_id::CallerId;
use crate::log::batch_size::{BatchSize, sized_values};
use crate::log::log_size::LogSize;
use crate::ports::store::{Batch, Ticket};
use crate::run_memory::MemoryCharge;
use crate::state_cache::{StateCache, WeighedState};

/// A batch for the store.
pub(super) struct OutgoingBatch {
    /// Caller for which the work of measuring and encoding the batch counts.
    pub(super) caller: CallerId,
    /// The store, with the cache to which the state of the batch is added.
    pub(super) states: StateCache,
    pub(super) thread: ThreadId,
    pub(super) incarnation: Arc<str>,
    /// The size of the thread's log, if it has a limit.
    pub(super) size: Option<Arc<LogSize>>,
    /// Boxed, because the futures that send the batch would otherwise copy it several times.
    pub(super) batch: Box<Batch>,
    /// Memory of the events in the run. The run holds it until the store has accepted the batch.
    pub(super) memory: MemoryCharge,
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
        let Self { caller, states, thread, incarnation, size, batch, memory } = self;
        let is_long = is_long(&batch);
        let begin = || {
            let measured = BatchSize::of(&batch);
            if let Some(size) = &size {
                size.add(measured.text);
            }
            let made = batch.checkpoint.as_ref();
            let state = made.map(|made| WeighedState::weigh(&thread, &incarnation, made));
            let mut appending = states.store().append(&thread, *batch);
            // The store encodes the batch when it is polled. The turn ends before any wait for a
            // place in the queue.
            let appended = appending.as_mut().now_or_never();
            (measured, state, appended.ok_or(appending))
        };
        let (measured, state, appended) = block_in_place_in_turn(caller, is_long, begin).await;
        let ticket = match appended {
            Ok(ticket) => ticket,
            Err(appending) => appending.await,
        };
        drop(memory);
        let ticket = ticket.shared();
        if let Some(state) = state {
            states.add(state, Some(ticket.clone()));
        }
        AcceptedBatch { ticket, checkpoint_bytes: measured.checkpoint_memory }
    }
}

/// Returns true if measuring and encoding a batch is long work.
fn is_long(batch: &Batch) -> bool {
    let events = batch.events.json().map_or(0, <[u8]>::len);
    let read = batch.checkpoint.iter().flat_map(|made| {
        let decoded = WeighedState::decoded_values(made);
        sized_values(made).chain(decoded)
    });
    is_long_parse(events) || are_large_values(read)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use wattle_graph::checkpoint::ChannelValue;
    use wattle_graph::event::Event;

    use super::*;

    /// Returns a batch with a checkpoint that writes a list. The list has the first `old` of its
    /// items from an earlier checkpoint.
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

    #[test]
    fn a_batch_is_long_work_if_it_has_many_values_to_read() {
        let (short, long, decoded) = (batch(0, 100), batch(0, 2_000), batch(2_000, 1));
        assert!(!is_long(&Batch::default()) && !is_long(&short));
        assert!(is_long(&long) && is_long(&decoded));
        let thread = ThreadId::new("t").unwrap();
        for batch in [&long, &decoded] {
            let made = batch.checkpoint.as_ref().unwrap();
            let _state = WeighedState::weigh(&thread, &"i".into(), made);
            assert!(made.values.values().all(ChannelValue::is_weighed));
        }
        assert!(!is_long(&decoded), "the weights of the values are known now, and one item is new");
    }

    #[test]
    fn a_batch_is_long_work_if_its_events_have_much_text() {
        let of = |length: usize| {
            let event: Event = serde_json::from_value(json!({
                "seq": 1, "at_ms": 1, "run": "r", "type": "custom", "task": "t", "node": "n",
                "name": "note", "data": "x".repeat(length),
            }))
            .unwrap();
            Batch { events: vec![event].into(), ..Batch::default() }
        };
        assert!(!is_long(&of(100_000)));
        assert!(is_long(&of(300_000)));
    }
}
