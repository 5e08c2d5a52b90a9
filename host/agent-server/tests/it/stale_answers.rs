//! Answers to interrupts that are no longer pending.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::sync::watch;
use wattle_graph::failure::{Failure, code};
use wattle_run::hostcall::interrupt::InterruptRequest;

use crate::host::{Host, TestResponse};
use crate::live_stream::{Frame, LiveStream};
use crate::plugin::{Closures, Nothing};
use crate::protocol::event_names;

/// `held` and `failing` raise an interrupt. After the answer, `held` waits for a signal of the
/// test, and `failing` fails. `waiting` waits for the signal, and then finishes. `both` raises an
/// interrupt and waits for the signal in the same superstep.
fn graphs() -> String {
    let sequences =
        [("held", "ask", "hold"), ("failing", "ask", "fail"), ("waiting", "hold", "finish")];
    let both = r#"
        [graphs.both]
        entry = ["ask", "hold"]
        [graphs.both.channels]
        value = {}
        [graphs.both.nodes.ask]
        plugin = "p"
        [graphs.both.nodes.hold]
        plugin = "p"
    "#;
    sequences.map(sequence).concat() + both
}

/// Returns a graph with two nodes, one after the other.
fn sequence((graph, first, second): (&str, &str, &str)) -> String {
    format!(
        r#"
        [graphs.{graph}]
        entry = "{first}"
        [graphs.{graph}.channels]
        value = {{}}
        [graphs.{graph}.nodes.{first}]
        plugin = "p"
        [graphs.{graph}.nodes.{second}]
        plugin = "p"
        [[graphs.{graph}.edges]]
        from = "{first}"
        to = "{second}"
        "#
    )
}

/// A server with [`graphs`].
struct Asking {
    host: Host,
    /// Whether the nodes `hold` may complete.
    release: watch::Sender<bool>,
    /// Number of nodes of `failing` that have failed.
    failures: Arc<AtomicUsize>,
}

impl Asking {
    fn new() -> Self {
        let (release, go) = watch::channel(false);
        let failures = Arc::new(AtomicUsize::new(0));
        let counted = failures.clone();
        let plugin = Closures::new("p")
            .node("ask", |_, gate| async move {
                let question =
                    InterruptRequest { payload: json!("Are we good?"), response_schema: None };
                Ok(json!({ "value": gate.ask(question).await? }))
            })
            .node("hold", move |_, _| {
                let mut go = go.clone();
                async move {
                    let _ = go.wait_for(|go| *go).await;
                    Ok(json!({}))
                }
            })
            .node("finish", |_, _| async { Ok(json!({ "value": "finished" })) })
            .node("fail", move |_, _| {
                counted.fetch_add(1, Ordering::SeqCst);
                async move { Err(Failure::new(code::INVALID, "no way").into()) }
            });
        Self { host: Host::with_model(&graphs(), plugin, Arc::new(Nothing)), release, failures }
    }
}

/// Returns the id of the only pending interrupt of a thread.
async fn pending(host: &Host, id: &str) -> String {
    let state = host.get(&format!("/threads/{id}/state")).await.ok();
    state["interrupts"][0]["id"].as_str().unwrap().to_owned()
}

/// Creates a thread with a pending interrupt. Returns the ids of the thread and of the interrupt.
async fn asked(host: &Host, graph: &str) -> (String, String) {
    let id = host.thread().await;
    let run = json!({ "assistant_id": graph, "input": {} });
    host.post(&format!("/threads/{id}/runs/wait"), run).await.ok();
    let interrupt = pending(host, &id).await;
    (id, interrupt)
}

/// Creates a thread of `agent` with an answered and a pending interrupt. Returns the ids of the
/// thread, of the answered interrupt and of the pending interrupt.
async fn asked_again(host: &Host) -> (String, String, String) {
    let (id, _) = asked(host, "agent").await;
    // The node raises the interrupt again.
    let run = json!({ "assistant_id": "agent", "command": { "goto": "greet" } });
    host.post(&format!("/threads/{id}/runs/wait"), run).await.ok();
    let stale = pending(host, &id).await;
    resume(host, &id, "agent", json!({ &stale: "yes" })).await.ok();
    let fresh = pending(host, &id).await;
    assert_ne!(fresh, stale);
    (id, stale, fresh)
}

async fn resume(host: &Host, id: &str, graph: &str, answer: Value) -> TestResponse {
    let run = json!({ "assistant_id": graph, "command": { "resume": answer } });
    host.post(&format!("/threads/{id}/runs/wait"), run).await
}

