//! A single `.wasm` file in the plugins folder: a plugin that the graphs of apps may name.

use std::path::Path;
use std::sync::Arc;

use wattle_graph::id::PluginName;
use wattle_run::ports::{Plugin, Sandbox};

/// Loads a component by its file. It is called by the file's name without ending, with `_` for
/// what cannot stand in a name.
///
/// # Errors
///
/// Sentences that say what is wrong and what to do.
pub async fn load(sandbox: &dyn Sandbox, path: &Path) -> Result<Arc<dyn Plugin>, String> {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let name = PluginName::new(&stem)
        .map_err(|error| format!("{error}\n  hint: rename `{}`", path.display()))?;
    load_as(sandbox, &name, path).await
}

/// Loads a component under a given name.
///
/// # Errors
///
/// Sentences that say what is wrong and what to do.
pub async fn load_as(
    sandbox: &dyn Sandbox,
    name: &PluginName,
    path: &Path,
) -> Result<Arc<dyn Plugin>, String> {
    let bytes = tokio::fs::read(path).await.map_err(|error| {
        format!(
            "plugin `{name}`: `{}` cannot be read: {error}\n  hint: build it for \
             wasm32-unknown-unknown, or name its file under `[apps.<app>] components` in \
             wattle.toml",
            path.display()
        )
    })?;
    sandbox.load(name, bytes.into()).await.map_err(|error| error.to_string())
}
