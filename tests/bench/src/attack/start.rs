//! How soon a host listens.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use wattle_suite::attack::host::{Host, Prepared};
use wattle_suite::attack::poison;

/// Runs that cannot be gone on with.
pub(super) const THREADS: usize = 50;

/// With an empty store.
pub(super) async fn empty(binary: &Path) -> Result<Duration> {
    // Compiles what was never compiled.
    Host::start(binary).await?.terminate().await?;
    listens(Prepared::new().await?, binary).await
}

/// With a poisoned one.
pub(super) async fn poisoned(binary: &Path) -> Result<Duration> {
    let (prepared, _gate) = poison::poisoned(binary, THREADS).await?;
    listens(prepared, binary).await
}

async fn listens(prepared: Prepared, binary: &Path) -> Result<Duration> {
    let begin = Instant::now();
    let host = prepared.start(binary).await?;
    let taken = begin.elapsed();
    host.honest.run().await?;
    host.terminate().await?;
    Ok(taken)
}
