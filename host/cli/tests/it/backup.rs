//! A backup of a server on which runs start and end all the time.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, spawn_blocking};
use wattle::config::{Config, StoreKind};
use wattle::server::Server;

use crate::binary::said;
use crate::fixture::{answer, config, options, write_app};

/// Clients, each of which has a run under way all the time.
const CLIENTS: usize = 50;

/// Runs that have ended before the backup begins.
const ENDED: u32 = 200;

/// What the clients share.
struct Load {
    client: reqwest::Client,
    url: String,
    is_over: AtomicBool,
    /// Runs of which a client has heard that they have ended.
    ended: Mutex<Vec<String>>,
    /// One for each of them.
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

    /// Starts runs one after the other, each on a thread of its own.
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

/// A folder with the app and a store in files.
fn place(folder: &Path) -> Config {
    write_app(&folder.join("plugins"), "greeter");
    let mut config = config(folder, "");
    config.store.kind = StoreKind::Redb;
    config
}

/// What a command says.
async fn told(folder: &Path, args: [&'static str; 2], copy: &Path) -> String {
    let (folder, copy) = (folder.to_owned(), copy.to_owned());
    let work = move || said(&folder, &[args[0], args[1], copy.to_str().unwrap()], None);
    let (went_well, text) = spawn_blocking(work).await.unwrap();
    assert!(went_well, "{args:?}: {text}");
    text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_beside_runs_has_all_that_had_ended_before_it_began() {
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
    // Runs go on after it.
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
