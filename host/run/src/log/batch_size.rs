//! Approximate size of a batch.
//!
//! A run does not wait for the disk after each superstep, so batches that the store has not written
//! yet are held in memory. The size in memory bounds how far a run can be ahead of the disk, the
//! size as text how much the log of the thread grows.

use serde_json::Value;
use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::elicitation::Elicited;
use wattle_graph::event::{Called, Event, EventKind, TaskFinished};
use wattle_graph::failure::Failure;
use wattle_graph::llm::Delta;
use wattle_graph::weight::weight;

use crate::json::approx_bytes;
use crate::ports::store::Batch;

/// Size of an event without the data of guests and clients.
const EVENT_BYTES: u64 = 256;

/// Size of one small part: a name, a target, a delta.
const PART_BYTES: u64 = 64;

/// Returns the approximate size of a batch as text, in bytes.
pub(super) fn text_bytes(batch: &Batch) -> u64 {
    Measure(approx_bytes).batch(batch)
}

/// Returns the approximate size of a batch in memory, in bytes.
pub(super) fn memory_bytes(batch: &Batch) -> u64 {
    Measure(weight).batch(batch)
}

/// Returns the approximate size of an event in memory, in bytes.
#[must_use]
pub fn event_memory_bytes(event: &Event) -> u64 {
    Measure(weight).event(event)
}

/// Measures the parts of a batch, with a measure of JSON values.
#[derive(Clone, Copy)]
struct Measure(fn(&Value) -> u64);

impl Measure {
    fn batch(self, batch: &Batch) -> u64 {
        let events: u64 = batch.events.iter().map(|event| self.event(event)).sum();
        events + batch.checkpoint.as_ref().map_or(0, |checkpoint| self.checkpoint(checkpoint))
    }

    fn event(self, event: &Event) -> u64 {
        let Self(size) = self;
        EVENT_BYTES
            + match &event.kind {
                EventKind::TaskFinished(finished) => self.task(finished),
                EventKind::TaskFailed(failed) => self.failure(&failed.failure),
                EventKind::CallStarted(started) => {
                    started.summary.len() as u64 + started.request.as_ref().map_or(0, size)
                }
                EventKind::Called(called) => self.call(called),
                EventKind::Asked(asked) => {
                    size(&asked.payload)
                        + asked.response_schema.as_ref().map_or(0, size)
                        + asked.elicited.as_deref().map_or(0, |elicited| self.elicited(elicited))
                }
                EventKind::Answered(answered) => size(&answered.answer),
                EventKind::Custom(custom) => size(&custom.data),
                EventKind::Log(log) => log.message.len() as u64 + size(&log.fields),
                EventKind::Streamed(streamed) => streamed.deltas.iter().map(delta).sum(),
                EventKind::RunStarted(started) => size(&started.context),
                EventKind::Checkpointed(made) => PART_BYTES * made.next.len() as u64,
                _ => 0,
            }
    }

    fn task(self, finished: &TaskFinished) -> u64 {
        let Self(size) = self;
        let writes = finished.writes.iter().map(|write| PART_BYTES + size(&write.value));
        let sends = finished.sends.iter().map(|send| PART_BYTES + size(&send.input));
        let targets = finished.goto.as_ref().map_or(0, Vec::len) as u64;
        writes.sum::<u64>() + sends.sum::<u64>() + PART_BYTES * targets
    }

    fn call(self, called: &Called) -> u64 {
        let Self(size) = self;
        let result = called.result.as_ref().map_or_else(|failure| self.failure(failure), size);
        called.summary.len() as u64 + size(&called.request) + result
    }

    fn elicited(self, elicited: &Elicited) -> u64 {
        (self.0)(&serde_json::json!(elicited))
    }

    fn failure(self, failure: &Failure) -> u64 {
        failure.message.len() as u64 + failure.details.as_ref().map_or(0, self.0)
    }

    /// A checkpoint stores only the channels that it wrote, and only the new items of a list that
    /// grew.
    fn checkpoint(self, checkpoint: &Checkpoint) -> u64 {
        let Self(size) = self;
        let Checkpoint { meta, values, list_deltas } = checkpoint;
        let written = values.iter().filter(|(name, _)| meta.versions.get(*name) == Some(&meta.id));
        let values = written.map(|(name, value)| match (list_deltas.get(name), &**value) {
            (Some(tail), Value::Array(items)) => {
                let new = items.get(tail.prefix_len as usize..).unwrap_or_default();
                new.iter().map(size).sum()
            }
            (_, value) => size(value),
        });
        let next = meta
            .next
            .iter()
            .chain(&meta.deferred)
            .map(|trigger| PART_BYTES + trigger.input.as_deref().map_or(0, size));
        values.sum::<u64>() + next.sum::<u64>()
    }
}

fn delta(delta: &Delta) -> u64 {
    PART_BYTES
        + match delta {
            Delta::Text { text } | Delta::Reasoning { text } => text.len() as u64,
            Delta::ToolCall { arguments, .. } => arguments.len() as u64,
            _ => 0,
        }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
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
    fn text_of_a_batch_is_close_to_its_json_length() {
        let value = json!({ "text": "x".repeat(1_000) });
        for sends in [0, 10, 1_000] {
            let events = vec![finished(&value, sends)];
            let text = serde_json::to_string(&events).unwrap().len() as u64;
            let batch = Batch { events: events.into(), ..Batch::default() };
            let bytes = text_bytes(&batch);
            assert!(bytes > text / 2 && bytes < text * 2, "{bytes} against {text}");
            assert!(memory_bytes(&batch) > bytes);
        }
    }

    #[test]
    fn numbers_take_more_memory_than_text() {
        let events = vec![finished(&json!(vec![0; 1_000]), 0)];
        let batch = Batch { events: events.into(), ..Batch::default() };
        assert!(text_bytes(&batch) < 10_000);
        assert!(memory_bytes(&batch) > 1_000 * VALUE_BYTES);
    }

    #[test]
    fn only_new_items_of_a_list_count() {
        let items: Vec<Value> = (0..1_000).map(|_| json!("x".repeat(100))).collect();
        let meta = json!({
            "id": 2, "parent": 1, "step": 1, "source": "loop", "run": "r", "at_ms": 0, "next": [],
            "versions": { "list": 2, "old": 1 },
        });
        let values = json!({ "list": items, "old": "x".repeat(10_000) });
        let made = json!({ "meta": meta, "values": values });
        let mut made: Checkpoint = serde_json::from_value(made).unwrap();
        let of = |made: &Checkpoint| {
            text_bytes(&Batch { checkpoint: Some(made.clone()), ..Batch::default() })
        };
        assert!((100_000..120_000).contains(&of(&made)), "{}", of(&made));
        let tail = json!({ "list": { "base": 1, "keep": 990 } });
        made.list_deltas = serde_json::from_value(tail).unwrap();
        assert!((1_000..2_000).contains(&of(&made)), "{}", of(&made));
    }
}
