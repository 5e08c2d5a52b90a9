//! Executes commands of the streaming protocol. A command gets its reply once its effects are
//! durable.

mod run;
mod state;
mod tree;

use axum::http::StatusCode;
use serde_json::Value;
use wattle_graph::id::ThreadId;
use wattle_project::agent_server::id::EventId;
use wattle_run::ports::store::ThreadRecord;

use crate::error::ApiError;
use crate::extractors::Caller;
use crate::state::AgentServer;
use crate::wire::command::{Code, Command, Refusal, done};

/// Prefix of the commands that manage subscriptions and need a WebSocket connection.
const OF_CONNECTIONS: &str = "subscription.";

/// The thread of a command, and the caller that sent it.
pub(crate) struct Target<'a> {
    pub(crate) server: &'a AgentServer,
    pub(crate) caller: &'a Caller,
    /// The thread, which may not exist yet.
    pub(crate) thread: &'a ThreadId,
}

/// Executes a command. Returns the reply, also if the command fails.
pub(crate) async fn perform(target: &Target<'_>, command: &Command) -> Value {
    let answered = match end(target).await {
        Ok(end) => (attempt(target, command).await).map(|result| done(command.id, &result, end)),
        Err(refusal) => Err(refusal),
    };
    answered.unwrap_or_else(|refusal| refusal.answer(Some(command.id)))
}

async fn attempt(target: &Target<'_>, command: &Command) -> Result<Value, Refusal> {
    match command.method.as_str() {
        "run.start" => run::start(target, command.read()?).await,
        "input.respond" => run::respond(target, command.read()?).await,
        "state.fork" => run::fork(target, command.read()?).await,
        "state.get" => state::get(target, command.read()?).await,
        "state.listCheckpoints" => state::list(target, command.read()?).await,
        "agent.getTree" => tree::get(target, command.read()?).await,
        method if method.starts_with(OF_CONNECTIONS) => {
            let why = format!("`{method}` needs a WebSocket; other streams have one subscription");
            Err(Refusal::new(Code::NotSupported, why))
        }
        method => {
            let why = format!("there is no command `{method}`");
            Err(Refusal::new(Code::UnknownCommand, why))
        }
    }
}

/// Returns the number of the last event of a thread so far.
pub(crate) async fn end(target: &Target<'_>) -> Result<u64, Refusal> {
    let head = target.server.ports().store.thread(target.thread).await;
    let head = head.map_err(|error| refused(&error.into()))?;
    Ok(head.map_or(0, |head| EventId::end_of(head.last_seq)))
}

impl Target<'_> {
    /// Finds the thread; `None` if it does not exist or the caller may not access it.
    async fn find(&self) -> Result<Option<ThreadRecord>, Refusal> {
        let found = self.caller.find_thread(self.server, self.thread.as_str()).await;
        found.map_err(|error| refused(&error))
    }

    /// Returns the thread. Fails if it has never run.
    async fn has_run(&self) -> Result<ThreadRecord, Refusal> {
        let found = self.find().await?.filter(|record| !record.is_unbound());
        found.ok_or_else(|| {
            let why = format!("nothing has run on thread `{}` yet", self.thread);
            Refusal::new(Code::NoSuchRun, why)
        })
    }
}

/// Converts an API error to an error of the protocol.
pub(crate) fn refused(error: &ApiError) -> Refusal {
    let code = match error.status() {
        status if status.is_server_error() => Code::UnknownError,
        StatusCode::NOT_IMPLEMENTED => Code::NotSupported,
        _ => Code::InvalidArgument,
    };
    Refusal::new(code, error.detail())
}
