//! Calls in doubt, which were in progress when the host died, and how they are settled.

use serde_json::{Value, json};
use wattle_graph::event::{Decision, Event, EventKind};
use wattle_graph::failure::code;
use wattle_kit::log::Log;
use wattle_run::engine::settle::SettleCall;
use wattle_run::engine::{Engine, EngineConfig};
use wattle_run::grant::{Grants, InDoubtPolicy};
use wattle_run::hostcall::http::HttpRequest;
use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::hostcall::runs::{OnFailure, ResumeRun, RunOutcome, RunRef, RunService};
use wattle_run::limit::Limits;
use wattle_run::ports::store::LeaseHolder;
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::{NoSql, get};
use wattle_suite::world::{World, failure, questions};

const ONE: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.channels.out]
[graphs.one.nodes.work]
plugin = "p"
"#;

/// Starts a run that crashes during a payment and is recovered under a policy.
async fn cut_while_paying(in_doubt: InDoubtPolicy) -> (World, RunRef) {
    cut_in(ONE, in_doubt).await
}

/// Starts such a run of another graph.
async fn cut_in(graph: &str, in_doubt: InDoubtPolicy) -> (World, RunRef) {
    cut_with(graph, Grants { in_doubt, ..Grants::default() }).await
}

/// Starts such a run with other grants.
async fn cut_with(graph: &str, grants: Grants) -> (World, RunRef) {
    let (world, run) = crashed_with(graph, grants).await;
    assert_eq!(world.engine.recover().await, 1);
    (world, run)
}

/// Starts such a run, which is not recovered yet.
async fn crashed_with(graph: &str, grants: Grants) -> (World, RunRef) {
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let post = HttpRequest { method: "POST".into(), ..get("https://example.com/slow-pay") };
        let answer = gate.call(post).await?;
        Ok(json!({ "out": answer.status }))
    });
    let mut world = World::with_sql(graph, plugin, std::sync::Arc::new(NoSql), grants);
    world.net.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    world.crash().await;
    (world, run)
}

#[tokio::test]
async fn the_operators_log_has_one_line_for_a_call_in_doubt() {
    let policies = [
        (InDoubtPolicy::Fail, "fail"),
        (InDoubtPolicy::Ask, "ask"),
        (InDoubtPolicy::Retry, "retry"),
    ];
    for (in_doubt, policy) in policies {
        let grants = Grants { in_doubt, ..Grants::default() };
        let (world, run) = crashed_with(ONE, grants).await;
        // This engine logs on the thread of the test.
        let (log, _guard) = Log::start();
        let holder = Some(LeaseHolder("world".to_owned()));
        let config = EngineConfig { holder, ..EngineConfig::default() };
        let (ports, catalog) = (world.engine.ports().clone(), world.engine.catalog().clone());
        let engine = Engine::new(ports, catalog, config);
        assert_eq!(engine.recover().await, 1);
        engine.wait(&run).await.unwrap();

        let mut lines = log.lines();
        lines.retain(|line| line.contains("a call is in doubt"));
        let [line] = lines.as_slice() else { panic!("{lines:?}") };
        let RunRef { thread, run } = &run;
        for part in [
            format!("thread={thread} run={run} node=work"),
            "function=http.send summary=POST https://example.com/slow-pay".to_owned(),
            format!("policy=\"{policy}\""),
        ] {
            assert!(line.starts_with("WARN ") && line.contains(&part), "{line}");
        }
    }
}

#[tokio::test]
async fn the_policy_retry_repeats_the_call_and_logs_it() {
    let (world, run) = cut_while_paying(InDoubtPolicy::Retry).await;
    let ended = world.engine.wait(&run).await.unwrap();
    assert_eq!((ended.outcome, ended.state["out"].clone()), (RunOutcome::Completed, json!(200)));
    assert_eq!(world.net.calls(), 2);
    let settled = world.count(&run.thread, |kind| matches!(kind, EventKind::Settled(_))).await;
    assert_eq!(settled, 1);
}

async fn asked(answer: Value) -> (World, wattle_run::hostcall::runs::EndedRun) {
    let (world, run) = cut_while_paying(InDoubtPolicy::Ask).await;
    let ended = world.engine.wait(&run).await.unwrap();
    let open = questions(&ended);
    assert_eq!(open.len(), 1);
    let doubt = &open[0].payload["in_doubt"];
    assert_eq!(doubt["summary"], "POST https://example.com/slow-pay");
    assert_eq!(doubt["request"]["method"], "POST");
    let ended = world.answer(&run.thread, answer).await;
    (world, ended)
}

#[tokio::test]
async fn a_person_can_repeat_the_call() {
    let (world, ended) = asked(json!({ "kind": "retry" })).await;
    assert_eq!((ended.state["out"].clone(), world.net.calls()), (json!(200), 2));
}

