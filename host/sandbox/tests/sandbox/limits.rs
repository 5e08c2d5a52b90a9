//! Tests of limits: each exceeded limit ends the guest, and the failure names the limit. The guests
//! are reducers, since reducers need no gate.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use wattle_graph::failure::Failure;
use wattle_run::grant::{GrantSides, Grants, RequestPlace};
use wattle_run::limit::Limits;
use wattle_run::ports::sandbox::GuestError;

use crate::{app, guest, load};

async fn reduce(body: &str, updates: Vec<Value>, limits: &Limits) -> Result<Value, GuestError> {
    let plugin = load(guest::reducer(body)).await.unwrap();
    let grants = Grants { limits: limits.clone(), ..Grants::default() };
    plugin.reduce(&app(), "r", None, updates, &grants).await
}

fn limit_of(ended: Result<Value, GuestError>) -> (Value, Failure) {
    match ended {
        Err(GuestError::Limit(failure)) => {
            (failure.details.clone().unwrap()["limit"].clone(), failure)
        }
        other => panic!("no limit ended the guest: {other:?}"),
    }
}

#[tokio::test]
async fn reducer_returns_a_value() {
    let answer = reduce("(i32.const 320)", vec![json!(2)], &Limits::default()).await;
    assert_eq!(answer, Ok(json!(1)));
}

#[tokio::test]
async fn reducer_reads_the_same_random_numbers_each_time() {
    let body = "(i32.store8 (i32.const 256) (i32.add (i32.const 48)
            (i32.wrap_i64 (i64.rem_u (i64.xor (call $random) (call $monotonic)) (i64.const 10)))))
        (i32.const 320)";
    let plugin = load(guest::foreign_reducer(body)).await.unwrap();
    let (app, grants) = (app(), Grants::default());
    let value = plugin.reduce(&app, "r", None, vec![], &grants).await.unwrap();
    assert!(value.is_u64(), "{value}");
    assert_eq!(plugin.reduce(&app, "r", None, vec![], &grants).await, Ok(value));
}

#[tokio::test]
async fn endless_loop_exceeds_the_cpu_limit() {
    let limits = Limits { cpu_ms: 50, ..Limits::default() };
    let started = Instant::now();
    let ended = reduce("(loop (br 0)) (unreachable)", vec![], &limits).await;
    let (limit, failure) = limit_of(ended);
    assert_eq!(limit, "cpu");
    let line = "raise `limits.cpu` under `[grants.\"app/guest\"]` in wattle.toml";
    assert!(failure.message.contains(line), "{failure}");
    assert_eq!(failure.details.unwrap()["allowed"], 50);
    assert!(started.elapsed().as_secs() < 10);
}

#[tokio::test]
async fn limits_of_an_app_that_gets_what_it_requests_are_raised_in_its_manifest() {
    let plugin = load(guest::reducer("(loop (br 0)) (unreachable)")).await.unwrap();
    let request = Some((RequestPlace::App, Grants::default()));
    let grants = Grants {
        limits: Limits { cpu_ms: 50, ..Limits::default() },
        sides: Some(Arc::new(GrantSides { request, granted: None })),
        ..Grants::default()
    };
    let (_, failure) = limit_of(plugin.reduce(&app(), "r", None, vec![], &grants).await);
    let line = "; raise `limits.cpu` under `[needs]` in app.toml if it needs more";
    assert!(failure.message.ends_with(line), "{failure}");
}

#[tokio::test]
async fn other_tasks_run_during_an_endless_loop() {
    let limits = Limits { cpu_ms: 100, ..Limits::default() };
    let spin = reduce("(loop (br 0)) (unreachable)", vec![], &limits);
    let mut ticks = 0;
    let other = async {
        loop {
            ticks += 1;
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        ended = spin => assert_eq!(limit_of(ended).0, "cpu"),
        () = other => {}
    }
    assert!(ticks > 10, "{ticks}");
}

#[tokio::test]
async fn growing_memory_exceeds_the_memory_limit() {
    let limits = Limits { memory_bytes: 1 << 20, ..Limits::default() };
    let body = "(loop
        (br_if 0 (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))) (unreachable)";
    let (limit, failure) = limit_of(reduce(body, vec![], &limits).await);
    assert_eq!(limit, "memory");
    assert_eq!(failure.details.unwrap()["allowed"], 1 << 20);
}

