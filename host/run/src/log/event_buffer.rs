//! Buffers the events of a log until a batch takes them.
//!
//! All tasks of a thread append to one buffer. An event gets its sequence number under the lock of
//! the buffer. The JSON of the event is written before the lock is taken, so no task waits while
//! another task encodes a large event.

use std::sync::{Mutex, MutexGuard, PoisonError};

use wattle_graph::event::{Event, EventKind};
use wattle_graph::id::CheckpointId;
use wattle_graph::limit::SHORT_JSON_BYTES;

use crate::blocking::block_in_place_if;
use crate::log::batch_size::event_memory_bytes;
use crate::log::unpersisted::UnpersistedCheckpoint;
use crate::ports::store::{EncodedEvents, EventEncoder, UnnumberedEvent};
use crate::run_memory::MemoryCharge;

/// The buffered events, and the other state of the log that the same lock protects.
pub(super) struct EventBuffer(Mutex<Buffer>);

pub(super) struct Buffer {
    pub(super) next_seq: u64,
    /// The current checkpoint of the root graph.
    base: Option<CheckpointId>,
    events: EventEncoder,
    /// Approximate size in memory of the events with their JSON.
    bytes: u64,
    /// Memory of the events in the run. Its size is `bytes` if the log is that of a run.
    memory: MemoryCharge,
    /// Approximate size in memory of the log messages among the events. Log messages wait for the
    /// flush that follows another event.
    pub(super) message_bytes: u64,
    pub(super) unpersisted: UnpersistedCheckpoint,
}

/// The events of a batch.
pub(super) struct TakenEvents {
    pub(super) events: EncodedEvents,
    /// Sequence number of the newest event before the taken events.
    pub(super) after_seq: u64,
    /// The checkpoint of the root graph to which the events belong.
    pub(super) base: Option<CheckpointId>,
    /// Approximate size in memory of the events with their JSON.
    pub(super) bytes: u64,
    /// Memory of the events in the run.
    pub(super) memory: MemoryCharge,
}

impl EventBuffer {
    /// Creates an empty buffer. `base` is the current checkpoint of the root graph.
    pub(super) fn new(next_seq: u64, base: Option<CheckpointId>) -> Self {
        Self(Mutex::new(Buffer {
            next_seq,
            base,
            events: EventEncoder::default(),
            bytes: 0,
            memory: MemoryCharge::default(),
            message_bytes: 0,
            unpersisted: UnpersistedCheckpoint::at(base),
        }))
    }

    /// Counts the events that are appended from now on as memory of a run.
    pub(super) fn set_memory(&self, memory: MemoryCharge) {
        self.lock().memory = memory;
    }

    /// Locks the buffer. No code that can panic runs under this lock.
    pub(super) fn lock(&self) -> MutexGuard<'_, Buffer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes all events for a batch. The batch writes the checkpoint `persisted` of the root graph,
    /// or makes the checkpoint `current` the current one, to which its events then belong. The rest
    /// of the batch is created without the lock.
    pub(super) fn take(
        &self,
        persisted: Option<CheckpointId>,
        current: Option<CheckpointId>,
    ) -> TakenEvents {
        let (mut encoder, next_seq, base, bytes, memory) = {
            let mut buffer = self.lock();
            let (encoder, base) = (std::mem::take(&mut buffer.events), current.or(buffer.base));
            let (bytes, memory) = (std::mem::take(&mut buffer.bytes), buffer.memory.take());
            buffer.message_bytes = 0;
            if let Some(persisted) = persisted {
                buffer.unpersisted.mark_persisted(persisted);
            }
            buffer.base = persisted.or(base);
            (encoder, buffer.next_seq, base, bytes, memory)
        };
        let events = encoder.take();
        let after_seq = next_seq - 1 - events.len() as u64;
        TakenEvents { events, after_seq, base, bytes, memory }
    }

    /// Appends an event and returns its sequence number, which replaces that of the event.
    pub(super) fn push(&self, event: Event) -> u64 {
        self.push_and_read(event, |_| ()).0
    }