#[tokio::test]
async fn a_person_can_give_the_result_of_the_call() {
    let answer = json!({
        "status": 201, "headers": [], "body": { "text": "" }, "url": "https://example.com/slow-pay",
    });
    let (world, ended) = asked(json!({ "kind": "answer", "answer": answer })).await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!((ended.state["out"].clone(), world.net.calls()), (json!(201), 1));
}

/// A re-execution counts the answer, which is then in the journal.
#[tokio::test]
async fn the_result_that_a_person_gives_counts_towards_the_limit_of_bytes() {
    let limits = Limits { host_call_bytes: 1_000, ..Limits::default() };
    let grants = Grants { in_doubt: InDoubtPolicy::Ask, limits, ..Grants::default() };
    let (world, run) = cut_with(ONE, grants).await;
    assert_eq!(questions(&world.engine.wait(&run).await.unwrap()).len(), 1);
    let answer = json!({
        "status": 201, "headers": [], "body": { "text": "x".repeat(1_000) },
        "url": "https://example.com/slow-pay",
    });
    let ended = world.answer(&run.thread, json!({ "kind": "answer", "answer": answer })).await;
    assert_eq!(failure(&ended).details.unwrap()["limit"], "host_call_bytes");
}

#[tokio::test]
async fn a_person_can_let_the_call_fail() {
    let (world, ended) = asked(json!({ "kind": "fail" })).await;
    assert_eq!((failure(&ended).code.as_str(), world.net.calls()), (code::IN_DOUBT, 1));
}

#[tokio::test]
async fn an_invalid_decision_is_refused_and_the_interrupt_stays_pending() {
    let (world, run) = cut_while_paying(InDoubtPolicy::Ask).await;
    world.engine.wait(&run).await.unwrap();
    let refused =
        world.resume(&run.thread, &[("", json!({ "kind": "perhaps" }))], Default::default()).await;
    assert_eq!(refused.unwrap_err().code, code::INVALID);
    let view = world.engine.thread(&run.thread).await.unwrap().unwrap();
    assert_eq!(view.interrupts.len(), 1);
}

#[tokio::test]
async fn an_output_of_another_form_is_refused_and_the_interrupt_stays_pending() {
    let (world, run) = cut_while_paying(InDoubtPolicy::Ask).await;
    world.engine.wait(&run).await.unwrap();
    let answer = json!({ "kind": "answer", "answer": { "refund": "by hand" } });
    let refused = world.resume(&run.thread, &[("", answer)], Default::default()).await.unwrap_err();
    assert_eq!(refused.code, code::INVALID);
    assert!(refused.message.contains("`http.send`: missing field `status`"), "{refused}");
    let view = world.engine.thread(&run.thread).await.unwrap().unwrap();
    assert_eq!(view.interrupts.len(), 1);
    let ended = world.answer(&run.thread, json!({ "kind": "retry" })).await;
    assert_eq!((ended.state["out"].clone(), world.net.calls()), (json!(200), 2));
}

#[tokio::test]
async fn an_answer_to_a_node_that_describes_a_call_in_doubt_is_not_an_output() {
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let payload = json!({ "in_doubt": { "function": "http.send" } });
        let answer = gate.ask(InterruptRequest { payload, response_schema: None }).await?;
        Ok(json!({ "out": answer["answer"] }))
    });
    let world = World::new(ONE, plugin);
    let thread = world.run(json!({})).await.run.thread;
    let ended = world.answer(&thread, json!({ "answer": "paid" })).await;
    assert_eq!(ended.state["out"], "paid");
}

#[tokio::test]
async fn a_call_in_doubt_is_listed_and_can_be_settled_before_a_resume() {
    let (world, run) = cut_while_paying(InDoubtPolicy::Fail).await;
    let ended = world.engine.wait(&run).await.unwrap();
    assert_eq!(failure(&ended).code, code::IN_DOUBT);
    let open = world.engine.pending_calls(&run.thread).await.unwrap();
    assert_eq!(open.len(), 1);
    assert_eq!((open[0].function.as_str(), open[0].call), ("http.send", 0));
    let is_start = |event: &&Event| matches!(event.kind, EventKind::CallStarted(_));
    let events = world.events(&run.thread).await;
    assert_eq!(events.iter().find(is_start).map(|event| event.seq), Some(open[0].seq));
    assert_eq!((&open[0].run, &open[0].request), (&run.run, &None));
    let answer = json!({
        "status": 202, "headers": [], "body": { "text": "" }, "url": "https://example.com/slow-pay",
    });
    let settle = |call| SettleCall {
        thread: run.thread.clone(),
        task: open[0].task.clone(),
        scope: Vec::new(),
        call,
        seq: None,
        decision: Decision::Answer { answer: answer.clone() },
        by: "test".into(),
        app: None,
        tenant: None,
        principal: None,
    };
    let refused = world.engine.settle(settle(7)).await.unwrap_err();
    assert_eq!(refused.code, code::CONFLICT);
    let other = SettleCall { decision: Decision::Answer { answer: json!("paid") }, ..settle(0) };
    assert_eq!(world.engine.settle(other).await.unwrap_err().code, code::INVALID);
    world.engine.settle(settle(0)).await.unwrap();
    let ended = world.resume(&run.thread, &[], Default::default()).await.unwrap();
    assert_eq!((ended.state["out"].clone(), world.net.calls()), (json!(202), 1));
    assert!(world.engine.pending_calls(&run.thread).await.unwrap().is_empty());
}

