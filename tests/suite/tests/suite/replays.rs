//! Tests with recorded responses of real services: transcripts of model providers and MCP servers,
//! each of which is replayed to an agent or an app over HTTP.
//!
//! A case is a file below `tests/replays`; its format is described at [`wattle_kit::replay`]. Keys
//! of a case:
//!
//! * `say`: a message of the user; each further one is the next turn of the conversation.
//! * `messages`: instead of `say`, a turn as JSON: a list of messages.
//! * `kind`: the kind of the provider if the folder does not determine it.
//! * `model`, `provider`, `agent`, `server`: the model, and lines of TOML for its provider, for the
//!   agent and for the MCP server.
//! * `answer`: the answer to the pending interrupt, as JSON; the run continues after each.
//! * `status` (default `completed`), `text` (the last message), `failure` (a part of
//!   `code: message`), `tool` (each tool result in order, `status text`, up to a `*` at its end),
//!   `tokens` (the input and the output tokens of all model calls, `3 2`): the expected result.
//!
//! The result document of a case is the last run as the API shows it. Its `/state/result` is the
//! structured result of the agent, with `answer = { ..., channel = "result" }` under `agent`.
//!
//! Cases of `nl2sql` and `asset` are for an app: see `tenant`. Cases of `clients` are for the Agent
//! Server.

mod asking;
mod asset;
mod clients;
mod durable;
mod nl2sql;
mod tenant;

use std::path::PathBuf;

use futures::future::join_all;
use serde_json::{Value, json};
use wattle_kit::replay::{Case, Replays, cases};
use wattle_suite::desk::{last_words, tool_messages};
use wattle_suite::guests;
use wattle_suite::server::{Setup, TestServer};

/// The graph of a case: an agent and its tools. `NAME` is replaced with the case, `ROUTE` with the
/// model route, and `AGENT` with further settings of the agent.
const GRAPH: &str = r#"
[graphs.NAME]
entry = "agent"
[graphs.NAME.channels.messages]
reducer = "messages"
[graphs.NAME.channels.result]
[graphs.NAME.nodes.agent]
plugin = "std"
goto = "tools"
[graphs.NAME.nodes.agent.with]
route = "ROUTE"
AGENT
[graphs.NAME.nodes.tools]
plugin = "std"
[[graphs.NAME.edges]]
from = "tools"
to = "agent"
"#;

fn folder(area: &str) -> PathBuf {
    guests::root().join("tests/replays").join(area)
}

fn read(area: &str) -> Vec<Case> {
    let cases = cases(&folder(area)).unwrap_or_else(|error| panic!("{error}"));
    assert!(!cases.is_empty(), "{area}");
    cases
}

fn graph(case: &Case, route: &str) -> String {
    let agent = case.all("agent").join("\n");
    GRAPH.replace("NAME", &case.name).replace("ROUTE", route).replace("AGENT", &agent)
}

/// Returns the manifest of an app for the cases, each with its own route.
fn app(name: &str, cases: &[Case]) -> String {
    let routes: Vec<String> = cases.iter().map(|case| format!("\"{}\"", case.name)).collect();
    format!(
        "[app]\nname = \"{name}\"\nversion = \"0.1.0\"\ndoc = \"odd providers\"\n\
         [needs.plugins.std]\nllm = [{}]\ntools = [\"tools/*\"]\n",
        routes.join(", ")
    )
}

/// Returns the configuration of the provider of a case and of its route, with this kind and this
/// model if the case has none.
fn provider(case: &Case, kind: &str, model: &str, replays: &Replays) -> String {
    let (name, url) = (&case.name, replays.url(case));
    let kind = case.key("kind").unwrap_or(kind);
    let model = case.key("model").unwrap_or(model);
    let provider = case.all("provider").join("\n");
    format!(
        "[model.providers.{name}]\nkind = \"{kind}\"\nbase_url = \"{url}/\"\n\
         key_env = \"SUITE_MODEL_KEY\"\n{provider}\n\
         [model.routes.{name}]\nprovider = \"{name}\"\nmodel = \"{model}\"\nretries = 0\n"
    )
}

async fn setup() -> Setup {
    let setup = Setup::bare().await;
    for (package, file) in
        [("wattle-std", "std/std.wasm"), ("wattle-guest-tools", "tools/tools/tools.wasm")]
    {
        setup.workspace.write(&format!("plugins/{file}"), guests::bytes(package));
    }
    setup
}

