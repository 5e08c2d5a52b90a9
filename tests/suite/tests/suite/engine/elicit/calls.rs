//! Calls that continue, each with its own answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use wattle_graph::event::{EventKind, Write};
use wattle_graph::failure::code;
use wattle_graph::id::{ChannelName, NodeName};
use wattle_graph::step::Command;
use wattle_run::grant::InDoubtPolicy;
use wattle_run::hostcall::runs::{OnFailure, RunOutcome};
use wattle_run::ports::store::RunKind;
use wattle_suite::native::NativePlugin;
use wattle_suite::world::{failure, questions};

use super::{Desk, ONE, THEN, TWO, accept, asked, decline, request, world, world_of};

#[tokio::test]
async fn a_call_continues_with_the_answer_of_a_person() {
    for (holds, calls) in [(true, 1), (false, 2)] {
        let desk = Arc::new(Desk::new(holds, 1));
        let world = world(ONE, &desk);
        let (ended, thread) = asked(&world).await;
        let payload = json!({ "message": "Sure?", "server": "far", "tool": "book" });
        assert_eq!(questions(&ended)[0].payload, payload);
        let events = world.events(&thread).await;
        let is_round = |kind: &EventKind| matches!(kind, EventKind::InterruptRaised(asked) if asked.elicited.is_some());
        let asked = events.iter().find(|event| is_round(&event.kind)).unwrap();
        let shown = json!(asked.shown());
        assert_eq!((&shown["payload"], shown.get("elicited")), (&payload, None));
        let odd = world.resume(&thread, &[("", json!({ "action": "?" }))], OnFailure::Keep).await;
        assert_eq!(odd.unwrap_err().code, code::INVALID);
        let ended = world.answer(&thread, accept()).await;
        assert_eq!(ended.state["out"], json!([{ "work": ["accept"] }]), "{:?}", ended.outcome);
        assert_eq!(desk.counts(), (calls, 1));
    }
}

#[tokio::test]
async fn tasks_with_equal_questions_get_their_own_answers() {
    for holds in [true, false] {
        let desk = Arc::new(Desk::new(holds, 1));
        let world = world(TWO, &desk);
        let (ended, thread) = asked(&world).await;
        let open = questions(&ended);
        let id = |node: &str| open.iter().find(|it| it.node.as_str() == node).unwrap().id.clone();
        let (a, b) = (id("a"), id("b"));
        let answers = [(a.as_str(), accept()), (b.as_str(), decline())];
        let ended = world.resume(&thread, &answers, OnFailure::Keep).await.unwrap();
        let expected = json!([{ "a": ["accept"] }, { "b": ["decline"] }]);
        assert_eq!(ended.state["out"], expected, "{:?}", ended.outcome);
    }
}

#[tokio::test]
async fn calls_of_one_batch_can_be_answered_separately() {
    let desk = Desk::holding();
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let both = [1, 2].iter().map(|number| Ok(request(json!({ "number": number }))));
        let mut out = Vec::new();
        for answer in gate.call_tools(both.collect()).await? {
            out.push(answer?.structured);
        }
        Ok(json!({ "out": out }))
    });
    let world = world_of(ONE, plugin, &desk, InDoubtPolicy::Fail);
    let (ended, thread) = asked(&world).await;
    let open = questions(&ended);
    assert_eq!(open.len(), 2);
    let second = [(open[1].id.as_str(), decline())];
    let ended = world.resume(&thread, &second, OnFailure::Keep).await.unwrap();
    assert_eq!(questions(&ended).len(), 1);
    let begun = world.count(&thread, |kind| matches!(kind, EventKind::CallStarted(_))).await;
    assert_eq!(begun, 2, "a task continues when all answers have arrived");
    let ended = world.answer(&thread, accept()).await;
    let mut said = ended.state["out"].as_array().unwrap().clone();
    said.sort_by_key(ToString::to_string);
    assert_eq!(said, [json!(["accept"]), json!(["decline"])]);
    assert_eq!(desk.counts(), (2, 2));
}

/// Returns a graph with two attempts, the first of which exceeds its timeout. The timeout is long
/// enough for a busy machine.
fn retried() -> String {
    format!("{ONE}timeout = \"3s\"\nretry = {{ attempts = 2, initial = \"1ms\" }}\n")
}

/// Returns a plugin whose node makes two concurrent calls, one of which may hang.
fn asking_beside_one_that_hangs() -> NativePlugin {
    NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let both = [json!({}), json!({ "hangs": true })];
        let both = both.into_iter().map(|arguments| Ok(request(arguments)));
        let mut out = Vec::new();
        for answer in gate.call_tools(both.collect()).await? {
            out.push(answer?.structured);
        }
        Ok(json!({ "out": out.len() }))
    })
}

#[tokio::test]
async fn an_attempt_reuses_the_questions_of_the_attempt_before() {
    let retried = retried();
    for (holds, calls) in [(true, 3), (false, 5)] {
        let desk = Arc::new(Desk::new(holds, 1));
        let world = world_of(&retried, asking_beside_one_that_hangs(), &desk, InDoubtPolicy::Fail);
        desk.hangs.store(1, Ordering::SeqCst);
        let (ended, thread) = asked(&world).await;
        let failed = world.count(&thread, |kind| matches!(kind, EventKind::TaskFailed(_))).await;
        assert_eq!(failed, 1, "the first attempt timed out");
        let open = questions(&ended);
        assert_eq!((open.len(), desk.counts()), (2, (3, 0)));
        let answers = [(open[0].id.as_str(), accept()), (open[1].id.as_str(), accept())];
        let ended = world.resume(&thread, &answers, OnFailure::Keep).await.unwrap();
        assert_eq!(ended.state["out"], json!([2]), "{:?}", ended.outcome);
        assert_eq!(desk.counts(), (calls, 2));
        desk.lets_go(0).await;
    }
}

