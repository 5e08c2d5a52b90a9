//! Backups of a server: while runs start and end, when the copy fails, and when the client
//! disconnects.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore};
use tokio::task::{JoinSet, spawn_blocking};
use tower::ServiceExt as _;
use wattle::config::{Config, StoreKind};
use wattle::host::Host;
use wattle::server::Server;
use wattle_api::{Operator, unguarded_router};
use wattle_graph::failure::Failure;
use wattle_run::ports::BlobStore;
use wattle_run::ports::blob::{BlobInfo, BlobRef};
use wattle_run::ports::store::Damage;
use wattle_store::InMemoryBlobs;

use crate::binary::said;
use crate::fixture::{BRIEF_STOP, answer, config, options, write_app};

/// Number of clients. Each of them always has a run in progress.
const CLIENTS: usize = 50;

/// Number of runs that have ended before the backup begins.
const ENDED: u32 = 200;

/// Maximum number of attempts to observe a condition, at intervals of a tenth of a second.
const TRIES: usize = 300;

/// The state that the clients of a test share. Each client starts runs until the load is over.
struct Load {
    client: reqwest::Client,
    url: String,
    /// Whether clients start no more runs.
    is_over: AtomicBool,
    /// Runs whose end a client has received.
    ended: Mutex<Vec<String>>,
    /// Semaphore that gets one permit for each ended run.
    came: Semaphore,
}

impl Load {
    fn new(server: &str) -> Self {
        Self {
            client: reqwest::Client::builder().no_proxy().build().unwrap(),
            url: format!("{server}/api/v1/apps/greeter/runs"),
            is_over: AtomicBool::new(false),
            ended: Mutex::default(),
            came: Semaphore::new(0),
        }
    }

    /// Starts runs one after the other, each on a new thread.
    async fn run(self: Arc<Self>) {
        let start = json!({ "input": { "name": "Ada" }, "wait": true });
        while !self.is_over.load(Ordering::SeqCst) {
            let (status, run) = answer(self.client.post(&self.url).json(&start)).await;
            assert_eq!((status, &run["status"]), (200, &json!("interrupted")), "{run}");
            self.ended.lock().unwrap().push(run["run"].as_str().unwrap().to_owned());
            self.came.add_permits(1);
        }
    }
}

/// Prepares a folder with the app and a store in files.
fn place(folder: &Path) -> Config {
    write_app(&folder.join("plugins"), "greeter");
    let mut config = config(folder, "");
    config.store.kind = StoreKind::Redb;
    config
}

/// Runs a command that must succeed, and returns its output.
async fn told(folder: &Path, args: [&'static str; 2], copy: &Path) -> String {
    let (folder, copy) = (folder.to_owned(), copy.to_owned());
    let work = move || said(&folder, &[args[0], args[1], copy.to_str().unwrap()], None);
    let (went_well, text) = spawn_blocking(work).await.unwrap();
    assert!(went_well, "{args:?}: {text}");
    text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_during_runs_has_all_runs_that_ended_before_it() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let copy = from.path().join("copy");
    let server = Server::start(place(from.path()), options()).await.unwrap();
    let load = Arc::new(Load::new(&server.url()));
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        clients.spawn(load.clone().run());
    }
    load.came.acquire_many(ENDED).await.unwrap().forget();
    let ended = load.ended.lock().unwrap().clone();
    told(from.path(), ["store", "backup"], &copy).await;
    // Runs continue after the backup.
    load.came.acquire_many(ENDED).await.unwrap().forget();
    load.is_over.store(true, Ordering::SeqCst);
    while let Some(client) = clients.join_next().await {
        client.unwrap();
    }
    server.shutdown().await;

    let config = place(to.path());
    let text = told(to.path(), ["store", "restore"], &copy).await;
    assert!(text.contains("nothing is damaged"), "{text}");
    let server = Server::start(config, options()).await.unwrap();
    let get = async |path: String| -> (u16, Value) {
        answer(load.client.get(format!("{}{path}", server.url()))).await
    };
    for run in &ended {
        let (status, known) = get(format!("/api/v1/runs/{run}")).await;
        assert_eq!((status, &known["status"]), (200, &json!("interrupted")), "{run}: {known}");
        let thread = known["thread"].as_str().unwrap();
        let (status, known) = get(format!("/api/v1/threads/{thread}")).await;
        assert_eq!((status, &known["state"]["greeting"]), (200, &json!("hello Ada")), "{known}");
    }
    server.shutdown().await;
}

/// A blob store whose copy waits until the test releases it.
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

/// Opens a host with a store in files and the given blobs, and its router.
async fn host(folder: &Path, blobs: Arc<dyn BlobStore>) -> (Host, Router) {
    let mut config = config(folder, BRIEF_STOP);
    config.store.kind = StoreKind::Redb;
    let mut overrides = options().overrides;
    overrides.blobs = Some(blobs);
    let host = Box::pin(Host::open(config, overrides)).await.unwrap();
    let router = unguarded_router(host.api_state().unwrap());
    (host, router)
}

fn backup() -> Request<Body> {
    let request = Request::post("/api/v1/store/backup").extension(Operator);
    request.body(Body::empty()).unwrap()
}

/// Returns the number of folders with backups.
fn made(folder: &Path) -> usize {
    std::fs::read_dir(folder.join("data/backups")).map_or(0, Iterator::count)
}

#[tokio::test]
async fn a_failed_backup_leaves_no_files() {
    let folder = tempfile::tempdir().unwrap();
    // Blobs in memory cannot be copied.
    let (host, router) = host(folder.path(), Arc::new(InMemoryBlobs::new())).await;
    let refused = router.oneshot(backup()).await.unwrap();
    assert_eq!(refused.status().as_u16(), 501);
    assert_eq!(made(folder.path()), 0);
    host.close().await;
}

#[tokio::test]
async fn a_backup_whose_client_disconnects_leaves_no_files() {
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
    // A second backup succeeds if its client waits.
    let copied = router.oneshot(backup()).await.unwrap();
    assert_eq!(copied.status().as_u16(), 200);
    assert!(folder.path().join("data/backups/1/wattle.redb").is_file());
    host.close().await;
}
