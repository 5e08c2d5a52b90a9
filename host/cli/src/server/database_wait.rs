//! Waits at the start until the database of the store is available.

use std::time::Duration;

use wattle_store::PostgresStore;

use crate::config::Config;
use crate::env::ReadEnv;
use crate::error::Error;
use crate::host::store_database;
use crate::server::starting::{STARTING_REASON, Starting};

/// Pause between two attempts. Each failed attempt is logged.
const RETRY_PERIOD: Duration = Duration::from_secs(3);

/// Reason with which requests are rejected until the database is available.
const WAITING_REASON: &str = "the host waits for the database of its store; try again";

/// Waits until the store's database accepts connections.
///
/// # Errors
///
/// [`Error::Store`] if the database rejects the host permanently, and [`Error::Setup`] if the
/// connection settings are invalid.
pub(super) async fn wait_for_database(
    config: &Config,
    env: &ReadEnv,
    starting: &Starting,
) -> Result<(), Error> {
    let Some(database) = store_database(config, env)? else { return Ok(()) };
    while let Some(error) =
        PostgresStore::unavailable_error(&database).await.map_err(Error::Store)?
    {
        starting.set_reason(WAITING_REASON);
        tracing::warn!(%error, "the host waits for the database of its store");
        tokio::time::sleep(RETRY_PERIOD).await;
    }
    starting.set_reason(STARTING_REASON);
    Ok(())
}
