//! Standalone plugins: `.wasm` files in the plugins folder, which the graphs of any app can use.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use wattle_graph::id::PluginName;
use wattle_run::ports::{Plugin, Sandbox};

use crate::load::file::{COMPONENT_BYTES, FileError, FilePlace};
use crate::load::names;
use crate::load::places::Turn;

/// A component that cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unloaded {
    /// Its file.
    pub path: PathBuf,
    /// The reason and a hint.
    pub message: String,
}

/// Loads a component, however long its compilation takes. The name of the plugin is the file name
/// without the extension.
///
/// # Errors
///
/// A message with the reason and a hint.
pub async fn load(sandbox: &dyn Sandbox, place: &FilePlace) -> Result<Arc<dyn Plugin>, String> {
    let loaded = load_in_turn(sandbox, place, &mut Turn::unlimited()).await?;
    // A turn without limits compiles every component.
    loaded.ok_or_else(|| format!("`{}` was not compiled", place.path().display()))
}

/// Loads a component. Returns `None` if it needs another turn.
///
/// # Errors
///
/// A message with the reason and a hint.
pub async fn load_in_turn(
    sandbox: &dyn Sandbox,
    place: &FilePlace,
    turn: &mut Turn,
) -> Result<Option<Arc<dyn Plugin>>, String> {
    let path = place.path();
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let name = PluginName::new(&stem)
        .map_err(|error| format!("{error}\n  hint: rename `{}`", path.display()))?;
    if let Some(problem) = names::problem("plugin name", name.as_str()) {
        return Err(format!("{problem}; rename `{}`", path.display()));
    }
    load_as(sandbox, &name, place, turn).await
}

/// Loads a component as the plugin with the given name. Returns `None` if it needs another turn.
///
/// # Errors
///
/// A message with the reason and a hint.
pub async fn load_as(
    sandbox: &dyn Sandbox,
    name: &PluginName,
    place: &FilePlace,
    turn: &mut Turn,
) -> Result<Option<Arc<dyn Plugin>>, String> {
    let bytes = read(name, place).await?;
    let loaded = turn.load(sandbox, name, &place.path(), bytes).await;
    loaded.map_err(|error| error.to_string())
}

/// Reads the component of the plugin with the given name.
///
/// # Errors
///
/// A message with the reason and a hint.
pub async fn read(name: &PluginName, place: &FilePlace) -> Result<Bytes, String> {
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
    Ok(Bytes::from(bytes))
}
