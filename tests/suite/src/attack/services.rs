//! Model providers, MCP servers and HTTP services whose responses are endless, too large or too
//! deep.

use std::sync::Arc;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::app::APP;
use super::host::Host;

/// Pages of a tool list that the host reads.
const PAGES: u64 = 100;

/// Runs a node that calls a model. The host must give up the response at a limit of responses,
/// which the failure of the service states.
async fn given_up(host: &Host, route: &str, limit: &str) -> Result<()> {
    let run = host.run(APP, "ask_model", json!({ "route": route })).await?;
    let failure = &run["failure"];
    let message = failure["message"].as_str().unwrap_or_default();
    let is_limit = failure["code"] == "unavailable" && message.contains(limit);
    ensure!(is_limit, "model `{route}` was not given up, because `{limit}`: {run}");
    Ok(())
}

/// Calls a model that streams only comments.
pub(super) async fn model_comments(host: Arc<Host>) -> Result<()> {
    given_up(&host, "comments", "in a row have no output").await
}

/// Calls a model that streams deltas without text.
pub(super) async fn model_deltas(host: Arc<Host>) -> Result<()> {
    given_up(&host, "deltas", "in a row have no output").await
}

/// Calls a model that streams text without end.
pub(super) async fn model_endless(host: Arc<Host>) -> Result<()> {
    given_up(&host, "endless", "its output has more than 8388608 bytes").await
}

/// Calls a model whose completion is too large.
pub(super) async fn model_large(host: Arc<Host>) -> Result<()> {
    given_up(&host, "large", "it has more than 33554432 bytes").await
}

/// Calls a model whose completion is short enough and has values that take 0.8 GB.
pub(super) async fn model_numbers(host: Arc<Host>) -> Result<()> {
    given_up(&host, "numbers", "its values take more than 67108864 bytes").await
}

/// Calls a tool and returns its result.
async fn call(host: &Host, server: &str, tool: &str) -> Result<Value> {
    let input = json!({ "call": { "tool": format!("mcp:{server}/{tool}"), "arguments": {} } });
    let run = host.run(server, "call", input).await?;
    ensure!(run["status"] == "completed", "{run}");
    Ok(run["state"]["results"][0].clone())
}

/// Calls a tool whose schema of arguments expands to 2^n schemas by nested references, and another
/// tool of the same server. The server validates arguments itself, so the host never expands the
/// schema.
pub(super) async fn tool_schema(host: Arc<Host>) -> Result<()> {
    for tool in ["doubling", "plain"] {
        let answer = call(&host, "shape", tool).await?;
        ensure!(answer["text"] == "well", "{tool}: {answer}");
    }
    Ok(())
}

/// Calls the tool of a server, which must fail with a code and a part of a message.
async fn call_fails(host: &Host, server: &str, code: &str, part: &str) -> Result<()> {
    let result = call(host, server, "plain").await?;
    let failure = &result["failure"];
    let message = failure["message"].as_str().unwrap_or_default();
    let is_expected = failure["code"] == code && message.contains(part);
    ensure!(is_expected, "the call of `{server}` did not fail with `{code}`, `{part}`: {result}");
    Ok(())
}

/// Calls a tool whose output is endless. The timeout of the server ends the call.
pub(super) async fn tool_endless(host: Arc<Host>) -> Result<()> {
    call_fails(&host, "endless", "timeout", "did not respond within 2s").await
}

/// Calls a tool whose output is too deep.
pub(super) async fn tool_deep(host: Arc<Host>) -> Result<()> {
    call_fails(&host, "deep", "invalid", "it is nested deeper than 116 levels").await
}

/// Calls a tool of a server whose tool list is endless. The host truncates the list after a number
/// of pages, and calls a tool of the first one.
pub(super) async fn tool_pages(host: Arc<Host>) -> Result<()> {
    let answer = call(&host, "pages", "plain").await?;
    ensure!(answer["text"] == "well", "{answer}");
    let pages = host.listed_pages();
    ensure!(pages == PAGES, "the host read {pages} pages of the list, and not {PAGES}");
    Ok(())
}

/// Calls a tool whose output is short enough and has values that take 0.5 GB.
pub(super) async fn tool_numbers(host: Arc<Host>) -> Result<()> {
    call_fails(&host, "numbers", "limit", "its values take more than").await
}

/// Sends requests to a service whose responses have no end: one in its body, one in its headers,
/// and one that sends a byte at a time.
pub(super) async fn http_endless(host: Arc<Host>) -> Result<()> {
    for (graph, response, code) in [
        ("ungranted_http", "body", "limit"),
        ("ungranted_http", "headers", "unavailable"),
        ("hurry", "drip", "timeout"),
    ] {
        let input = json!({ "url": host.hostile_url(&format!("/http/{response}")) });
        let run = host.run(APP, graph, input).await?;
        ensure!(run["failure"]["code"] == code, "{response}: {run}");
    }
    Ok(())
}
