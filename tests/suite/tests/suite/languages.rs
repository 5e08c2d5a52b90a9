//! Plugins in other languages: what toolchains build with their default settings, and what the SDKs
//! for TypeScript, Python and C build, and new apps in each language. `cargo xtask clients` builds
//! the guests.

use std::fs;
use std::sync::Arc;

use wattle_graph::id::PluginName;
use wattle_kit::needs::{LeftOut, clients};
use wattle_run::ports::Plugin;
use wattle_suite::server;

mod conformance;
mod defaults;
mod hostile;
mod new;
mod services;

/// Loads a guest that `cargo xtask clients` built, as a plugin with a name. The compiled code is
/// cached.
async fn load(guest: &str, plugin: &str) -> Result<Arc<dyn Plugin>, LeftOut> {
    let bytes = fs::read(clients::toolchain(guest)?).unwrap();
    let name = PluginName::new(plugin).unwrap();
    Ok(server::sandbox().load(&name, bytes.into()).await.unwrap())
}
