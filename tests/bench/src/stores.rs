//! The stores of the cases, by their names in the protocol.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail};
use wattle_run::ports::Store;
use wattle_run::ports::store::Durability;
use wattle_store::{InMemoryStore, PostgresConfig, PostgresStore, RedbStore};

/// Suffix of a store's name: every superstep waits for its checkpoint.
const SYNC: &str = "-sync";

/// Returns the durability of runs on a store: `sync` with the suffix, otherwise the default of a
/// host.
pub(crate) fn durability(store: &str) -> Durability {
    if store.ends_with(SYNC) { Durability::Sync } else { Durability::Commit }
}

/// Opens an empty store in a folder or, for PostgreSQL, in a database.
pub(crate) async fn open(store: &str, place: &str) -> Result<Arc<dyn Store>> {
    Ok(match store.strip_suffix(SYNC).unwrap_or(store) {
        "memory" => Arc::new(InMemoryStore::new()),
        "redb" => Arc::new(RedbStore::open(Path::new(place).join("bench.redb"))?),
        "postgres" => Arc::new(PostgresStore::open(&PostgresConfig::new(place)).await?),
        other => bail!("unknown store `{other}`"),
    })
}

/// Returns the size of the store on disk; `None` for a store in memory.
pub(crate) async fn stored_bytes(store: &str, opened: &dyn Store) -> Result<Option<u64>> {
    if store.starts_with("memory") {
        return Ok(None);
    }
    Ok(Some(opened.compact().await?.before_bytes))
}
