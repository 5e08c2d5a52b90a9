//! Graphs over HTTP: their nodes, and the versions to which threads are pinned.

use serde_json::{Value, json};
use wattle::config::StoreKind;
use wattle::server::Server;

use crate::binary::said;
use crate::fixture::{Fixture, answer, config, options, write_app};

const GRAPH: &str = "/api/v1/apps/greeter/graphs/Greet";

const INNER: &str = "/api/v1/apps/greeter/graphs/Inner";

/// A graph whose second node is a subgraph.
const NESTED: &str = r#"
[graphs.Outer]
entry = "hello"
[graphs.Outer.channels.name]
[graphs.Outer.channels.greeting]
[graphs.Outer.channels.approved]
[graphs.Outer.nodes.hello]
node = "greet"
[graphs.Outer.nodes.review]
graph = "Inner"
doc = "asks a person"
[[graphs.Outer.edges]]
from = "hello"
to = "review"
[graphs.Inner]
entry = "ask"
[graphs.Inner.channels.greeting]
[graphs.Inner.channels.approved]
[graphs.Inner.nodes.ask]
"#;

/// Returns the path of a version of the graph.
fn at(version: &Value) -> String {
    version_of(GRAPH, version)
}

/// Returns the path of a version of a graph.
fn version_of(graph: &str, version: &Value) -> String {
    format!("{graph}?version={}", version.as_str().unwrap())
}

fn version(version: &Value, is_loaded: bool, is_current: bool) -> Value {
    json!({ "version": version, "is_loaded": is_loaded, "is_current": is_current })
}

#[tokio::test]
async fn nodes_have_their_functions_and_schemas() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    write_app(&plugins, "greeter");
    std::fs::write(plugins.join("greeter/graph.toml"), NESTED).unwrap();
    let fixture = Fixture::start_in(folder, "").await;
    let (status, graph) = fixture.get("/api/v1/apps/greeter/graphs/Outer").await;
    assert_eq!(status, 200, "{graph}");
    let (_, plugins) = fixture.get("/api/v1/plugins/greeter").await;
    let hello = json!({
        "plugin": "greeter", "function": "greet", "digest": plugins[0]["digest"],
        "doc": "what `greet` does",
        "input_schema": { "title": "input of `greet`" },
        "output_schema": { "title": "output of `greet`" },
    });
    let (_, inner) = fixture.get(INNER).await;
    let review = json!({
        "subgraph": "Inner", "subgraph_version": inner["version"], "doc": "asks a person",
    });
    assert_eq!(graph["nodes"], json!({ "hello": hello, "review": review }));
}

#[tokio::test]
async fn a_run_that_names_none_of_several_graphs_shows_how_to_name_one() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    write_app(&plugins, "greeter");
    std::fs::write(plugins.join("greeter/graph.toml"), NESTED).unwrap();
    let fixture = Fixture::start_in(folder, "").await;
    let start = json!({ "input": { "name": "Ada" } });
    let (status, problem) = fixture.post("/api/v1/apps/greeter/runs", &start).await;
    assert_eq!(status, 400, "{problem}");
    let details = json!({ "app": "greeter", "graphs": ["Inner", "Outer"] });
    assert_eq!(problem["details"], details, "{problem}");

    let folder = fixture.folder.path().to_owned();
    let run = move || said(&folder, &["run", "greeter"], None);
    let (_, shown) = tokio::task::spawn_blocking(run).await.unwrap();
    let expected = "error: app `greeter` has several graphs; name one of `Inner`, `Outer`\n  \
                    hint: name app and graph, such as `greeter/Inner`\n";
    assert!(shown.contains(expected), "{shown}");
}

#[tokio::test]
async fn older_versions_stay_visible_while_the_host_runs() {
    let fixture = Fixture::start("").await;
    let (_, old) = fixture.get(GRAPH).await;
    let plugins = fixture.folder.path().join("plugins");
    std::fs::write(plugins.join("greeter/greeter.wasm"), "native again").unwrap();
    std::fs::write(plugins.join("greeter/graph.toml"), NESTED.replace("Outer", "Greet")).unwrap();
    fixture.server.reload().await;
    let (_, new) = fixture.get(GRAPH).await;
    let (old_version, new_version) = (&old["version"], &new["version"]);
    assert_ne!(old_version, new_version);

    let versions = format!("{GRAPH}/versions");
    let both = json!([version(new_version, true, true), version(old_version, true, false)]);
    assert_eq!(fixture.get(&versions).await, (200, both));
    assert_eq!(fixture.get(&at(old_version)).await, (200, old.clone()));
    assert_eq!(fixture.get(&at(new_version)).await, (200, new.clone()));
    let inner = fixture.get(&format!("{INNER}/versions")).await.1;
    assert_eq!(inner.as_array().unwrap().len(), 1, "the old version had no such graph");

    // Threads of a removed app keep their versions.
    std::fs::remove_dir_all(plugins.join("greeter")).unwrap();
    fixture.server.reload().await;
    assert_eq!(fixture.get(GRAPH).await.0, 404);
    assert_eq!(fixture.get(&at(old_version)).await, (200, old));
    let (_, left) = fixture.get(&versions).await;
    let left = left.as_array().unwrap();
    assert!(left.len() == 2 && left.iter().all(|it| it["is_current"] == false), "{left:?}");
}

