//! Plugins as the API describes them: what they request, are granted and have used.

use std::path::Path;

use serde_json::{Value, json};

use crate::fixture::{Fixture, write_app};
use crate::native_sandbox::{KNOWN, SLOW};

/// Access to the memory for reading, as an entry of `[needs]` and of `[grants]`.
const READS: &str = "memory = [{ namespace = [\"names\"], access = \"read\" }]";

/// Writes an app that asks to read the memory.
fn write_reader(plugins: &Path) {
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
    assert_eq!(run(&fixture, KNOWN).await["failure"]["code"], "denied");
    let denied = plugin(&fixture, "greeter").await;
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
    let fixture = Fixture::start_in(folder, "[grants.shared]\nllm = [\"chat\"]\n").await;
    let shared = plugin(&fixture, "shared").await;
    assert_eq!((&shared["app"], &shared["needs"]["llm"]), (&Value::Null, &json!(["chat"])));
    let line = "http = [{ host = \"example.com\", methods = [\"GET\"] }]";
    let missing = json!([{ "need": "http", "line": line, "table": "grants.shared" }]);
    assert_eq!(shared["missing"], missing);
    let odd = plugin(&fixture, "odd").await;
    assert!(odd["notes"][0].as_str().unwrap().contains("its manifest is invalid"), "{odd}");
}
