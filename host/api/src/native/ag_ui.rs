//! Runs for clients of AG-UI: a request of the protocol starts or continues a run, and the response
//! is the stream of the run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::IntoParams;
use wattle_graph::definition::{BuiltInReducer, ReducerDef};
use wattle_graph::event::Write;
use wattle_graph::failure::code;
use wattle_graph::graph::Graph;
use wattle_graph::id::{ChannelName, RunId, ThreadId};
use wattle_graph::principal::Principal;
use wattle_graph::step::Command;
use wattle_project::ag_ui::AgUiProjection;
use wattle_project::ag_ui::inward::{self, InputError, Pending, RunAgentInput};
use wattle_run::app::{App, GraphVersion};
use wattle_run::blocking::{are_large_values, block_in_place_in_turn};
use wattle_run::caller_id::CallerId;
use wattle_run::engine::Engine;
use wattle_run::hostcall::runs::{
    CreateRun, Multitask, RunService as _, ThreadCreation, ThreadView,
};
use wattle_run::json::bounded::JsonBudget;
use wattle_run::ports::store::{RunAnswers, RunKind, RunOptions, RunSpec, StaleAnswers};
use wattle_run::tail::Until;

use crate::body::JsonBody;
use crate::detached;
use crate::native::apps;
use crate::native::request_principal::RequestPrincipal;
use crate::native::runs::check_unused_or_accessible;
use crate::native::tenant_scope::TenantScope;
use crate::native::threads::{invalid_id, invalid_query};
use crate::problem::{Problem, ProblemDocument};
use crate::stream::ag_ui;
use crate::stream::client_tail::{DisconnectPolicy, TailRequest};
use crate::stream::parts::StreamParts;

/// Name of the channel for messages, if the graph has several channels with the reducer `messages`.
const MESSAGES: &str = "messages";

/// Options of a run for an AG-UI client.
#[derive(Clone, Copy, Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct AgUiOptions {
    /// True to cancel the run when the client disconnects. By default the run continues.
    cancel_on_disconnect: bool,
}

