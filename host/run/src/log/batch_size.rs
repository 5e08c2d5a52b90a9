//! Approximate size of events and batches.
//!
//! A run does not wait for the disk after each superstep, so batches that the store has not written
//! yet are held in memory. The size in memory bounds how far a run can be ahead of the disk; the
//! size as text bounds how much the log of the thread grows.

use serde_json::Value;
use wattle_graph::checkpoint::{Checkpoint, CheckpointMeta};
use wattle_graph::event::{Called, Decision, EventKind, InterruptRaised, TaskFinished};
use wattle_graph::failure::Failure;
use wattle_graph::llm::Delta;
use wattle_graph::weight::{SHARED_ITEM_BYTES, weight};

use crate::json::approx_bytes;
use crate::ports::store::Batch;

/// Size of an event in memory without the data of guests and clients.
const EVENT_BYTES: u64 = 256;

/// Size of a small part of an event, such as a name, a target or a delta.
const PART_BYTES: u64 = 64;

/// Size of what a store adds to a batch: its position in the log, its seal and checksums.
const FRAME_BYTES: u64 = 128;

/// Size of a checkpoint without values, triggers and versions.
const CHECKPOINT_BYTES: u64 = 384;

/// The approximate size of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BatchSize {
    /// Size of the checkpoint in memory, in bytes.
    pub(super) checkpoint_memory: u64,
    /// Size as text, in bytes; 0 for a batch that only changes records, which are not in the log.
    pub(super) text: u64,
}

impl BatchSize {
    /// Measures a batch.
    pub(super) fn of(batch: &Batch) -> Self {
        let events = batch.events.json().map_or(0, <[u8]>::len) as u64;
        let (checkpoint_memory, checkpoint_text) =
            batch.checkpoint.as_ref().map_or((0, 0), checkpoint_bytes);
        let text = match events + checkpoint_text {
            0 => 0,
            bytes => FRAME_BYTES + bytes,
        };
        Self { checkpoint_memory, text }
    }
}

/// Returns the approximate size of an event in memory, in bytes.
#[must_use]
pub fn event_memory_bytes(kind: &EventKind) -> u64 {
    EVENT_BYTES
        + match kind {
            EventKind::TaskFinished(finished) => outcome(finished),
            EventKind::TaskFailed(failed) => failure(&failed.failure),
            EventKind::CallStarted(started) => {
                started.summary.len() as u64 + started.request.as_ref().map_or(0, weight)
            }
            EventKind::Called(called) => call(called),
            EventKind::InterruptRaised(raised) => interrupt_memory_bytes(raised),
            EventKind::Answered(answered) => weight(&answered.answer),
            EventKind::Custom(custom) => weight(&custom.data),
            EventKind::Log(log) => log.message.len() as u64 + weight(&log.fields),
            EventKind::Streamed(streamed) => streamed.deltas.iter().map(delta).sum(),
            EventKind::RunStarted(started) => weight(&started.context),
            EventKind::Checkpointed(made) => {
                PART_BYTES * (made.next.len() + made.taken.len()) as u64
            }
            EventKind::RunEnded(ended) => ended.failure.as_ref().map_or(0, failure),
            EventKind::Reopened(reopened) => reopened.failure.as_ref().map_or(0, failure),
            EventKind::Settled(settled) => match &settled.decision {
                Decision::Answer { answer } => weight(answer),
                Decision::Retry | Decision::Fail => 0,
            },
            EventKind::Progress(progress) => progress.message.len() as u64,
            _ => 0,
        }
}

/// Returns the approximate size in memory of what an interrupt asks, in bytes.
pub(super) fn interrupt_memory_bytes(raised: &InterruptRaised) -> u64 {
    let elicited = raised.elicited.as_deref();
    weight(&raised.payload)
        + raised.response_schema.as_ref().map_or(0, weight)
        + elicited.map_or(0, |elicited| weight(&serde_json::json!(elicited)))
}

fn outcome(finished: &TaskFinished) -> u64 {
    let writes = finished.writes.iter().map(|write| PART_BYTES + weight(&write.value));
    let sends = finished.sends.iter().map(|send| PART_BYTES + weight(&send.input));
    let targets = finished.goto.as_ref().map_or(0, Vec::len) as u64;
    writes.sum::<u64>() + sends.sum::<u64>() + PART_BYTES * targets
}

fn call(called: &Called) -> u64 {
    let result = called.result.as_ref().map_or_else(failure, weight);
    called.summary.len() as u64 + weight(&called.request) + result
}

fn failure(failure: &Failure) -> u64 {
    failure.message.len() as u64 + failure.details.as_ref().map_or(0, weight)
}

fn delta(delta: &Delta) -> u64 {
    PART_BYTES
        + match delta {
            Delta::Text { text } | Delta::Reasoning { text } => text.len() as u64,
            Delta::ToolCall { arguments, .. } => arguments.len() as u64,
            _ => 0,
        }
}

/// Returns the values that count for the size of a checkpoint.
pub(super) fn sized_values(checkpoint: &Checkpoint) -> impl Iterator<Item = &Value> {
    written_values(checkpoint).map(|(value, _)| value).chain(inputs(checkpoint))
}

/// Returns the inputs of the tasks that a checkpoint triggers.
fn inputs(checkpoint: &Checkpoint) -> impl Iterator<Item = &Value> {
    let CheckpointMeta { next, deferred, .. } = &checkpoint.meta;
    next.iter().chain(deferred).filter_map(|trigger| trigger.input.as_deref())
}

