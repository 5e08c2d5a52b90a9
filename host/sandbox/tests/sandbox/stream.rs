//! Tests of streams: a guest reads a completion as deltas, and may drop the stream before its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use wattle_graph::failure::Failure;
use wattle_graph::llm::{Completion, CompletionRequest, Delta, FinishReason, Part, Usage};
use wattle_run::grant::Grants;
use wattle_run::ports::model::{DeltaSink, RouteInfo};
use wattle_run::ports::sandbox::{GuestError, NodeOutcome};
use wattle_run::ports::{BlobStore, Caller, Model};
use wattle_run::stop_flag::StopFlag;

use crate::{guest, load, stub_ports};

const NOTHING: &str = "(i32.const 512)";

const IMPORTS: &str = r#"
    (import "wattle:plugin/llm@0.1.0" "stream" (func $stream (param i32 i32)))
    (import "wattle:plugin/llm@0.1.0" "route" (func $route (param i32 i32 i32)))
    (import "wattle:plugin/llm@0.1.0" "[method]completion-stream.next"
        (func $next (param i32 i32)))
    (import "wattle:plugin/llm@0.1.0" "[method]completion-stream.finish"
        (func $finish (param i32 i32)))
    (import "wattle:plugin/llm@0.1.0" "[resource-drop]completion-stream"
        (func $drop (param i32)))"#;

/// Opens a stream on the route `n`. The handle of the stream is at address 1028.
const OPEN: &str = "
    (i32.store (i32.const 2048) (i32.const 64)) (i32.store (i32.const 2052) (i32.const 1))
    (call $stream (i32.const 2048) (i32.const 1024))
    (if (i32.load8_u (i32.const 1024)) (then (unreachable)))";

/// Reads the next deltas. The address of the list is at 1092, and its length at 1096.
const NEXT: &str = "
    (call $next (i32.load (i32.const 1028)) (i32.const 1088))
    (if (i32.load8_u (i32.const 1088)) (then (unreachable)))";

/// A model that streams `a` and, after a delay, restarts with `b`. Unless `ends` is set, the model
/// streams `a` and never completes.
struct StreamingModel {
    ends: bool,
    left: Arc<AtomicBool>,
}

/// Sets the flag when the model call ends or is dropped.
struct DropFlag(Arc<AtomicBool>);

impl Drop for DropFlag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[async_trait]
impl Model for StreamingModel {
    fn has_route(&self, _caller: &Caller, route: &str) -> bool {
        route == "n"
    }

    fn route(&self, _caller: &Caller, _route: &str) -> Option<RouteInfo> {
        Some(RouteInfo {
            provider: "here".to_owned(),
            model: "talker".to_owned(),
            has_fallback: true,
            candidates: 2,
        })
    }

    async fn complete(
        &self,
        _caller: &Caller,
        _request: &CompletionRequest,
        _blobs: &dyn BlobStore,
        deltas: &dyn DeltaSink,
    ) -> Result<Completion, Failure> {
        let _leaving = DropFlag(Arc::clone(&self.left));
        deltas.push(Delta::Text { text: "a".to_owned() });
        if !self.ends {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(stub_ports::EXCHANGE).await;
        deltas.push(Delta::Restart);
        deltas.push(Delta::Text { text: "b".to_owned() });
        Ok(Completion {
            id: None,
            parts: vec![Part::Text("b".to_owned())],
            structured: None,
            finish_reason: FinishReason::Stop,
            usage: Usage::default(),
            model: "talker".to_owned(),
            attempts: Vec::new(),
        })
    }

    async fn set_route(
        &self,
        _caller: &Caller,
        _route: &str,
        _config: Value,
    ) -> Result<(), Failure> {
        Ok(())
    }

    async fn get_route(&self, _caller: &Caller, _route: &str) -> Result<Option<Value>, Failure> {
        Ok(None)
    }

    async fn remove_route(&self, _caller: &Caller, _route: &str) -> Result<(), Failure> {
        Ok(())
    }
}

async fn run(model: StreamingModel, body: &str) -> Result<NodeOutcome, GuestError> {
    let plugin = load(guest::node(IMPORTS, body)).await.unwrap();
    let grants = Grants { llm: ["n".to_owned()].into(), ..Grants::default() };
    let gate = stub_ports::gate_to(Arc::new(model), stub_ports::app(grants), StopFlag::default());
    plugin.run_node(stub_ports::call(), gate).await
}

fn streaming_model(ends: bool) -> (StreamingModel, Arc<AtomicBool>) {
    let left = Arc::new(AtomicBool::new(false));
    (StreamingModel { ends, left: Arc::clone(&left) }, left)
}

#[tokio::test]
async fn deltas_arrive_before_the_completion() {
    // The first delta is the text `a`. An empty list is the end of the stream. The completion has
    // one part.
    let body = format!(
        "(local $first i32) {OPEN} {NEXT}
        (local.set $first (i32.load (i32.const 1092)))
        (if (i32.load8_u (local.get $first)) (then (unreachable)))
        (if (i32.ne (i32.load8_u (i32.load offset=4 (local.get $first))) (i32.const 97))
            (then (unreachable)))
        (loop {NEXT} (br_if 0 (i32.load (i32.const 1096))))
        (call $finish (i32.load (i32.const 1028)) (i32.const 1152))
        (if (i32.load8_u (i32.const 1152)) (then (unreachable)))
        (if (i32.ne (i32.load (i32.const 1164)) (i32.const 1)) (then (unreachable)))
        (call $drop (i32.load (i32.const 1028))) {NOTHING}"
    );
    assert_eq!(run(streaming_model(true).0, &body).await, Ok(NodeOutcome::default()));
}

#[tokio::test]
async fn dropped_stream_cancels_the_call() {
    let (model, left) = streaming_model(false);
    let body = format!("{OPEN} {NEXT} (call $drop (i32.load (i32.const 1028))) {NOTHING}");
    assert_eq!(run(model, &body).await, Ok(NodeOutcome::default()));
    wait_for(&left).await;
}

#[tokio::test]
async fn end_of_a_guest_with_an_open_stream_cancels_the_call() {
    let (model, left) = streaming_model(false);
    let ended = run(model, &format!("{OPEN} {NEXT} (unreachable)")).await;
    assert!(matches!(ended, Err(GuestError::Trap(_))), "{ended:?}");
    wait_for(&left).await;
}

#[tokio::test]
async fn route_is_described() {
    // The model's name has six letters, and there is a fallback.
    let body = format!(
        "(call $route (i32.const 64) (i32.const 1) (i32.const 1024))
        (if (i32.load8_u (i32.const 1024)) (then (unreachable)))
        (if (i32.ne (i32.load (i32.const 1040)) (i32.const 6)) (then (unreachable)))
        (if (i32.eqz (i32.load8_u (i32.const 1044))) (then (unreachable)))
        {NOTHING}"
    );
    assert_eq!(run(streaming_model(true).0, &body).await, Ok(NodeOutcome::default()));
}

/// Waits until the model call is dropped, which happens soon after the guest drops the stream.
async fn wait_for(left: &AtomicBool) {
    for _ in 0..100 {
        if left.load(Ordering::SeqCst) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the call was not cancelled");
}
