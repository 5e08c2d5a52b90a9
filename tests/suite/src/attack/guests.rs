//! Guests that make the host work on their data.

use std::num::NonZero;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures::future::try_join_all;
use serde_json::{Value, json};
use wattle_kit::standin::{Gate, Pattern};
use wattle_run::limit;

use super::app::{APP, HONEST};
use super::host::Host;
use super::hostile::doubling;

/// Items that a condition compares in pairs, or that a schema validates.
const ITEMS: u32 = 20_000;

/// Numbers in an array, more than one validation may visit, and fewer than a body may have.
const NUMBERS: u32 = 600_000;

/// Size of the text that each superstep of the graph `grow` appends, in bytes. As JSON it is nearly
/// as large as an output may be.
const GROWTH_BYTES: u32 = (4 << 20) - 1_000;

/// Zeros in the outcome of the graph `many_numbers`. Their text is nearly as large as an output may
/// be, and their values take more than 100 MB.
const ZEROS: u32 = 2_000_000;

/// Gotos of one task.
const GOTOS: u32 = 300_000;

/// Calls for random bytes, more than a task may make.
const ROLLS: u32 = limit::HOST_CALLS * 2;

/// Random bytes of each call. Those of all calls are fewer than a task may transfer.
const ROLL_BYTES: u32 = 512;

/// Subgraphs that a task starts.
const STARTS: u32 = 20;

/// Size of the text in the input of each of them, in bytes. All inputs have more bytes than the
/// host calls of a task may transfer.
const INPUT_BYTES: u32 = 4 << 20;

/// Bytes of log messages that the host takes of one task.
const LOG_BYTES: usize = limit::LOG_MESSAGES_BYTES as usize;

/// Memory that each task of the graph `occupy` holds, in bytes. It is below the limit of one guest.
const OCCUPIED_BYTES: u32 = 40 << 20;

/// The path of the service that tasks of the graph `occupy` wait for.
const OCCUPIED_SERVICE: &str = "/occupy";

/// Size of the conversation that each task of the graph `histories` gives to a model, in bytes. The
/// requests of all tasks take more memory than the runs of one caller hold.
const CONVERSATION_BYTES: usize = 6 << 20;

/// The path of the model to which they give it.
const MODEL_PATH: &str = "/v1/chat/completions";

/// Time between two looks at a thread.
const PAUSE: Duration = Duration::from_millis(50);

/// Raises interrupts whose answers must match a schema that expands to 2^n schemas.
pub(super) async fn question_schema(host: Arc<Host>) -> Result<()> {
    for (levels, keyword, limit) in
        [(24, "allOf", "schema_expanded"), (30, "anyOf", "schema_expanded")]
    {
        let input = json!({ "schema": doubling(levels, keyword) });
        host.fails_at("ask_shaped", input, limit).await?;
    }
    Ok(())
}

/// Starts a run with an input that takes long to validate.
pub(super) async fn large_answer(host: Arc<Host>) -> Result<()> {
    // Serialized once, because the host is to use the CPU and not the attacker.
    static START: OnceLock<String> = OnceLock::new();
    let start = START.get_or_init(|| {
        let numbers: Vec<u32> = (0..NUMBERS).collect();
        json!({ "graph": "typed", "input": { "value": numbers }, "wait": true }).to_string()
    });
    let (_, refused) = host.post_text(&format!("/api/v1/apps/{APP}/runs"), start.as_str()).await?;
    ensure!(refused["details"]["limit"] == "schema_steps", "{refused}");
    Ok(())
}

/// Requests a completion that must match a schema that expands to 2^n schemas.
pub(super) async fn model_schema(host: Arc<Host>) -> Result<()> {
    let mut schema = doubling(30, "allOf");
    schema["type"] = json!("object");
    schema["properties"]["answer"]["$ref"] = schema["$ref"].take();
    schema.as_object_mut().context("a schema is an object")?.remove("$ref");
    let input = json!({ "route": "chat", "schema": schema });
    host.fails_at("ask_model", input, "schema_expanded").await
}

/// Calls a tool of a plugin whose arguments schema doubles. The host validates the arguments of
/// such a tool.
pub(super) async fn plugin_tool_schema(host: Arc<Host>) -> Result<()> {
    host.fails_at("use_tool", json!({ "tool": "misdeeds/doubled" }), "schema_expanded").await
}

/// Runs tasks that send more tasks than the limits allow.
pub(super) async fn sends(host: Arc<Host>) -> Result<()> {
    host.fails_at("multiply", json!({ "sends": 12_000 }), "task_sends").await?;
    host.fails_at("multiply", json!({ "sends": 150 }), "step_tasks").await
}