/// Resumes a thread in doubt, and cuts the repeated call. Returns the run after its recovery.
async fn cut_again(world: &mut World, run: &RunRef, answers: &[(&str, Value)]) -> RunRef {
    world.net.hang_next(1);
    let answers = answers.iter().map(|(id, answer)| ((*id).to_owned(), answer.clone())).collect();
    let request = ResumeRun {
        run: None,
        thread: run.thread.clone(),
        answers,
        on_failure: OnFailure::Keep,
        app: None,
        tenant: None,
        options: Default::default(),
        principal: None,
    };
    let again = world.engine.resume(request).await.unwrap();
    world.net.hung().await;
    world.crash().await;
    assert_eq!(world.engine.recover().await, 1);
    again
}

#[tokio::test]
async fn a_decision_about_an_earlier_start_of_the_call_is_refused() {
    let (mut world, run) = cut_while_paying(InDoubtPolicy::Fail).await;
    world.engine.wait(&run).await.unwrap();
    let first = world.engine.pending_calls(&run.thread).await.unwrap().remove(0);
    let again = cut_again(&mut world, &run, &[]).await;
    world.engine.wait(&again).await.unwrap();
    let second = world.engine.pending_calls(&run.thread).await.unwrap().remove(0);
    assert_eq!((&second.task, second.call), (&first.task, first.call));
    let settle = |seq| SettleCall {
        thread: run.thread.clone(),
        task: first.task.clone(),
        scope: Vec::new(),
        call: first.call,
        seq,
        decision: Decision::Fail,
        by: "test".into(),
        app: None,
        tenant: None,
        principal: None,
    };
    let refused = world.engine.settle(settle(Some(first.seq))).await.unwrap_err();
    assert_eq!(refused.code, code::CONFLICT);
    assert_eq!(refused.details.unwrap()["open"][0]["seq"], second.seq);
    for seq in [Some(second.seq), None] {
        world.engine.settle(settle(seq)).await.unwrap();
    }
    let open = world.engine.pending_calls(&run.thread).await.unwrap();
    assert_eq!(open[0].decision, Some(Decision::Fail));
}

#[tokio::test]
async fn an_answer_settles_one_start_of_the_call() {
    let (mut world, run) = cut_while_paying(InDoubtPolicy::Ask).await;
    let first = questions(&world.engine.wait(&run).await.unwrap());
    let again = cut_again(&mut world, &run, &[("", json!({ "kind": "retry" }))]).await;
    let second = questions(&world.engine.wait(&again).await.unwrap());
    assert_eq!((second.len(), world.net.calls()), (1, 2), "the repeated call is in doubt, too");
    assert_ne!(second[0].id, first[0].id);
    let ended = world.answer(&run.thread, json!({ "kind": "retry" })).await;
    assert_eq!((ended.state["out"].clone(), world.net.calls()), (json!(200), 3));
}

const RETRIED: &str = "retry = { attempts = 3, initial = \"1ms\", on = [\"in-doubt\"] }\n";

#[tokio::test]
async fn only_a_person_repeats_a_call_in_doubt_and_no_retry_policy() {
    let nested = format!(
        "[graphs.main]\nentry = \"sub\"\n[graphs.main.channels.out]\n[graphs.main.nodes.sub]\n\
         graph = \"one\"\n{RETRIED}{ONE}"
    );
    for graph in [format!("{ONE}{RETRIED}"), nested] {
        let (world, run) = cut_in(&graph, InDoubtPolicy::Fail).await;
        let ended = world.engine.wait(&run).await.unwrap();
        assert_eq!((failure(&ended).code.as_str(), world.net.calls()), (code::IN_DOUBT, 1));
        assert_eq!(world.engine.pending_calls(&run.thread).await.unwrap().len(), 1);
        let ended = world.resume(&run.thread, &[], Default::default()).await.unwrap();
        assert_eq!((ended.state["out"].clone(), world.net.calls()), (json!(200), 2));
    }
}
