//! Plugins as the API describes them: what they request, are granted and have used.

use std::path::Path;

use serde_json::{Value, json};
use wattle::load::{Change, Severity};

use crate::fixture::{Fixture, answer, write_app};
use crate::keys::{make, start, with};
use crate::native_sandbox::{KNOWN, SLOW, TOOLBOX};

/// Access to the memory for reading, as an entry of `[needs]` and of `[grants]`.
pub(crate) const READS: &str = "memory = [{ namespace = [\"names\"], access = \"read\" }]";

/// Writes an app that asks to read the memory.
pub(crate) fn write_reader(plugins: &Path) {
    write_app(plugins, "greeter");
    let manifest = format!(
        "[app]\nname = \"greeter\"\nversion = \"0.1.0\"\n\
         [components]\ngreeter = \"greeter.wasm\"\n[needs]\n{READS}\n"
    );
    std::fs::write(plugins.join("greeter/app.toml"), manifest).unwrap();
}

async fn run(fixture: &Fixture, name: &str) -> Value {
    let start = json!({ "input": { "name": name }, "wait": true });
    fixture.post("/api/v1/apps/greeter/runs", &start).await.1
}

/// Returns the only entry of a plugin.
async fn plugin(fixture: &Fixture, name: &str) -> Value {
    let (status, mut found) = fixture.get(&format!("/api/v1/plugins/{name}")).await;
    assert_eq!((status, found.as_array().map(Vec::len)), (200, Some(1)), "{found}");
    found[0].take()
}

#[tokio::test]
async fn a_plugin_shows_what_it_requests_and_has_used_and_the_line_to_add() {
    let folder = tempfile::tempdir().unwrap();
    write_reader(&folder.path().join("plugins"));
    let fixture = Fixture::start_in(folder, "").await;
    let failed = run(&fixture, KNOWN).await;
    assert_eq!(failed["failure"]["code"], "denied");
    let denied = plugin(&fixture, "greeter").await;
    let denial = &denied["use"]["denials"][0];
    let of_run = (&denial["function"], &denial["thread"], &denial["run"]);
    assert_eq!(of_run, (&json!("memory.get"), &failed["thread"], &failed["run"]), "{denial}");
    let message = denial["message"].as_str().unwrap();
    let line = format!("add `{READS}` under `[grants.greeter]` in wattle.toml");
    assert!(message.contains(&line), "{message}");
    let reads = json!([{ "namespace": ["names"], "access": "read" }]);
    assert_eq!((&denied["needs"]["memory"], &denied["grants"]["memory"]), (&reads, &json!([])));
    let missing = json!([{ "need": "memory", "line": READS, "table": "grants.greeter" }]);
    assert_eq!(denied["missing"], missing);
    assert_eq!(counts(&denied), [1, 1, 1], "{denied}");

    let table = format!("[grants.greeter]\n{READS}\nlimits = {{ call_deadline = \"100ms\" }}\n");
    std::fs::write(fixture.folder.path().join("wattle.toml"), table).unwrap();
    fixture.server.reload().await;
    let allowed = run(&fixture, KNOWN).await;
    assert_eq!(allowed["status"], "interrupted", "{allowed}");
    let granted = plugin(&fixture, "greeter").await;
    assert_eq!((&granted["missing"], &granted["grants"]["memory"]), (&json!([]), &reads));
    // The node that waits for an answer has not failed.
    assert_eq!(counts(&granted), [3, 1, 1], "{granted}");
    assert_eq!(granted["use"]["denials"].as_array().map(Vec::len), Some(1));

    assert_eq!(run(&fixture, SLOW).await["failure"]["code"], "timeout");
    assert_eq!(counts(&plugin(&fixture, "greeter").await), [4, 2, 1]);
    // Another version of the app continues the counts.
    let component = fixture.folder.path().join("plugins/greeter/greeter.wasm");
    std::fs::write(component, "native but newer").unwrap();
    fixture.server.reload().await;
    let newer = plugin(&fixture, "greeter").await;
    assert_ne!(newer["digest"], granted["digest"]);
    assert_eq!(counts(&newer), [4, 2, 1]);
}

/// Returns the calls, failures and denials of a plugin.
fn counts(plugin: &Value) -> [u64; 3] {
    ["calls", "failed", "denied"].map(|count| plugin["use"][count].as_u64().unwrap())
}

