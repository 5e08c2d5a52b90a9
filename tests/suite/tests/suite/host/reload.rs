//! Files that change while a server runs, and files that are not plugins.

use serde_json::{Value, json};
use wattle_suite::binary;
use wattle_suite::guests;
use wattle_suite::server::{Setup, TestServer};
use wattle_suite::workspace::{MISDEEDS, Workspace, misdeeds_toml};

/// A graph of one node that counts.
const COUNT: &str = "[graphs.count]\nentry = \"counter\"\n[graphs.count.channels.number]\n\
                     [graphs.count.nodes.counter]\n";

/// The graph with two such nodes in a row.
const COUNT_TWICE: &str = "[graphs.count]\nentry = \"counter\"\n[graphs.count.channels.number]\n\
                           [graphs.count.nodes.counter]\n[graphs.count.nodes.again]\n\
                           node = \"counter\"\n[[graphs.count.edges]]\nfrom = \"counter\"\n\
                           to = \"again\"\n";

/// Returns files that are not plugins of this host: a name, the bytes, and a part of the expected
/// message.
fn impostors() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let good = guests::bytes(MISDEEDS).to_vec();
    let with = |from: &str, to: &str| replaced(&good, from.as_bytes(), to.as_bytes());
    vec![
        ("text", b"this is no program\n".to_vec(), "WebAssembly"),
        ("empty", Vec::new(), "empty"),
        ("native", b"\x7fELF\x02\x01\x01\0".to_vec(), "native"),
        ("truncated", good[..good.len() / 2].to_vec(), "not a valid"),
        ("core", b"\0asm\x01\0\0\0".to_vec(), "plain WebAssembly module"),
        ("other-version", with("wattle:plugin/node@0.1.0", "wattle:plugin/node@0.2.0"), "0.2.0"),
        ("no-export", b"\0asm\x0d\0\x01\0".to_vec(), "exports nothing"),
        (
            "import",
            with("wattle:plugin/emit@0.1.0", "wattle:plugin/exec@0.1.0"),
            "wattle:plugin/exec",
        ),
    ]
}

/// Replaces every occurrence by a text of the same length, so that all lengths in the file stay
/// valid.
fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut bytes = bytes.to_vec();
    let mut at = 0;
    while let Some(found) = bytes[at..].windows(from.len()).position(|window| window == from) {
        bytes[at + found..at + found + from.len()].copy_from_slice(to);
        at += found + from.len();
    }
    assert!(at > 0, "nothing was replaced");
    bytes
}

/// Starts a server that watches an empty plugins folder.
async fn watching() -> TestServer {
    let mut setup = Setup::bare().await;
    setup.watch = true;
    let toml = misdeeds_toml(&setup.standin);
    setup.with(&toml).start().await
}

/// Waits until the watcher reports changes. A change before its start is not reported.
async fn seen(server: &TestServer, path: &str, content: &[u8]) {
    for _ in 0..100 {
        server.setup.workspace.write(path, content);
        let problems =
            async { server.until("/api/v1/problems", |answer| answer.body != json!([])).await };
        if tokio::time::timeout(std::time::Duration::from_secs(1), problems).await.is_ok() {
            return;
        }
    }
    panic!("the server never detected `{path}`");
}

async fn problem(server: &TestServer, file: &str) -> String {
    let wanted = |answer: &wattle_suite::answer::Answer| message(&answer.body, file).is_some();
    let answer = server.until("/api/v1/problems", wanted).await;
    message(&answer.body, file).unwrap_or_default()
}

fn message(problems: &Value, file: &str) -> Option<String> {
    let mut problems = problems.as_array()?.iter();
    let found = problems.find(|it| it["path"].as_str().is_some_and(|path| path.contains(file)))?;
    Some(found["message"].as_str()?.to_owned())
}

#[tokio::test]
async fn invalid_plugins_are_reported_with_a_hint_and_the_server_continues() {
    let server = watching().await;
    seen(&server, "plugins/first.wasm", b"no program").await;
    for (name, bytes, says) in impostors() {
        let file = format!("{name}.wasm");
        server.setup.workspace.write(&format!("plugins/{file}"), bytes);
        let message = problem(&server, &file).await;
        assert!(message.contains(&format!("`{name}`")), "{message}");
        assert!(message.contains(says), "{name}: {message}");
        assert!(message.contains("hint: "), "{name}: {message}");
    }
    server.setup.workspace.add_misdeeds(COUNT);
    server.until("/api/v1/apps/misdeeds", |answer| answer.status == 200).await;
    let run = server.run("misdeeds", "count", json!({ "number": 1 })).await;
    assert_eq!(run["state"]["number"], 2, "{run}");
}

