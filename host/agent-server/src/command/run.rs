//! Commands that create runs.

use serde_json::{Value, json};
use wattle_run::hostcall::runs::{InterruptView, RunService as _};
use wattle_run::ports::store::ThreadRecord;

use super::{CommandContext, to_command_error};
use crate::error::ApiError;
use crate::graphs;
use crate::resolve;
use crate::run::StoredRun;
use crate::wire::command::{CommandError, ErrorCode, InputRespond, RunStart, StateFork};
use crate::wire::request::RunCreate;

/// Creates a run, and its thread if it does not exist. If an interrupt is pending, the input
/// answers it, unless the run starts from an earlier checkpoint.
pub(super) async fn start(
    context: &CommandContext<'_>,
    params: RunStart,
) -> Result<Value, CommandError> {
    let may_answer = params.input.is_some() && !params.is_fork();
    let known = if may_answer { context.find().await? } else { None };
    let answers = match known.filter(|record| !record.is_unbound()) {
        Some(_) => !pending_interrupts(context).await?.is_empty(),
        None => false,
    };
    create(context, &params.request(answers)?).await
}

/// Creates a run that answers interrupts, with the assistant of the last run of the thread.
pub(super) async fn respond(
    context: &CommandContext<'_>,
    params: InputRespond,
) -> Result<Value, CommandError> {
    let answers = params.answers()?;
    let record = context.require_started_thread().await?;
    let pending = pending_interrupts(context).await?;
    let is_pending = |id: &String| pending.iter().any(|interrupt| interrupt.id == *id);
    if let Some(id) = answers.keys().find(|id| !is_pending(id)) {
        let why = match pending.as_slice() {
            [] => format!("interrupt `{id}` is not pending; the thread has no pending interrupts"),
            pending => {
                let ids: Vec<String> =
                    pending.iter().map(|interrupt| format!("`{}`", interrupt.id)).collect();
                format!("interrupt `{id}` is not pending; pending interrupts: {}", ids.join(", "))
            }
        };
        return Err(CommandError::new(ErrorCode::NoSuchInterrupt, why));
    }
    let assistant = last_assistant(context, &record).await?;
    create(context, &params.request(assistant, answers)).await
}

/// Creates a run from an earlier checkpoint, with the assistant of the last run of the thread.
pub(super) async fn fork(
    context: &CommandContext<'_>,
    params: StateFork,
) -> Result<Value, CommandError> {
    let record = context.require_started_thread().await?;
    let request = params.request(last_assistant(context, &record).await?)?;
    if let Some(id) = &request.checkpoint_id {
        resolve::parse_point(&record, id).map_err(|error| no_checkpoint(&error))?;
    }
    let mut result = create(context, &request).await.map_err(|error| match error.code {
        // The format of the id is valid for this thread, but the checkpoint does not exist.
        ErrorCode::NoSuchRun => CommandError { code: ErrorCode::NoSuchCheckpoint, ..error },
        _ => error,
    })?;
    result["thread_id"] = json!(context.thread);
    Ok(result)
}

pub(super) fn no_checkpoint(error: &ApiError) -> CommandError {
    CommandError::new(ErrorCode::NoSuchCheckpoint, error.detail())
}

async fn create(context: &CommandContext<'_>, request: &RunCreate) -> Result<Value, CommandError> {
    let CommandContext { creator, event_delays, caller, thread } = context;
    let creation = async {
        let run = resolve::new_run_id()?;
        let command = event_delays.command(thread, &run);
        let created = creator.create_on_thread(caller, thread.as_str(), run, request).await?;
        command.reply_sent();
        Ok(created)
    };
    let created = creation.await.map_err(|error: ApiError| match error.status().as_u16() {
        404 => CommandError::new(ErrorCode::NoSuchRun, error.detail()),
        _ => to_command_error(&error),
    })?;
    Ok(json!({ "run_id": created.requested.run }))
}

async fn pending_interrupts(
    context: &CommandContext<'_>,
) -> Result<Vec<InterruptView>, CommandError> {
    let view = context.engine().thread(context.thread).await;
    let view = view.map_err(|failure| to_command_error(&failure.into()))?;
    Ok(view.map(|view| view.interrupts).unwrap_or_default())
}

/// Returns the assistant of the last run of a thread.
async fn last_assistant(
    context: &CommandContext<'_>,
    record: &ThreadRecord,
) -> Result<String, CommandError> {
    let engine = context.engine();
    if let Some(run) = &record.run {
        match StoredRun::find(engine, record, run.as_str()).await {
            Ok(run) => return Ok(run.requested.client.assistant),
            Err(error) if error.status().is_server_error() => return Err(to_command_error(&error)),
            // The run was deleted.
            Err(_) => {}
        }
    }
    Ok(graphs::graph_id(engine.catalog(), &record.app, &record.graph))
}
