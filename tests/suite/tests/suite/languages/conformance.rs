//! One plugin in four languages, in TypeScript on two engines: the host sees the same of each, byte
//! for byte. The plugin is `tests/guests/conformance`, and what the host sees of it in Rust is the
//! snapshot.

use std::collections::BTreeMap;
use std::sync::Arc;

use insta::assert_snapshot;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use wattle_graph::call::CallKind;
use wattle_graph::event::{Event, EventKind};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{AppName, PluginName};
use wattle_graph::llm::Delta;
use wattle_kit::need;
use wattle_run::app::App;
use wattle_run::caller_id::CallerId;
use wattle_run::grant::{Grants, MemoryAccess, MemoryRule, SqlAccess};
use wattle_run::hostcall::runs::{EndedRun, OnFailure};
use wattle_run::limit::SqlLimits;
use wattle_run::ports::sandbox::{PluginInfo, WebBody, WebRequest};
use wattle_run::ports::{Plugin, Sql};
use wattle_sql::{DatabaseConfig, Databases};
use wattle_suite::world::{self, World, questions};
use wattle_suite::{guests, server};

use super::load;

pub(super) const GRAPHS: &str = include_str!("../../../../guests/conformance/graph.toml");

/// The name of the plugin in the graphs.
pub(super) const PLUGIN: &str = "conformance";

/// Fields of events that differ between two runs, or count the calls of a task: the runtime of a
/// language may call the host as well.
const LEFT_OUT: &[&str] = &[
    "seq",
    "at_ms",
    "run",
    "task",
    "interrupt",
    "call",
    "batch",
    "started_ms",
    "duration_us",
    "store_us",
    "digest",
];

/// Functions that the runtimes of languages call on their own.
const OF_RUNTIMES: [&str; 2] = ["clock.", "random."];

/// The text in place of ids.
const ID: &str = "(id)";

/// What the host sees of a plugin, in sections of lines. Each line is JSON with sorted keys.
#[derive(Default)]
struct Record {
    sections: Vec<(String, String)>,
}

impl Record {
    fn add(&mut self, title: &str, lines: impl IntoIterator<Item = Value>) {
        let lines = lines.into_iter().map(|line| format!("{line}\n")).collect();
        self.sections.push((title.to_owned(), lines));
    }

    fn text(&self) -> String {
        self.sections.iter().map(|(title, lines)| format!("# {title}\n{lines}\n")).collect()
    }

    fn describe(&mut self, info: &PluginInfo) {
        let clean = |value: Value| cleaned(value, &[]);
        self.add("nodes", info.nodes.iter().map(|node| clean(json!(node))));
        self.add("tools", info.tools.iter().map(|tool| clean(json!(tool))));
        self.add("manifest", [json!(info.manifest)]);
        self.add("reducers", info.reducers.iter().map(|reducer| clean(json!(reducer))));
        self.add("routes", info.routes.iter().map(|route| clean(json!(route))));
    }
}

/// Sorts keys, hides ids and digests, and leaves out of schemas what says nothing: the size of
/// integers, which only Rust knows, and items of any type.
fn cleaned(value: Value, ids: &[String]) -> Value {
    match value {
        Value::String(text) if ids.iter().any(|id| text.contains(id.as_str())) => json!(ID),
        Value::Array(items) => items.into_iter().map(|item| cleaned(item, ids)).collect(),
        Value::Object(mut fields) => {
            if fields.get("type") == Some(&json!("integer")) {
                fields.remove("format");
            }
            fields.retain(|key, field| {
                let is_any = *field == json!(true) || *field == json!({});
                key != "digest" && !(key == "items" && is_any)
            });
            let fields = fields.into_iter().map(|(key, field)| (key, cleaned(field, ids)));
            json!(fields.collect::<BTreeMap<String, Value>>())
        }
        other => other,
    }
}

