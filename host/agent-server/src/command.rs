//! Executes commands of the streaming protocol. A command gets its reply once its effects are
//! durable.

mod run;
mod state;
mod tree;

use axum::http::StatusCode;
use serde_json::Value;
use wattle_graph::id::ThreadId;
use wattle_project::agent_server::id::EventId;
use wattle_run::blocking::{are_large_values, block_in_place};
use wattle_run::engine::Engine;
use wattle_run::ports::store::ThreadRecord;
use wattle_run::reads::until_end;

use crate::create_run::RunCreator;
use crate::error::ApiError;
use crate::extractors::Caller;
use crate::subscriptions::EventDelays;
use crate::wire::command::{Command, CommandError, ErrorCode, success_reply};

/// Prefix of the commands that manage subscriptions and need a WebSocket connection.
const SUBSCRIPTION_PREFIX: &str = "subscription.";

/// The thread of a command, and the caller that sent it.
pub(crate) struct CommandContext<'a> {
    pub(crate) creator: &'a RunCreator,
    pub(crate) event_delays: &'a EventDelays,
    pub(crate) caller: &'a Caller,
    /// The thread, which may not exist yet.
    pub(crate) thread: &'a ThreadId,
}

/// The commands that respond with what they have read, and change nothing.
const READ_COMMANDS: [&str; 3] = ["state.get", "state.listCheckpoints", "agent.getTree"];

/// Executes a command. Returns the reply as JSON; the reply to a command that fails contains the
/// error.
pub(crate) async fn execute(context: &CommandContext<'_>, command: &Command) -> String {
    // Boxed: the futures of commands are large.
    let reply = Box::pin(async { to_text(reply_to(context, command).await) });
    if READ_COMMANDS.contains(&command.method.as_str()) {
        until_end(reply).await
    } else {
        reply.await
    }
}

/// Serializes a message. Takes the document, because its values take more memory than the text.
pub(crate) fn to_text(document: Value) -> String {
    if are_large_values([&document]) {
        block_in_place(|| document.to_string())
    } else {
        document.to_string()
    }
}

async fn reply_to(context: &CommandContext<'_>, command: &Command) -> Value {
    let reply = match last_event_number(context).await {
        Ok(number) => (dispatch(context, command).await)
            .map(|result| success_reply(command.id, &result, number)),
        Err(error) => Err(error),
    };
    reply.unwrap_or_else(|error| error.reply(Some(command.id)))
}

async fn dispatch(context: &CommandContext<'_>, command: &Command) -> Result<Value, CommandError> {
    match command.method.as_str() {
        "run.start" => run::start(context, command.params()?).await,
        "input.respond" => run::respond(context, command.params()?).await,
        "state.fork" => run::fork(context, command.params()?).await,
        "state.get" => state::get(context, command.params()?).await,
        "state.listCheckpoints" => state::list(context, command.params()?).await,
        "agent.getTree" => tree::get(context, command.params()?).await,
        method if method.starts_with(SUBSCRIPTION_PREFIX) => {
            let why = format!(
                "`{method}` needs a WebSocket; an event stream over HTTP has one subscription"
            );
            Err(CommandError::new(ErrorCode::NotSupported, why))
        }
        method => {
            let why = format!("there is no command `{method}`");
            Err(CommandError::new(ErrorCode::UnknownCommand, why))
        }
    }
}

/// Returns the number of the last stored event of a thread; 0 if the thread does not exist.
pub(crate) async fn last_event_number(context: &CommandContext<'_>) -> Result<u64, CommandError> {
    let head = context.engine().ports().store.thread(context.thread).await;
    let head = head.map_err(|error| to_command_error(&error.into()))?;
    Ok(head.map_or(0, |head| EventId::end_of(head.last_seq)))
}

impl CommandContext<'_> {
    fn engine(&self) -> &Engine {
        self.creator.engine()
    }

    /// Finds the thread; `None` if it does not exist or the caller may not access it.
    async fn find(&self) -> Result<Option<ThreadRecord>, CommandError> {
        let found = self.caller.find_thread(self.engine(), self.thread.as_str()).await;
        found.map_err(|error| to_command_error(&error))
    }

    /// Returns the thread. Fails if it has never run.
    async fn require_started_thread(&self) -> Result<ThreadRecord, CommandError> {
        let found = self.find().await?.filter(|record| !record.is_unbound());
        found.ok_or_else(|| {
            let why = format!("nothing has run on thread `{}` yet", self.thread);
            CommandError::new(ErrorCode::NoSuchRun, why)
        })
    }
}

/// Converts an API error to an error of the protocol.
pub(crate) fn to_command_error(error: &ApiError) -> CommandError {
    let code = match error.status() {
        status if status.is_server_error() => ErrorCode::UnknownError,
        StatusCode::NOT_IMPLEMENTED => ErrorCode::NotSupported,
        _ => ErrorCode::InvalidArgument,
    };
    CommandError::new(code, error.detail())
}