/// Runs a task with very many gotos in a loop until it is cancelled.
pub(super) async fn gotos(host: Arc<Host>) -> Result<()> {
    let start = json!({ "graph": "jump", "input": { "jumps": GOTOS } });
    let (status, run) = host.post(&format!("/api/v1/apps/{APP}/runs"), &start).await?;
    ensure!(status == 202, "{status}: {run}");
    let path = format!("/api/v1/runs/{}", run["run"].as_str().unwrap_or_default());
    let (status, answer) = host.post(&format!("{path}/cancel"), &json!({})).await?;
    ensure!(status == 202, "{status}: {answer}");
    let (_, ended) = host.get(&format!("{path}/wait")).await?;
    let status = ended["status"].as_str().unwrap_or_default();
    ensure!(["cancelled", "failed"].contains(&status), "{ended}");
    Ok(())
}

/// Runs a graph whose condition compares all pairs of items.
pub(super) async fn conditions(host: Arc<Host>) -> Result<()> {
    let input = json!({ "number": 0, "op": (0..ITEMS).collect::<Vec<_>>() });
    host.fails_at("condition", input, "condition_steps").await
}

/// Runs a task that stores more blobs than it may.
pub(super) async fn blobs(host: Arc<Host>) -> Result<()> {
    let input = json!({ "blobs": 90, "bytes": 3 << 20 });
    host.fails_at("hoard", input, "task_blob_bytes").await
}

/// Runs a task that reads random bytes, which the journal keeps, until it may make no more calls.
pub(super) async fn random(host: Arc<Host>) -> Result<()> {
    host.fails_at("roll", json!({ "count": ROLLS, "bytes": ROLL_BYTES }), "host_calls").await
}

/// Runs a task that starts subgraphs with large inputs, and waits for none of them.
pub(super) async fn inputs(host: Arc<Host>) -> Result<()> {
    let input = json!({ "graph": HONEST, "count": STARTS, "bytes": INPUT_BYTES });
    host.fails_at("start_many", input, "host_call_bytes").await
}

/// Runs tasks that log without end: more than their budget, and messages with fields that take much
/// memory when they are parsed.
pub(super) async fn logs(host: Arc<Host>) -> Result<()> {
    // A list of 60 KB of text, just below the limit of a message, and one of 500 KB.
    for (count, numbers, is_truncated) in [(400_usize, 30_000_usize, false), (20, 250_000, true)] {
        let input = json!({ "count": count, "numbers": numbers });
        let run = host.run(APP, "flood_log", input).await?;
        ensure!(run["status"] == "completed" && run["state"]["number"] == count, "{run}");
        let thread = run["thread"].as_str().unwrap_or_default();
        let (_, trace) = host.get(&format!("/api/v1/threads/{thread}/trace")).await?;
        let messages = &trace["runs"][0]["steps"][0]["tasks"][0]["attempts"][0]["messages"];
        let messages = messages.as_array().with_context(|| format!("no messages: {trace}"))?;
        let having = |part: &str| {
            let texts = messages.iter().filter_map(Value::as_str);
            texts.filter(|text| text.contains(part)).count()
        };
        let (floods, truncated) = (having("flood"), having("flood [truncated: "));
        let dropped = having("further log messages are dropped");
        let holds = if is_truncated {
            (floods, truncated, dropped) == (count, count, 0)
        } else {
            floods > 0 && floods * 2 * numbers <= LOG_BYTES && (truncated, dropped) == (0, 1)
        };
        ensure!(holds, "{floods} messages, {truncated} truncated, {dropped} about dropped ones");
    }
    Ok(())
}

/// Runs a graph whose state grows in each superstep, without end.
pub(super) async fn state(host: Arc<Host>) -> Result<()> {
    host.fails_at("grow", json!({ "size": GROWTH_BYTES }), "state_bytes").await
}

/// Runs a node whose outcome is short as text and takes much memory when it is parsed.
pub(super) async fn output_numbers(host: Arc<Host>) -> Result<()> {
    host.fails_at("many_numbers", json!({ "count": ZEROS }), "json_values_bytes").await
}

/// Runs as many tasks at once as a superstep may. Each holds memory while it waits for a service,
/// until the app has its share of the memory of all guests.
pub(super) async fn hog(host: Arc<Host>) -> Result<()> {
    let gate = host.standin.gate(Pattern::path(OCCUPIED_SERVICE));
    let url = format!("{}{OCCUPIED_SERVICE}", host.standin.base_url);
    let tasks = limit::STEP_CONCURRENCY;
    let input = json!({ "bytes": OCCUPIED_BYTES, "url": url });
    let groups = json!([{ "node": "occupy", "input": input, "tasks": tasks }]);
    let run = runs_out_of_memory(&host, "occupy", json!({ "groups": groups }), gate).await?;
    ensure!(run["failure"]["code"] == "unavailable", "{run}");
    Ok(())
}

