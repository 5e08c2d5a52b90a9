//! Several apps that are loaded concurrently.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::Notify;
use wattle::load::Change;
use wattle::server::{Server, ServerOptions};
use wattle::wire::Overrides;
use wattle_graph::id::PluginName;
use wattle_run::ports::sandbox::LoadError;
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
