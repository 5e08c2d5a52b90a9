//! An operator who finds a run that failed among those of many threads, and forks it.

use anyhow::Result;
use serde_json::json;
use wattle_graph::failure::code;
use wattle_graph::id::{AppName, GraphName, RunId, ThreadId};
use wattle_kit::need;
use wattle_kit::needs::{LeftOut, clients};
use wattle_kit::standin::{Fault, FaultRule, Pattern};
use wattle_run::ports::store::ThreadStatus;
use wattle_suite::browser;
use wattle_suite::desk::{Desk, MODEL_PATH};
use wattle_suite::server::{Setup, TestServer};
use wattle_suite::stored_threads::{StoredThread, fill};
use wattle_suite::world::START_MS;

use super::STUDIO;

/// The program of an operator who forks a run that failed.
const PROGRAM: &str = "studio-travel.js";

/// One day.
const DAY_MS: u32 = 24 * 60 * 60 * 1_000;

/// Number of threads beside those of the app.
const OTHER_THREADS: u32 = 10_000;

/// Time between the updates of two of them. They are from the week before the run that failed, some
/// hundreds from the same morning.
const STEP_MS: i64 = 60_000;

/// One in so many of them has failed.
const FAILED_STEP: u32 = 5;

/// Returns the thread of another app with this number. The one with number 1 has the newest update.
fn other_thread(number: u32) -> Result<StoredThread> {
    let graph = (AppName::new("orders")?, GraphName::new("order")?);
    let (thread, run) = (format!("order-{number}"), format!("order-{number}-run"));
    let updated_ms = START_MS - STEP_MS * i64::from(number);
    let idle = StoredThread::new(ThreadId::new(thread)?, RunId::new(run)?, graph, updated_ms);
    if number.is_multiple_of(FAILED_STEP) {
        let failure = Some(code::UNAVAILABLE);
        return Ok(StoredThread { status: ThreadStatus::Error, failure, ..idle });
    }
    Ok(idle)
}

/// Starts a server on the threads of another app, with a run that failed in its second model call,
/// and one that failed on the day after.
async fn failed_yesterday() -> Result<TestServer, LeftOut> {
    clients::studio()?;
    let setup = Setup::desk(&Desk::default()).await;
    let others = (1..=OTHER_THREADS).map(other_thread);
    fill(&setup.workspace.store_file(), others).await.expect("the threads are written");
    let server = setup.start().await;
    let on = Pattern { body_contains: Some("stumble".to_owned()), ..Pattern::path(MODEL_PATH) };
    let body = Some(json!({ "error": { "message": "the model is confused" } }));
    let refusal = Fault::Status { status: 400, retry_after: None, body };
    server.standin().fault(FaultRule { skip: 1, ..FaultRule::new(on, refusal) });
    let run = server.say(Some("yesterday"), "call echo {\"text\":\"stumble\"}").await;
    assert_eq!(run["status"], "failed", "{run}");
    server.clock().advance_ms(DAY_MS);
    let run = server.say(Some("today"), "stumble").await;
    assert_eq!(run["status"], "failed", "{run}");
    Ok(server)
}

#[tokio::test]
async fn an_operator_forks_a_failed_run_with_a_corrected_answer_and_compares_both() {
    let server = need!(failed_yesterday().await);
    // The run failed at half past ten in the time zone of the browser.
    let url = server.url(&format!("{STUDIO}?since=2025-01-15T00:00&until=2025-01-15T12:00"));
    need!(browser::at_a_browser(PROGRAM, "mends", &url).await);
    let runs = server.get("/api/v1/threads/yesterday/runs").await.expect(200);
    assert_eq!(runs.as_array().map(Vec::len), Some(1), "the thread itself did not change");
    let counts = server.get("/api/v1/thread-counts").await.expect(200);
    assert_eq!(counts["total"], OTHER_THREADS + 3, "there is one copy: {counts}");
}