#[tokio::test]
async fn invalid_plugins_are_refused_by_inspect_with_the_same_messages() {
    let workspace = Workspace::new();
    workspace.share_compiled_code();
    for (name, bytes, says) in impostors() {
        let file = format!("{name}.wasm");
        workspace.write(&file, bytes);
        let ended = binary::run(&workspace, &["plugin", "inspect", &file]).await;
        assert_eq!(ended.code, 1, "{}", ended.text());
        assert!(ended.stdout.is_empty(), "{}", ended.stdout);
        assert!(ended.stderr.contains(says) && ended.stderr.contains("hint: "), "{}", ended.stderr);
    }
}

#[tokio::test]
async fn a_new_app_is_loaded_and_a_broken_change_keeps_the_old_version() {
    let server = watching().await;
    assert_eq!(server.get("/api/v1/apps").await.body, json!([]));
    seen(&server, "plugins/first.wasm", b"no program").await;
    server.setup.workspace.add_misdeeds(COUNT);
    server.until("/api/v1/apps/misdeeds", |answer| answer.status == 200).await;
    let run = server.run("misdeeds", "count", json!({})).await;
    assert_eq!(run["state"]["number"], 1);

    server.setup.workspace.write("plugins/misdeeds/misdeeds.wasm", "broken");
    problem(&server, "plugins/misdeeds").await;
    let run = server.run("misdeeds", "count", json!({})).await;
    assert_eq!((&run["status"], &run["state"]["number"]), (&json!("completed"), &json!(1)));

    server.setup.workspace.write("plugins/misdeeds/misdeeds.wasm", guests::bytes(MISDEEDS));
    server
        .setup
        .workspace
        .write("plugins/misdeeds/graph.toml", "[graphs.count]\nentry = \"nobody\"\n");
    let wanted = |answer: &wattle_suite::answer::Answer| {
        message(&answer.body, "plugins/misdeeds").is_some_and(|it| it.contains("nobody"))
    };
    server.until("/api/v1/problems", wanted).await;
    assert_eq!(server.run("misdeeds", "count", json!({})).await["state"]["number"], 1);

    server.setup.workspace.write("plugins/misdeeds/graph.toml", COUNT_TWICE);
    let mended =
        |answer: &wattle_suite::answer::Answer| message(&answer.body, "plugins/misdeeds").is_none();
    server.until("/api/v1/problems", mended).await;
    assert_eq!(server.run("misdeeds", "count", json!({})).await["state"]["number"], 2);

    std::fs::remove_dir_all(server.setup.workspace.plugins().join("misdeeds")).unwrap();
    server.until("/api/v1/apps/misdeeds", |answer| answer.status == 404).await;
}

#[tokio::test]
async fn a_standalone_plugin_serves_the_graphs_that_name_it() {
    let server = watching().await;
    seen(&server, "plugins/first.wasm", b"no program").await;
    let graph = COUNT.replace("nodes.counter]\n", "nodes.counter]\nplugin = \"shared\"\n");
    server.setup.workspace.write("plugins/lender/graph.toml", graph);
    server
        .setup
        .workspace
        .write("plugins/lender/app.toml", "[app]\nname = \"lender\"\nversion = \"1\"\n");
    let message = problem(&server, "plugins/lender").await;
    assert!(message.contains("`shared`"), "{message}");
    server.setup.workspace.write("plugins/shared.wasm", guests::bytes(MISDEEDS));
    server.until("/api/v1/apps/lender", |answer| answer.status == 200).await;
    assert_eq!(server.run("lender", "count", json!({})).await["state"]["number"], 1);
    let plugin = server.get("/api/v1/plugins/shared").await.expect(200);
    assert_eq!(plugin[0]["app"], "lender");
    assert_eq!(plugin[0]["grants"]["llm"], json!([]), "the plugin has no grants");
}

#[tokio::test]
async fn a_thread_keeps_its_pinned_version() {
    let setup = Setup::misdeeds(&super::sandbox::graphs()).await;
    let server = setup.start().await;
    let url = format!("{}/count/visits", server.standin().base_url);
    let run = server.run("misdeeds", "two_questions", json!({ "url": url, "route": "chat" })).await;
    let thread = run["thread"].as_str().unwrap();
    let before = server.get(&format!("/api/v1/threads/{thread}")).await.expect(200);
    // Another graph of the same name, which new threads use.
    let graphs = super::sandbox::graphs();
    let changed =
        graphs.replace("[graphs.two_questions]\n", "[graphs.two_questions]\ndoc = \"new\"\n");
    server.setup.workspace.add_misdeeds(&changed);
    server.running.reload().await;
    let graph = server.get("/api/v1/apps/misdeeds/graphs/two_questions").await.expect(200);
    assert_ne!(graph["version"], before["version"]);
    let after = server.get(&format!("/api/v1/threads/{thread}")).await.expect(200);
    assert_eq!(after["version"], before["version"]);
}