#[tokio::test]
async fn a_plugin_that_no_app_uses_shows_what_it_requests() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    std::fs::create_dir_all(&plugins).unwrap();
    let needs = "native\nllm = [\"chat\"]\nhttp = [{ host = \"example.com\" }]\n";
    std::fs::write(plugins.join("shared.wasm"), needs).unwrap();
    std::fs::write(plugins.join("odd.wasm"), "native\nmodels = 1\n").unwrap();
    let table = "[grants.shared]\nllm = [\"chat\", \"vision\"]\n";
    let fixture = Fixture::start_in(folder, table).await;
    let shared = plugin(&fixture, "shared").await;
    let note = "is granted `llm = [\"vision\"]`, which its own manifest does not request";
    assert!(shared["notes"][0].as_str().unwrap().contains(note), "{shared}");
    assert_eq!((&shared["app"], &shared["needs"]["llm"]), (&Value::Null, &json!(["chat"])));
    assert_eq!(shared["grants"]["llm"], json!(["chat"]));
    let line = "http = [{ host = \"example.com\", methods = [\"GET\"] }]";
    let missing = json!([{ "need": "http", "line": line, "table": "grants.shared" }]);
    assert_eq!(shared["missing"], missing);
    let odd = plugin(&fixture, "odd").await;
    assert!(odd["notes"][0].as_str().unwrap().contains("its manifest is invalid"), "{odd}");
}

#[tokio::test]
async fn a_grant_that_a_plugin_does_not_request_is_noted_once() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    write_app(&plugins, "greeter");
    let graph = "[graphs.G]\nentry = \"greet\"\n[graphs.G.channels.name]\n\
                 [graphs.G.channels.greeting]\n[graphs.G.nodes.greet]\nplugin = \"shared\"\n";
    std::fs::write(plugins.join("greeter/graph.toml"), graph).unwrap();
    for name in ["shared", "alone"] {
        let component = format!("native {name}\nllm = [\"chat\"]\n");
        std::fs::write(plugins.join(name).with_extension("wasm"), component).unwrap();
    }
    let tables = |routes: &str| {
        let tables = ["shared", "alone"].map(|name| format!("[grants.{name}]\nllm = [{routes}]\n"));
        tables.concat()
    };
    let fixture = Fixture::start_in(folder, &tables("\"chat\", \"vision\"")).await;
    let warnings = |changes: &[Change]| {
        let messages = changes.iter().flat_map(Change::messages);
        let warnings = messages.filter(|(severity, _)| *severity == Severity::Warning);
        let mut warnings: Vec<String> = warnings.map(|(_, text)| text).collect();
        warnings.sort();
        warnings
    };
    let check = |changes: &[Change], route: &str| {
        let found = warnings(changes);
        assert_eq!(found.len(), 2, "{found:?}");
        for (found, name) in found.iter().zip(["alone", "shared"]) {
            let note = format!("plugin `{name}` is granted `llm = [\"{route}\"]`, which its own");
            assert!(found.starts_with(&note), "{found}");
        }
    };
    check(&fixture.server.changes, "vision");
    assert!(warnings(&fixture.server.reload().await).is_empty());
    let file = fixture.folder.path().join("wattle.toml");
    std::fs::write(&file, tables("\"chat\", \"light\"")).unwrap();
    check(&fixture.server.reload().await, "light");

    // The app requests the route, so only the other plugin has a grant without an effect.
    let manifest = fixture.folder.path().join("plugins/greeter/app.toml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    let needs = "[needs.plugins.shared]\nllm = [\"chat\", \"sql\"]\n";
    std::fs::write(&manifest, format!("{text}{needs}")).unwrap();
    std::fs::write(&file, tables("\"chat\", \"sql\"")).unwrap();
    let found = warnings(&fixture.server.reload().await);
    let [found] = &found[..] else { panic!("{found:?}") };
    assert!(found.starts_with("plugin `alone` is granted `llm = [\"sql\"]`"), "{found}");
}

/// Writes a plugin with a tool that asks to read the memory.
fn write_toolbox(folder: &Path) {
    let file = folder.join("plugins").join(format!("{}.wasm", TOOLBOX.0));
    std::fs::write(file, format!("native\n{READS}\n")).unwrap();
}

/// Returns the path of the calls of a node.
fn node_path(plugin: &str, node: &str) -> String {
    format!("/api/v1/plugins/{plugin}/nodes/{node}/call")
}

/// Returns the path of the calls of a tool.
pub(crate) fn call_path(plugin: &str, tool: &str) -> String {
    format!("/api/v1/plugins/{plugin}/tools/{tool}/call")
}

#[tokio::test]
async fn a_tool_of_a_plugin_that_no_app_uses_has_the_grants_of_the_plugin() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("plugins")).unwrap();
    write_toolbox(folder.path());
    let fixture = Fixture::start_in(folder, "").await;
    let path = call_path(TOOLBOX.0, TOOLBOX.1);
    let call = async || fixture.post(&path, &json!({ "input": {} })).await;
    let (status, denied) = call().await;
    assert_eq!((status, &denied["failure"]["code"]), (200, &json!("denied")), "{denied}");
    let message = denied["failure"]["message"].as_str().unwrap();
    assert!(message.contains("`[grants.toolbox]`"), "{message}");
    assert_eq!(denied["calls"][0]["failure"]["code"], "denied", "{denied}");

    let table = format!("[grants.toolbox]\n{READS}\n");
    std::fs::write(fixture.folder.path().join("wattle.toml"), table).unwrap();
    fixture.server.reload().await;
    let (status, done) = call().await;
    assert_eq!((status, &done["output"]["structured"]), (200, &json!("found")), "{done}");
    let toolbox = plugin(&fixture, TOOLBOX.0).await;
    assert_eq!(toolbox["grants"]["memory"], json!([{ "namespace": ["names"], "access": "read" }]));
    assert_eq!(toolbox["tool_schemas"][0]["read_only"], true, "{toolbox}");
    assert_eq!(counts(&toolbox), [2, 1, 1], "{toolbox}");
    assert_eq!(fixture.get("/api/v1/threads").await.1["items"], json!([]));
}