/// Runs a graph for an AG-UI client, on a new or an existing thread, and streams the run as events
/// of the protocol. The run starts with the new messages of the client, or answers the pending
/// interrupts of the thread. Without new messages and answers, the run continues past a breakpoint,
/// or executes failed tasks again.
#[utoipa::path(post, path = "/api/v1/apps/{app}/graphs/{graph}/ag-ui",
    extensions(("x-wattle-access" = json!({ "share": "lasting" }))), tag = "runs",
    params(
        ("app" = String, Path, description = "name of the app"),
        ("graph" = String, Path, description = "name of the graph"),
        AgUiOptions),
    request_body = RunAgentInput,
    responses(
        (status = 200, content_type = "text/event-stream"),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn run_ag_ui(
    State(parts): State<StreamParts>,
    scope: TenantScope,
    RequestPrincipal(principal): RequestPrincipal,
    Path((app, graph)): Path<(String, String)>,
    options: Result<Query<AgUiOptions>, QueryRejection>,
    JsonBody(input): JsonBody<RunAgentInput>,
) -> Result<Response, Problem> {
    let Query(options) = options.map_err(invalid_query)?;
    let app = apps::find(&parts.engine, &app)?;
    let graph = apps::find_graph(&app, &graph)?.clone();
    let request = AgUiRequest { app, graph, scope, principal, options, input };
    let stopping = parts.stopping.clone();
    // If the client disconnects first, `detached::run` drops the stream after the run has started.
    let work = async move { request.run(&parts).await };
    let panicked =
        || Err(Problem::new(code::INTERNAL, "internal error: the request handler panicked"));
    detached::run(stopping, work).await.unwrap_or_else(panicked)
}

/// A request of an AG-UI client.
struct AgUiRequest {
    app: Arc<App>,
    graph: Arc<GraphVersion>,
    scope: TenantScope,
    principal: Option<Principal>,
    options: AgUiOptions,
    input: RunAgentInput,
}

impl AgUiRequest {
    /// Starts the run and returns its stream.
    async fn run(self, parts: &StreamParts) -> Result<Response, Problem> {
        let thread = ThreadId::new(&self.input.thread_id).map_err(invalid_id)?;
        let run = RunId::new(&self.input.run_id).map_err(invalid_id)?;
        let view = self.existing_thread(&parts.engine, &thread).await?;
        let caller = CallerId::of_run(self.principal.as_ref(), &self.app.name);
        let is_long = are_large_values(&self.input.messages);
        let kind = || run_kind(&self.graph.graph, view.as_ref(), &self.input);
        let kind = block_in_place_in_turn(caller, is_long, kind).await?;
        let known_calls = inward::tool_call_ids(&self.input.messages);
        let request = CreateRun {
            thread: Some(thread),
            creation: ThreadCreation::IfMissing,
            run: Some(run),
            tenant: self.scope.tenant,
            // The end of an earlier run reaches the client before the thread is free.
            strategy: Multitask::Enqueue,
            options: RunOptions::default(),
            may_stay_pending: false,
            spec: RunSpec {
                kind,
                stale_answers: StaleAnswers::Reject,
                app: self.app.name.clone(),
                graph: Some(self.graph.graph.name.clone()),
                context: run_context(self.input.forwarded_props),
                metadata: BTreeMap::new(),
                due_ms: parts.engine.ports().clock.now_ms(),
                ttl: None,
                client: Value::Null,
                principal: self.principal,
            },
        };
        let record = parts.engine.create_run(request).await?;
        let cancels = self.options.cancel_on_disconnect;
        let events = AgUiProjection::new(record.thread.clone(), []).with_known_calls(known_calls);
        let tail = TailRequest {
            owner: caller,
            thread: record.thread,
            run: Some(record.id),
            after: record.first_seq.saturating_sub(1),
            until: Until::Idle,
            // A client of AG-UI cannot reconnect to a stream, so there is no grace period.
            disconnect_policy: cancels
                .then_some(DisconnectPolicy { cancel_after: Some(Duration::ZERO) }),
        };
        Ok(ag_ui::respond_with(parts, tail, events))
    }

    /// Returns the thread of the request; `None` if it does not exist or has no graph yet.
    async fn existing_thread(
        &self,
        engine: &Engine,
        thread: &ThreadId,
    ) -> Result<Option<ThreadView>, Problem> {
        check_unused_or_accessible(engine, &self.scope, thread).await?;
        let Some(view) = engine.thread(thread).await? else { return Ok(None) };
        let head = engine.ports().store.thread(thread).await?;
        let record = head.map(|head| head.record).filter(|record| !record.is_unbound());
        let Some(record) = record else { return Ok(None) };
        if record.app == self.app.name && record.graph == self.graph.graph.name {
            return Ok(Some(view));
        }
        let text = format!(
            "thread `{thread}` is of graph `{}` of app `{}`; run this graph on another thread",
            record.graph, record.app
        );
        Err(Problem::new(code::CONFLICT, text))
    }
}

/// Returns the kind of the run for a request. `thread` is `None` if the thread has never run.
fn run_kind(
    graph: &Graph,
    thread: Option<&ThreadView>,
    input: &RunAgentInput,
) -> Result<RunKind, Problem> {
    let channel = message_channel(graph);
    let thread_messages = thread.map(|thread| {
        let messages = channel.and_then(|name| thread.state.get(name.as_str())?.as_array());
        messages.map_or(&[][..], Vec::as_slice)
    });
    let budget = JsonBudget::default();
    let parse = |text: &str| budget.parse::<Value>(text).ok();
    let messages = inward::new_messages(&input.messages, thread_messages, &parse);
    let messages = messages.map_err(to_problem)?;
    let pending: Vec<Pending<'_>> = thread
        .into_iter()
        .flat_map(|thread| &thread.interrupts)
        .map(|it| Pending { id: &it.id, response_schema: it.response_schema.as_ref() })
        .collect();
    let entries = input.resume.as_deref().unwrap_or_default();
    let answers = inward::answers(entries, &pending, !messages.is_empty()).map_err(to_problem)?;
    let messages = match channel {
        _ if messages.is_empty() => None,
        Some(channel) => Some((channel.clone(), Value::Array(messages))),
        None => return Err(no_message_channel(graph)),
    };
    Ok(match (answers.map(RunAnswers::ById), messages, thread) {
        (Some(answer), None, _) => RunKind::Answer { answer },
        (Some(answer), Some((channel, value)), _) => RunKind::Command {
            command: Command {
                writes: vec![Write { channel, value, overwrite: false }],
                ..Command::default()
            },
            answer: Some(answer),
            checkpoint: None,
        },
        (None, messages, None) => RunKind::Start { input: first_input(&input.state, messages)? },
        (None, Some((channel, value)), Some(_)) => {
            RunKind::Start { input: Map::from_iter([(String::from(channel), value)]).into() }
        }
        (None, None, Some(thread)) if !thread.next.is_empty() => RunKind::Continue,
        (None, None, Some(thread)) => return Err(nothing_to_run(&thread.thread)),
    })
}

/// Returns the message channel: the only channel with the reducer `messages`. If the graph has
/// several such channels, returns the channel with the name `messages`.
fn message_channel(graph: &Graph) -> Option<&ChannelName> {
    let reducer = ReducerDef::BuiltIn(BuiltInReducer::Messages);
    let channels = graph.definition().channels.iter();
    let mut channels = channels.filter(|(_, channel)| channel.reducer == reducer);
    let (first, _) = channels.next()?;
    let mut others = channels.map(|(name, _)| name).peekable();
    if others.peek().is_none() || first.as_str() == MESSAGES {
        return Some(first);
    }
    others.find(|name| name.as_str() == MESSAGES)
}

/// Returns the input of the first run of a thread: the state of the client, with the messages.
fn first_input(state: &Value, messages: Option<(ChannelName, Value)>) -> Result<Value, Problem> {
    let mut input = match state {
        Value::Null => Map::new(),
        Value::Object(values) => values.clone(),
        _ => {
            let text = "field `state` of the request is not valid: the first run of a thread needs \
                        an object of channel values";
            return Err(Problem::new(code::INVALID, text));
        }
    };
    if let Some((channel, messages)) = messages {
        input.insert(channel.into(), messages);
    }
    Ok(input.into())
}

/// Returns the run context. Clients send an empty object if their application forwards nothing.
fn run_context(forwarded_props: Value) -> Value {
    match forwarded_props {
        Value::Object(properties) if properties.is_empty() => Value::Null,
        properties => properties,
    }
}

fn no_message_channel(graph: &Graph) -> Problem {
    let text = format!(
        "graph `{}` has no channel for the messages of the request; give it a channel `{MESSAGES}` \
         with the reducer `messages`, or send no messages",
        graph.name
    );
    Problem::new(code::INVALID, text)
}

fn nothing_to_run(thread: &ThreadId) -> Problem {
    let text = format!(
        "thread `{thread}` has reached its end and has all messages of the request; send a message \
         with a new id after them"
    );
    Problem::new(code::CONFLICT, text)
}

#[expect(clippy::needless_pass_by_value, reason = "passed to `map_err`")]
fn to_problem(error: InputError) -> Problem {
    let code = if error.is_conflict() { code::CONFLICT } else { code::INVALID };
    Problem::new(code, error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wattle_graph::check::{AnyPlugin, check_toml};

    use super::*;

    fn graph(channels: &str) -> Graph {
        let text = format!("[graphs.g]\nentry = \"a\"\nnodes.a = {{}}\n{channels}");
        check_toml("graph.toml", &text, &AnyPlugin).unwrap().remove(0)
    }

    #[test]
    fn message_channel_is_the_only_one_or_is_named_messages() {
        let channel = |names: &[&str]| {
            let define = |name: &&str| format!("channels.{name} = {{ reducer = \"messages\" }}\n");
            let graph = graph(&names.iter().map(define).collect::<String>());
            message_channel(&graph).map(|name| name.as_str().to_owned())
        };
        assert_eq!(channel(&["talk"]).as_deref(), Some("talk"));
        assert_eq!(channel(&["a", "messages", "z"]).as_deref(), Some("messages"));
        assert_eq!(channel(&["messages", "z"]).as_deref(), Some("messages"));
        assert_eq!(channel(&["a", "z"]), None, "it is unclear which one is meant");
        assert!(message_channel(&graph("channels.messages = {}\n")).is_none());
    }

    #[test]
    fn client_state_is_the_input_of_the_first_run() {
        let input = |state: Value| {
            let messages = ChannelName::new("messages").unwrap();
            first_input(&state, Some((messages, json!(["new"]))))
        };
        let both = json!({ "topic": "x", "messages": ["new"] });
        assert_eq!(input(json!({ "topic": "x", "messages": ["old"] })), Ok(both));
        assert_eq!(input(Value::Null), Ok(json!({ "messages": ["new"] })));
        assert_eq!(first_input(&json!({}), None), Ok(json!({})));
        assert_eq!(input(json!([])).unwrap_err().code, code::INVALID);
    }

    #[test]
    fn empty_forwarded_props_are_no_run_context() {
        assert_eq!(run_context(json!({})), Value::Null);
        assert_eq!(run_context(json!({ "language": "en" })), json!({ "language": "en" }));
        assert_eq!(run_context(json!("en")), json!("en"));
    }
}
