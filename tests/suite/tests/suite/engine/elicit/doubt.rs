//! Calls whose server dropped them, or that were settled.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::json;
use wattle_graph::event::{Decision, EventKind};
use wattle_graph::failure::code;
use wattle_graph::id::ThreadId;
use wattle_run::engine::settle::SettleCall;
use wattle_run::grant::InDoubtPolicy;
use wattle_run::hostcall::runs::{OnFailure, RunOutcome, RunService as _};
use wattle_suite::native::NativePlugin;
use wattle_suite::world::{World, failure, questions};

use super::{Desk, ONE, accept, asked, caller, decline, request, world, world_of};

#[tokio::test]
async fn a_call_that_its_server_dropped_is_in_doubt() {
    let desk = Desk::holding();
    let world = world(ONE, &desk);
    let (_, thread) = asked(&world).await;
    desk.lose();
    let ended = world.answer(&thread, accept()).await;
    let doubt = failure(&ended);
    assert_eq!((doubt.code.as_str(), desk.counts()), (code::IN_DOUBT, (1, 0)));
    assert!(doubt.message.contains("waited for the answer of a person"), "{doubt}");
}

/// The server restarts together with the host and is not available when the answer arrives.
#[tokio::test]
async fn a_dropped_call_is_in_doubt_if_the_tool_list_is_unavailable() {
    let retried = format!("{ONE}retry = {{ attempts = 2, initial = \"1ms\" }}\n");
    for graph in [retried.as_str(), ONE] {
        let desk = Desk::holding();
        let world = world(graph, &desk);
        let (_, thread) = asked(&world).await;
        desk.lose();
        desk.unlisted.store(1, Ordering::SeqCst);
        let ended = world.answer(&thread, accept()).await;
        assert_eq!((failure(&ended).code.as_str(), desk.counts()), (code::IN_DOUBT, (1, 0)));
        let open = world.engine.pending_calls(&thread).await.unwrap();
        assert_eq!(open.len(), 1, "the call can be settled: {open:?}");
        assert!(open[0].request.is_some(), "a person sees what was requested: {open:?}");
    }
}

#[tokio::test]
async fn a_held_call_continues_without_a_tool_list() {
    let desk = Desk::holding();
    let world = world(ONE, &desk);
    let (_, thread) = asked(&world).await;
    desk.unlisted.store(1, Ordering::SeqCst);
    let ended = world.answer(&thread, accept()).await;
    assert_eq!(ended.state["out"], json!([{ "work": ["accept"] }]), "{:?}", ended.outcome);
    assert_eq!((desk.counts(), desk.unlisted.load(Ordering::SeqCst)), ((1, 1), 1));
}

#[tokio::test]
async fn a_person_or_the_policy_repeats_the_call_with_the_answer() {
    for in_doubt in [InDoubtPolicy::Ask, InDoubtPolicy::Retry] {
        let desk = Desk::holding();
        let world = world_of(ONE, caller(), &desk, in_doubt);
        let (_, thread) = asked(&world).await;
        desk.lose();
        let mut ended = world.answer(&thread, accept()).await;
        if in_doubt == InDoubtPolicy::Ask {
            let doubt = &questions(&ended)[0].payload["in_doubt"];
            assert_eq!(doubt["summary"], "book");
            for answer in [accept(), json!({ "kind": "answer", "answer": "booked" })] {
                let refused = world.resume(&thread, &[("", answer)], OnFailure::Keep).await;
                assert_eq!(refused.unwrap_err().code, code::INVALID);
            }
            ended = world.answer(&thread, json!({ "kind": "retry" })).await;
        }
        assert_eq!(ended.state["out"], json!([{ "work": ["accept"] }]), "{:?}", ended.outcome);
        assert_eq!(desk.counts(), (2, 1));
    }
}

#[tokio::test]
async fn a_call_that_failed_after_the_answer_is_repeated() {
    let retried = format!("{ONE}retry = {{ attempts = 2, initial = \"1ms\" }}\n");
    for graph in [retried.as_str(), ONE] {
        let desk = Desk::holding();
        let world = world(graph, &desk);
        let (_, thread) = asked(&world).await;
        desk.fails.store(1, Ordering::SeqCst);
        let mut ended = world.answer(&thread, accept()).await;
        if graph == ONE {
            assert_eq!(failure(&ended).code, code::UNAVAILABLE);
            ended = world.resume(&thread, &[], OnFailure::Keep).await.unwrap();
        }
        assert_eq!(ended.state["out"], json!([{ "work": ["accept"] }]), "{:?}", ended.outcome);
        assert_eq!(desk.counts(), (2, 1));
    }
}

