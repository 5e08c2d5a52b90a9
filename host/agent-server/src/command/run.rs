//! Commands that create runs.

use serde_json::{Value, json};
use wattle_run::hostcall::runs::{InterruptView, RunService as _};
use wattle_run::ports::store::ThreadRecord;

use super::{Target, refused};
use crate::create_run;
use crate::error::ApiError;
use crate::graphs;
use crate::resolve;
use crate::run::StoredRun;
use crate::wire::command::{Code, InputRespond, Refusal, RunStart, StateFork};
use crate::wire::request::RunCreate;

/// Creates a run, and its thread if it does not exist. If an interrupt is pending, the input
/// answers it, unless the run starts from an earlier checkpoint.
pub(super) async fn start(target: &Target<'_>, params: RunStart) -> Result<Value, Refusal> {
    let may_answer = params.input.is_some() && !params.forks();
    let known = if may_answer { target.find().await? } else { None };
    let answers = match known.filter(|record| !record.is_unbound()) {
        Some(_) => !open(target).await?.is_empty(),
        None => false,
    };
    begin(target, &params.request(answers)?).await
}

/// Answers interrupts with a run of the assistant of the last run.
pub(super) async fn respond(target: &Target<'_>, params: InputRespond) -> Result<Value, Refusal> {
    let answers = params.answers()?;
    let record = target.has_run().await?;
    let open = open(target).await?;
    let is_open = |id: &String| open.iter().any(|question| question.id == *id);
    if let Some(id) = answers.keys().find(|id| !is_open(id)) {
        let why = match open.as_slice() {
            [] => format!("interrupt `{id}` is not pending, and no other is"),
            open => {
                let ids: Vec<String> =
                    open.iter().map(|question| format!("`{}`", question.id)).collect();
                format!("interrupt `{id}` is not pending; pending interrupts: {}", ids.join(", "))
            }
        };
        return Err(Refusal::new(Code::NoSuchInterrupt, why));
    }
    let assistant = assistant(target, &record).await?;
    begin(target, &params.request(assistant, answers)).await
}

/// Creates a run from an earlier checkpoint, with the assistant of the last run.
pub(super) async fn fork(target: &Target<'_>, params: StateFork) -> Result<Value, Refusal> {
    let record = target.has_run().await?;
    let request = params.request(assistant(target, &record).await?)?;
    if let Some(id) = &request.checkpoint_id {
        resolve::parse_point(&record, id).map_err(|error| no_checkpoint(&error))?;
    }
    let mut begun = begin(target, &request).await.map_err(|refusal| match refusal.code {
        // The format of the id is valid for this thread, but the checkpoint does not exist.
        Code::NoSuchRun => Refusal { code: Code::NoSuchCheckpoint, ..refusal },
        _ => refusal,
    })?;
    begun["thread_id"] = json!(target.thread);
    Ok(begun)
}

pub(super) fn no_checkpoint(error: &ApiError) -> Refusal {
    Refusal::new(Code::NoSuchCheckpoint, error.detail())
}

async fn begin(target: &Target<'_>, request: &RunCreate) -> Result<Value, Refusal> {
    let Target { server, caller, thread } = target;
    let begun = async {
        let run = resolve::new_run_id()?;
        let command = server.holds().command(thread, &run);
        let begun =
            create_run::create_on_thread(server, caller, thread.as_str(), run, request).await?;
        command.answered();
        Ok(begun)
    };
    let created = begun.await.map_err(|error: ApiError| match error.status().as_u16() {
        404 => Refusal::new(Code::NoSuchRun, error.detail()),
        _ => refused(&error),
    })?;
    Ok(json!({ "run_id": created.requested.run }))
}

async fn open(target: &Target<'_>) -> Result<Vec<InterruptView>, Refusal> {
    let view = target.server.engine().thread(target.thread).await;
    let view = view.map_err(|failure| refused(&failure.into()))?;
    Ok(view.map(|view| view.interrupts).unwrap_or_default())
}

/// Returns the assistant of the last run of a thread.
async fn assistant(target: &Target<'_>, record: &ThreadRecord) -> Result<String, Refusal> {
    let server = target.server;
    if let Some(run) = &record.run {
        match StoredRun::find(server, record, run.as_str()).await {
            Ok(run) => return Ok(run.requested.client.assistant),
            Err(error) if error.status().is_server_error() => return Err(refused(&error)),
            // The run was deleted.
            Err(_) => {}
        }
    }
    Ok(graphs::graph_id(server.engine().catalog(), &record.app, &record.graph))
}
