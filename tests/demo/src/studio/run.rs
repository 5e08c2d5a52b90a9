//! Runs of the app `tour`, and what the stand-in of the model says in them.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::host::Host;

/// The path of model requests at the stand-ins.
pub(super) const MODEL_PATH: &str = "/v1/chat/completions";

/// Starts runs of the app.
pub(super) const RUNS: &str = "/api/v1/apps/tour/runs";

/// Runs a graph on a thread until the run ends or waits.
pub(super) async fn start(host: &Host, graph: &str, thread: &str, said: &str) -> Result<Value> {
    let mut start = message(graph, thread, said);
    start["wait"] = json!(true);
    host.post(RUNS, &start).await
}

/// Returns the request of a run on a thread with a message of a user.
pub(super) fn message(graph: &str, thread: &str, said: &str) -> Value {
    json!({ "graph": graph, "input": input(said), "thread_id": thread })
}

pub(super) fn input(said: &str) -> Value {
    json!({ "messages": [{ "role": "user", "content": said }] })
}

/// Returns a completion of a model that calls a tool.
pub(super) fn calls(tool: &str, arguments: &Value) -> Value {
    json!({ "tool_calls": [{ "name": tool, "arguments": arguments }] })
}

/// Tells the stand-in of the model what to say in the conversation with this message.
pub(super) async fn script(host: &Host, said: &str, contents: &Value) -> Result<()> {
    let fault = json!({ "kind": "script", "contents": contents });
    let rule = json!({ "path": MODEL_PATH, "body_contains": said, "fault": fault });
    host.order("/__faults", &rule).await
}

/// Returns the id of a run that has ended with this status.
pub(super) fn ended(run: &Value, status: &str) -> Result<String> {
    ensure!(run["status"] == status, "the run is not {status}: {run}");
    Ok(text(&run["run"])?.to_owned())
}

/// Returns the id of a run that has failed with this code.
pub(super) fn failed_with(run: &Value, code: &str) -> Result<String> {
    ensure!(run["failure"]["code"] == code, "the run did not fail with `{code}`: {run}");
    ended(run, "failed")
}

pub(super) fn text(value: &Value) -> Result<&str> {
    value.as_str().with_context(|| format!("no text: {value}"))
}
