//! Tests of the sandbox through its public interface: files that it rejects, descriptions of
//! plugins, guests that exceed a limit, and guests that look for marks of earlier calls.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail a test too")]

mod asynchronous;
mod cache;
mod code_memory;
#[cfg(unix)]
mod folders;
mod guest;
mod guests_memory;
mod http;
mod isolation;
mod limits;
mod load;
mod names;
mod node;
mod numbers;
mod output;
mod places;
mod silent_net;
mod sockets;
mod stream;
mod stub_ports;
mod tool;
mod typed;
mod typed_values;

use std::sync::Arc;

use bytes::Bytes;
use wattle_graph::id::{AppName, PluginName};
use wattle_run::ports::sandbox::{LoadError, Plugin, Sandbox as _};
use wattle_sandbox::{SandboxConfig, WasmSandbox};

/// Returns a small sandbox for tests, so that many sandboxes fit into one process.
fn sandbox() -> Arc<WasmSandbox> {
    WasmSandbox::new(&SandboxConfig { max_instances: 8, ..SandboxConfig::default() })
        .expect("the sandbox can be set up")
}

/// Returns the app whose guests the tests call.
fn app() -> AppName {
    AppName::new("app").expect("the name is valid")
}

async fn load(bytes: impl Into<Bytes>) -> Result<Arc<dyn Plugin>, LoadError> {
    load_into(&sandbox(), bytes).await
}

async fn load_into(
    sandbox: &WasmSandbox,
    bytes: impl Into<Bytes>,
) -> Result<Arc<dyn Plugin>, LoadError> {
    let name = PluginName::new("guest").expect("the name is valid");
    sandbox.load(&name, bytes.into()).await
}

/// Returns the error of a file that must not load.
async fn load_error(bytes: impl Into<Bytes>) -> LoadError {
    match load(bytes).await {
        Ok(_) => panic!("the file was loaded"),
        Err(error) => error,
    }
}
