//! Standalone plugins: `.wasm` files in the plugins folder, which the graphs of any app can use.

use std::sync::Arc;

use wattle_graph::id::PluginName;
use wattle_run::ports::{Plugin, Sandbox};

use crate::load::file::{COMPONENT_BYTES, FileError, FilePlace};
use crate::load::names;

/// Loads a component. The name of the plugin is the file name without the extension.
///
/// # Errors
///
/// A message with the reason and a hint.
pub async fn load(sandbox: &dyn Sandbox, place: &FilePlace) -> Result<Arc<dyn Plugin>, String> {
    let path = place.path();
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let name = PluginName::new(&stem)
        .map_err(|error| format!("{error}\n  hint: rename `{}`", path.display()))?;
    if let Some(problem) = names::problem("plugin name", name.as_str()) {
        return Err(format!("{problem}; rename `{}`", path.display()));
    }
    load_as(sandbox, &name, place).await
}

/// Loads a component as the plugin with the given name.
///
/// # Errors
///
/// A message with the reason and a hint.
pub async fn load_as(
    sandbox: &dyn Sandbox,
    name: &PluginName,
    place: &FilePlace,
) -> Result<Arc<dyn Plugin>, String> {
    let from = place.clone();
    let read = tokio::task::spawn_blocking(move || from.read(COMPONENT_BYTES)).await;
    let bytes = read.map_err(|error| format!("plugin `{name}`: {error}"))?.map_err(|error| {
        let hint = match error {
            FileError::Unreadable { .. } => {
                "\n  hint: build it for wasm32-unknown-unknown, or name its file under `[apps.<app>] \
                 components` in wattle.toml"
            }
            _ => "",
        };
        format!("plugin `{name}`: {error}{hint}")
    })?;
    sandbox.load(name, bytes.into()).await.map_err(|error| error.to_string())
}