#[tokio::test]
async fn a_node_of_an_older_version_names_the_older_subgraph() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    write_app(&plugins, "greeter");
    std::fs::write(plugins.join("greeter/graph.toml"), NESTED).unwrap();
    let fixture = Fixture::start_in(folder, "").await;
    let outer = "/api/v1/apps/greeter/graphs/Outer";
    let (_, old) = fixture.get(outer).await;
    let newer = NESTED.replace("nodes.ask]", "nodes.ask]\ndoc = \"asks again\"");
    std::fs::write(plugins.join("greeter/graph.toml"), newer).unwrap();
    std::fs::write(plugins.join("greeter/greeter.wasm"), "native again").unwrap();
    fixture.server.reload().await;
    let (_, new) = fixture.get(outer).await;
    let (_, again) = fixture.get(&version_of(outer, &old["version"])).await;
    assert_eq!(again, old);
    let digest = |graph: &Value| graph["nodes"]["hello"]["digest"].clone();
    assert_ne!(digest(&old), digest(&new), "the component is another one");
    for (graph, doc) in [(&old, "what `ask` does"), (&new, "asks again")] {
        let version = &graph["nodes"]["review"]["subgraph_version"];
        let (status, inner) = fixture.get(&version_of(INNER, version)).await;
        assert_eq!((status, &inner["nodes"]["ask"]["doc"]), (200, &json!(doc)), "{inner}");
    }
}

#[tokio::test]
async fn unknown_versions_are_explained() {
    let fixture = Fixture::start("").await;
    let (_, graph) = fixture.get(GRAPH).await;
    let unknown = "0".repeat(64);
    let known = graph["version"].as_str().unwrap();
    for (path, status, expected) in [
        (format!("{GRAPH}?version={unknown}"), 404, "/graphs/Greet/versions` lists those"),
        (format!("{GRAPH}?version=1.0"), 400, "64 hex digits"),
        (format!("{GRAPH}?digest={known}"), 400, "unknown field `digest`"),
        (format!("/api/v1/apps/greeter/graphs/Great?version={known}"), 404, "no graph `Great`"),
        (format!("/api/v1/apps/greater/graphs/Greet?version={known}"), 404, "no app `greater`"),
        ("/api/v1/apps/greeter/graphs/Great/versions".to_owned(), 404, "no graph `Great`"),
        ("/api/v1/apps/greater/graphs/Greet/versions".to_owned(), 404, "no app `greater`"),
        ("/api/v1/apps/1/graphs/Greet/versions".to_owned(), 404, "no app `1`"),
    ] {
        let (found, problem) = fixture.get(&path).await;
        assert_eq!(found, status, "{path}: {problem}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(expected), "{path}: {detail}");
    }
}

#[tokio::test]
async fn archived_version_is_loaded_when_it_is_requested() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    write_app(&plugins, "greeter");
    let mut config = config(folder.path(), "");
    config.store.kind = StoreKind::Redb;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let server = Server::start(config.clone(), options()).await.unwrap();
    // A start deletes the versions to which no thread is pinned.
    let start = json!({ "input": { "name": "Ada" }, "thread_id": "t", "wait": true });
    let runs = client.post(format!("{}/api/v1/apps/greeter/runs", server.url()));
    assert_eq!(answer(runs.json(&start)).await.1["status"], "interrupted");
    let old = answer(client.get(format!("{}{GRAPH}", server.url()))).await.1;
    server.shutdown().await;

    std::fs::write(plugins.join("greeter/greeter.wasm"), "native but newer").unwrap();
    let server = Server::start(config, options()).await.unwrap();
    let get = |path: &str| answer(client.get(format!("{}{path}", server.url())));
    let (old_version, new_version) = (&old["version"], get(GRAPH).await.1["version"].clone());
    let versions = format!("{GRAPH}/versions");
    let both = |is_loaded| {
        json!([version(&new_version, true, true), version(old_version, is_loaded, false)])
    };
    assert_eq!(get(&versions).await, (200, both(false)));
    assert_eq!(get(&at(old_version)).await, (200, old.clone()));
    assert_eq!(get(&versions).await, (200, both(true)));
    server.shutdown().await;
}
