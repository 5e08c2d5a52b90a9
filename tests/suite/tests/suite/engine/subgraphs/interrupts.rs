//! Interrupts and breakpoints inside of subgraphs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use wattle_graph::event::EventKind;
use wattle_graph::failure::code;
use wattle_run::hostcall::runs::{OnFailure, RunOutcome, RunService};
use wattle_run::ports::store::ThreadStatus;
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::{get, prompt, said, unavailable};
use wattle_suite::world::{World, failure, questions};

use super::{FAN, INNER, fan, graphs_with, paying, plugin, question};

/// Adds nodes: `one` calls a model; `two` calls a model, raises an interrupt and then sends a
/// request.
fn asking(plugin: NativePlugin) -> NativePlugin {
    plugin
        .node("one", |_, gate| async move {
            Ok(json!({ "log": said(&gate.call(prompt("one")).await?) }))
        })
        .node("two", |call, gate| async move {
            let draft = said(&gate.call(prompt("two")).await?);
            let asked = json!({ "draft": draft, "text": call.input.get("text") });
            let answer = gate.ask(question(asked)).await?;
            gate.call(get("https://example.com/tell")).await?;
            Ok(json!({ "log": [[draft, answer]] }))
        })
}

#[tokio::test]
async fn an_interrupt_in_a_subgraph_stops_the_run_and_its_answer_continues_it() {
    for sub in ["", "state = \"own\"", "state = \"none\""] {
        let mut world = World::new(&graphs_with(sub), asking(plugin()));
        let first = world.run(json!({})).await;
        let open = questions(&first);
        let payload = json!({ "draft": "answer 2", "text": "from outside" });
        assert_eq!((open.len(), &open[0].payload), (1, &payload), "{sub}");
        assert_eq!((open[0].namespace.node(), open[0].node.as_str()), ("sub", "two"));
        let view = world.engine.thread(&first.run.thread).await.unwrap().unwrap();
        assert_eq!((view.status, &view.interrupts), (ThreadStatus::Interrupted, &open));
        assert_eq!(world.pending_interrupts().await, [(view.thread, open)], "{sub}");
        world.crash().await;
        let ended = world.answer(&first.run.thread, json!("yes")).await;
        assert_eq!(ended.outcome, RunOutcome::Completed, "{sub}");
        let log = json!(["before", "answer 1", ["answer 2", "yes"], "after"]);
        assert_eq!(ended.state["log"], log, "{sub}");
        assert_eq!((world.model.calls(), world.net.calls()), (2, 1), "{sub}");
    }
}

#[tokio::test]
async fn interrupts_of_two_subgraphs_can_be_answered_separately() {
    let mut world = World::new(&format!("{FAN}{INNER}"), asking(fan(2)));
    let first = world.run(json!({})).await;
    let thread = first.run.thread.clone();
    let open = questions(&first);
    assert_eq!(open.len(), 2);
    assert_ne!(open[0].namespace, open[1].namespace);
    let vague = world.resume(&thread, &[("", json!("?"))], OnFailure::Keep).await.unwrap_err();
    assert_eq!(vague.code, code::INVALID);
    world.crash().await;
    let (one, other) = (&open[1], &open[0]);
    let answers = [(one.id.as_str(), json!("first"))];
    let second = world.resume(&thread, &answers, OnFailure::Keep).await.unwrap();
    assert_eq!(questions(&second), std::slice::from_ref(other));
    let listed = world.pending_interrupts().await;
    assert_eq!(listed, [(thread.clone(), vec![other.clone()])], "only the unanswered one");
    let answers = [(other.id.as_str(), json!("second"))];
    let ended = world.resume(&thread, &answers, OnFailure::Keep).await.unwrap();
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!((world.model.calls(), world.net.calls()), (4, 2));
    let log = ended.state["log"].to_string();
    let place = |text: &str| log.find(text).unwrap();
    let is_first = |text: &str| one.payload["text"] == json!(0) && text == "first";
    assert_eq!(place("first") < place("second"), is_first("first"), "{log}");
}

#[tokio::test]
async fn a_failed_resume_reopens_the_interrupt_of_a_subgraph() {
    for sub in ["", "state = \"own\"", "state = \"none\""] {
        let mut world = World::new(&graphs_with(sub), asking(plugin()));
        let first = world.run(json!({})).await;
        let thread = first.run.thread.clone();
        world.net.fail_next(unavailable());
        let answers = [("", json!("a"))];
        let failed = world.resume(&thread, &answers, OnFailure::Reopen).await.unwrap();
        assert_eq!(failure(&failed).code, code::UNAVAILABLE, "{sub}");
        let view = world.engine.thread(&thread).await.unwrap().unwrap();
        assert_eq!(view.status, ThreadStatus::Interrupted);
        assert_eq!(view.interrupts.len(), 1, "{sub}");
        world.crash().await;
        let ended = world.answer(&thread, json!("b")).await;
        let log = json!(["before", "answer 1", ["answer 2", "b"], "after"]);
        assert_eq!(ended.state["log"], log, "{sub}");
        assert_eq!((world.model.calls(), world.net.calls()), (2, 2), "{sub}");
    }
}

