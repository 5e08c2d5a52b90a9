//! State that survives a restart.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::json;
use wattle::config::{Config, StoreKind};
use wattle::host::Overrides;
use wattle::server::{Server, ServerOptions};
use wattle_graph::id::PluginName;
use wattle_kit::need;
use wattle_kit::postgres::Postgres;
use wattle_run::ports::sandbox::{LoadEffort, LoadError};
use wattle_run::ports::{Plugin, Sandbox};

use crate::fixture::{answer, complete_and_delete, config, options, write_app};
use crate::native_sandbox::NativeSandbox;

#[tokio::test]
async fn an_interrupt_survives_a_restart_and_gets_one_answer() {
    let folder = tempfile::tempdir().unwrap();
    write_app(&folder.path().join("plugins"), "greeter");
    let mut config = config(folder.path(), "");
    config.store.kind = StoreKind::Redb;
    survives(config).await;
}

#[tokio::test]
async fn an_interrupt_survives_a_restart_on_postgresql() {
    let server = need!(Postgres::for_test());
    let folder = tempfile::tempdir().unwrap();
    write_app(&folder.path().join("plugins"), "greeter");
    let mut config = config(folder.path(), &format!("[store]\nurl = \"{}\"\n", server.url()));
    config.store.kind = StoreKind::Postgres;
    survives(config).await;
}

async fn survives(config: Config) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let server = Server::start(config.clone(), options()).await.unwrap();
    let start = json!({ "input": { "name": "Ada" }, "thread_id": "t", "wait": true });
    let runs = client.post(format!("{}/api/v1/apps/greeter/runs", server.url()));
    assert_eq!(answer(runs.json(&start)).await.1["status"], "interrupted");
    server.shutdown().await;

    let server = Server::start(config, options()).await.unwrap();
    let resume = || {
        let url = format!("{}/api/v1/threads/t/resume", server.url());
        client.post(url).json(&json!({ "answers": { "": true }, "wait": true }))
    };
    let (one, two) = tokio::join!(answer(resume()), answer(resume()));
    let mut statuses = [one.0, two.0];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409], "{one:?} {two:?}");
    let runs = client.get(format!("{}/api/v1/threads/t/runs", server.url()));
    assert_eq!(answer(runs).await.1.as_array().unwrap().len(), 2);
    server.shutdown().await;
}

#[tokio::test]
async fn a_thread_continues_on_its_pinned_version() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    write_app(&plugins, "greeter");
    let mut config = config(folder.path(), "");
    config.store.kind = StoreKind::Redb;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let server = Server::start(config.clone(), options()).await.unwrap();
    let start = json!({ "input": { "name": "Ada" }, "thread_id": "t", "wait": true });
    let runs = client.post(format!("{}/api/v1/apps/greeter/runs", server.url()));
    assert_eq!(answer(runs.json(&start)).await.1["status"], "interrupted");
    server.shutdown().await;

    // The code is replaced while the host is stopped, and removed later.
    std::fs::write(plugins.join("greeter/greeter.wasm"), "native but newer").unwrap();
    let server = Server::start(config.clone(), options()).await.unwrap();
    let graph = format!("{}/api/v1/apps/greeter/graphs/Greet", server.url());
    let new = answer(client.get(graph)).await.1["version"].clone();
    let thread = answer(client.get(format!("{}/api/v1/threads/t", server.url()))).await.1;
    assert_ne!(thread["version"], new);
    server.shutdown().await;
    std::fs::remove_dir_all(plugins.join("greeter")).unwrap();

    let server = Server::start(config.clone(), options()).await.unwrap();
    assert_eq!(answer(client.get(format!("{}/api/v1/apps", server.url()))).await.1, json!([]));
    complete_and_delete(&client, &server, "t").await;
    server.shutdown().await;
    let server = Server::start(config, options()).await.unwrap();
    let versions = folder.path().join("data/versions/greeter");
    assert_eq!(std::fs::read_dir(versions).unwrap().count(), 0);
    server.shutdown().await;
}

/// A sandbox that counts the loads of components.
#[derive(Default)]
struct Counted {
    loads: AtomicUsize,
}

#[async_trait]
impl Sandbox for Counted {
    async fn load_within(
        &self,
        name: &PluginName,
        bytes: Bytes,
        effort: LoadEffort,
    ) -> Result<Option<Arc<dyn Plugin>>, LoadError> {
        self.loads.fetch_add(1, Ordering::Relaxed);
        NativeSandbox.load_within(name, bytes, effort).await
    }
}

#[tokio::test]
async fn an_archived_version_is_loaded_once_a_thread_needs_it() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    write_app(&plugins, "greeter");
    let mut config = config(folder.path(), "");
    config.store.kind = StoreKind::Redb;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let server = Server::start(config.clone(), options()).await.unwrap();
    let runs = format!("{}/api/v1/apps/greeter/runs", server.url());
    for thread in ["one", "two"] {
        let start = json!({ "input": { "name": "Ada" }, "thread_id": thread, "wait": true });
        let run = answer(client.post(&runs).json(&start)).await.1;
        assert_eq!(run["status"], "interrupted", "{run}");
    }
    server.shutdown().await;

    std::fs::remove_dir_all(plugins.join("greeter")).unwrap();
    let counted = Arc::new(Counted::default());
    let sandbox: Arc<dyn Sandbox> = counted.clone();
    let overrides = Overrides { sandbox: Some(sandbox), ..Overrides::default() };
    let server = Server::start(config, ServerOptions { overrides, watch: false }).await.unwrap();
    assert_eq!(counted.loads.load(Ordering::Relaxed), 0);
    let resume = async |thread: &str| {
        let url = format!("{}/api/v1/threads/{thread}/resume", server.url());
        let resume = json!({ "answers": { "": true }, "wait": true });
        answer(client.post(url).json(&resume)).await.1
    };
    let (one, two) = tokio::join!(resume("one"), resume("two"));
    assert_eq!((&one["status"], &two["status"]), (&json!("completed"), &json!("completed")));
    assert_eq!(counted.loads.load(Ordering::Relaxed), 1);
    server.shutdown().await;
}
