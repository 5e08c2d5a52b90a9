//! Several apps that are loaded concurrently.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::{self, ThreadId};

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use wattle::load::Change;
use wattle::server::{Server, ServerOptions};
use wattle::wire::Overrides;
use wattle_graph::id::{AppName, PluginName};
use wattle_graph::tool::ToolOutput;
use wattle_run::gate::Gate;
use wattle_run::limit::Limits;
use wattle_run::ports::sandbox::{
    GuestError, LoadError, NodeCall, NodeOutcome, PluginInfo, PluginToolCall, WebRequest,
    WebResponse,
};
use wattle_run::ports::{Plugin, Sandbox};

use crate::fixture::{answer, config, write_app};
use crate::native::NativeSandbox;

/// A sandbox that is slow for the plugin `slow`.
#[derive(Default)]
struct Held {
    released: Notify,
}

#[async_trait]
impl Sandbox for Held {
    async fn load(&self, name: &PluginName, bytes: Bytes) -> Result<Arc<dyn Plugin>, LoadError> {
        if name.as_str() == "slow" {
            self.released.notified().await;
        }
        NativeSandbox.load(name, bytes).await
    }
}

#[tokio::test]
async fn a_slow_component_does_not_delay_other_apps() {
    let folder = tempfile::tempdir().unwrap();
    let held = Arc::new(Held::default());
    let sandbox: Arc<dyn Sandbox> = held.clone();
    let overrides = Overrides { sandbox: Some(sandbox), ..Overrides::default() };
    let options = ServerOptions { overrides, watch: false };
    let server = Server::start(config(folder.path(), ""), options).await.unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let status =
        async |app: &str| answer(client.get(format!("{}/apps/{app}/echo/x", server.url()))).await.0;
    for app in ["greeter", "slow", "zeta"] {
        write_app(&folder.path().join("plugins"), app);
    }
    let mut reload = Box::pin(server.reload());
    for app in ["greeter", "zeta"] {
        while status_beside(&mut reload, status(app)).await != 200 {}
    }
    assert_eq!(status("slow").await, 404);
    held.released.notify_one();
    let changes = reload.await;
    assert!(matches!(changes[..], [_, _, Change::App { .. }]), "{changes:?}");
    assert_eq!(status("slow").await, 200);
}

/// Returns the status of a response that the server sends while it is loading.
async fn status_beside(
    reload: &mut (impl Future<Output = Vec<Change>> + Unpin),
    status: impl Future<Output = u16>,
) -> u16 {
    tokio::select! {
        changes = reload => panic!("the reload did not wait: {changes:?}"),
        status = status => status,
    }
}

/// A sandbox whose plugins notice on which thread their description is read.
#[derive(Default)]
struct Described {
    is_read_elsewhere: Arc<AtomicBool>,
}

#[async_trait]
impl Sandbox for Described {
    async fn load(&self, name: &PluginName, bytes: Bytes) -> Result<Arc<dyn Plugin>, LoadError> {
        Ok(Arc::new(DescribedPlugin {
            plugin: NativeSandbox.load(name, bytes).await?,
            home: thread::current().id(),
            runtime: Handle::current(),
            is_read_elsewhere: self.is_read_elsewhere.clone(),
        }))
    }
}

struct DescribedPlugin {
    plugin: Arc<dyn Plugin>,
    /// The only thread of the runtime.
    home: ThreadId,
    runtime: Handle,
    is_read_elsewhere: Arc<AtomicBool>,
}

#[async_trait]
impl Plugin for DescribedPlugin {
    /// On another thread than that of the runtime, waits for a task of the runtime.
    fn info(&self) -> &PluginInfo {
        if thread::current().id() != self.home {
            let (tell, told) = channel();
            self.runtime.spawn(async move { tell.send(()) });
            told.recv().unwrap();
            self.is_read_elsewhere.store(true, Ordering::Relaxed);
        }
        self.plugin.info()
    }

    async fn run_node(&self, call: NodeCall, gate: Arc<Gate>) -> Result<NodeOutcome, GuestError> {
        self.plugin.run_node(call, gate).await
    }

    async fn call_tool(
        &self,
        call: PluginToolCall,
        gate: Arc<Gate>,
    ) -> Result<ToolOutput, GuestError> {
        self.plugin.call_tool(call, gate).await
    }

    async fn handle(
        &self,
        request: WebRequest,
        gate: Arc<Gate>,
    ) -> Result<WebResponse, GuestError> {
        self.plugin.handle(request, gate).await
    }

    async fn reduce(
        &self,
        app: &AppName,
        reducer: &str,
        current: Option<Value>,
        updates: Vec<Value>,
        limits: &Limits,
    ) -> Result<Value, GuestError> {
        self.plugin.reduce(app, reducer, current, updates, limits).await
    }
}

/// The check reads the descriptions of plugins.
#[tokio::test]
async fn the_check_of_graphs_does_not_block_other_tasks() {
    let folder = tempfile::tempdir().unwrap();
    let described = Described::default();
    let is_read_elsewhere = described.is_read_elsewhere.clone();
    let sandbox: Arc<dyn Sandbox> = Arc::new(described);
    let overrides = Overrides { sandbox: Some(sandbox), ..Overrides::default() };
    let options = ServerOptions { overrides, watch: false };
    let server = Server::start(config(folder.path(), ""), options).await.unwrap();
    write_app(&folder.path().join("plugins"), "greeter");
    let changes = server.reload().await;
    assert!(matches!(changes[..], [Change::App { .. }]), "{changes:?}");
    assert!(is_read_elsewhere.load(Ordering::Relaxed));
}