#[tokio::test]
async fn a_call_whose_result_is_lost_is_repeated_only_with_the_policy_retry() {
    let retried = format!("{ONE}retry = {{ attempts = 2, initial = \"1ms\" }}\n");
    for holds in [true, false] {
        for (in_doubt, calls) in
            [(InDoubtPolicy::Fail, 1), (InDoubtPolicy::Ask, 1), (InDoubtPolicy::Retry, 2)]
        {
            let rounds = usize::from(holds);
            let desk = Arc::new(Desk::new(holds, rounds));
            let world = world_of(&retried, caller(), &desk, in_doubt);
            desk.losses.store(1, Ordering::SeqCst);
            let mut ended = world.run(json!({})).await;
            if holds {
                ended = world.answer(&ended.run.thread, accept()).await;
            }
            assert_eq!(desk.counts(), (calls, calls), "{:?}", ended.outcome);
            if in_doubt == InDoubtPolicy::Retry {
                assert_eq!(ended.outcome, RunOutcome::Completed);
            } else {
                assert_eq!(failure(&ended).code, code::IN_DOUBT);
            }
        }
    }
}

/// Settles the only pending call of a thread.
async fn settle(world: &World, thread: &ThreadId, decision: Decision) {
    let open = world.engine.pending_calls(thread).await.unwrap().remove(0);
    let settle = SettleCall {
        thread: thread.clone(),
        task: open.task,
        scope: open.scope,
        call: open.call,
        seq: None,
        decision,
        by: "test".into(),
        app: None,
        tenant: None,
        principal: None,
    };
    world.engine.settle(settle).await.unwrap();
}

#[tokio::test]
async fn a_settled_result_takes_precedence_over_the_answer() {
    let desk = Desk::holding();
    let world = world(ONE, &desk);
    let (_, thread) = asked(&world).await;
    let answer = json!({ "content": [], "structured": ["by phone"] });
    settle(&world, &thread, Decision::Answer { answer }).await;
    desk.lets_go(0).await;
    let ended = world.answer(&thread, accept()).await;
    assert_eq!(ended.state["out"], json!([{ "work": ["by phone"] }]), "{:?}", ended.outcome);
    assert_eq!(desk.counts(), (1, 0));
}

/// The call is repeated, and the server gets the person's answer when it asks the same question.
#[tokio::test]
async fn a_held_call_is_repeated_if_it_is_settled_with_retry() {
    let desk = Desk::holding();
    let world = world(ONE, &desk);
    let (_, thread) = asked(&world).await;
    settle(&world, &thread, Decision::Retry).await;
    let ended = world.answer(&thread, accept()).await;
    assert_eq!(ended.state["out"], json!([{ "work": ["accept"] }]), "{:?}", ended.outcome);
    assert_eq!(desk.counts(), (2, 1));
    desk.lets_go(0).await;
}

#[tokio::test]
async fn a_call_in_doubt_is_listed_with_a_waiting_call_of_its_batch() {
    let desk = Arc::new(Desk::new(true, 2));
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let both = [json!({}), json!({ "hangs": true })];
        let both = both.into_iter().map(|arguments| Ok(request(arguments)));
        for answer in gate.call_tools(both.collect()).await? {
            answer?;
        }
        Ok(json!({}))
    });
    let mut world = world_of(ONE, plugin, &desk, InDoubtPolicy::Fail);
    desk.hangs.store(1, Ordering::SeqCst);
    let run = world.begin(json!({})).await.unwrap();
    let is_asked = |kind: &EventKind| matches!(kind, EventKind::InterruptRaised(_));
    while desk.counts().0 < 2 || world.count(&run.thread, is_asked).await == 0 {
        tokio::task::yield_now().await;
    }
    // The crash cuts the second call.
    world.crash().await;
    assert_eq!(world.engine.recover().await, 1);
    let ended = world.engine.wait(&run).await.unwrap();
    assert_eq!(questions(&ended).len(), 1);
    let ended = world.answer(&run.thread, accept()).await;
    assert_eq!(questions(&ended).len(), 1, "the first call has a second round");
    let open = world.engine.pending_calls(&run.thread).await.unwrap();
    assert_eq!(open.len(), 2, "{open:?}");
}

#[tokio::test]
async fn a_copied_thread_does_not_own_the_held_call() {
    let desk = Desk::holding();
    let world = world(ONE, &desk);
    let (_, thread) = asked(&world).await;
    let copy = world.engine.copy_thread(&thread, None).await.unwrap();
    let ended = world.answer(&copy, accept()).await;
    assert_eq!(failure(&ended).code, code::IN_DOUBT);
    let ended = world.answer(&thread, decline()).await;
    assert_eq!(ended.state["out"], json!([{ "work": ["decline"] }]), "{:?}", ended.outcome);
    assert_eq!(desk.counts(), (1, 1));
}
