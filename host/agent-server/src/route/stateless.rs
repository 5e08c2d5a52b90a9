//! Runs without a thread: each gets one of its own, which has the id of the run and is deleted when
//! the run is over, unless it is to be kept.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use wattle_graph::id::RunId;
use wattle_run::ports::store::ThreadRecord;

use crate::agents::Agents;
use crate::answer::{self, placed};
use crate::asked;
use crate::assistants;
use crate::caller::{Body, Caller, Place, uuid};
use crate::doc::run::RunDoc;
use crate::fault::Fault;
use crate::order;
use crate::query::Query;
use crate::route::cancel::cancelled;
use crate::route::runs::{joined, joined_stream, presence, record, streamed};
use crate::run::KnownRun;
use crate::wire::request::RunCreate;
use crate::wire::shape::Run;

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
        order::check(&agents, request)?;
        assistants::find(&agents, caller.tenant.as_ref(), &request.assistant_id).await?;
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
    order::alone(agents, caller, asked::new_run()?, request).await
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
    Ok(placed(response, &place, Some(&query.again("stream"))))
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