/// Runs as many tasks at once as a superstep may. Each gives a long conversation to a model that
/// does not respond, until the runs of the caller have their share of the memory of all runs.
pub(super) async fn histories(host: Arc<Host>) -> Result<()> {
    let gate = host.standin.gate(Pattern::path(MODEL_PATH));
    let message = |text: &str| json!({ "role": "user", "content": text });
    let messages = [message(&"x".repeat(CONVERSATION_BYTES)), message("and?")];
    let input = json!({ "number": 0, "route": "chat", "messages": messages });
    let run = runs_out_of_memory(&host, "histories", input, gate).await?;
    ensure!(run["failure"]["details"]["limit"] == "runs_memory", "{run}");
    Ok(())
}

/// Runs a graph whose tasks wait for a service at a gate, and opens the gate once a task failed
/// because it did not get memory. Returns the run, which has failed.
async fn runs_out_of_memory(host: &Host, graph: &str, input: Value, gate: Gate) -> Result<Value> {
    let start = json!({ "graph": graph, "input": input });
    let (status, run) = host.post(&format!("/api/v1/apps/{APP}/runs"), &start).await?;
    ensure!(status == 202, "{status}: {run}");
    let text = |field: &str| run[field].as_str().unwrap_or_default().to_owned();
    let (run, thread) = (text("run"), text("thread"));
    while !is_memory_denied(host, &thread).await? {
        tokio::time::sleep(PAUSE).await;
    }
    gate.open();
    let (_, run) = host.get(&format!("/api/v1/runs/{run}/wait")).await?;
    ensure!(run["status"] == "failed", "{run}");
    Ok(run)
}

/// Returns true if an attempt of a task failed because the guests of its app, or the runs of its
/// caller, have their share of memory. The error is another failure of the run.
async fn is_memory_denied(host: &Host, thread: &str) -> Result<bool> {
    let (_, trace) = host.get(&format!("/api/v1/threads/{thread}/trace")).await?;
    let steps = trace["runs"][0]["steps"].as_array().into_iter().flatten();
    let ran = steps.filter_map(|step| step["tasks"].as_array()).flatten();
    let attempts = ran.filter_map(|task| task["attempts"].as_array()).flatten();
    let mut failures = attempts.filter_map(|attempt| attempt["failure"].as_str());
    let settings = ["`limits.guests_memory`", "`limits.runs_memory`"];
    let is_denied =
        failures.any(|failure| settings.iter().any(|setting| failure.contains(setting)));
    let run = &trace["runs"][0];
    ensure!(is_denied || run["failure"].is_null(), "{}", run["failure"]);
    Ok(is_denied)
}

/// Executes statements with huge values, and statements on the host's own tables.
pub(super) async fn sql(host: Arc<Host>) -> Result<()> {
    for (statement, code) in [
        ("SELECT hex(zeroblob(450000000))", "limit"),
        ("DELETE FROM _wattle_migrations", "denied"),
        ("CREATE VIEW peek AS SELECT * FROM _wattle_migrations", "denied"),
    ] {
        let input = json!({ "database": "notes", "statement": statement });
        let run = host.run(APP, "run_sql", input).await?;
        ensure!(run["failure"]["code"] == code, "{statement}: {run}");
    }
    Ok(())
}

/// Fails with a code and a message that imitate a host failure and contain control characters.
pub(super) async fn words(host: Arc<Host>) -> Result<()> {
    let input = json!({ "code": "limit\r\nX", "message": "a\u{1b}[31mb\u{7}" });
    let run = host.run(APP, "fail_as", input).await?;
    let said = |field: &str| run["failure"][field].as_str().unwrap_or_default().to_owned();
    let (code, message) = (said("code"), said("message"));
    ensure!(run["status"] == "failed" && code.starts_with("limit-"), "{run}");
    ensure!(!code.chars().chain(message.chars()).any(char::is_control), "{run}");
    Ok(())
}

/// Runs everything that uses the CPU concurrently: guests in loops, conditions and validation.
pub(super) async fn busy(host: Arc<Host>) -> Result<()> {
    // More guests than cores.
    let guests = std::thread::available_parallelism().map_or(2, NonZero::get) + 2;
    let spinning = try_join_all((0..guests).map(|_| host.fails_at("spin", json!({}), "cpu")));
    let conditions = try_join_all((0..4).map(|_| conditions(host.clone())));
    let (spun, compared, checked) = tokio::join!(spinning, conditions, large_answer(host.clone()));
    spun?;
    compared?;
    checked
}
