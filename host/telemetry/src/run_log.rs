//! Reads the log of a run, and the states at its start and end.

use serde_json::{Map, Value};
use wattle_graph::checkpoint::CheckpointSource;
use wattle_graph::event::{Event, EventKind};
use wattle_graph::id::{CheckpointId, Namespace};
use wattle_project::spans::Run;
use wattle_run::log::event_memory_bytes;
use wattle_run::ports::Store;
use wattle_run::ports::observer::RunSummary;
use wattle_run::ports::store::StoreError;
use wattle_run::tail::range::EventRange;

/// Maximum number of events that are read of a run. The trace of a longer run is truncated.
const MAX_EVENTS: usize = 50_000;

/// Maximum memory of the events that are read of a run, in bytes. The trace of a larger run is
/// truncated. Spans contain at most some KiB of each value.
const MAX_EVENT_BYTES: u64 = 64 << 20;

/// The log of a run.
#[derive(Clone, Debug)]
pub struct RunLog {
    /// The run and its result.
    pub note: RunSummary,
    /// Events of the run, oldest first, without streamed deltas. The events include the completions
    /// of these deltas.
    pub events: Vec<Event>,
    /// Whether the run has more events than `events`.
    pub truncated: bool,
    /// The state after the input, or the answers of a resumed run; `None` if states are not read.
    pub input: Option<Value>,
    /// The state in the last checkpoint of the run; `None` if states are not read or the run made
    /// no checkpoint.
    pub output: Option<Value>,
}

impl RunLog {
    /// Returns the run in the form that the projection to spans needs.
    pub(crate) fn run(&self) -> Run<'_> {
        Run {
            app: &self.note.app,
            graph: &self.note.graph,
            thread: &self.note.thread,
            run: &self.note.run,
            tenant: self.note.tenant.as_deref(),
            status: self.note.status,
            failure: self.note.failure.as_ref(),
            truncated: self.truncated,
            input: self.input.as_ref(),
            output: self.output.as_ref(),
        }
    }
}

/// Reads the log of a run. `states` selects whether to read the states at its start and end.
///
/// # Errors
///
/// Returns the errors of the store. If the thread was deleted after the run, the record has no
/// events.
pub async fn read_run(
    store: &dyn Store,
    note: RunSummary,
    states: bool,
) -> Result<RunLog, StoreError> {
    let mut record =
        RunLog { note, events: Vec::new(), truncated: false, input: None, output: None };
    let note = &record.note;
    let before = note.first_seq.saturating_sub(1);
    let mut events = EventRange::new(store, &note.thread, before, note.last_seq);
    let ours =
        |event: &Event| event.run == note.run && !matches!(event.kind, EventKind::Streamed(_));
    let mut bytes = 0_u64;
    'log: while let Some(page) = events.next().await? {
        for event in page.into_iter().filter(ours) {
            bytes = bytes.saturating_add(event_memory_bytes(&event.kind));
            if record.events.len() == MAX_EVENTS || bytes > MAX_EVENT_BYTES {
                record.truncated = true;
                break 'log;
            }
            record.events.push(event);
        }
    }
    if states {
        record.input = input(store, &record).await?;
        record.output = output(store, &record).await?;
    }
    Ok(record)
}

/// Returns the state after the input, or the answers with which the run was resumed.
async fn input(store: &dyn Store, record: &RunLog) -> Result<Option<Value>, StoreError> {
    let from_input = root_events(record).find_map(|event| match &event.kind {
        EventKind::Checkpointed(made) if made.source == CheckpointSource::Input => {
            Some(made.checkpoint)
        }
        _ => None,
    });
    if let Some(checkpoint) = from_input {
        return state(store, record, checkpoint).await;
    }
    let answers: Map<String, Value> = record
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Answered(it) => Some((it.interrupt.to_string(), it.answer.clone())),
            _ => None,
        })
        .collect();
    Ok((!answers.is_empty()).then_some(Value::Object(answers)))
}

/// Returns the events of the root graph.
fn root_events(record: &RunLog) -> impl DoubleEndedIterator<Item = &Event> {
    record.events.iter().filter(|event| event.namespace.is_root())
}

async fn output(store: &dyn Store, record: &RunLog) -> Result<Option<Value>, StoreError> {
    let last = root_events(record).rev().find_map(|event| match &event.kind {
        EventKind::Checkpointed(made) => Some(made.checkpoint),
        _ => None,
    });
    match last {
        Some(checkpoint) => state(store, record, checkpoint).await,
        None => Ok(None),
    }
}

async fn state(
    store: &dyn Store,
    record: &RunLog,
    checkpoint: CheckpointId,
) -> Result<Option<Value>, StoreError> {
    let root = Namespace::root();
    let found = store.checkpoint(&record.note.thread, &root, Some(checkpoint)).await?;
    Ok(found.map(|tuple| tuple.checkpoint.state()))
}
