//! `wattle-before`: drives a host and writes the folder of [`wattle_suite::before`] from its store.
//! It refuses to overwrite the folder.

mod documents;
mod threads;

use std::fs;

use anyhow::{Result, ensure};
use serde_json::json;
use wattle_kit::standin::Pattern;
use wattle_run::ports::{Clock as _, Store as _};
use wattle_store::RedbStore;
use wattle_suite::before::{self, APP, HELD, MORE, NAMES, errand};
use wattle_suite::guests;
use wattle_suite::server::TestServer;
use wattle_suite::workspace::{MISDEEDS, Workspace};

#[tokio::main]
async fn main() -> Result<()> {
    let folder = NAMES.path();
    ensure!(!folder.exists(), "`{}` exists, and is never written again", folder.display());
    Box::pin(write()).await
}

async fn write() -> Result<()> {
    let (setup, _replays) = before::setup().await;
    put_app(&setup.workspace);
    let server = setup.start().await;
    threads::make(&server).await;
    let requests = documents::make(&server).await;
    let server = Box::pin(settled(server)).await;

    let threads = threads::records(&server).await;
    let exported = server.get("/api/v1/threads/finished/export?code=false").await.expect(200);

    // These runs are in progress when the host stops, so the next host recovers them.
    let paying = threads::paying("cut-call");
    let (_call, call) = threads::held(&server, Pattern::path(HELD), &paying).await;
    let asking = json!({ "graph": "errand", "input": errand(MORE), "thread_id": "cut-model" });
    let (_model, model) = threads::held(&server, Pattern::model("chat"), &asking).await;
    let mut answered = Vec::new();
    for mut request in requests {
        request["answer"] = before::ask(&server, &request).await;
        answered.push(request);
    }
    // The first key enables authentication, so all later requests need it.
    let wanted = json!({ "name": "operator", "scopes": ["admin"] });
    let key = server.post("/api/v1/keys", &wanted).await.expect(201)["key"].clone();
    let manifest = json!({
        "clock_ms": server.clock().now_ms(),
        "key": key,
        "threads": threads,
        "cut": { "cut-call": call, "cut-model": model },
        "requests": answered,
    });

    let TestServer { running, setup, .. } = server;
    running.shutdown().await;
    let data = setup.workspace.data();
    let store = RedbStore::open(data.join("wattle.redb"))?;
    store.compact().await?;
    // Dropping the last handle closes the file.
    drop(store);
    NAMES.pack(&data)?;
    NAMES.write("exported.jsonl", exported.as_str().unwrap_or_default().as_bytes())?;
    fs::write(NAMES.path().join("manifest.json"), format!("{manifest:#}\n"))?;
    Ok(())
}

fn put_app(workspace: &Workspace) {
    let file = |name: &str| format!("plugins/{APP}/{name}");
    workspace.write(&file("app.toml"), include_str!("app.toml"));
    workspace.write(&file("graph.toml"), include_str!("graph.toml"));
    workspace.write(&file("misdeeds.wasm"), guests::bytes(MISDEEDS));
    workspace.write(&file("tools.wasm"), guests::bytes("wattle-guest-tools"));
}

/// Leaves the call of each of two threads in doubt by a restart, and settles one by an answer and
/// one by `POST /settle`.
async fn settled(server: TestServer) -> TestServer {
    let answers = json!({ "answers": { "": before::settled() } });
    let server = Box::pin(in_doubt(server, "settled")).await;
    threads::answer(&server, "settled", &answers, "completed").await;

    let server = Box::pin(in_doubt(server, "settled-call")).await;
    let path = "/api/v1/threads/settled-call";
    let pending = server.get(&format!("{path}/open-calls")).await.expect(200);
    let mut settle = json!({ "decision": before::settled(), "by": "an operator" });
    for field in ["task", "scope", "call"] {
        settle[field] = pending[0][field].clone();
    }
    server.post(&format!("{path}/settle"), &settle).await.expect(204);
    // The interrupt still needs an answer. The recorded decision takes precedence over it.
    threads::answer(&server, "settled-call", &answers, "completed").await;
    server
}

/// Interrupts a run by a restart while its effect is in progress, and waits until the run asks how
/// to settle it.
async fn in_doubt(server: TestServer, thread: &str) -> TestServer {
    let paying = threads::paying(thread);
    let (gate, run) = threads::held(&server, Pattern::path(HELD), &paying).await;
    let server = server.restart().await;
    drop(gate);
    let path = format!("/api/v1/runs/{}/wait", run.as_str().unwrap_or_default());
    let asked = server.get(&path).await.expect(200);
    assert_eq!(asked["status"], "interrupted", "{asked}");
    server
}