#[tokio::test]
async fn repeated_answer_does_not_change_an_ended_thread() {
    let host = Host::new();
    let (id, interrupt) = asked(&host, "agent").await;
    let by_id = json!({ &interrupt: "yes" });
    let ended = resume(&host, &id, "agent", by_id.clone()).await.ok();
    assert_eq!(ended["value"], "yes");
    let path = format!("/threads/{id}");
    let state = host.get(&format!("{path}/state")).await.ok();
    for answer in [by_id, json!("yes"), json!({})] {
        let again = resume(&host, &id, "agent", answer.clone()).await;
        assert_eq!(again.ok(), ended, "{answer}");
        let run = host.get(again.header("content-location")).await.ok();
        assert_eq!(run["status"], "success", "{answer}");
    }
    assert_eq!(host.get(&format!("{path}/state")).await.ok(), state);
    assert_eq!(host.get(&path).await.ok()["status"], "idle");
    let run = json!({ "assistant_id": "agent", "stream_mode": ["values", "updates"],
        "command": { "resume": "yes" } });
    let frames = host.post(&format!("{path}/runs/stream"), run).await.frames();
    let kinds: Vec<&str> = frames.iter().map(|(kind, ..)| kind.as_str()).collect();
    assert_eq!(kinds, ["metadata", "values"], "the stream ends");
    assert_eq!(frames[1].1, ended);
}

#[tokio::test]
async fn stale_answers_are_ignored() {
    let host = Host::new();
    let (id, stale, fresh) = asked_again(&host).await;
    let state = host.get(&format!("/threads/{id}/state")).await.ok();
    let values = resume(&host, &id, "agent", json!({ &stale: "yes" })).await.ok();
    assert_eq!(
        values["__interrupt__"][0]["id"],
        json!(fresh),
        "the second interrupt is still pending"
    );
    assert_eq!(host.get(&format!("/threads/{id}/state")).await.ok(), state);
    assert_eq!(host.get(&format!("/threads/{id}")).await.ok()["status"], "interrupted");
    let both = json!({ &stale: "yes", &fresh: "no" });
    assert_eq!(resume(&host, &id, "agent", both).await.ok()["value"], "no");
}

#[tokio::test]
async fn stale_answer_does_not_stop_an_update() {
    let host = Host::new();
    let (id, stale, fresh) = asked_again(&host).await;
    let run = json!({ "assistant_id": "agent",
        "command": { "resume": { &stale: "yes" }, "update": { "items": ["mine"] } } });
    let values = host.post(&format!("/threads/{id}/runs/wait"), run).await.ok();
    assert_eq!(values["items"].as_array().unwrap().last(), Some(&json!("mine")));
    assert_eq!(values["__interrupt__"].as_array().unwrap().len(), 1);
    assert_ne!(pending(&host, &id).await, fresh, "the update makes a checkpoint");
}

#[tokio::test]
async fn strict_resume_rejects_stale_answers() {
    let host = Host::new();
    let (id, stale, fresh) = asked_again(&host).await;
    let runs = format!("/threads/{id}/runs");
    let before = host.get(&runs).await.ok();
    for (answers, reason) in [
        (json!({ &stale: "yes" }), "not_pending"),
        (json!({ &stale: "yes", &fresh: "yes" }), "not_pending"),
        (json!({}), "empty_map"),
    ] {
        let run = json!({ "assistant_id": "agent", "command": { "resume": answers },
            "strict_resume": true });
        let refused = host.post(&format!("{runs}/wait"), run).await;
        assert_eq!(refused.status, 400, "{}", refused.text);
        assert!(refused.text.contains(reason), "{}", refused.text);
        assert!(
            refused.text.contains(&fresh),
            "the error names the pending interrupt: {}",
            refused.text
        );
    }
    assert_eq!(host.get(&runs).await.ok(), before, "no run was created");
    assert_eq!(pending(&host, &id).await, fresh);
    let run = json!({ "assistant_id": "agent", "command": { "resume": { &fresh: "no" } },
        "strict_resume": true });
    assert_eq!(host.post(&format!("{runs}/wait"), run).await.ok()["value"], "no");
}

#[tokio::test]
async fn answer_enqueued_behind_an_equal_answer_is_stale() {
    let Asking { host, release, .. } = Asking::new();
    let (id, interrupt) = asked(&host, "held").await;
    let runs = format!("/threads/{id}/runs");
    let answer = async |strict: bool| {
        let run = json!({ "assistant_id": "held", "command": { "resume": { &interrupt: "yes" } },
            "strict_resume": strict });
        host.post(&runs, run).await
    };
    answer(false).await.ok();
    let (again, strict) = (answer(false).await, answer(true).await);
    for waiting in [&again, &strict] {
        assert_eq!(waiting.ok()["status"], "pending");
    }
    release.send_replace(true);
    let join = async |run: &TestResponse| {
        host.get(&format!("{}/join", run.header("content-location"))).await.ok()
    };
    assert_eq!(join(&again).await, json!({ "value": "yes" }));
    let error = join(&strict).await["__error__"].clone();
    assert!(error["message"].as_str().unwrap().contains("not_pending"), "{error}");
    let status = async |run: &TestResponse| {
        host.get(run.header("content-location")).await.ok()["status"].clone()
    };
    assert_eq!((status(&again).await, status(&strict).await), (json!("success"), json!("error")));
    assert_eq!(host.get(&format!("/threads/{id}")).await.ok()["status"], "idle");
}

