//! Approximate size of a batch.
//!
//! A run does not wait for the disk after each superstep, so batches that the store has not written
//! yet are held in memory. The size bounds how far a run can be ahead of the disk.

use serde_json::Value;
use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::elicitation::Elicited;
use wattle_graph::event::{Called, Event, EventKind, TaskFinished};
use wattle_graph::failure::Failure;
use wattle_graph::llm::Delta;

use crate::json;
use crate::ports::store::Batch;

/// Size of an event without the data of guests and clients.
const EVENT_BYTES: u64 = 256;

/// Size of one small part: a name, a target, a delta.
const PART_BYTES: u64 = 64;

/// Returns the approximate size of a batch in bytes.
pub(super) fn approx_bytes(batch: &Batch) -> u64 {
    let events: u64 = batch.events.iter().map(event_bytes).sum();
    events + batch.checkpoint.as_ref().map_or(0, checkpoint)
}

/// Returns the approximate size of an event in bytes.
pub(super) fn event_bytes(event: &Event) -> u64 {
    EVENT_BYTES
        + match &event.kind {
            EventKind::TaskFinished(finished) => task(finished),
            EventKind::TaskFailed(failed) => failure(&failed.failure),
            EventKind::CallStarted(started) => {
                started.summary.len() as u64
                    + started.request.as_ref().map_or(0, json::approx_bytes)
            }
            EventKind::Called(called) => call(called),
            EventKind::Asked(asked) => {
                json::approx_bytes(&asked.payload)
                    + asked.response_schema.as_ref().map_or(0, json::approx_bytes)
                    + asked.elicited.as_deref().map_or(0, elicited)
            }
            EventKind::Answered(answered) => json::approx_bytes(&answered.answer),
            EventKind::Custom(custom) => json::approx_bytes(&custom.data),
            EventKind::Log(log) => log.message.len() as u64 + json::approx_bytes(&log.fields),
            EventKind::Streamed(streamed) => streamed.deltas.iter().map(delta).sum(),
            EventKind::RunStarted(started) => json::approx_bytes(&started.context),
            EventKind::Checkpointed(made) => PART_BYTES * made.next.len() as u64,
            _ => 0,
        }
}

fn task(finished: &TaskFinished) -> u64 {
    let writes = finished.writes.iter().map(|write| PART_BYTES + json::approx_bytes(&write.value));
    let sends = finished.sends.iter().map(|send| PART_BYTES + json::approx_bytes(&send.input));
    let targets = finished.goto.as_ref().map_or(0, Vec::len) as u64;
    writes.sum::<u64>() + sends.sum::<u64>() + PART_BYTES * targets
}

fn call(called: &Called) -> u64 {
    let result = called.result.as_ref().map_or_else(failure, json::approx_bytes);
    called.summary.len() as u64 + json::approx_bytes(&called.request) + result
}

fn elicited(elicited: &Elicited) -> u64 {
    json::approx_bytes(&serde_json::json!(elicited))
}

fn failure(failure: &Failure) -> u64 {
    failure.message.len() as u64 + failure.details.as_ref().map_or(0, json::approx_bytes)
}

fn delta(delta: &Delta) -> u64 {
    PART_BYTES
        + match delta {
            Delta::Text { text } | Delta::Reasoning { text } => text.len() as u64,
            Delta::ToolCall { arguments, .. } => arguments.len() as u64,
            _ => 0,
        }
}

/// A checkpoint stores only the channels that it wrote, and only the new items of a list that grew.
fn checkpoint(checkpoint: &Checkpoint) -> u64 {
    let Checkpoint { meta, values, list_deltas: tails } = checkpoint;
    let written = values.iter().filter(|(name, _)| meta.versions.get(*name) == Some(&meta.id));
    let values = written.map(|(name, value)| match (tails.get(name), &**value) {
        (Some(tail), Value::Array(items)) => {
            let new = items.get(tail.prefix_len as usize..).unwrap_or_default();
            new.iter().map(json::approx_bytes).sum()
        }
        (_, value) => json::approx_bytes(value),
    });
    let next = meta
        .next
        .iter()
        .chain(&meta.deferred)
        .map(|trigger| PART_BYTES + trigger.input.as_deref().map_or(0, json::approx_bytes));
    values.sum::<u64>() + next.sum::<u64>()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
    fn weight_of_a_batch_is_close_to_its_json_length() {
        let value = json!({ "text": "x".repeat(1_000) });
        for sends in [0, 10, 1_000] {
            let events = vec![finished(&value, sends)];
            let text = serde_json::to_string(&events).unwrap().len() as u64;
            let weight = approx_bytes(&Batch { events, ..Batch::default() });
            assert!(weight > text / 2 && weight < text * 2, "{weight} against {text}");
        }
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
            approx_bytes(&Batch { checkpoint: Some(made.clone()), ..Batch::default() })
        };
        assert!((100_000..120_000).contains(&of(&made)), "{}", of(&made));
        let tail = json!({ "list": { "base": 1, "keep": 990 } });
        made.list_deltas = serde_json::from_value(tail).unwrap();
        assert!((1_000..2_000).contains(&of(&made)), "{}", of(&made));
    }
}
