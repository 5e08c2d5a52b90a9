//! Standalone plugins: `.wasm` files in the plugins folder, which the graphs of any app can use.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use wattle_graph::id::PluginName;
use wattle_run::ports::{Plugin, Sandbox};

use crate::load::file::{COMPONENT_BYTES, FileError, FileLocation};
use crate::load::names;
use crate::load::turns::Turn;

/// A component that cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unloaded {
    /// File of the component.
    pub path: PathBuf,
    /// The reason and a hint.
    pub message: String,
}

/// Loads a component without a limit on the duration of its compilation. The name of the plugin is
/// the file name without the extension.
///
/// # Errors
///
/// A message with the reason and a hint.
pub async fn load(
    sandbox: &dyn Sandbox,
    location: &FileLocation,
) -> Result<Arc<dyn Plugin>, String> {
    let loaded = load_in_turn(sandbox, location, &mut Turn::unlimited()).await?;
    // A turn without limits compiles every component.
    loaded.ok_or_else(|| format!("`{}` was not compiled", location.path().display()))
}

/// Loads a component. Returns `None` if the load needs another turn.
///
/// # Errors
///
/// A message with the reason and a hint.
pub async fn load_in_turn(
    sandbox: &dyn Sandbox,
    location: &FileLocation,
    turn: &mut Turn,
) -> Result<Option<Arc<dyn Plugin>>, String> {
    let path = location.path();
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let name = PluginName::new(&stem)
        .map_err(|error| format!("{error}\n  hint: rename `{}`", path.display()))?;
    if let Some(problem) = names::problem("plugin name", name.as_str()) {
        return Err(format!("{problem}; rename `{}`", path.display()));
    }
    load_as(sandbox, &name, location, false, turn).await
}

/// Loads a component as the plugin with the given name. `is_built` is true if `wattle build` makes
/// the component in the folder of its location. Returns `None` if the load needs another turn.
///
/// # Errors
///
/// A message with the reason and a hint.
pub async fn load_as(
    sandbox: &dyn Sandbox,
    name: &PluginName,
    location: &FileLocation,
    is_built: bool,
    turn: &mut Turn,
) -> Result<Option<Arc<dyn Plugin>>, String> {
    let bytes = read(name, location, is_built).await?;
    let loaded = turn.load(sandbox, name, &location.path(), bytes).await;
    loaded.map_err(|error| error.to_string())
}

/// Reads the component of the plugin with the given name. `is_built` is true if `wattle build`
/// makes the component in the folder of its location.
///
/// # Errors
///
/// A message with the reason and a hint.
pub async fn read(
    name: &PluginName,
    location: &FileLocation,
    is_built: bool,
) -> Result<Bytes, String> {
    let from = location.clone();
    let read = tokio::task::spawn_blocking(move || from.read(COMPONENT_BYTES)).await;
    let bytes = read.map_err(|error| format!("plugin `{name}`: {error}"))?.map_err(|error| {
        let hint = match (&error, location) {
            (FileError::Unreadable { source, .. }, FileLocation::Inside { folder, .. })
                if is_built && source.kind() == ErrorKind::NotFound =>
            {
                format!("\n  hint: run `wattle build {}`", folder.display())
            }
            (FileError::Unreadable { .. }, _) => {
                "\n  hint: build it for wasm32-unknown-unknown, or \
                 name its file under `[apps.<app>] components` in wattle.toml"
                    .to_owned()
            }
            _ => String::new(),
        };
        format!("plugin `{name}`: {error}{hint}")
    })?;
    Ok(Bytes::from(bytes))
}