/// Starts a server with an app whose graphs are the cases, each with its own provider.
async fn serve(cases: &[Case], kind: &str, model: &str, replays: &Replays) -> TestServer {
    let setup = setup().await;
    let graphs: String = cases.iter().map(|case| graph(case, &case.name)).collect();
    setup.workspace.write("plugins/apps/replays/graph.toml", graphs);
    setup.workspace.write("plugins/apps/replays/app.toml", app("replays", cases));
    let providers: String = cases.iter().map(|case| provider(case, kind, model, replays)).collect();
    let app = "[apps.replays]\npath = \"plugins/apps/replays\"\n";
    setup.with(&format!("{app}{providers}")).start().await
}

/// Returns the turns of a conversation, each a list of messages.
fn turns(case: &Case) -> Vec<Value> {
    let said = case.all("say").into_iter();
    let said = said.map(|words| json!([{ "role": "user", "content": words }]));
    let written = case.all("messages").into_iter().map(|text| -> Value {
        let name = &case.name;
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}: {text}"))
    });
    said.chain(written).collect()
}

/// A case and the app that contains it.
struct Placed<'a> {
    app: String,
    case: &'a Case,
}

/// Runs the conversation of a case and returns the last run.
async fn talk(server: &TestServer, placed: &Placed<'_>) -> Value {
    let mut run = Value::Null;
    for messages in turns(placed.case) {
        let input = json!({ "messages": messages });
        let mut start = json!({ "graph": placed.case.name, "input": input, "wait": true });
        if let Some(thread) = run.get("thread") {
            start["thread_id"] = thread.clone();
        }
        run = server.post(&format!("/api/v1/apps/{}/runs", placed.app), &start).await.expect(200);
    }
    for answer in placed.case.all("answer") {
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let thread = run["thread"].as_str().unwrap_or_default();
        let body = json!({ "answers": { "": answer }, "wait": true });
        let path = format!("/api/v1/threads/{thread}/resume");
        run = server.post(&path, &body).await.expect(200);
    }
    if placed.case.expected().iter().any(|(key, _)| key == "tokens") {
        let thread = run["thread"].as_str().unwrap_or_default();
        let trace = server.get(&format!("/api/v1/threads/{thread}/trace")).await.expect(200);
        let totals = &trace["totals"];
        run["tokens"] = format!("{} {}", totals["input_tokens"], totals["output_tokens"]).into();
    }
    run
}

/// Returns the differences between a run and the expectations of its case.
fn problems(case: &Case, run: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut tools = tool_messages(run)
        .into_iter()
        .map(|message| format!("{} {}", text(&message["status"]), text(&message["content"])));
    let mut problems = Vec::new();
    let mut wants_status = "completed";
    for (key, wanted) in case.expected() {
        let (found, is_right) = match key.as_str() {
            "status" => {
                wants_status = wanted;
                continue;
            }
            "text" => {
                let words = last_words(run);
                (words.clone(), fits(wanted, &words))
            }
            "failure" => {
                let failure = &run["failure"];
                let words = format!("{}: {}", text(&failure["code"]), text(&failure["message"]));
                (words.clone(), words.contains(wanted.as_str()))
            }
            "tokens" => {
                let found = text(&run["tokens"]);
                (found.clone(), found == *wanted)
            }
            "tool" => {
                let found = tools.next().unwrap_or_default();
                (found.clone(), fits(wanted, &found))
            }
            _ => (String::new(), false),
        };
        if !is_right {
            problems.push(format!("{key} is `{found}` instead of `{wanted}`"));
        }
    }
    problems.extend(tools.map(|tool| format!("unexpected tool result: {tool}")));
    if run["status"] != wants_status {
        problems.push(format!("the run is {}", run["status"]));
    }
    problems.extend(case.unmet(run));
    if !problems.is_empty() {
        problems.push(run.to_string());
    }
    problems
}

/// Returns whether `found` equals a text, or begins with it if the text ends in `*`. `\n` is a line
/// break.
fn fits(wanted: &str, found: &str) -> bool {
    let wanted = wanted.replace("\\n", "\n");
    match wanted.strip_suffix('*') {
        Some(beginning) => found.starts_with(beginning),
        None => found == wanted,
    }
}