/// Returns the values that a checkpoint stores, each with a flag that is true for an item of a
/// list. A checkpoint stores only the channels that it wrote, and only the new items of a list that
/// grew.
fn written_values(checkpoint: &Checkpoint) -> impl Iterator<Item = (&Value, bool)> {
    let Checkpoint { meta, values, list_deltas, .. } = checkpoint;
    let written = values.iter().filter(move |(name, _)| meta.versions.get(*name) == Some(&meta.id));
    written.flat_map(move |(name, value)| {
        let tail = list_deltas.get(name).filter(|tail| tail.prefix_len > 0);
        let new = tail.and_then(|tail| value.list()?.tail(tail.prefix_len as usize));
        let whole = new.is_none().then(|| value.items());
        let stored = new.into_iter().flatten().chain(whole.into_iter().flatten());
        let is_item = value.list().is_some();
        stored.map(move |stored| (stored, is_item))
    })
}

/// Returns the sizes of a checkpoint in memory and as text.
fn checkpoint_bytes(checkpoint: &Checkpoint) -> (u64, u64) {
    let CheckpointMeta { next, deferred, versions, .. } = &checkpoint.meta;
    let parts = versions.len() + next.len() + deferred.len();
    let own = CHECKPOINT_BYTES + PART_BYTES * parts as u64;
    let (mut memory, mut text) = (own, own);
    for (value, is_item) in written_values(checkpoint) {
        memory += weight(value) + if is_item { SHARED_ITEM_BYTES } else { 0 };
        text += approx_bytes(value);
    }
    for input in inputs(checkpoint) {
        memory += weight(input);
        text += approx_bytes(input);
    }
    (memory, text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wattle_graph::event::Event;
    use wattle_graph::weight::VALUE_BYTES;

    use super::*;

    /// Returns a `task_finished` event.
    fn finished(value: &Value, sends: usize) -> Event {
        let sends = vec![json!({ "node": "n", "input": value }); sends];
        let writes = [json!({ "channel": "c", "value": value })];
        serde_json::from_value(json!({
            "seq": 1, "at_ms": 0, "run": "r", "type": "task_finished", "task": "t", "node": "n",
            "base": 1, "writes": writes, "sends": sends, "goto": ["n"], "duration_us": 0,
        }))
        .unwrap()
    }

    #[test]
    fn text_size_of_a_batch_includes_the_json_of_its_events() {
        let value = json!({ "text": "x".repeat(1_000) });
        for sends in [0, 10, 1_000] {
            let event = finished(&value, sends);
            let memory = event_memory_bytes(&event.kind);
            let text = serde_json::to_string(&[&event]).unwrap().len() as u64;
            let batch = Batch { events: vec![event].into(), ..Batch::default() };
            assert_eq!(BatchSize::of(&batch).text, FRAME_BYTES + text);
            assert!(memory > text / 2, "{memory} against {text}");
        }
        assert_eq!(BatchSize::of(&Batch::default()), BatchSize::default());
    }

    #[test]
    fn numbers_take_more_memory_than_their_text() {
        let event = finished(&json!(vec![0; 1_000]), 0);
        assert!(event_memory_bytes(&event.kind) > 1_000 * VALUE_BYTES);
        let batch = Batch { events: vec![event].into(), ..Batch::default() };
        assert!(BatchSize::of(&batch).text < 10_000);
    }

    #[test]
    fn memory_of_an_event_includes_failures_answers_and_messages() {
        let text = "x".repeat(10_000);
        let failure = json!({ "code": "invalid", "message": "m", "details": text });
        for payload in [
            json!({ "type": "run_ended", "status": "failed", "failure": failure }),
            json!({ "type": "reopened", "to": 1, "interrupts": [], "failure": failure }),
            json!({
                "type": "settled", "task": "t", "call": 0, "by": "ops",
                "decision": { "kind": "answer", "answer": text },
            }),
            json!({ "type": "progress", "task": "t", "node": "n", "message": text }),
        ] {
            let mut event = json!({ "seq": 1, "at_ms": 0, "run": "r" });
            event.as_object_mut().unwrap().extend(payload.as_object().unwrap().clone());
            let event: Event = serde_json::from_value(event).unwrap();
            assert!(event_memory_bytes(&event.kind) > 10_000, "{}", event.kind.name());
        }
    }

    #[test]
    fn only_new_items_of_a_list_count_for_the_size_of_a_batch() {
        let items: Vec<Value> = (0..1_000).map(|_| json!("x".repeat(100))).collect();
        let meta = json!({
            "id": 2, "parent": 1, "step": 1, "source": "loop", "run": "r", "at_ms": 0, "next": [],
            "versions": { "list": 2, "old": 1 },
        });
        let values = json!({ "list": items, "old": "x".repeat(10_000) });
        let made = json!({ "meta": meta, "values": values });
        let mut made: Checkpoint = serde_json::from_value(made).unwrap();
        let of = |made: &Checkpoint| {
            BatchSize::of(&Batch { checkpoint: Some(made.clone()), ..Batch::default() })
        };
        assert!((100_000..120_000).contains(&of(&made).text), "{:?}", of(&made));
        let tail = json!({ "list": { "base": 1, "keep": 990 } });
        made.list_deltas = serde_json::from_value(tail).unwrap();
        assert!((1_000..2_000).contains(&of(&made).text), "{:?}", of(&made));
        let memory = |keep: u32| {
            let tail = json!({ "list": { "base": 1, "keep": keep } });
            let list_deltas = serde_json::from_value(tail).unwrap();
            of(&Checkpoint { list_deltas, ..made.clone() }).checkpoint_memory
        };
        let of_item = VALUE_BYTES + 100 + SHARED_ITEM_BYTES;
        assert_eq!(memory(990) - memory(1_000), 10 * of_item);
        assert_eq!(memory(0) - memory(1_000), 1_000 * of_item);
    }
}
