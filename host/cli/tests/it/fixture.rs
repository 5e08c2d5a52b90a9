//! A server in the process of the test, with one or several native apps.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use wattle::config::{self, Config, StoreKind};
use wattle::host::Overrides;
use wattle::server::{RunningServer, Server, ServerOptions};
use wattle_graph::definition::HumanDuration;

use crate::native_sandbox::NativeSandbox;

/// The graph file of the apps.
pub(crate) const GRAPH: &str = r#"
[graphs.Greet]
entry = "greet"
interrupt_ttl = "30m"
[graphs.Greet.channels.name]
[graphs.Greet.channels.greeting]
[graphs.Greet.channels.approved]
[graphs.Greet.nodes.greet]
[graphs.Greet.nodes.ask]
[[graphs.Greet.edges]]
from = "greet"
to = "ask"
"#;

/// Writes the folder of an app.
pub(crate) fn write_app(plugins: &Path, name: &str) {
    let folder = plugins.join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let manifest = format!(
        "[app]\nname = \"{name}\"\nversion = \"0.1.0\"\ndoc = \"greets\"\nweb = \"{name}\"\n\
         [components]\n{name} = \"{name}.wasm\"\n[settings]\ncolor = \"blue\"\n"
    );
    std::fs::write(folder.join(format!("{name}.wasm")), format!("native {name}")).unwrap();
    std::fs::write(folder.join("graph.toml"), GRAPH).unwrap();
    std::fs::write(folder.join("app.toml"), manifest).unwrap();
}

/// A running server with its folder.
pub(crate) struct Fixture {
    pub(crate) server: RunningServer,
    pub(crate) client: reqwest::Client,
    pub(crate) folder: tempfile::TempDir,
}

/// Configuration with a short `stop_grace`, after which work in progress is aborted.
pub(crate) const BRIEF_STOP: &str = "[server]\nstop_grace = \"100ms\"\n";

/// Parses a configuration in a folder. By default, the server uses a free port and an in-memory
/// store, and a start waits for all apps.
pub(crate) fn config(folder: &Path, toml: &str) -> Config {
    let file = folder.join("wattle.toml");
    std::fs::write(&file, toml).unwrap();
    let mut config = config::read(Some(&file)).unwrap();
    config.server.listen.set_port(0);
    config.server.load_wait = HumanDuration::from_ms(600_000);
    config.store.kind = StoreKind::Memory;
    config
}

/// Returns the options for servers of these tests.
pub(crate) fn options() -> ServerOptions {
    let sandbox: Arc<dyn wattle_run::ports::Sandbox> = Arc::new(NativeSandbox);
    let overrides = Overrides { sandbox: Some(sandbox), ..Overrides::default() };
    ServerOptions { overrides, watch: false }
}

impl Fixture {
    /// Starts a server with the app `greeter`.
    pub(crate) async fn start(toml: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write_app(&folder.path().join("plugins"), "greeter");
        Self::start_in(folder, toml).await
    }

    /// Starts a server with the app `greeter` and a given store.
    pub(crate) async fn start_on(store: Arc<dyn wattle_run::ports::Store>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write_app(&folder.path().join("plugins"), "greeter");
        let mut options = options();
        options.overrides.store = Some(store);
        Self::start_as(folder, "", options).await
    }

    /// Starts a server with the apps in a folder.
    pub(crate) async fn start_in(folder: tempfile::TempDir, toml: &str) -> Self {
        Self::start_as(folder, toml, options()).await
    }

    /// Starts a server with the apps in a folder and given options.
    pub(crate) async fn start_as(
        folder: tempfile::TempDir,
        toml: &str,
        options: ServerOptions,
    ) -> Self {
        let server = Server::start(config(folder.path(), toml), options).await.unwrap();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { server, client, folder }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.server.url())
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        answer(self.client.get(self.url(path))).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        answer(self.client.post(self.url(path)).json(body)).await
    }
}

/// Answers the interrupt of a thread, waits for the end of the run, and deletes the thread.
pub(crate) async fn complete_and_delete(
    client: &reqwest::Client,
    server: &RunningServer,
    thread: &str,
) {
    let thread = format!("{}/api/v1/threads/{thread}", server.url());
    let resume = client.post(format!("{thread}/resume"));
    let resume = resume.json(&json!({ "answers": { "": true }, "wait": true }));
    assert_eq!(answer(resume).await.1["status"], "completed");
    assert_eq!(answer(client.delete(thread)).await.0, 204);
}

/// Returns the status and the JSON body of a response.
pub(crate) async fn answer(request: reqwest::RequestBuilder) -> (u16, Value) {
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
    (status, value)
}
