//! Models and servers of tools that answer without an end, with too much or too deep.

use std::sync::Arc;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::app::APP;
use super::host::Host;

/// Asks a model that must be given up.
async fn given_up(host: &Host, route: &str) -> Result<Value> {
    let run = host.run(APP, "ask_model", json!({ "route": route })).await?;
    ensure!(run["status"] == "failed", "model `{route}`: {run}");
    Ok(run["failure"].clone())
}

/// A stream of comments.
pub(super) async fn model_comments(host: Arc<Host>) -> Result<()> {
    let failure = given_up(&host, "comments").await?;
    ensure!(failure.to_string().contains("have no output"), "{failure}");
    Ok(())
}

/// A stream of pieces without a text.
pub(super) async fn model_deltas(host: Arc<Host>) -> Result<()> {
    let failure = given_up(&host, "deltas").await?;
    ensure!(failure.to_string().contains("have no output"), "{failure}");
    Ok(())
}

/// A stream of texts.
pub(super) async fn model_endless(host: Arc<Host>) -> Result<()> {
    given_up(&host, "endless").await.map(drop)
}

/// One document that is too large.
pub(super) async fn model_large(host: Arc<Host>) -> Result<()> {
    given_up(&host, "large").await.map(drop)
}

/// What came of a call of a tool.
async fn call(host: &Host, server: &str, tool: &str) -> Result<Value> {
    let input = json!({ "call": { "tool": format!("mcp:{server}/{tool}"), "arguments": {} } });
    let run = host.run(server, "call", input).await?;
    ensure!(run["status"] == "completed", "{run}");
    Ok(run["state"]["results"][0].clone())
}

/// A tool whose arguments have a schema that doubles, and one beside it. The server applies its schemas
/// itself, so the host never expands this one.
pub(super) async fn tool_schema(host: Arc<Host>) -> Result<()> {
    for tool in ["doubling", "plain"] {
        let answer = call(&host, "shape", tool).await?;
        ensure!(answer["text"] == "well", "{tool}: {answer}");
    }
    Ok(())
}

/// A tool whose answer has no end.
pub(super) async fn tool_endless(host: Arc<Host>) -> Result<()> {
    let refused = call(&host, "endless", "plain").await?;
    ensure!(refused["failure"].is_object(), "{refused}");
    Ok(())
}

/// A tool whose answer is too deep.
pub(super) async fn tool_deep(host: Arc<Host>) -> Result<()> {
    let refused = call(&host, "deep", "plain").await?;
    ensure!(refused["failure"].is_object(), "{refused}");
    Ok(())
}

/// A list of tools that has no end: it is cut, or given up.
pub(super) async fn tool_pages(host: Arc<Host>) -> Result<()> {
    let answer = call(&host, "pages", "plain").await?;
    ensure!(answer["text"] == "well" || answer["failure"].is_object(), "{answer}");
    Ok(())
}
