//! What a webhook is told: the run when it is over.

use serde_json::{Map, Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_run::call::runs::{RunOutcome, RunRef, Runs as _};
use wattle_run::ports::memory::MemoryScope;
use wattle_run::ports::store::RunRecord;

use crate::agents::Agents;
use crate::doc::run::{RunDoc, Waiting, shelf};
use crate::doc::webhook::{Hook, Tidings};
use crate::fault::Fault;
use crate::run::{Turn, turn};
use crate::view;
use crate::wire::shape::outcome;
use crate::wire::time::iso;

/// Bytes of the values that a webhook is told: what takes more is a state to be read, not news.
const VALUES_BYTES: usize = 4 << 20;

/// What came of a run.
struct End {
    values: Value,
    failure: Option<Failure>,
}

/// Waits until a run is over. `None` if nothing is to be told, because there is no such run any
/// more.
///
/// # Errors
///
/// Why that is not known: to be tried again.
pub(super) async fn tidings(agents: &Agents, hook: &Hook) -> Result<Option<Tidings>, Fault> {
    let Some(doc) = document(agents, hook).await? else { return Ok(None) };
    let end = match turn(agents, &doc).await? {
        Turn::Begun(_) => ended(agents, hook, &doc).await?,
        Turn::Failed(failure) => Some(End { values: Value::Null, failure: Some(failure) }),
        Turn::Gone => Some(End { values: Value::Null, failure: None }),
        Turn::Stopping => {
            return Err(Failure::new(code::UNAVAILABLE, "the host is shutting down").into());
        }
    };
    let Some(end) = end else { return Ok(None) };
    let record = agents.ports().store.run(&hook.run).await?;
    // Again: it is another one since the run has begun or was cancelled. That of a run without a
    // thread may be over by now.
    let doc = match document(agents, hook).await? {
        Some(doc) => doc,
        None if record.is_some() => doc,
        None => return Ok(None),
    };
    if record.is_none() && doc.state == Waiting::Pending {
        return Ok(None);
    }
    Ok(Some(told(agents, &doc, record.as_ref(), end)))
}

async fn document(agents: &Agents, hook: &Hook) -> Result<Option<RunDoc>, Failure> {
    let scope = MemoryScope::Host(hook.tenant.clone());
    shelf(agents.ports(), scope, &hook.thread).get(hook.run.as_str()).await
}

async fn ended(agents: &Agents, hook: &Hook, doc: &RunDoc) -> Result<Option<End>, Fault> {
    let run = RunRef { thread: hook.thread.clone(), run: hook.run.clone() };
    let ended = match agents.engine().wait(&run).await {
        Ok(ended) => ended,
        Err(failure) if failure.code == code::NOT_FOUND => return Ok(None),
        Err(failure) => return Err(failure.into()),
    };
    let head = agents.ports().store.thread(&hook.thread).await?;
    let Some(head) = head else { return Ok(None) };
    let lens = view::run_lens(agents, &head.record, doc);
    Ok(Some(match &ended.outcome {
        RunOutcome::Failed { failure } => {
            End { values: lens.values(&ended.state), failure: Some(failure.clone()) }
        }
        _ => End { values: outcome(&lens, &ended), failure: None },
    }))
}

fn told(agents: &Agents, doc: &RunDoc, record: Option<&RunRecord>, end: End) -> Tidings {
    let started_ms = record.map_or(doc.created_ms, |record| record.started_ms);
    let ended_ms = record.and_then(|record| record.ended_ms).unwrap_or_else(|| agents.now_ms());
    let mut fields: Map<String, Value> = match json!(doc.shape(record)) {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    fields.insert("run_started_at".to_owned(), iso(started_ms).into());
    fields.insert("run_ended_at".to_owned(), iso(ended_ms).into());
    let fits = end.values.to_string().len() <= VALUES_BYTES;
    fields.insert("values".to_owned(), if fits { end.values } else { Value::Null });
    if let Some(failure) = end.failure {
        fields.insert("error".to_owned(), failure.message.into());
    }
    Tidings(fields)
}
