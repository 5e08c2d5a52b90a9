//! Runs without a thread: each gets one of its own, which has the id of the run and is deleted when
//! the run is over, unless it is to be kept.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use serde_json::Value;
use wattle_graph::id::{RunId, ThreadId};
use wattle_run::call::runs::Runs as _;
use wattle_run::engine::blank::NewThread;
use wattle_run::ports::store::{PruneStrategy, ThreadRecord, ThreadTtl};

use crate::agents::Agents;
use crate::answer::{self, placed};
use crate::asked;
use crate::caller::{Body, Caller, Place, uuid};
use crate::doc::run::RunDoc;
use crate::fault::Fault;
use crate::graphs::{self, AgentGraph};
use crate::query::Query;
use crate::queue::submit;
use crate::route::cancel::cancelled;
use crate::route::runs::{joined, joined_stream, presence, record, streamed};
use crate::run::KnownRun;
use crate::view::TEMPORARY;
use crate::wire::request::{Completion, RunCreate};
use crate::wire::shape::Run;

/// How long a thread of a run's own is there when nothing happens on it any more: long enough for a
/// client that lost its connection to come back, also if the host died meanwhile.
const KEPT_MS: u64 = 60_000;

/// Runs that one request may ask for.
const BATCH: usize = 100;

/// Asks for a run and does not wait.
pub(super) async fn create(
    State(agents): State<Agents>,
    caller: Caller,
    Body(request): Body<RunCreate>,
) -> Result<Response, Fault> {
    let (thread, doc) = begin(&agents, &caller, &request).await?;
    let run = shown(&agents, &thread, &doc).await?;
    Ok(placed(Json(run).into_response(), &place(&doc), None))
}

/// Asks for several.
pub(super) async fn batch(
    State(agents): State<Agents>,
    caller: Caller,
    Body(requests): Body<Vec<RunCreate>>,
) -> Result<Json<Vec<Run>>, Fault> {
    if requests.len() > BATCH {
        let count = requests.len();
        return Err(Fault::unprocessable(format!("{count} runs are more than {BATCH} at once")));
    }
    for request in &requests {
        request.check()?;
        graphs::find(agents.engine().catalog(), &request.assistant_id)?;
    }
    let mut runs = Vec::with_capacity(requests.len());
    for request in &requests {
        let (thread, doc) = begin(&agents, &caller, request).await?;
        runs.push(shown(&agents, &thread, &doc).await?);
    }
    Ok(Json(runs))
}

/// Asks for a run and answers with what it leads to.
pub(super) async fn wait(
    State(agents): State<Agents>,
    caller: Caller,
    Body(request): Body<RunCreate>,
) -> Result<Response, Fault> {
    let (_, doc) = begin(&agents, &caller, &request).await?;
    let (place, presence) = (place(&doc), presence(&agents, &doc, &request));
    Ok(placed(answer::wait(&agents, doc, presence), &place, Some("join")))
}

/// Asks for a run and answers with its stream.
pub(super) async fn stream(
    State(agents): State<Agents>,
    caller: Caller,
    Body(request): Body<RunCreate>,
) -> Result<Response, Fault> {
    let (_, doc) = begin(&agents, &caller, &request).await?;
    let (thread, place) = (record(&agents, &doc).await?, place(&doc));
    Ok(placed(streamed(&agents, &thread, doc, &request)?, &place, Some("stream")))
}

async fn begin(
    agents: &Agents,
    caller: &Caller,
    request: &RunCreate,
) -> Result<(ThreadRecord, RunDoc), Fault> {
    request.check()?;
    let graph = graphs::find(agents.engine().catalog(), &request.assistant_id)?;
    if request.command().is_some() || request.input().is_none() {
        let text = "a run without a thread begins with an `input`; there is nothing to go on from";
        return Err(Fault::value(text));
    }
    let run = asked::new_run()?;
    let keep = request.on_completion.unwrap_or_default() == Completion::Keep;
    let ttl = (!keep).then(|| temporary(request));
    let thread = ThreadId::new(run.as_str());
    let thread = thread.map_err(|error| Fault::unprocessable(error.to_string()))?;
    let new = NewThread {
        thread: Some(thread.clone()),
        tenant: caller.tenant.clone(),
        metadata: ttl.map(|_| (TEMPORARY.to_owned(), Value::Bool(true))).into_iter().collect(),
        ttl,
        created_ms: None,
    };
    let record = agents.engine().create_thread(new).await?;
    let begun = begin_on(agents, &graph, &record, run, ttl, request).await;
    match begun {
        Ok(doc) => Ok((record, doc)),
        Err(fault) => {
            agents.engine().delete_thread(&thread).await?;
            Err(fault)
        }
    }
}

