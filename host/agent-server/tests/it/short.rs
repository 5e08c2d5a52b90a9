//! Runs that pause or end before their client has opened all of its connections. The clock of the
//! runtime is paused, so that a test can distinguish waiting for a connection from waiting for
//! time.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::time::Instant;
use wattle_api::ApiConfig;
use wattle_kit::clock::ManualClock;
use wattle_kit::need;
use wattle_kit::needs::{self, clients};

use crate::host::{Host, HostOptions};
use crate::live_stream::{Frame, LiveStream};
use crate::protocol::{ID, command, event_names, reference, result, start};

/// Channels of a subscription to the lifecycle of a run.
const LIFECYCLE: [&str; 2] = ["lifecycle", "input"];

/// Channels of the connections that the client opens for the views of the run.
const CONTENT: [&str; 3] = ["messages", "custom:progress", "lifecycle"];

/// The durations that the documentation states: grace, head start and maximum delay.
const GRACE: Duration = Duration::from_millis(250);
const HEAD_START: Duration = Duration::from_millis(30);
const LONGEST: Duration = Duration::from_secs(1);

/// Number of polls after which a test assumes that no further event is sent.
const POLLS: u32 = 200;

/// Default number of runs that the official client reads over each transport; [`RUNS_VARIABLE`]
/// overrides it.
const FEW: u32 = 6;

/// Environment variable with the number of runs for a long test. 200 runs take two minutes on an
/// idle machine.
const RUNS_VARIABLE: &str = "WATTLE_SHORT_RUNS";

/// Timeout of the client for each run over all transports.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(10);

async fn open(host: &Host, channels: &[&str]) -> LiveStream {
    LiveStream::events(host, ID, json!({ "channels": channels })).await
}

/// Waits until no run of the thread is active, without advancing the clock.
async fn wait_until_idle(host: &Host) {
    while host.get(&format!("/threads/{ID}")).await.ok()["status"] == "busy" {
        tokio::task::yield_now().await;
    }
}

/// Returns the server-sent events that a connection sends without the clock advancing.
async fn at_once(live: &mut LiveStream) -> Vec<Frame> {
    let mut frames = Vec::new();
    for _ in 0..POLLS {
        while let Poll::Ready(frame) = futures::poll!(Box::pin(live.next())) {
            frames.push(frame.unwrap());
        }
        tokio::task::yield_now().await;
    }
    frames
}

fn has(frames: &[Frame], kind: &str) -> bool {
    frames.iter().any(|(it, ..)| it == kind)
}

#[tokio::test(start_paused = true)]
async fn pause_waits_for_the_connection_with_earlier_content() {
    let host = reference();
    let mut watcher = open(&host, &LIFECYCLE).await;
    start(&host, json!({ "messages": [], "value": "i", "items": [] })).await;
    wait_until_idle(&host).await;
    assert!(
        !has(&at_once(&mut watcher).await, "input.requested"),
        "the client has not opened its content connections yet"
    );
    let opened = Instant::now();
    let mut content = open(&host, &CONTENT).await;
    let read = at_once(&mut content).await;
    assert!(has(&read, "messages") && has(&read, "custom"), "content is not delayed");
    assert_eq!(opened.elapsed(), Duration::ZERO);
    // Both connections send the pause at the same time.
    let paused = tokio::select! {
        biased;
        paused = watcher.until(|(kind, ..)| kind == "input.requested") => paused,
        frames = content.run() => panic!("the client would drop the content: {frames:?}"),
    };
    assert!(has(&paused, "input.requested"));
    assert_eq!(opened.elapsed(), GRACE, "the client could have opened another connection");
}

