//! `wattle-before-apps`: drives a host with each application, and writes the folders of
//! [`wattle_suite::before::apps`] from its data. It refuses to overwrite a folder.

mod asset;
mod expense;
mod nl2sql;
mod reasoning;
mod requests;
mod travel;

use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::json;
use sqlx::Connection as _;
use wattle_run::ports::{Clock as _, Store as _};
use wattle_store::RedbStore;
use wattle_suite::asset::open_sqlite;
use wattle_suite::before::apps::{self, App};
use wattle_suite::server::TestServer;

/// Maximum size of all folders, in bytes.
const MAX_BYTES: u64 = 700_000;

#[tokio::main]
async fn main() -> Result<()> {
    for app in App::ALL {
        let folder = app.folder().path();
        ensure!(!folder.exists(), "`{}` exists, and is never written again", folder.display());
    }
    let mut bytes = 0;
    for app in App::ALL {
        Box::pin(write(app)).await?;
        Box::pin(record(app)).await?;
        bytes += size(&app.folder().path())?;
    }
    ensure!(bytes <= MAX_BYTES, "the folders have {bytes} bytes; delete them and store less");
    Ok(())
}

/// Creates the sessions of an application, and packs the data folder.
async fn write(app: App) -> Result<()> {
    let server = Box::pin(Box::pin(app.setup(None)).await.start()).await;
    let requests = match app {
        App::Asset => Box::pin(asset::make(&server)).await,
        App::Expense => Box::pin(expense::make(&server)).await,
        App::Nl2sql => Box::pin(nl2sql::make(&server)).await,
        App::Reasoning => Box::pin(reasoning::make(&server)).await,
        App::Travel => Box::pin(travel::make(&server)).await,
    };
    app.put_manifest(&json!({
        "clock_ms": server.clock().now_ms(),
        "services": server.standin().base_url,
        "threads": apps::threads(&server).await.len(),
        "stored": requests.stored,
        "continued": requests.continued,
    }))?;

    let TestServer { running, setup, .. } = server;
    running.shutdown().await;
    let data = setup.workspace.data();
    let store = RedbStore::open(data.join("wattle.redb"))?;
    store.compact().await?;
    // Dropping the last handle closes the file.
    drop(store);
    let folder = app.folder();
    for database in folder.databases() {
        compact(&data.join(database)).await?;
    }
    folder.pack(&data)?;
    Ok(())
}

/// Moves all content of a SQLite database into its file.
async fn compact(file: &Path) -> Result<()> {
    let mut database = open_sqlite(file).await;
    for statement in ["VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"] {
        sqlx::query(statement).execute(&mut database).await?;
    }
    database.close().await?;
    let wal = file.with_extension("db-wal");
    let rest = fs::metadata(&wal).map_or(0, |it| it.len());
    ensure!(rest == 0, "`{}` has content, so the database is open", wal.display());
    Ok(())
}

/// Opens the folder as the test does, and records the responses to the requests.
async fn record(app: App) -> Result<()> {
    let (server, mut manifest) = app.open().await;
    for request in manifest["stored"].as_array_mut().into_iter().flatten() {
        request["response"] = apps::respond(&server, request).await;
    }
    let threads = apps::threads(&server).await;
    ensure!(manifest["threads"] == threads.len(), "not all threads are packed: {threads:?}");
    apps::migrate(&server, &threads).await;
    for request in manifest["continued"].as_array_mut().into_iter().flatten() {
        let mut response = apps::respond(&server, request).await;
        apps::remove_generated(&mut response);
        request["response"] = response;
    }
    app.put_manifest(&manifest)?;
    server.running.shutdown().await;
    Ok(())
}

/// Returns the size of all files below a path.
fn size(path: &Path) -> Result<u64> {
    if !path.is_dir() {
        return Ok(fs::metadata(path)?.len());
    }
    let mut bytes = 0;
    for entry in fs::read_dir(path)? {
        bytes += size(&entry?.path())?;
    }
    Ok(bytes)
}
