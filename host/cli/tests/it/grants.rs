//! Grants by name: which grants a folder or file gets whose name equals the name of another one.

use std::path::Path;

use serde_json::{Value, json};
use wattle::config::StoreKind;
use wattle::load::Change;
use wattle::server::Server;

use crate::binary::said;
use crate::fixture::{Fixture, GRAPH, answer, complete_and_delete, config, options, write_app};
use crate::native_sandbox::KNOWN;

/// Access to the memory for reading, as an entry of `[needs]` and of `[grants]`.
const READS: &str = "memory = [{ namespace = [\"names\"] }]\n";

/// Writes an app whose component is called `greeter`, and which asks to read the memory.
fn write_reader(folder: &Path, app: &str) {
    write_app(folder.parent().unwrap(), folder.file_name().unwrap().to_str().unwrap());
    let manifest = format!(
        "[app]\nname = \"{app}\"\nversion = \"0.1.0\"\n\
         [components]\ngreeter = \"greeter.wasm\"\n[needs]\n{READS}"
    );
    std::fs::write(folder.join("greeter.wasm"), format!("native {app}")).unwrap();
    std::fs::write(folder.join("app.toml"), manifest).unwrap();
}

/// Runs an app that reads the memory. Returns the failure.
async fn failure(fixture: &Fixture, app: &str) -> Value {
    let start = json!({ "input": { "name": KNOWN }, "wait": true });
    let (_, mut run) = fixture.post(&format!("/api/v1/apps/{app}/runs"), &start).await;
    assert!(run["run"].is_string(), "{run}");
    run["failure"].take()
}

fn problems(changes: &[Change]) -> Vec<&str> {
    let messages = changes.iter().filter_map(|change| match change {
        Change::Problem { message, .. } => Some(message.as_str()),
        _ => None,
    });
    messages.collect()
}

#[tokio::test]
async fn a_component_gets_no_grants_of_the_component_of_another_app_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    write_reader(&plugins.join("greeter"), "greeter");
    write_reader(&plugins.join("evil"), "evil");
    let fixture = Fixture::start_in(folder, &format!("[grants.greeter]\n{READS}")).await;
    assert_eq!(failure(&fixture, "greeter").await, Value::Null);
    let denied = failure(&fixture, "evil").await;
    assert_eq!(denied["code"], "denied", "{denied}");
    assert!(
        denied["message"].as_str().unwrap().contains("`[grants.\"evil/greeter\"]`"),
        "{denied}"
    );
    let [Change::App { notes, .. }, Change::App { .. }] = &fixture.server.changes[..] else {
        panic!("{:?}", fixture.server.changes);
    };
    assert!(notes[0].contains("`evil` does not get `[grants.greeter]`"), "{notes:?}");
    assert!(notes[1].contains("under `[grants.\"evil/greeter\"]`"), "{notes:?}");
}

#[tokio::test]
async fn a_denial_says_whether_the_request_or_the_grant_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    write_app(&plugins, "greeter");
    let fixture = Fixture::start_in(folder, "").await;
    let config = fixture.folder.path().join("wattle.toml");
    let denied = async |place: &str| {
        let line = "memory = [{ namespace = [\"names\"], access = \"read\" }]";
        let failure = failure(&fixture, "greeter").await;
        let message = failure["message"].as_str().unwrap();
        assert!(message.ends_with(&format!("; add `{line}` {place}")), "{message}");
    };
    denied("both under `[needs]` in app.toml and under `[grants.greeter]` in wattle.toml").await;

    std::fs::write(&config, format!("[grants.greeter]\n{READS}")).unwrap();
    fixture.server.reload().await;
    denied("under `[needs]` in app.toml, which does not request it").await;

    let manifest = plugins.join("greeter/app.toml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, format!("{text}[needs]\n{READS}")).unwrap();
    fixture.server.reload().await;
    assert_eq!(failure(&fixture, "greeter").await, Value::Null);

    std::fs::write(&config, "[grants.greeter]\n").unwrap();
    fixture.server.reload().await;
    denied("under `[grants.greeter]` in wattle.toml").await;
}

