//! Executes an exported thread again with the current code.

use std::path::Path;

use wattle_graph::id::AppName;
use wattle_run::export::Export;
use wattle_run::replay::{Against, Replay, replay_thread};

use crate::cases::runner::Runner;
use crate::command::replay::read;
use crate::error::Error;
use crate::host::replay::ports_for_export;

/// Replays the thread of a file with the loaded version of the app. Returns the reason if it cannot
/// be replayed.
pub(super) async fn replay(
    runner: &Runner<'_>,
    file: &Path,
) -> Result<Result<Replay, String>, Error> {
    let text = read(file)?;
    let export = match Export::read(&text) {
        Ok(export) => export,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let of_app = &export.header.thread.app;
    if of_app.as_str() != runner.app {
        return Ok(Err(format!("the thread is of app `{of_app}`, not of `{}`", runner.app)));
    }
    let app = AppName::new(runner.app).ok();
    let engine = runner.client.engine();
    let found = engine
        .zip(app)
        .and_then(|(engine, app)| Some((engine.catalog().app(&app)?, engine.ports().clone())));
    let (app, ports) =
        found.ok_or_else(|| Error::Failed(format!("app `{}` is not loaded", runner.app)))?;
    let ports = ports_for_export(&export, &ports).await;
    let replayed = Box::pin(replay_thread(&export, app, ports, Against::Current)).await;
    Ok(replayed.map_err(|failure| failure.message))
}
