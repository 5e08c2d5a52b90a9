//! Standalone plugins: `.wasm` files in the plugins folder, which the graphs of any app can use.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use tokio::task::JoinError;
use wattle_graph::id::PluginName;
use wattle_run::ports::{Plugin, Sandbox};

use crate::load::file::{COMPONENT_BYTES, FileError, FileLocation};
use crate::load::hinted_message::HintedMessage;
use crate::load::names;
use crate::load::turns::Turn;
use crate::output::Output;

/// A component that cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unloaded {
    /// File of the component.
    pub path: PathBuf,
    /// Why it cannot be loaded.
    pub reason: HintedMessage,
}

/// Loads a component for a command, without a limit on the duration of its compilation, which is
/// printed. The name of the plugin is the file name without the extension.
///
/// # Errors
///
/// A message with the reason and a hint.
pub async fn load(
    sandbox: &dyn Sandbox,
    location: &FileLocation,
) -> Result<Arc<dyn Plugin>, HintedMessage> {
    let loaded = load_in_turn(sandbox, location, &mut Turn::unlimited(Output::note)).await?;
    // A turn without limits compiles every component.
    let not_compiled = || format!("`{}` was not compiled", location.path().display());
    loaded.ok_or_else(|| HintedMessage::plain(not_compiled()))
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
) -> Result<Option<Arc<dyn Plugin>>, HintedMessage> {
    let path = location.path();
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let rename = format!("rename `{}`", path.display());
    let name = PluginName::new(&stem)
        .map_err(|error| HintedMessage::new(error.to_string(), rename.as_str()))?;
    if let Some(problem) = names::problem("plugin name", name.as_str()) {
        let hint = problem.hint.map(|hint| format!("{hint}; {rename}"));
        return Err(HintedMessage { hint, ..problem });
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
) -> Result<Option<Arc<dyn Plugin>>, HintedMessage> {
    let bytes = read(name, location, is_built).await?;
    let loaded = turn.load(sandbox, name, &location.path(), bytes).await;
    loaded.map_err(HintedMessage::from)
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
) -> Result<Bytes, HintedMessage> {
    let from = location.clone();
    let read = tokio::task::spawn_blocking(move || from.read(COMPONENT_BYTES)).await;
    let failed = |error: JoinError| HintedMessage::plain(format!("plugin `{name}`: {error}"));
    let bytes = read.map_err(failed)?.map_err(|error| {
        let HintedMessage { message, hint } = error.hinted();
        let hint = match (&error, location) {
            (FileError::Unreadable { source, .. }, FileLocation::Inside { folder, .. })
                if is_built && source.kind() == ErrorKind::NotFound =>
            {
                Some(format!("run `wattle build {}`", folder.display()))
            }
            (FileError::Unreadable { .. }, _) => Some(
                "build it for wasm32-unknown-unknown, or name its file under `[apps.<app>] \
                 components` in wattle.toml"
                    .to_owned(),
            ),
            _ => hint,
        };
        HintedMessage { message: format!("plugin `{name}`: {message}"), hint }
    })?;
    Ok(Bytes::from(bytes))
}
