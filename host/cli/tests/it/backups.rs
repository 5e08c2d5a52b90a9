//! Backups that come to nothing.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use bytes::Bytes;
use tokio::sync::{Notify, Semaphore};
use tower::ServiceExt as _;
use wattle::config::StoreKind;
use wattle::wire::Host;
use wattle_api::{Operator, unguarded_router};
use wattle_graph::failure::Failure;
use wattle_run::ports::BlobStore;
use wattle_run::ports::blob::{BlobInfo, BlobRef};
use wattle_run::ports::store::Damage;
use wattle_store::MemoryBlobs;

use crate::fixture;

/// How often something is looked at again, with a tenth of a second between.
const TRIES: usize = 300;

/// Blobs of which a copy is made as soon as a test wants that.
struct Held {
    begun: Notify,
    gate: Semaphore,
}

#[async_trait]
impl BlobStore for Held {
    async fn put(&self, _: Bytes, _: &str) -> Result<BlobRef, Failure> {
        Err(Failure::internal("nobody puts a blob"))
    }

    async fn get(&self, _: BlobRef, _: u64, _: Option<u64>) -> Result<Bytes, Failure> {
        Err(Failure::internal("nobody gets a blob"))
    }

    async fn stat(&self, _: BlobRef) -> Result<BlobInfo, Failure> {
        Err(Failure::internal("nobody looks at a blob"))
    }

    async fn backup(&self, _: &Path) -> Result<Vec<Damage>, Failure> {
        self.begun.notify_one();
        let opened = self.gate.acquire().await;
        opened.map(|_permit| Vec::new()).map_err(|error| Failure::internal(error.to_string()))
    }
}

/// A host with a store in files and blobs of its own, and what answers on it.
async fn host(folder: &Path, blobs: Arc<dyn BlobStore>) -> (Host, Router) {
    let mut config = fixture::config(folder, fixture::BRIEF_STOP);
    config.store.kind = StoreKind::Redb;
    let mut overrides = fixture::options().overrides;
    overrides.blobs = Some(blobs);
    let host = Box::pin(Host::open(config, overrides)).await.unwrap();
    let router = unguarded_router(host.api_state().unwrap());
    (host, router)
}

fn backup() -> Request<Body> {
    let request = Request::post("/api/v1/store/backup").extension(Operator);
    request.body(Body::empty()).unwrap()
}

/// Folders of backups.
fn made(folder: &Path) -> usize {
    std::fs::read_dir(folder.join("data/backups")).map_or(0, Iterator::count)
}

#[tokio::test]
async fn nothing_is_left_of_a_backup_that_fails() {
    let folder = tempfile::tempdir().unwrap();
    // These cannot be copied.
    let (host, router) = host(folder.path(), Arc::new(MemoryBlobs::new())).await;
    let refused = router.oneshot(backup()).await.unwrap();
    assert_eq!(refused.status().as_u16(), 501);
    assert_eq!(made(folder.path()), 0);
    host.close().await;
}

#[tokio::test]
async fn nothing_is_left_of_a_backup_that_nobody_waits_for() {
    let folder = tempfile::tempdir().unwrap();
    let held = Arc::new(Held { begun: Notify::new(), gate: Semaphore::new(0) });
    let (host, router) = host(folder.path(), held.clone()).await;
    tokio::select! {
        _ = router.clone().oneshot(backup()) => panic!("it waits for its blobs"),
        () = held.begun.notified() => {}
    }
    assert_eq!(made(folder.path()), 1);
    held.gate.add_permits(1);
    let mut tries = 0;
    while made(folder.path()) > 0 {
        tries += 1;
        assert!(tries < TRIES);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // The same with somebody who waits.
    let copied = router.oneshot(backup()).await.unwrap();
    assert_eq!(copied.status().as_u16(), 200);
    assert!(folder.path().join("data/backups/1/wattle.redb").is_file());
    host.close().await;
}