/// Returns the events of a thread as lines. `random` is hidden like an id.
pub(super) async fn events(world: &World, ended: &EndedRun, random: Option<&str>) -> Vec<Value> {
    let events = world.events(&ended.run.thread).await;
    let events: Vec<Value> =
        events.iter().filter(|event| is_compared(event)).map(|event| json!(event)).collect();
    let ids = events.iter().flat_map(|event| ["run", "task", "interrupt"].map(|key| &event[key]));
    let mut ids: Vec<String> = ids.filter_map(|id| id.as_str().map(str::to_owned)).collect();
    ids.push(ended.run.thread.to_string());
    ids.extend(random.map(str::to_owned));
    let mut lines: Vec<Value> = events.into_iter().map(|event| line(event, &ids)).collect();
    move_stream_end(&mut lines);
    // Several tasks or tools run at once, and end in any order.
    for group in lines.chunk_by_mut(|one, other| {
        let kind = concurrent(one);
        kind.is_some() && kind == concurrent(other)
    }) {
        if concurrent(&group[0]).is_some() {
            group.sort_by_key(|event| (is_end(event), event.to_string()));
        }
    }
    lines
}

/// Returns false for calls of runtimes, and for deltas and reads of them, which the host groups by
/// time.
fn is_compared(event: &Event) -> bool {
    match &event.kind {
        EventKind::Streamed(_) => false,
        EventKind::Called(called) => {
            called.function != CallKind::StreamNext.name()
                && !OF_RUNTIMES.iter().any(|prefix| called.function.starts_with(prefix))
        }
        _ => true,
    }
}

/// Moves the end of a streamed call behind the calls that its node makes while it reads: the model
/// ends at any of them.
fn move_stream_end(lines: &mut Vec<Value>) {
    let is_end =
        |line: &Value| line["type"] == "called" && line["function"] == CallKind::Stream.name();
    let Some(at) = lines.iter().position(is_end) else { return };
    let end = lines.remove(at);
    let last = lines.iter().rposition(|line| line["type"] == "called");
    lines.insert(last.map_or(at, |last| last + 1), end);
}

fn line(event: Value, ids: &[String]) -> Value {
    let mut fields: Map<String, Value> = match event {
        Value::Object(fields) => fields,
        other => panic!("an event is an object: {other}"),
    };
    fields.retain(|key, _| !LEFT_OUT.contains(&key.as_str()));
    // The numbers of the tool calls around a call.
    let depth = fields.get("scope").and_then(Value::as_array).map(Vec::len);
    if let Some(depth) = depth {
        fields.insert("scope".to_owned(), json!(depth));
    }
    cleaned(Value::Object(fields), ids)
}

/// Returns what an event belongs to, if others of the kind may happen at the same time.
fn concurrent(event: &Value) -> Option<&str> {
    match event["type"].as_str()? {
        "task_started" | "task_finished" => Some("tasks"),
        "call_started" | "called" => event["function"].as_str().filter(|it| *it == "tools.call"),
        _ => None,
    }
}

fn is_end(event: &Value) -> bool {
    event["type"] == "task_finished" || event["type"] == "called"
}

/// Returns an open database with an empty table.
async fn database(folder: &TempDir) -> Arc<dyn Sql> {
    let config = BTreeMap::from([("shop".to_owned(), DatabaseConfig::new("sqlite:shop.db"))]);
    let databases = Databases::open(config, folder.path()).await.unwrap();
    let mut transaction =
        databases.begin(CallerId::default(), "shop", &SqlLimits::default()).await.unwrap();
    let table = "CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT NOT NULL, price REAL NOT \
                 NULL, sold INTEGER NOT NULL, note TEXT)";
    transaction.execute(table, &[]).await.unwrap();
    transaction.commit(None).await.unwrap();
    Arc::new(databases)
}

fn grants() -> Grants {
    let users = MemoryRule { namespace: vec!["users".to_owned()], access: MemoryAccess::ReadWrite };
    Grants {
        sql: [("shop".to_owned(), SqlAccess::ReadWrite.into())].into(),
        tools: vec![format!("{PLUGIN}/*").parse().unwrap()],
        memory: vec![users],
        ..Grants::default()
    }
}