/// The call was not in progress in the attempt that failed.
#[tokio::test]
async fn a_held_call_of_a_failed_attempt_is_in_doubt_if_its_server_drops_it() {
    let desk = Desk::holding();
    let world = world_of(&retried(), asking_beside_one_that_hangs(), &desk, InDoubtPolicy::Fail);
    desk.hangs.store(1, Ordering::SeqCst);
    let (ended, thread) = asked(&world).await;
    let open = questions(&ended);
    assert_eq!((open.len(), desk.counts()), (2, (3, 0)));
    desk.lose();
    let answers = [(open[0].id.as_str(), accept()), (open[1].id.as_str(), accept())];
    let ended = world.resume(&thread, &answers, OnFailure::Keep).await.unwrap();
    assert_eq!((failure(&ended).code.as_str(), desk.counts()), (code::IN_DOUBT, (3, 0)));
}

#[tokio::test]
async fn a_call_can_have_several_rounds() {
    for (holds, calls) in [(true, 1), (false, 4)] {
        let desk = Arc::new(Desk::new(holds, 3));
        let mut world = world(ONE, &desk);
        let (_, thread) = asked(&world).await;
        for answer in [accept(), decline()] {
            let ended = world.answer(&thread, answer).await;
            assert_eq!(questions(&ended).len(), 1);
            // The server that holds the call outlives the engine in this test.
            world.crash().await;
        }
        let ended = world.answer(&thread, accept()).await;
        let expected = json!([{ "work": ["accept", "decline", "accept"] }]);
        assert_eq!(ended.state["out"], expected, "{:?}", ended.outcome);
        assert_eq!(desk.counts(), (calls, 1));
    }
}

/// Returns a run that executes a command and answers nothing.
fn run_of(command: Command) -> RunKind {
    RunKind::Command { command, answer: None, checkpoint: None }
}

#[tokio::test]
async fn a_command_carries_over_the_rounds_of_a_pending_call() {
    for (holds, calls) in [(true, 1), (false, 3)] {
        let desk = Arc::new(Desk::new(holds, 2));
        let world = world(THEN, &desk);
        let (_, thread) = asked(&world).await;
        world.answer(&thread, accept()).await;
        let command = Command { goto: vec![NodeName::new("c").unwrap()], ..Command::default() };
        let ended = world.run_on(&thread, run_of(command)).await.unwrap();
        assert_eq!(questions(&ended)[0].payload["message"], "Sure?");
        let ended = world.answer(&thread, decline()).await;
        let out = ended.state["out"].as_array().unwrap();
        assert!(out.contains(&json!({ "work": ["accept", "decline"] })), "{out:?}");
        assert_eq!(desk.counts(), (calls, 1));
    }
}

/// A task that reads the written channel restarts.
#[tokio::test]
async fn a_command_with_writes_is_refused_while_a_call_is_held() {
    for holds in [true, false] {
        let desk = Arc::new(Desk::new(holds, 1));
        let world = world(ONE, &desk);
        let (_, thread) = asked(&world).await;
        let channel = ChannelName::new("out").unwrap();
        let writes = vec![Write { channel, value: json!("more"), overwrite: false }];
        let command = Command { writes, ..Command::default() };
        let commanded = world.run_on(&thread, run_of(command)).await;
        if holds {
            let refused = commanded.unwrap_err();
            assert_eq!(refused.code, code::CONFLICT);
            assert!(refused.message.contains("waits for the answer of a person"), "{refused}");
            assert_eq!(desk.waiting(), 1);
            continue;
        }
        assert_eq!(questions(&commanded.unwrap()).len(), 1);
        let ended = world.answer(&thread, accept()).await;
        let out = json!(["more", { "work": ["accept"] }]);
        assert_eq!(ended.state["out"], out, "{:?}", ended.outcome);
        assert_eq!(desk.counts(), (3, 1));
    }
}

#[tokio::test]
async fn an_answer_belongs_to_the_call_that_elicited_it() {
    let desk = Desk::holding();
    let is_other = Arc::new(AtomicBool::new(false));
    let flag = is_other.clone();
    let plugin = NativePlugin::new("p", "1").node("work", move |_, gate| {
        let arguments = json!({ "other": flag.load(Ordering::SeqCst) });
        async move { Ok(json!({ "out": gate.call_tool(request(arguments)).await?.structured })) }
    });
    let world = world_of(ONE, plugin, &desk, InDoubtPolicy::Retry);
    let (_, thread) = asked(&world).await;
    is_other.store(true, Ordering::SeqCst);
    let ended = world.answer(&thread, accept()).await;
    assert_eq!((failure(&ended).code.as_str(), desk.counts()), (code::DIVERGENCE, (1, 0)));
}

#[tokio::test]
async fn a_resumed_call_keeps_its_tool_when_the_name_becomes_ambiguous() {
    let desk = Desk::holding();
    let world = world(ONE, &desk);
    let (_, thread) = asked(&world).await;
    desk.is_twice.store(true, Ordering::SeqCst);
    let ended = world.answer(&thread, accept()).await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
    let ended = world.run(json!({})).await;
    assert_eq!(failure(&ended).code, code::DENIED, "two tools have the name now");
}