async fn begin_on(
    agents: &Agents,
    graph: &AgentGraph,
    thread: &ThreadRecord,
    run: RunId,
    ttl: Option<ThreadTtl>,
    request: &RunCreate,
) -> Result<RunDoc, Fault> {
    let doc = asked::run(agents, graph, thread, run, request).await?;
    let doc = RunDoc { temporary: ttl, ..doc };
    submit(agents, doc.clone()).await?;
    Ok(doc)
}

/// The time begins anew with everything that happens on the thread.
fn temporary(request: &RunCreate) -> ThreadTtl {
    let wait_ms = request.after_seconds.unwrap_or(0.0) * 1000.0;
    #[expect(clippy::cast_sign_loss, reason = "it was checked that it is not negative")]
    let after_ms = KEPT_MS.saturating_add(wait_ms as u64);
    ThreadTtl { after_ms, strategy: PruneStrategy::Delete }
}

fn place(doc: &RunDoc) -> String {
    format!("/runs/{}", doc.run)
}

async fn shown(agents: &Agents, thread: &ThreadRecord, doc: &RunDoc) -> Result<Run, Fault> {
    let run = KnownRun::find(agents, thread, doc.run.as_str()).await?;
    Ok(run.doc.shape(run.record.as_ref()))
}

/// A run by its id alone, with its thread.
async fn find(
    agents: &Agents,
    caller: &Caller,
    id: &str,
) -> Result<(ThreadRecord, KnownRun), Fault> {
    let missing = |fault: Fault| match fault.status().as_u16() {
        404 => Fault::missing("run", id),
        _ => fault,
    };
    let run = RunId::new(id).map_err(|error| Fault::unprocessable(error.to_string()))?;
    let begun = agents.ports().store.run(&run).await?;
    if begun.is_none() {
        uuid("run", id)?;
    }
    let thread = begun.map_or_else(|| id.to_owned(), |record| record.thread.to_string());
    let thread = caller.thread(agents, &thread).await.map_err(missing)?;
    let run = KnownRun::find(agents, &thread, id).await?;
    Ok((thread, run))
}

/// Reads a run.
pub(super) async fn get(
    State(agents): State<Agents>,
    caller: Caller,
    Place(id): Place<String>,
) -> Result<Json<Run>, Fault> {
    let (_, run) = find(&agents, &caller, &id).await?;
    Ok(Json(run.doc.shape(run.record.as_ref())))
}

/// Answers with what a run leads to.
pub(super) async fn join(
    State(agents): State<Agents>,
    caller: Caller,
    Place(id): Place<String>,
    query: Query,
) -> Result<Response, Fault> {
    let (_, run) = find(&agents, &caller, &id).await?;
    joined(&agents, run, &query)
}

/// Answers with the stream of a run.
pub(super) async fn join_stream(
    State(agents): State<Agents>,
    caller: Caller,
    Place(id): Place<String>,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, Fault> {
    let (thread, run) = find(&agents, &caller, &id).await?;
    let place = place(&run.doc);
    let response = joined_stream(&agents, &thread, run, &query, &headers)?;
    Ok(placed(response, &place, Some("stream")))
}

/// Cancels a run.
pub(super) async fn cancel(
    State(agents): State<Agents>,
    caller: Caller,
    Place(id): Place<String>,
    query: Query,
) -> Result<Response, Fault> {
    let (_, run) = find(&agents, &caller, &id).await?;
    cancelled(&agents, run, &query).await
}
