//! Fixtures: threads, events and checkpoints.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wattle_graph::checkpoint::{Checkpoint, CheckpointMeta, ListDelta, Values};
use wattle_graph::event::{Custom, Event, EventKind};
use wattle_graph::id::{
    ChannelName, CheckpointId, Digest, Namespace, NodeName, RunId, TaskId, ThreadId,
};
use wattle_run::ports::Store;
use wattle_run::ports::store::{Batch, CheckpointTuple, RunRecord, StoreError, ThreadRecord};

pub(crate) fn thread_id(text: &str) -> ThreadId {
    ThreadId::new(text).unwrap()
}

pub(crate) fn run_id(text: &str) -> RunId {
    RunId::new(text).unwrap()
}

pub(crate) fn channel(text: &str) -> ChannelName {
    ChannelName::new(text).unwrap()
}

pub(crate) fn id(number: u64) -> CheckpointId {
    CheckpointId(number)
}

/// Builds a value from JSON, so that a test can omit fields that are not relevant.
pub(crate) fn from_json<T: DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).unwrap()
}

pub(crate) fn record(thread: &ThreadId) -> ThreadRecord {
    from_json(json!({
        "id": thread,
        "app": "demo",
        "graph": "main",
        "version": Digest::of(b"version"),
        "status": "idle",
        "created_ms": 1,
        "updated_ms": 1,
        "context": { "user": "ada" },
    }))
}

pub(crate) fn run(thread: &ThreadId, run: &str) -> RunRecord {
    from_json(json!({
        "id": run,
        "thread": thread,
        "first_seq": 1,
        "status": "running",
        "started_ms": 1,
    }))
}

pub(crate) fn event(seq: u64, data: Value) -> Event {
    let kind = EventKind::Custom(Custom {
        task: TaskId::new("task").unwrap(),
        node: NodeName::new("node").unwrap(),
        name: "note".into(),
        data,
    });
    Event { seq, at_ms: 1, run: run_id("run"), namespace: Namespace::root(), kind }
}

/// Returns a batch of events with sequence numbers from `first` to `last`.
pub(crate) fn events(first: u64, last: u64) -> Batch {
    Batch { events: (first..=last).map(|seq| event(seq, json!(seq))).collect(), ..Batch::default() }
}

/// Returns a checkpoint with values for the channels of `changed`, and older versions of other
/// channels.
pub(crate) fn checkpoint(
    number: u64,
    parent: Option<u64>,
    changed: &[(&str, Value)],
    older: &[(&str, u64)],
) -> Checkpoint {
    let mut versions: BTreeMap<_, _> =
        older.iter().map(|(name, version)| (channel(name), id(*version))).collect();
    let mut values = Values::new();
    for (name, value) in changed {
        versions.insert(channel(name), id(number));
        values.insert(channel(name), value.clone().into());
    }
    let meta: CheckpointMeta = from_json(json!({
        "id": number,
        "parent": parent,
        "step": number,
        "source": if parent.is_some() { "loop" } else { "input" },
        "run": "run",
        "at_ms": 1,
        "next": [],
        "versions": versions,
    }));
    Checkpoint::new(meta, values)
}

/// Returns the hint that a list keeps the first `keep` items of its version `base`.
pub(crate) fn list_delta(name: &str, base: u64, keep: u32) -> (ChannelName, ListDelta) {
    (channel(name), ListDelta { base: id(base), prefix_len: keep })
}

/// Returns a batch with only a checkpoint.
pub(crate) fn batch(checkpoint: Checkpoint) -> Batch {
    Batch { checkpoint: Some(checkpoint), ..Batch::default() }
}

/// Appends a batch and waits until it is durable.
pub(crate) async fn append(
    store: &dyn Store,
    thread: &ThreadId,
    batch: Batch,
) -> Result<(), StoreError> {
    store.append(thread, batch).await.await
}

/// Creates a thread.
pub(crate) async fn create(store: &dyn Store, name: &str) -> ThreadId {
    let thread = thread_id(name);
    let batch = Batch { record: Some(record(&thread)), ..Batch::default() };
    append(store, &thread, batch).await.unwrap();
    thread
}

/// Reads the checkpoint with a number, or the newest checkpoint of the root graph.
pub(crate) async fn read(
    store: &dyn Store,
    thread: &ThreadId,
    number: Option<u64>,
) -> Option<CheckpointTuple> {
    store.checkpoint(thread, &Namespace::root(), number.map(id)).await.unwrap()
}

/// Reads all events of a thread, page by page.
pub(crate) async fn all_events(store: &dyn Store, thread: &ThreadId) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    loop {
        let after = events.last().map_or(0, |event| event.seq);
        let page = store.events(thread, after, usize::MAX).await.unwrap();
        if page.is_empty() {
            return events;
        }
        events.extend(page);
    }
}

/// Reads all runs of a thread, oldest first.
pub(crate) async fn all_runs(store: &dyn Store, thread: &ThreadId) -> Vec<RunRecord> {
    let mut runs = Vec::new();
    loop {
        let page = store.newest_runs(thread, runs.len(), usize::MAX).await.unwrap();
        runs.extend(page.items);
        if page.is_last {
            runs.reverse();
            return runs;
        }
    }
}

pub(crate) fn seqs(events: &[Event]) -> Vec<u64> {
    events.iter().map(|event| event.seq).collect()
}

/// Returns text that compression hardly shortens: eight hexadecimal digits for each of `words`
/// words.
pub(crate) fn incompressible_text(words: u32) -> String {
    (0..words).fold(String::new(), |mut text, n| {
        text.push_str(&format!("{:08x}", n.wrapping_mul(2_654_435_761).rotate_left(n % 31)));
        text
    })
}