#[tokio::test]
async fn initial_memory_counts_toward_the_memory_limit() {
    let limits = Limits { memory_bytes: 1 << 16, ..Limits::default() };
    let (limit, _) = limit_of(reduce("(i32.const 320)", vec![], &limits).await);
    assert_eq!(limit, "memory");
}

#[tokio::test]
async fn denied_memory_growth_is_not_fatal() {
    let limits = Limits { memory_bytes: 1 << 20, ..Limits::default() };
    let body = "(drop (memory.grow (i32.const 1000))) (i32.const 320)";
    assert_eq!(reduce(body, vec![], &limits).await, Ok(json!(1)));
}

#[tokio::test]
async fn endless_recursion_is_a_stack_overflow_trap() {
    let body = "(call $reduce (local.get 0) (local.get 1) (local.get 2) (local.get 3)
        (local.get 4) (local.get 5) (local.get 6))";
    match reduce(body, vec![], &Limits::default()).await {
        Err(GuestError::Trap(failure)) => {
            let text = "call stack exhausted: its calls nest too deep, most likely by endless \
                        recursion in reduce < reduce";
            assert!(failure.message.contains(text), "{failure}");
            assert_eq!(failure.details.unwrap()["trap"], "stack-overflow");
        }
        other => panic!("no trap: {other:?}"),
    }
}

#[tokio::test]
async fn trap_names_plugin_reducer_and_function() {
    match reduce("(unreachable)", vec![], &Limits::default()).await {
        Err(GuestError::Trap(failure)) => {
            assert_eq!(failure.code, "trap");
            assert!(
                failure.message.starts_with("reducer `r` of plugin `guest` trapped"),
                "{failure}"
            );
            assert!(failure.message.contains("in reduce"), "{failure}");
        }
        other => panic!("no trap: {other:?}"),
    }
}

/// Returns a body with a result of `bytes` bytes, each of which is the digit 1.
fn long_output(bytes: usize) -> String {
    format!(
        "(drop (memory.grow (i32.const 64)))
        (memory.fill (i32.const 65536) (i32.const 49) (i32.const {bytes}))
        (i32.store (i32.const 324) (i32.const 65536))
        (i32.store (i32.const 328) (i32.const {bytes}))
        (i32.const 320)"
    )
}

#[tokio::test]
async fn long_result_exceeds_the_output_limit() {
    let limits = Limits { output_bytes: 1_000, ..Limits::default() };
    assert_eq!(limit_of(reduce(&long_output(1_001), vec![], &limits).await).0, "output");
    assert!(reduce(&long_output(20), vec![], &limits).await.is_ok());
}

#[tokio::test]
async fn result_above_the_lift_limit_is_not_copied_to_the_host() {
    let limits = Limits { lift_bytes: 1 << 20, ..Limits::default() };
    assert_eq!(limit_of(reduce(&long_output(2 << 20), vec![], &limits).await).0, "lift");
}

#[tokio::test]
async fn result_that_is_not_json_is_a_failure() {
    let body = "(i32.store8 (i32.const 256) (i32.const 123)) (i32.const 320)";
    match reduce(body, vec![], &Limits::default()).await {
        Err(GuestError::Failure(failure)) => assert_eq!(failure.code, "invalid"),
        other => panic!("no failure: {other:?}"),
    }
}

#[tokio::test]
async fn result_outside_of_memory_is_a_trap() {
    let body = "(i32.store (i32.const 324) (i32.const -16)) (i32.const 320)";
    let ended = reduce(body, vec![], &Limits::default()).await;
    assert!(matches!(ended, Err(GuestError::Trap(_))), "{ended:?}");
}

#[tokio::test]
async fn dropped_calls_free_their_slots() {
    let plugin = load(guest::reducer("(loop (br 0)) (unreachable)")).await.unwrap();
    let limits = Limits { cpu_ms: 60_000, ..Limits::default() };
    let (app, grants) = (app(), Grants { limits, ..Grants::default() });
    for _ in 0..20 {
        let call = plugin.reduce(&app, "r", None, vec![], &grants);
        let ended = tokio::time::timeout(std::time::Duration::from_millis(5), call).await;
        assert!(ended.is_err());
    }
}
