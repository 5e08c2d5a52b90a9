//! A start while the database of the store is away: the host waits for it.

use std::time::Duration;

use wattle_store::PostgresStore;

use crate::config::Config;
use crate::error::Error;
use crate::server::starting::{STARTS, Starting};
use crate::wire::{ReadEnv, store_database};

/// Pause between two attempts, and between two lines of the log.
const PAUSE: Duration = Duration::from_secs(3);

/// What requests are refused with meanwhile.
const WAITS: &str = "the host waits for the database of its store; try again";

/// Waits until the database of the store lets the host in.
///
/// # Errors
///
/// [`Error::Store`] if the database refuses the host, which no waiting changes, and [`Error::Setup`].
pub(super) async fn wait_for_database(
    config: &Config,
    env: &ReadEnv,
    starting: &Starting,
) -> Result<(), Error> {
    let Some(database) = store_database(config, env)? else { return Ok(()) };
    while let Some(error) = PostgresStore::away(&database).await.map_err(Error::Store)? {
        starting.say(WAITS);
        tracing::warn!(%error, "the host waits for the database of its store");
        tokio::time::sleep(PAUSE).await;
    }
    starting.say(STARTS);
    Ok(())
}