/// The parent fails after the subgraph has ended, so the reopen discards the end of the subgraph as
/// well.
#[tokio::test]
async fn a_reopened_interrupt_discards_the_end_of_its_subgraph() {
    for sub in ["", "state = \"own\"", "state = \"none\""] {
        let fails = Arc::new(AtomicBool::new(true));
        let plugin =
            asking(plugin()).node("after", move |_, _| {
                let fails = fails.swap(false, Ordering::SeqCst);
                async move {
                    if fails { Err(unavailable().into()) } else { Ok(json!({ "log": "after" })) }
                }
            });
        let world = World::new(&graphs_with(sub), plugin);
        let first = world.run(json!({})).await;
        let thread = first.run.thread.clone();
        let answers = [("", json!("a"))];
        let failed = world.resume(&thread, &answers, OnFailure::Reopen).await.unwrap();
        assert_eq!(failure(&failed).code, code::UNAVAILABLE, "{sub}");
        let ended = world.answer(&thread, json!("b")).await;
        let log = json!(["before", "answer 1", ["answer 2", "b"], "after"]);
        assert_eq!(ended.state["log"], log, "{sub}");
        assert_eq!(world.model.calls(), 2, "{sub}");
    }
}

#[tokio::test]
async fn a_breakpoint_in_a_subgraph_is_passed_exactly_once() {
    for (place, sub) in [
        ("interrupt_before = [\"two\"]", ""),
        ("interrupt_after = [\"one\"]", ""),
        ("interrupt_before = [\"two\"]", "state = \"none\""),
        ("interrupt_after = [\"one\"]", "state = \"none\""),
        ("interrupt_before = [\"one\"]", ""),
        ("interrupt_before = [\"one\"]", "state = \"own\""),
        ("interrupt_before = [\"one\"]", "state = \"none\""),
    ] {
        let graph = graphs_with(sub);
        let graph = graph.replace("[graphs.inner]\n", &format!("[graphs.inner]\n{place}\n"));
        let mut world = World::new(&graph, paying());
        let first = world.run(json!({})).await;
        assert!(questions(&first).is_empty(), "{place} {sub}");
        world.crash().await;
        let ended = world.resume(&first.run.thread, &[], OnFailure::Keep).await.unwrap();
        assert_eq!(ended.outcome, RunOutcome::Completed, "{place} {sub}");
        assert_eq!(ended.state["log"], json!(["before", "answer 1", "two", "after"]));
        assert_eq!(world.model.calls(), 1, "{place} {sub}");
    }
}

#[tokio::test]
async fn a_passed_breakpoint_in_a_subgraph_does_not_stop_a_retry() {
    for state in ["inherit", "own", "none"] {
        let sub = format!("state = \"{state}\"\nretry = {{ attempts = 2, initial = \"1ms\" }}");
        let stop = "[graphs.inner]\ninterrupt_before = [\"two\"]\n";
        let graph = graphs_with(&sub).replace("[graphs.inner]\n", stop);
        let plugin = paying().node("two", |_, gate| async move {
            gate.call(get("https://example.com/two")).await?;
            Ok(json!({ "log": "two" }))
        });
        let world = World::new(&graph, plugin);
        let first = world.run(json!({})).await;
        world.net.fail_next(unavailable());
        let ended = world.resume(&first.run.thread, &[], OnFailure::Keep).await.unwrap();
        assert_eq!(ended.outcome, RunOutcome::Completed, "{state}");
        assert_eq!((world.model.calls(), world.net.calls()), (1, 2), "{state}");
    }
}

#[tokio::test]
async fn an_interrupt_of_a_subgraph_whose_failure_is_handled_is_discarded() {
    let graph = format!("{FAN}on_error = \"handle\"\n[graphs.main.nodes.handle]\nplugin = \"p\"\n");
    let plugin = fan(1)
        .node("one", |_, _| async { Ok(json!({ "$goto": ["two", "three"] })) })
        .node("two", |_, gate| async move {
            gate.ask(question(json!("never answered"))).await?;
            Ok(json!({}))
        })
        .node("three", |_, gate| async move {
            gate.call(get("https://example.com/three")).await?;
            Ok(json!({}))
        })
        .node("handle", |_, _| async { Ok(json!({ "log": "handled" })) });
    let inner = INNER.replace(
        "[graphs.inner.nodes.two]",
        "goto = [\"two\", \"three\"]\n[graphs.inner.nodes.three]\nplugin = \"p\"\n\
         [graphs.inner.nodes.two]",
    );
    let world = World::new(&format!("{graph}{inner}"), plugin);
    world.net.fail_next(unavailable());
    let ended = world.run(json!({})).await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(ended.state["log"], json!(["handled"]));
    let asked =
        world.count(&ended.run.thread, |kind| matches!(kind, EventKind::InterruptRaised(_))).await;
    assert_eq!(asked, 1);
    let view = world.engine.thread(&ended.run.thread).await.unwrap().unwrap();
    assert!(view.interrupts.is_empty());
}

#[tokio::test]
async fn an_interrupt_at_depth_two_is_found_after_a_crash() {
    let deep = super::DEEP;
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let said = said(&gate.call(prompt("work")).await?);
        let answer = gate.ask(question(json!("deep"))).await?;
        Ok(json!({ "log": [said, answer] }))
    });
    let mut world = World::new(deep, plugin);
    let first = world.run(json!({})).await;
    assert_eq!(questions(&first)[0].namespace.depth(), 2);
    world.crash().await;
    let ended = world.answer(&first.run.thread, json!("down here")).await;
    assert_eq!(ended.state["log"], json!(["answer 1", "down here"]));
    assert_eq!(world.model.calls(), 1);
}
