//! Crons of hosts that share a database.

use std::sync::Arc;

use serde_json::{Value, json};
use wattle::config::{Config, StoreKind};
use wattle::server::{RunningServer, Server, ServerOptions};
use wattle_kit::clock::ManualClock;
use wattle_kit::need;
use wattle_kit::postgres::Postgres;

use crate::fixture::{answer, config, options, write_app};

/// 2026-11-22T09:00:30Z.
pub(crate) const NOW_MS: i64 = 1_795_338_030_000;

/// Time between two runs. Interrupts of the graph expire after half an hour, together with their
/// threads.
const PERIOD_MS: u32 = 20 * 60_000;

pub(crate) fn at(clock: &ManualClock) -> ServerOptions {
    let mut options = options();
    options.overrides.clock = Some(Arc::new(clock.clone()));
    options
}

pub(crate) async fn post(server: &RunningServer, path: &str, body: Value) -> Value {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let (status, value) = answer(client.post(format!("{}{path}", server.url())).json(&body)).await;
    assert_eq!(status, 200, "{value}");
    value
}

/// Waits until a thread has `count` runs and all of them have ended, and returns the runs.
pub(crate) async fn runs(server: &RunningServer, thread: &str, count: usize) -> Vec<Value> {
    let url = format!("{}/threads/{thread}/runs", server.url());
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let begun = std::time::Instant::now();
    loop {
        let (status, listed) = answer(client.get(&url)).await;
        assert_eq!(status, 200, "{listed}");
        let listed = listed.as_array().unwrap().clone();
        let is_over = |run: &Value| !matches!(run["status"].as_str(), Some("pending" | "running"));
        if listed.len() >= count && listed.iter().all(is_over) {
            return listed;
        }
        let seconds = begun.elapsed().as_secs();
        assert!(seconds < 20, "{count} runs are not over: {listed:#?}");
        tokio::task::yield_now().await;
    }
}

/// Counts the inputs that runs of a thread have applied, one for each started run.
pub(crate) async fn executions(server: &RunningServer, thread: &str) -> usize {
    let inputs = json!({ "limit": 1_000, "metadata": { "source": "input" } });
    let taken = post(server, &format!("/threads/{thread}/history"), inputs).await;
    // The history also contains the state before each input.
    let taken = taken.as_array().unwrap();
    taken.iter().filter(|state| state["next"] == json!(["__start__"])).count()
}

pub(crate) fn host(folder: &tempfile::TempDir, database: &Postgres) -> Config {
    write_app(&folder.path().join("plugins"), "greeter");
    let toml = format!("[store]\nurl = \"{}\"\n", database.url());
    let mut config = config(folder.path(), &toml);
    config.store.kind = StoreKind::Postgres;
    config
}

#[tokio::test]
async fn hosts_of_one_database_start_a_cron_run_once() {
    let database = need!(Postgres::for_test());
    let clock = ManualClock::at_ms(NOW_MS);
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let one = Server::start(host(&folders[0], &database), at(&clock)).await.unwrap();
    let two = Server::start(host(&folders[1], &database), at(&clock)).await.unwrap();
    let thread = post(&one, "/threads", json!({})).await["thread_id"].clone();
    let path = format!("/threads/{}/runs/crons", thread.as_str().unwrap());
    let often = json!({
        "assistant_id": "Greet", "schedule": "*/20 * * * *", "input": { "name": "Ada" },
    });
    post(&one, &path, often).await;
    // The creation of another cron causes a host to check all crons.
    let rare = json!({
        "assistant_id": "Greet", "schedule": "0 0 1 1 *", "input": { "name": "Bob" },
    });
    for count in 1..=6 {
        clock.advance_ms(PERIOD_MS);
        tokio::join!(
            post(&one, "/runs/crons", rare.clone()),
            post(&two, "/runs/crons", rare.clone()),
        );
        let begun = runs(&two, thread.as_str().unwrap(), count).await;
        assert_eq!(begun.len(), count, "{begun:#?}");
        assert!(begun.iter().all(|run| run["status"] == "success"), "{begun:#?}");
        assert_eq!(executions(&two, thread.as_str().unwrap()).await, count);
    }
    one.shutdown().await;
    two.shutdown().await;
}