#[tokio::test]
async fn answer_that_interrupts_the_run_of_an_equal_answer_continues_the_thread() {
    for by_id in [false, true] {
        let Asking { host, release, .. } = Asking::new();
        let (id, interrupt) = asked(&host, "held").await;
        let answer = if by_id { json!({ &interrupt: "yes" }) } else { json!("yes") };
        let run = json!({ "assistant_id": "held", "command": { "resume": answer },
            "multitask_strategy": "interrupt" });
        let path = format!("/threads/{id}");
        let first = host.post(&format!("{path}/runs"), run.clone()).await;
        let again = host.post(&format!("{path}/runs"), run).await;
        assert_eq!((first.status, again.status), (200, 200), "{answer}: {}", again.text);
        release.send_replace(true);
        let values = host.get(&format!("{}/join", again.header("content-location"))).await.ok();
        assert_eq!(values, json!({ "value": "yes" }), "{answer}");
        let state = host.get(&format!("{path}/state")).await.ok();
        assert_eq!(state["next"], json!([]), "{answer}: the nodes have run");
        let status = async |run: &TestResponse| {
            host.get(run.header("content-location")).await.ok()["status"].clone()
        };
        let both = (status(&first).await, status(&again).await);
        assert_eq!(both, (json!("interrupted"), json!("success")), "{answer}");
        assert_eq!(host.get(&path).await.ok()["status"], "idle", "{answer}");
    }
}

#[tokio::test]
async fn stale_answer_does_not_change_a_cancelled_thread() {
    // The test keeps the sender, because waiting nodes complete when the sender is dropped.
    let Asking { host, release: _let_go, .. } = Asking::new();
    let id = host.thread().await;
    let path = format!("/threads/{id}");
    let run = json!({ "assistant_id": "both", "input": {} });
    let cut = host.post(&format!("{path}/runs"), run.clone()).await;
    let cut = cut.header("content-location");
    while host.get(&format!("{path}/state")).await.ok()["interrupts"] == json!([]) {
        tokio::task::yield_now().await;
    }
    host.post(&format!("{cut}/cancel?wait=true"), Value::Null).await.ok();
    let shown = async || {
        let thread = host.get(&path).await.ok();
        (thread["status"].clone(), thread["error"]["error"].clone())
    };
    let cancelled = (json!("interrupted"), json!("UserInterrupt"));
    assert_eq!(shown().await, cancelled);
    let (open, stale) = (pending(&host, &id).await, "0".repeat(32));
    let answered = resume(&host, &id, "both", json!({ &stale: "yes" })).await;
    assert_eq!(answered.ok(), json!({}));
    let answered = host.get(answered.header("content-location")).await.ok();
    assert_eq!(answered["status"], "interrupted", "like the run before");
    assert_eq!(shown().await, cancelled);
    assert_eq!(pending(&host, &id).await, open);
    let next = host.post(&format!("{path}/runs"), run).await;
    let next = next.header("content-location");
    let rolled_back = host.post(&format!("{next}/cancel?action=rollback"), Value::Null).await;
    assert_eq!(rolled_back.status, 202, "{}", rolled_back.text);
    assert_eq!(shown().await, cancelled, "as before the run that was rolled back");
}

#[tokio::test]
async fn repeated_answer_does_not_retry_a_failed_thread() {
    let Asking { host, failures, .. } = Asking::new();
    let (id, interrupt) = asked(&host, "failing").await;
    let failed = resume(&host, &id, "failing", json!("yes")).await.ok();
    assert_eq!(failed["__error__"]["message"], "no way");
    for answer in [json!("yes"), json!({ &interrupt: "yes" })] {
        let again = resume(&host, &id, "failing", answer.clone()).await.ok();
        assert_eq!(again, failed, "{answer}");
    }
    assert_eq!(failures.load(Ordering::SeqCst), 1, "the node runs once");
    let thread = host.get(&format!("/threads/{id}")).await.ok();
    assert_eq!((&thread["status"], &thread["error"]), (&json!("error"), &failed["__error__"]));
}