#[tokio::test]
async fn a_denial_of_a_standalone_plugin_names_the_request_that_a_trusted_app_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    write_app(&plugins, "greeter");
    std::fs::write(plugins.join("shared.wasm"), "native shared").unwrap();
    let node = "[graphs.Greet.nodes.greet]\n";
    let graph = GRAPH.replace(node, &format!("{node}plugin = \"shared\"\n"));
    std::fs::write(plugins.join("greeter/graph.toml"), graph).unwrap();
    let fixture = Fixture::start_in(folder, "[apps.greeter]\n").await;
    let denied = failure(&fixture, "greeter").await;
    let place = "under `[needs.plugins.shared]` in app.toml, which does not request it";
    let line = "memory = [{ namespace = [\"names\"], access = \"read\" }]";
    let message = denied["message"].as_str().unwrap();
    assert!(message.ends_with(&format!("; add `{line}` {place}")), "{message}");

    // The request is enough, because the operator trusts the app.
    let manifest = plugins.join("greeter/app.toml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, format!("{text}[needs.plugins.shared]\n{READS}")).unwrap();
    fixture.server.reload().await;
    assert_eq!(failure(&fixture, "greeter").await, Value::Null);
}

#[tokio::test]
async fn an_app_does_not_get_the_table_of_a_file_that_is_being_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    write_reader(&plugins.join("greeter"), "greeter");
    let standalone = plugins.join("greeter.wasm");
    std::fs::write(&standalone, "native standalone").unwrap();
    let fixture = Fixture::start_in(folder, &format!("[grants.greeter]\n{READS}")).await;
    assert_eq!(failure(&fixture, "greeter").await["code"], "denied");
    std::fs::remove_file(&standalone).unwrap();
    fixture.server.reload().await;
    assert_eq!(failure(&fixture, "greeter").await["code"], "denied");

    let table = format!("[grants.\"greeter/greeter\"]\n{READS}");
    std::fs::write(fixture.folder.path().join("wattle.toml"), table).unwrap();
    fixture.server.reload().await;
    assert_eq!(failure(&fixture, "greeter").await, Value::Null);
}

#[tokio::test]
async fn of_two_folders_with_the_same_app_none_is_loaded_until_one_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    write_reader(&plugins.join("greeter"), "greeter");
    write_reader(&plugins.join("other"), "greeter");
    let fixture = Fixture::start_in(folder, "").await;
    let found = problems(&fixture.server.changes);
    assert_eq!(found.len(), 2, "{found:?}");
    let text = "both have an app `greeter`, and the host loads neither";
    assert!(found.iter().all(|it| it.contains(text)), "{found:?}");
    assert_eq!(fixture.get("/api/v1/apps/greeter").await.0, 404);

    std::fs::remove_dir_all(plugins.join("other")).unwrap();
    assert!(matches!(fixture.server.reload().await[..], [Change::App { .. }]));
    assert_eq!(fixture.get("/api/v1/problems").await.1, json!([]));
    // A folder that is added later does not replace the folder that is in use.
    write_reader(&plugins.join("other"), "greeter");
    let changes = fixture.server.reload().await;
    let found = problems(&changes);
    let [found] = found[..] else { panic!("{changes:?}") };
    let kept = plugins.join("greeter").canonicalize().unwrap();
    let text = format!("the host keeps the version that it has loaded from `{}`", kept.display());
    assert!(found.contains(&text), "{found}");
    assert_eq!(fixture.get("/api/v1/apps/greeter").await.0, 200);
}

#[tokio::test]
async fn an_app_is_loaded_as_soon_as_the_folder_in_use_has_another_name() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    write_reader(&plugins.join("first"), "greeter");
    let fixture = Fixture::start_in(folder, "").await;
    write_reader(&plugins.join("second"), "greeter");
    assert_eq!(problems(&fixture.server.reload().await).len(), 1);
    write_reader(&plugins.join("first"), "welcomer");
    let changes = fixture.server.reload().await;
    assert!(matches!(changes[..], [Change::App { .. }, Change::App { .. }]), "{changes:?}");
    assert_eq!(fixture.get("/api/v1/problems").await.1, json!([]));
    for app in ["welcomer", "greeter"] {
        assert_eq!(fixture.get(&format!("/api/v1/apps/{app}")).await.0, 200, "{app}");
    }
}

#[tokio::test]
async fn an_app_with_a_table_is_loaded_from_its_own_folder_only() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    write_reader(&plugins.join("aaa"), "greeter");
    write_reader(&plugins.join("greeter"), "greeter");
    let fixture = Fixture::start_in(folder, "[apps.greeter]\n").await;
    let found = problems(&fixture.server.changes);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].contains("write `path = \"plugins/aaa\"` under `[apps.greeter]`"),
        "{found:?}"
    );
    assert_eq!(failure(&fixture, "greeter").await, Value::Null, "the operator trusts the app");
}