async fn check(server: &TestServer, area: &str, all: &[Placed<'_>], replays: Option<&Replays>) {
    let runs = join_all(all.iter().map(|placed| talk(server, placed))).await;
    let found = all.iter().zip(&runs);
    let found = found.map(|(placed, run)| (placed.case, problems(placed.case, run)));
    judge(area, &found.collect::<Vec<_>>(), replays);
}

/// Fails with all problems if there are any.
fn judge(area: &str, found: &[(&Case, Vec<String>)], replays: Option<&Replays>) {
    let mut wrong = Vec::new();
    for (case, problems) in found {
        let asked = replays.map(|replays| replays.problems(case)).unwrap_or_default();
        let problems: Vec<String> = problems.iter().cloned().chain(asked).collect();
        if !problems.is_empty() {
            wrong.push(format!("{area}/{}.txt:\n  {}", case.name, problems.join("\n  ")));
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), found.len(), wrong.join("\n"));
}

/// Tests the provider cases of a folder, with this kind and this model for cases that have none.
async fn providers(area: &str, kind: &str, model: &str) {
    let cases = read(area);
    let replays = Replays::start(&cases).await.unwrap();
    let server = serve(&cases, kind, model, &replays).await;
    let placed = cases.iter().map(|case| Placed { app: "replays".to_owned(), case });
    check(&server, area, &placed.collect::<Vec<_>>(), Some(&replays)).await;
}

#[tokio::test]
async fn providers_of_the_openai_format() {
    providers("openai", "openai", "gpt-5").await;
}

#[tokio::test]
async fn gemini() {
    providers("gemini", "gemini", "gemini-3-flash-preview").await;
}

#[tokio::test]
async fn anthropic() {
    providers("anthropic", "anthropic", "claude-opus-5").await;
}

#[tokio::test]
async fn structured_documents() {
    providers("structured", "openai", "gpt-5").await;
}

/// Configures an app for each server, because an agent requests the tools of all servers that its
/// app is granted. A case with a `kind` also has its own model.
async fn mcp(
    area: &str,
    cases: &[Case],
    replays: Option<&Replays>,
    reach: impl Fn(&Case) -> String,
) -> Setup {
    let setup = setup().await;
    let mut toml = String::new();
    for case in cases {
        let name = &case.name;
        let own = case.key("kind").zip(replays);
        let route = if own.is_some() { name.as_str() } else { "chat" };
        toml.extend(own.map(|(kind, replays)| provider(case, kind, "", replays)));
        let app = format!("plugins/apps/{name}");
        let needs = format!(
            "[app]\nname = \"{name}\"\nversion = \"0.1.0\"\ndoc = \"{area}\"\n\
             [needs.plugins.std]\nllm = [\"{route}\"]\ntools = [\"mcp:{name}/*\"]\n"
        );
        setup.workspace.write(&format!("{app}/app.toml"), needs);
        setup.workspace.write(&format!("{app}/graph.toml"), graph(case, route));
        let server = case.all("server").join("\n");
        let reach = reach(case);
        toml.push_str(&format!(
            "[apps.{name}]\npath = \"{app}\"\n[mcp.{name}]\n{reach}\n{server}\n"
        ));
    }
    setup.with(&toml)
}

/// Returns the configuration of a server over HTTP that replays a case.
fn over_http(replays: &Replays, case: &Case) -> String {
    format!("url = \"{}/mcp\"\nprivate = true", replays.url(case))
}

#[tokio::test]
async fn mcp_servers_over_http() {
    let cases = read("mcp-http");
    let replays = Replays::start(&cases).await.unwrap();
    let reach = |case: &Case| over_http(&replays, case);
    let server = mcp("mcp-http", &cases, Some(&replays), reach).await.start().await;
    let placed = cases.iter().map(|case| Placed { app: case.name.clone(), case });
    check(&server, "mcp-http", &placed.collect::<Vec<_>>(), Some(&replays)).await;
}

/// Returns the configuration of a program that replays a case.
fn as_program(case: &Case) -> String {
    let own = std::env::current_exe().unwrap();
    let program = own.ancestors().nth(2).unwrap().join("wattle-standin-mcp");
    let file = folder("mcp-stdio").join(format!("{}.txt", case.name));
    format!("command = \"{}\"\nargs = [\"--replay\", \"{}\"]", program.display(), file.display())
}

#[tokio::test]
async fn mcp_servers_as_programs() {
    let cases = read("mcp-stdio");
    let server = mcp("mcp-stdio", &cases, None, as_program).await.start().await;
    let placed = cases.iter().map(|case| Placed { app: case.name.clone(), case });
    check(&server, "mcp-stdio", &placed.collect::<Vec<_>>(), None).await;
}