#[tokio::test]
async fn resume_value_continues_past_a_breakpoint_and_stale_id_does_not() {
    let host = Host::new();
    let id = host.thread().await;
    let run = json!({ "assistant_id": "slow", "input": { "word": "a" },
        "interrupt_before": ["hold"] });
    let wait = format!("/threads/{id}/runs/wait");
    assert_eq!(host.post(&wait, run).await.ok(), json!({ "word": "a" }));
    let stale = "0".repeat(32);
    let still = resume(&host, &id, "slow", json!({ &stale: "yes" })).await;
    assert_eq!(still.ok(), json!({ "word": "a" }));
    assert_eq!(resume(&host, &id, "slow", json!("yes")).await.ok()["items"], json!(["a"]));
}

#[tokio::test]
async fn enqueued_resume_value_continues_past_a_breakpoint_and_stale_id_does_not() {
    let stale = "0".repeat(32);
    for (answer, values) in
        [(json!("yes"), json!({ "value": "finished" })), (json!({ &stale: "yes" }), json!({}))]
    {
        let Asking { host, release, .. } = Asking::new();
        let id = host.thread().await;
        let runs = format!("/threads/{id}/runs");
        let first = json!({ "assistant_id": "waiting", "input": {},
            "interrupt_before": ["finish"] });
        host.post(&runs, first).await.ok();
        let run = json!({ "assistant_id": "waiting", "command": { "resume": answer } });
        let waiting = host.post(&runs, run).await;
        assert_eq!(waiting.ok()["status"], "pending", "{answer}");
        release.send_replace(true);
        let run = waiting.header("content-location");
        assert_eq!(host.get(&format!("{run}/join")).await.ok(), values, "{answer}");
        assert_eq!(host.get(run).await.ok()["status"], "success", "{answer}");
    }
}

#[tokio::test]
async fn stream_of_a_stale_answer_ends_with_the_interrupt_or_failure_of_the_thread() {
    let streamed = async |host: &Host, id: &str, graph: &str, answer: Value| {
        let run = json!({ "assistant_id": graph, "stream_mode": ["values", "updates"],
            "command": { "resume": answer } });
        let frames = host.post(&format!("/threads/{id}/runs/stream"), run).await.frames();
        let parts = frames.into_iter().map(|(kind, data, _)| (kind, data));
        parts.unzip::<_, _, Vec<_>, Vec<_>>()
    };
    let host = Host::new();
    let (id, stale, fresh) = asked_again(&host).await;
    let (kinds, data) = streamed(&host, &id, "agent", json!({ &stale: "yes" })).await;
    assert_eq!(kinds, ["metadata", "values", "values"], "interrupted");
    assert_eq!(data[1].get("__interrupt__"), None);
    assert_eq!(data[2]["__interrupt__"].as_array().unwrap().len(), 1);
    assert_eq!(data[2]["__interrupt__"][0]["id"], json!(fresh));
    let Asking { host, .. } = Asking::new();
    let (id, _) = asked(&host, "failing").await;
    let failed = resume(&host, &id, "failing", json!("yes")).await.ok();
    let (kinds, data) = streamed(&host, &id, "failing", json!("yes")).await;
    assert_eq!(kinds, ["metadata", "values", "error"], "failed");
    assert_eq!(data[2], failed["__error__"]);
}

#[tokio::test]
async fn typed_events_of_a_stale_answer_end_with_the_interrupt_or_failure_of_the_thread() {
    let wanted = json!({ "channels": ["lifecycle", "values", "input"] });
    let host = Host::new();
    let (id, stale, _) = asked_again(&host).await;
    let mut live = LiveStream::events(&host, &id, wanted.clone()).await;
    let runs = host.get(&format!("/threads/{id}/runs")).await.ok();
    for _ in runs.as_array().unwrap() {
        live.run().await;
    }
    resume(&host, &id, "agent", json!({ &stale: "yes" })).await.ok();
    let expected = ["lifecycle running", "values", "lifecycle interrupted"];
    assert_eq!(event_names(&live.run().await), expected);
    let Asking { host, .. } = Asking::new();
    let (id, _) = asked(&host, "failing").await;
    let mut live = LiveStream::events(&host, &id, wanted).await;
    live.run().await;
    resume(&host, &id, "failing", json!("yes")).await.ok();
    let failed = live.run().await;
    resume(&host, &id, "failing", json!("yes")).await.ok();
    let frames = live.run().await;
    assert_eq!(event_names(&frames), ["lifecycle running", "values", "lifecycle failed"]);
    let end = |frames: &[Frame]| frames.last().unwrap().1["params"]["data"].clone();
    assert_eq!(end(&frames), end(&failed), "the same failure");
    assert_eq!(end(&frames)["error"], "no way");
}