#[tokio::test]
async fn of_two_files_with_the_same_plugin_none_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    for group in ["a", "b"] {
        std::fs::create_dir_all(plugins.join(group)).unwrap();
        std::fs::write(plugins.join(group).join("shared.wasm"), "native shared").unwrap();
    }
    let fixture = Fixture::start_in(folder, "").await;
    let found = problems(&fixture.server.changes);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().all(|it| it.contains("the host loads neither")), "{found:?}");
    assert_eq!(fixture.get("/api/v1/plugins/shared").await.0, 404);
    std::fs::remove_file(plugins.join("b/shared.wasm")).unwrap();
    assert!(matches!(fixture.server.reload().await[..], [Change::Plugin { .. }]));
    assert_eq!(fixture.get("/api/v1/plugins/shared").await.0, 200);
    std::fs::write(plugins.join("b/shared.wasm"), "native shared").unwrap();
    let changes = fixture.server.reload().await;
    let found = problems(&changes);
    let [found] = found[..] else { panic!("{changes:?}") };
    assert!(found.contains("the host keeps the version that it has loaded from"), "{found}");
}

#[tokio::test]
async fn a_granted_tool_of_a_misspelled_plugin_or_server_has_a_suggestion() {
    for (tool, expected) in [
        (
            "shard/find",
            "there is no plugin `shard`\n  hint: did you mean `shared`? put the file of",
        ),
        ("mcp:grahp/list", "there is no MCP server `grahp`\n  hint: did you mean `graph`? add"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let plugins = folder.path().join("plugins");
        write_app(&plugins, "greeter");
        std::fs::write(plugins.join("shared.wasm"), "native shared").unwrap();
        let manifest = plugins.join("greeter/app.toml");
        let needs = format!("[needs]\ntools = [\"{tool}\"]\n");
        let text = std::fs::read_to_string(&manifest).unwrap() + &needs;
        std::fs::write(manifest, text).unwrap();
        let toml = format!(
            "[mcp.graph]\nurl = \"http://127.0.0.1:9/mcp\"\n\
             [grants.greeter]\ntools = [\"{tool}\"]\n"
        );
        let fixture = Fixture::start_in(folder, &toml).await;
        let found = problems(&fixture.server.changes);
        assert!(found.iter().any(|it| it.contains(expected)), "{found:?}");
    }
}

#[tokio::test]
async fn a_granted_tool_that_its_plugin_does_not_have_is_reported_with_the_place_of_the_grant() {
    let grant = "tools = [\"greeter/*\"]\n";
    for (toml, places) in [
        ("[apps.greeter]\n".to_owned(), "under `[needs]` in app.toml"),
        (
            format!("[grants.greeter]\n{grant}"),
            "both under `[needs]` in app.toml and under `[grants.greeter]` in wattle.toml",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let plugins = folder.path().join("plugins");
        write_app(&plugins, "greeter");
        let manifest = plugins.join("greeter/app.toml");
        let text = std::fs::read_to_string(&manifest).unwrap();
        std::fs::write(manifest, format!("{text}[needs]\n{grant}")).unwrap();
        let fixture = Fixture::start_in(folder, &toml).await;
        let expected = format!(
            "plugin `greeter` is granted `greeter/*`, which plugin `greeter` does not offer\n  \
             hint: it has no tools; see `tools` {places}"
        );
        assert_eq!(problems(&fixture.server.changes), [expected]);
    }
}

#[tokio::test]
async fn grants_that_nothing_requests_are_noted_once() {
    let folder = tempfile::tempdir().unwrap();
    write_app(&folder.path().join("plugins"), "greeter");
    let toml = format!("[grants.greeter]\n{READS}");
    let fixture = Fixture::start_in(folder, &toml).await;
    let texts = |changes: &[Change]| {
        let unused = changes.iter().filter(|change| matches!(change, Change::Unrequested(_)));
        unused.flat_map(Change::messages).map(|(_, text)| text).collect::<Vec<_>>().join("\n")
    };
    let note = "`memory = [{ namespace = [\"names\"], access = \"read\" }]` under `[grants.greeter]` \
                has no effect, because nothing requests it";
    assert_eq!(
        texts(&fixture.server.changes),
        format!(
            "{note}\n  hint: add it under `[needs]` in app.toml of app `greeter`, or take it out of \
             `[grants.greeter]`"
        )
    );
    assert!(fixture.server.reload().await.is_empty());
    // Another grant that nothing requests is noted alone.
    let file = fixture.folder.path().join("wattle.toml");
    std::fs::write(file, format!("{toml}llm = [\"chat\"]\n")).unwrap();
    let changes = fixture.server.reload().await;
    assert!(matches!(changes[..], [Change::Unrequested(_)]), "{changes:?}");
    assert!(texts(&changes).starts_with("`llm = [\"chat\"]` under"), "{changes:?}");

    let folder = fixture.folder.path().to_owned();
    let doctor = move || said(&folder, &["doctor"], None);
    let (_, text) = tokio::task::spawn_blocking(doctor).await.unwrap();
    assert!(text.contains(&format!("warn  configuration: {note}")), "{text}");
}

#[tokio::test]
async fn requests_of_versions_that_threads_use_count() {
    let folder = tempfile::tempdir().unwrap();
    let app = folder.path().join("plugins/greeter");
    write_app(&folder.path().join("plugins"), "greeter");
    let manifest = std::fs::read_to_string(app.join("app.toml")).unwrap();
    let write = |code: &str, routes: &str| {
        std::fs::write(app.join("greeter.wasm"), format!("native {code}")).unwrap();
        let text = format!("{manifest}[needs]\nllm = [{routes}]\n");
        std::fs::write(app.join("app.toml"), text).unwrap();
    };
    let is_noted =
        |changes: &[Change]| changes.iter().any(|it| matches!(it, Change::Unrequested(_)));
    let doctor = async || {
        let folder = folder.path().to_owned();
        let doctor = move || said(&folder, &["doctor"], None).1;
        tokio::task::spawn_blocking(doctor).await.unwrap().contains("has no effect")
    };
    write("old", "\"chat\", \"vision\"");
    let table = "[grants.greeter]\nllm = [\"chat\", \"vision\"]\n";
    let mut config = config(folder.path(), table);
    config.store.kind = StoreKind::Redb;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let server = Server::start(config.clone(), options()).await.unwrap();
    let start = json!({ "input": { "name": "Ada" }, "thread_id": "t", "wait": true });
    let runs = client.post(format!("{}/api/v1/apps/greeter/runs", server.url()));
    assert_eq!(answer(runs.json(&start)).await.1["status"], "interrupted");
    write("new", "\"chat\"");
    let changes = server.reload().await;
    assert!(matches!(changes[..], [Change::App { .. }]), "{changes:?}");
    assert!(!is_noted(&server.reload().await), "the host has the older version");
    server.shutdown().await;
    assert!(!doctor().await, "the older version is archived");

    // No thread has loaded the older version yet.
    let server = Server::start(config.clone(), options()).await.unwrap();
    assert!(!is_noted(&server.changes), "{:?}", server.changes);
    complete_and_delete(&client, &server, "t").await;
    server.shutdown().await;
    let server = Server::start(config, options()).await.unwrap();
    assert!(is_noted(&server.changes), "{:?}", server.changes);
    server.shutdown().await;
    assert!(doctor().await);
}

#[tokio::test]
async fn tables_that_apply_to_nothing_are_noted_once() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    write_app(&plugins, "greeter");
    let toml = "[apps.gretter]\n[grants.greter]\n[grants.\"greeter/greter\"]\n";
    let fixture = Fixture::start_in(folder, toml).await;
    let texts = |changes: &[Change]| {
        let unused = changes.iter().filter(|change| matches!(change, Change::Unused(_)));
        let texts = unused.flat_map(Change::messages).map(|(_, text)| text);
        texts.collect::<Vec<_>>().join("\n")
    };
    assert_eq!(
        texts(&fixture.server.changes),
        "`[apps.gretter]` applies to no app that the host has found\n  \
         hint: did you mean `greeter`? apps: `greeter`\n\
         `[grants.greter]` applies to no plugin that the host has found\n  \
         hint: did you mean `greeter`? plugins: `greeter`\n\
         `[grants.\"greeter/greter\"]` applies to no plugin that the host has found\n  \
         hint: did you mean `greeter/greeter`? plugins: `greeter/greeter`"
    );
    assert!(fixture.server.reload().await.is_empty());
    // Another table that applies to nothing is noted alone.
    let file = fixture.folder.path().join("wattle.toml");
    std::fs::write(file, format!("{toml}[grants.std]\n")).unwrap();
    let found = texts(&fixture.server.reload().await);
    assert!(found.starts_with("`[grants.std]`") && !found.contains("greter"), "{found}");

    let folder = fixture.folder.path().to_owned();
    let doctor = move || said(&folder, &["doctor"], None);
    let (_, text) = tokio::task::spawn_blocking(doctor).await.unwrap();
    assert!(text.contains("warn  configuration: `[grants.greter]` applies to no plugin"), "{text}");
}