#[tokio::test(start_paused = true)]
async fn pause_end_and_cancel_wait_for_the_grace_without_other_connections() {
    for (graph, last) in [("agent", "input.requested"), ("slow", "lifecycle completed")] {
        let host = Host::new();
        let mut watcher = open(&host, &LIFECYCLE).await;
        let run = json!({ "assistant_id": graph, "input": {} });
        result(&command(&host, "run.start", run).await);
        let answered = Instant::now();
        watcher.until(|frame| event_names(std::slice::from_ref(frame)) == [last]).await;
        let waited = answered.elapsed();
        assert!(waited <= GRACE + HEAD_START, "{last}: {waited:?}");
    }
    let host = Host::new();
    host.hold();
    let mut watcher = open(&host, &LIFECYCLE).await;
    let begun = command(&host, "run.start", json!({ "assistant_id": "slow", "input": {} })).await;
    let run = result(&begun)["run_id"].as_str().unwrap();
    let cancel = format!("/threads/{ID}/runs/{run}/cancel");
    let cancelled = Instant::now();
    assert_eq!(host.post(&cancel, Value::Null).await.status, 202);
    watcher.run().await;
    assert!(cancelled.elapsed() <= GRACE + HEAD_START);
}

#[tokio::test(start_paused = true)]
async fn unread_connection_delays_a_pause_by_at_most_a_second() {
    let host = reference();
    let mut watcher = open(&host, &LIFECYCLE).await;
    let _unread = open(&host, &CONTENT).await;
    start(&host, json!({ "messages": [], "value": "i", "items": [] })).await;
    let answered = Instant::now();
    watcher.until(|(kind, ..)| kind == "input.requested").await;
    let waited = answered.elapsed();
    // The start of the run is delayed too. The clock of the host is not paused and does not include
    // this delay.
    assert!(waited > GRACE && waited <= LONGEST + GRACE, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn connection_with_all_channels_and_replay_are_not_delayed() {
    let clock = ManualClock::at_ms(1_000_000);
    let options = HostOptions { clock: Arc::new(clock.clone()), ..HostOptions::default() };
    let host = Host::with_options(ApiConfig::default(), options);
    let all = ["values", "updates", "messages", "tools", "tasks", "checkpoints", "custom"];
    let all = [&all[..], &LIFECYCLE].concat();
    start(&host, json!({ "value": "v" })).await;
    wait_until_idle(&host).await;
    let mut whole = open(&host, &all).await;
    let answered = Instant::now();
    whole.run().await;
    assert_eq!(answered.elapsed(), Duration::ZERO);
    clock.advance_ms(1_000);
    open(&host, &LIFECYCLE).await.run().await;
    assert_eq!(answered.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn run_starts_after_the_reply_on_earlier_connections() {
    let host = reference();
    let mut content = open(&host, &CONTENT).await;
    let mut whole = open(&host, &["custom"]).await;
    start(&host, json!({ "messages": [], "value": "i", "items": [] })).await;
    wait_until_idle(&host).await;
    assert_eq!(at_once(&mut content).await, [], "the client does not know the run yet");
    assert_eq!(at_once(&mut whole).await, []);
    assert!(
        has(&at_once(&mut open(&host, &["custom"]).await).await, "custom"),
        "a later connection has no delay"
    );
    let answered = Instant::now();
    content.until(|(kind, ..)| kind == "custom").await;
    assert!(answered.elapsed() <= HEAD_START);
}

/// Runs the official client for Python. `cargo xtask clients` creates the Python environment.
#[tokio::test]
async fn the_client_for_python_reads_runs_without_delay() {
    let python = need!(clients::python("langgraph-py", "python"));
    let host = reference();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = host.router.clone();
    tokio::spawn(async move { axum::serve(listener, router).await });
    let main =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients/langgraph-py/main.py");
    let mut client = Command::new(python);
    let reads: u32 = needs::setting(RUNS_VARIABLE).unwrap_or(FEW);
    client.arg("-B").arg(main).args(["--times", &reads.to_string()]);
    client.arg(url).arg("short.a_run_that_pauses");
    client.stdin(Stdio::null()).kill_on_drop(true);
    let ended =
        tokio::time::timeout(CLIENT_TIMEOUT * reads, client.output()).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    let report: Value = serde_json::from_slice(&ended.stdout).expect(&said);
    assert!(ended.status.success(), "{:#}\n{said}", report["failed"]);
    assert_eq!(report["left_out"], json!({}), "the client reads typed events");
}