/// Returns a value of every kind that JSON has in all languages. JavaScript has no integers beyond
/// 2^53, and no difference between 1 and 1.0.
fn value() -> Value {
    json!({
        "numbers": [0, -1, 0.5, -2.25e-7, 1e21, 9_007_199_254_740_991_i64],
        "texts": ["", "zwölf \"Äpfel\"\n\\ 🍎", "\u{1}\u{7f}\u{2028}"],
        "others": [null, true, false, [], {}],
        "nested": { "a": { "b": [[{ "c": [] }]] } },
    })
}

/// Returns a delta of every kind. No two adjacent ones continue each other, so a guest gets these
/// however the host groups them.
fn deltas() -> Vec<Delta> {
    let (id, name) = (Some("a".to_owned()), Some("count_words".to_owned()));
    vec![
        Delta::Text { text: "one".to_owned() },
        Delta::Restart,
        Delta::Reasoning { text: "zwölf \"Äpfel\"\n".to_owned() },
        Delta::ToolCall { index: 0, id, name, arguments: "{}".to_owned() },
        Delta::Text { text: "two words 🍎".to_owned() },
    ]
}

/// Runs every graph, reducer and handler of a plugin, and records what the host sees.
async fn record(plugin: &Arc<dyn Plugin>) -> Record {
    let folder = TempDir::new().unwrap();
    let sql = database(&folder).await;
    let world = World::with_plugin(GRAPHS, Arc::clone(plugin), sql, grants());
    let mut record = Record::default();
    record.describe(plugin.info());
    for (graph, input) in [
        ("words", json!({ "text": "zwei Wörter 🍎" })),
        ("echo", json!({ "value": value() })),
        ("keep", json!({ "words": ["a", "b", "c"] })),
        ("ask", json!({ "question": "How many?" })),
        ("fetch", json!({ "url": "https://a.example/items" })),
        ("batch", json!({ "question": "How many?", "url": "https://a.example/items" })),
        ("book", json!({ "name": "lamp" })),
        ("remember", json!({ "fact": "She likes green tea." })),
        ("both", json!({ "text": "a b c" })),
        ("list_tools", json!({})),
        ("spread", json!({ "numbers": [1, 2, 3] })),
        (
            "fail",
            json!({
                "code": "sold-out",
                "message": "there are no seats",
                "retryable": true,
                "details": { "seats": [0, null] },
            }),
        ),
    ] {
        let ended = world.run_graph(graph, input).await;
        record.add(graph, events(&world, &ended, None).await);
    }
    let denied = Failure::new(code::DENIED, "no request").with_details(json!({ "host": "a" }));
    world.net.fail_next(denied);
    let ended = world.run_graph("fetch", json!({ "url": "https://a.example/items" })).await;
    record.add("fetch without a response", events(&world, &ended, None).await);
    world.model.emit_next(deltas());
    let ended = world.run_graph("stream", json!({ "question": "How many?" })).await;
    record.add("stream", events(&world, &ended, None).await);
    ask(&world, &mut record).await;
    record.add("reduce", reduce(plugin).await);
    record.add("handle", handle(&world, plugin).await);
    record
}

/// Runs the graphs that ask, and answers.
async fn ask(world: &World, record: &mut Record) {
    let ended = world.run_graph("approve", json!({ "text": "a \"b\"" })).await;
    let thread = &ended.run.thread;
    let refused = world.resume(thread, &[("", json!("yes"))], OnFailure::Keep).await;
    assert_eq!(refused.err().map(|failure| failure.code).as_deref(), Some(code::INVALID));
    let ended = world.answer(thread, json!(true)).await;
    record.add("approve", events(world, &ended, None).await);
    for (title, approved) in [("buy", true), ("buy without approval", false)] {
        let ended = world.run_graph("buy", json!({ "amount": 500 })).await;
        let ended = world.answer(&ended.run.thread, json!({ "approved": approved })).await;
        record.add(title, events(world, &ended, None).await);
    }
    let ended = world.run_graph("measure", json!({})).await;
    let bytes = questions(&ended)[0].payload["bytes"].as_str().unwrap().to_owned();
    assert_eq!(bytes.len(), 16, "{bytes}");
    let ended = world.answer(&ended.run.thread, json!(bytes)).await;
    record.add("measure", events(world, &ended, Some(&bytes)).await);
}