#[tokio::test]
async fn only_the_operator_calls_a_plugin_outside_of_apps() {
    let (fixture, operator) = start("").await;
    write_toolbox(fixture.folder.path());
    fixture.server.reload().await;
    let call = async |key: &str, path: &str| {
        let request = with(&fixture, key, "POST", path).json(&json!({ "input": {} }));
        answer(request).await
    };
    let path = call_path(TOOLBOX.0, TOOLBOX.1);
    let wanted = [
        json!({ "name": "w", "scopes": ["write"] }),
        json!({ "name": "acme", "tenant": "acme", "scopes": ["admin"] }),
    ];
    for wanted in wanted {
        let (_, key) = make(&fixture, &operator, wanted).await;
        assert_eq!(call(&key, &path).await.0, 403);
    }
    assert_eq!(call(&operator, &path).await.0, 200);
    for (plugin, tool, refused) in [
        (TOOLBOX.0, "other", 404),
        ("unknown", "look_up", 404),
        ("a%20b", "look_up", 400),
        // The plugin would act as the app of this name.
        ("greeter", "look_up", 409),
    ] {
        let (status, problem) = call(&operator, &call_path(plugin, tool)).await;
        assert_eq!(status, refused, "{problem}");
    }
}

#[tokio::test]
async fn a_node_of_a_plugin_that_no_app_uses_is_called_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("plugins")).unwrap();
    write_toolbox(folder.path());
    let fixture = Fixture::start_in(folder, "").await;
    let call = async |node: &str, input: Value| {
        fixture.post(&node_path(TOOLBOX.0, node), &json!({ "input": input })).await
    };
    let (status, done) = call("greet", json!({ "name": "Ada" })).await;
    let writes = json!([{ "channel": "greeting", "value": "hello Ada" }]);
    assert_eq!((status, &done["outcome"]), (200, &json!({ "writes": writes })), "{done}");
    let (status, asked) = call("ask", json!({ "greeting": "hello" })).await;
    let schema = json!({ "type": "boolean" });
    let raised = json!([{ "payload": { "about": "hello" }, "response_schema": schema }]);
    assert_eq!((status, &asked["interrupts"]), (200, &raised), "{asked}");
    let (_, denied) = call("greet", json!({ "name": KNOWN })).await;
    assert_eq!(denied["failure"]["code"], "denied", "{denied}");
    let message = denied["failure"]["message"].as_str().unwrap();
    assert!(message.contains("`[grants.toolbox]`"), "{message}");
    assert_eq!(denied["calls"][0]["failure"]["code"], "denied", "{denied}");
    assert_eq!(counts(&plugin(&fixture, TOOLBOX.0).await), [3, 1, 1]);
    assert_eq!(fixture.get("/api/v1/threads").await.1["items"], json!([]));
}

#[tokio::test]
async fn a_node_is_called_by_who_may_write_and_outside_of_apps_by_the_operator() {
    let (fixture, operator) = start("").await;
    write_toolbox(fixture.folder.path());
    fixture.server.reload().await;
    let call = async |key: &str, path: &str| {
        let request = with(&fixture, key, "POST", path).json(&json!({ "input": {} }));
        answer(request).await
    };
    let (of_app, alone) = ("/api/v1/apps/greeter/nodes/greet/call", node_path(TOOLBOX.0, "greet"));
    let (_, reader) = make(&fixture, &operator, json!({ "name": "r", "scopes": ["read"] })).await;
    let (_, writer) = make(&fixture, &operator, json!({ "name": "w", "scopes": ["write"] })).await;
    for (key, path, status) in [
        (&reader, of_app, 403),
        (&writer, of_app, 200),
        (&writer, &*alone, 403),
        (&operator, &*alone, 200),
        (&operator, &*node_path(TOOLBOX.0, "grete"), 404),
        (&operator, &*node_path("greeter", "greet"), 409),
    ] {
        let (found, answer) = call(key, path).await;
        assert_eq!(found, status, "{path}: {answer}");
    }
}
