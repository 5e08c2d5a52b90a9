//! Tasks that did not finish: their failures and their questions are compared as well.

use serde_json::json;
use wattle_graph::failure::Failure;
use wattle_graph::id::NodeName;
use wattle_graph::step::Command;
use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::hostcall::runs::RunService as _;
use wattle_run::ports::store::{RunAnswers, RunKind};
use wattle_run::replay::{Against, Counts, Divergence, Replay};
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::{get, unavailable};
use wattle_suite::world::World;

use super::{exported, replayed, replayed_against};

const ONE: &str = r#"
[graphs.main]
entry = "work"
[graphs.main.channels.out]
[graphs.main.nodes.work]
plugin = "p"
"#;

/// Returns a world whose node sends a request and asks. `twist` changes the node.
fn world(twist: &'static str) -> World {
    let plugin = NativePlugin::new("p", "1").node("work", move |_, gate| async move {
        let sent = gate.call(get("https://example.com/slow")).await;
        match twist {
            "catches" if sent.is_err() => return Ok(json!({ "out": "caught" })),
            "refuses" => return Err(Failure::new("refused", "not today").into()),
            "finishes" => return Ok(json!({ "out": sent?.status })),
            _ => {}
        }
        let payload = json!(if twist == "rewords" { "really?" } else { "sure?" });
        let status = sent?.status;
        let answer = gate.ask(InterruptRequest { payload, response_schema: None }).await?;
        Ok(json!({ "out": [status, answer] }))
    });
    World::new(ONE, plugin)
}

/// Replays a thread with a node that `twist` changes.
async fn twisted(text: &str, twist: &'static str) -> Replay {
    replayed(text, world(twist).engine.catalog().apps().remove(0)).await
}

/// Returns the only difference.
async fn difference(text: &str, twist: &'static str) -> Divergence {
    let mut replay = twisted(text, twist).await;
    assert_eq!((replay.divergences.len(), replay.tasks), (1, 0), "{twist}: {replay:?}");
    let divergence = replay.divergences.remove(0);
    assert_eq!(divergence.node.as_ref().map(NodeName::as_str), Some("work"));
    divergence
}

/// Asserts that the only task and its call are the same as recorded.
async fn assert_same(text: &str) {
    let replay = twisted(text, "").await;
    assert_eq!((&replay.divergences, &replay.skipped), (&vec![], &vec![]));
    assert_eq!((replay.tasks, replay.calls, replay.left_out), (1, 1, Counts::default()));
}

#[tokio::test]
async fn a_failure_is_compared() {
    let world = world("");
    world.net.fail_next(unavailable());
    let failed = world.run(json!({})).await;
    let text = exported(&world.engine, &failed.run.thread).await;
    assert_same(&text).await;
    assert_eq!(world.net.calls(), 1);
    let caught = difference(&text, "catches").await;
    assert!(caught.message.contains("did not finish"), "{caught:?}");
    assert!(caught.recorded.to_string().contains("the service is away"), "{caught:?}");
    assert!(caught.now.to_string().contains("caught"), "{caught:?}");
    let refused = difference(&text, "refuses").await;
    assert!(refused.message.contains("in another way"), "{refused:?}");
    assert_eq!(
        (&refused.recorded["code"], &refused.now["code"]),
        (&json!("unavailable"), &json!("refused"))
    );
}

#[tokio::test]
async fn a_question_without_an_answer_is_compared() {
    let world = world("");
    let asked = world.run(json!({})).await;
    let text = exported(&world.engine, &asked.run.thread).await;
    assert_same(&text).await;
    let reworded = difference(&text, "rewords").await;
    assert_eq!(reworded.call, Some(1));
    assert!(reworded.recorded.to_string().contains("sure?"), "{reworded:?}");
    assert!(reworded.now.to_string().contains("really?"), "{reworded:?}");
    let finished = difference(&text, "finishes").await;
    assert_eq!(finished.recorded, json!({ "questions": ["sure?"] }));
    let refused = difference(&text, "refuses").await;
    assert!(refused.message.contains("asked when it was recorded"), "{refused:?}");
}

#[tokio::test]
async fn a_node_that_asked_and_is_gone_is_a_difference() {
    let world = world("");
    let asked = world.run(json!({})).await;
    let text = exported(&world.engine, &asked.run.thread).await;
    let plugin = NativePlugin::new("p", "1").node("rest", |_, _| async { Ok(json!({})) });
    let renamed = World::new(&ONE.replace("work", "rest"), plugin);
    let app = renamed.engine.catalog().apps().remove(0);
    let replay = replayed_against(&text, app, Against::Current).await;
    let found: Vec<&str> = replay.divergences.iter().map(|it| it.message.as_str()).collect();
    assert_eq!(found, ["the graph has no such node"]);
}

#[tokio::test]
async fn a_failure_that_a_fork_copied_is_not_compared() {
    let graph = ONE.replace("plugin = \"p\"", "plugin = \"p\"\non_error = \"rest\"");
    let graph = format!("{graph}[graphs.main.nodes.rest]\nplugin = \"p\"\n");
    let plugin = || {
        NativePlugin::new("p", "1")
            .node("work", |_, gate| async move {
                Ok(json!({ "out": gate.call(get("https://example.com/")).await?.status }))
            })
            .node("rest", |_, gate| async move {
                let payload = json!("instead?");
                let question = InterruptRequest { payload, response_schema: None };
                Ok(json!({ "out": gate.ask(question).await? }))
            })
    };
    let world = World::new(&graph, plugin());
    world.net.fail_next(unavailable());
    let asked = world.run(json!({})).await;
    let thread = &asked.run.thread;
    let command = Command::default();
    let answer = Some(RunAnswers::ById([(String::new(), json!("yes"))].into()));
    let kind = RunKind::Command { command, answer, checkpoint: None };
    let ended = world.run_on(thread, kind).await.unwrap();
    assert_eq!(ended.state["out"], "yes");
    let text = exported(&world.engine, thread).await;
    let app = World::new(&graph, plugin()).engine.catalog().apps().remove(0);
    let replay = replayed(&text, app).await;
    assert_eq!(replay.divergences, []);
    let reasons: Vec<&str> = replay.skipped.iter().map(|it| it.reason.as_str()).collect();
    assert!(matches!(*reasons, [only] if only.contains("copied by a fork")), "{reasons:?}");
    // The failure and the question before the fork, and the error handler in it.
    assert_eq!((replay.tasks, replay.calls), (3, 1));
}

#[tokio::test]
async fn a_task_that_was_cancelled_is_not_compared() {
    let world = world("");
    world.net.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    world.engine.cancel(&run).await.unwrap();
    let text = exported(&world.engine, &run.thread).await;
    let replay = twisted(&text, "refuses").await;
    assert!(replay.is_empty(), "{replay:?}");
    let reasons: Vec<&str> = replay.skipped.iter().map(|it| it.reason.as_str()).collect();
    assert_eq!((reasons, replay.left_out.tasks), (vec!["the task has not ended"], 1));
}