    /// Appends an event like [`Self::push`], and returns a copy of it.
    pub(super) fn push_and_copy(&self, event: Event) -> Event {
        let (seq, copy) = self.push_and_read(event, Event::clone);
        Event { seq, ..copy }
    }

    /// Appends an event. Returns its sequence number, and what `read` returns for the event before
    /// the event has the number. Only this function writes the JSON of an event.
    fn push_and_read<T>(&self, event: Event, read: impl FnOnce(&Event) -> T) -> (u64, T) {
        let is_message = matches!(event.kind, EventKind::Log(_));
        let memory = event_memory_bytes(&event.kind);
        block_in_place_if(memory > SHORT_JSON_BYTES, || {
            let result = read(&event);
            let event = UnnumberedEvent::new(event);
            let mut buffer = self.lock();
            let seq = buffer.next_seq;
            let bytes = memory + buffer.events.push(event, seq) as u64;
            buffer.next_seq += 1;
            buffer.bytes += bytes;
            buffer.memory.count(bytes);
            buffer.message_bytes += if is_message { bytes } else { 0 };
            (seq, result)
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::caller_id::CallerId;
    use crate::run_memory::RunMemoryPool;

    fn event(data: &str) -> Event {
        serde_json::from_value(json!({
            "seq": 0, "at_ms": 1, "run": "r", "type": "custom", "task": "t", "node": "n",
            "name": "note", "data": data,
        }))
        .unwrap()
    }

    /// The copy represents all work on the event: the JSON of the event is written after the copy,
    /// and also before the lock is taken.
    #[test]
    fn other_tasks_append_while_an_event_is_read() {
        let buffer = EventBuffer::new(7, None);
        let (seq, other) = buffer.push_and_read(event("slow"), |_| {
            assert!(buffer.0.try_lock().is_ok());
            buffer.push(event("quick"))
        });
        assert_eq!((other, seq, buffer.push_and_copy(event("last")).seq), (7, 8, 9));
        let events = buffer.take(None, None).events;
        let numbered = [(7, "quick"), (8, "slow"), (9, "last")]
            .map(|(seq, data)| Event { seq, ..event(data) });
        assert_eq!(*events, numbered);
        assert_eq!(events.json(), Ok(&*serde_json::to_vec(&numbered).unwrap()));
    }

    #[test]
    fn events_count_as_memory_of_their_run_until_their_batch_is_sent() {
        let (pool, caller) = (RunMemoryPool::new(64 << 20), CallerId::default());
        let buffer = EventBuffer::new(7, None);
        buffer.set_memory(MemoryCharge::new(pool.try_start(caller).unwrap()));
        // The event and its JSON take more than the 28 MiB that one run can have.
        buffer.push(event(&"x".repeat(15 << 20)));
        assert!(!pool.may_start(caller));
        let taken = buffer.take(None, None);
        buffer.push(event("small"));
        assert!(!pool.may_start(caller));
        drop(taken);
        assert!(pool.may_start(caller));
    }

    #[test]
    fn a_batch_takes_all_events_with_the_checkpoint_on_which_they_are_based() {
        let buffer = EventBuffer::new(7, Some(CheckpointId(1)));
        buffer.push(event("one"));
        buffer.push(event("two"));
        let taken = |persisted: Option<u64>, current: Option<u64>| {
            let taken = buffer.take(persisted.map(CheckpointId), current.map(CheckpointId));
            let TakenEvents { events, after_seq, base, bytes, .. } = taken;
            assert_eq!(bytes > 0, !events.is_empty());
            (events.len(), after_seq, base.map(|base| base.0))
        };
        assert_eq!(taken(None, None), (2, 6, Some(1)));
        buffer.push(event("three"));
        assert_eq!(taken(Some(2), None), (1, 8, Some(1)));
        buffer.push(event("four"));
        assert_eq!(taken(None, None), (1, 9, Some(2)));
        buffer.push(event("five"));
        assert_eq!(taken(None, Some(1)), (1, 10, Some(1)));
        assert_eq!(taken(None, None), (0, 11, Some(1)));
    }
}