async fn reduce(plugin: &Arc<dyn Plugin>) -> Vec<Value> {
    let app = AppName::new("test").unwrap();
    let mut lines = Vec::new();
    for (current, updates) in [(Some(3), &[7, 5][..]), (None, &[-1])] {
        let (current, updates) = (current.map(Value::from), updates.iter().map(|it| json!(it)));
        let (updates, grants) = (updates.collect(), Grants::default());
        lines.push(plugin.reduce(&app, "max", current, updates, &grants).await.unwrap());
    }
    lines
}

async fn handle(world: &World, plugin: &Arc<dyn Plugin>) -> Vec<Value> {
    let app = world::app(GRAPHS, vec![(Arc::clone(plugin), grants())]);
    let app = Arc::new(App { web: Some(PluginName::new(PLUGIN).unwrap()), ..app });
    let urgent = vec![("urgent".to_owned(), "very".to_owned())];
    let mut lines = Vec::new();
    for (method, route, query, body) in [
        ("POST", "/orders/{shop}", Vec::new(), r#"{"text":"two words"}"#),
        ("GET", "/orders/{shop}", urgent, ""),
        ("GET", "/orders/{shop}", Vec::new(), ""),
        ("GET", "/orders/{shop}/events", Vec::new(), ""),
    ] {
        let request = WebRequest {
            method: method.to_owned(),
            path: route.replace("{shop}", "tea"),
            route: route.to_owned(),
            params: vec![("shop".to_owned(), "tea".to_owned())],
            query,
            headers: Vec::new(),
            body: body.into(),
            tenant: None,
        };
        lines.push(respond(world, &app, request).await);
    }
    lines
}

/// Handles a request, and returns the response as a line.
pub(super) async fn respond(world: &World, app: &Arc<App>, request: WebRequest) -> Value {
    let title = format!("{} {}", request.method, request.route);
    let response = world.engine.handle_web(app, request, None, CallerId::default()).await;
    let response = response.unwrap();
    let body = match response.body {
        WebBody::Bytes(bytes) => json!(String::from_utf8(bytes.to_vec()).unwrap()),
        other => json!(format!("{other:?}")),
    };
    let (status, headers) = (response.status, response.headers);
    json!({ "request": title, "status": status, "headers": headers, "body": body })
}

/// Loads the plugin in Rust.
pub(super) async fn in_rust() -> Arc<dyn Plugin> {
    let name = PluginName::new(PLUGIN).unwrap();
    let bytes = guests::bytes("wattle-guest-conformance");
    server::sandbox().load(&name, bytes).await.unwrap()
}

/// Returns the record of the plugin in Rust.
async fn reference() -> Record {
    record(&in_rust().await).await
}

/// Records a plugin and compares it with the one in Rust.
async fn compare(plugin: &Arc<dyn Plugin>) {
    let (own, reference) = (record(plugin).await, reference().await);
    // The first line that differs says more than the whole text.
    for ((title, lines), (_, expected)) in own.sections.iter().zip(&reference.sections) {
        for (line, expected) in lines.lines().zip(expected.lines()) {
            assert_eq!(line, expected, "{title}");
        }
    }
    assert_eq!(own.text(), reference.text());
}

#[tokio::test]
async fn the_plugin_in_rust_has_the_recorded_description_and_events() {
    assert_snapshot!("expected", reference().await.text());
}

#[tokio::test]
async fn the_plugin_in_typescript_is_that_in_rust() {
    compare(&need!(load("conformance-typescript", PLUGIN).await)).await;
}

#[tokio::test]
async fn the_plugin_in_typescript_on_starlingmonkey_is_that_in_rust() {
    compare(&need!(load("conformance-starlingmonkey", PLUGIN).await)).await;
}

#[tokio::test]
async fn the_plugin_in_python_is_that_in_rust() {
    compare(&need!(load("conformance-python", PLUGIN).await)).await;
}

#[tokio::test]
async fn the_plugin_in_c_is_that_in_rust() {
    compare(&need!(load("conformance-c", PLUGIN).await)).await;
}
