//! Semantics of graphs that no other file tests.

use serde_json::{Value, json};
use wattle_graph::failure::code;
use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::hostcall::runs::{OnFailure, RunOutcome, RunService, StartRun};
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::{prompt, said};
use wattle_suite::world::{World, failure, questions};

const TWO: &str = r#"
[graphs.two]
entry = ["a", "b"]
[graphs.two.channels.list]
reducer = "append"
[graphs.two.channels.one]
[graphs.two.channels.talk]
reducer = "messages"
[graphs.two.nodes.a]
plugin = "p"
[graphs.two.nodes.b]
plugin = "p"
"#;

/// Runs two concurrent nodes that return these values.
async fn both(a: Value, b: Value, input: Value) -> wattle_run::hostcall::runs::EndedRun {
    let answering = |plugin: NativePlugin, name: &str, value: Value| {
        plugin.node(name, move |_, _| {
            let value = value.clone();
            async move { Ok(value) }
        })
    };
    let plugin = answering(NativePlugin::new("p", "1"), "a", a);
    World::new(TWO, answering(plugin, "b", b)).run(input).await
}

#[tokio::test]
async fn an_overwrite_replaces_the_value_without_the_reducer() {
    let ended = both(
        json!({ "list": ["new"], "$overwrite": ["list"] }),
        json!({ "list": "added" }),
        json!({ "list": ["old"] }),
    );
    assert_eq!(ended.await.state["list"], json!(["new", "added"]));
}

#[tokio::test]
async fn two_overwrites_of_one_channel_are_an_error() {
    let write = || json!({ "list": ["x"], "$overwrite": ["list"] });
    let failed = failure(&both(write(), write(), json!({})).await);
    assert_eq!(failed.code, code::INVALID);
    assert!(failed.message.contains("`list`"), "{failed}");
}

#[tokio::test]
async fn two_writes_of_a_channel_without_a_reducer_are_an_error_that_names_both() {
    let failed = failure(&both(json!({ "one": 1 }), json!({ "one": 2 }), json!({})).await);
    assert!(failed.message.contains("`one`"), "{failed}");
    assert!(failed.message.contains("`a`") && failed.message.contains("`b`"), "{failed}");
}

#[tokio::test]
async fn messages_are_replaced_and_removed_by_id() {
    let message = |id: &str, text: &str| json!({ "id": id, "role": "user", "content": text });
    let ended = both(
        json!({ "talk": [message("1", "changed"), { "id": "2", "role": "remove" }] }),
        json!({ "talk": [message("3", "new")] }),
        json!({ "talk": [message("1", "first"), message("2", "second")] }),
    );
    let ended = ended.await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
    let talk = ended.state["talk"].as_array().unwrap();
    let words: Vec<_> = talk.iter().map(|message| (&message["id"], &message["content"])).collect();
    assert_eq!(words, [(&json!("1"), &json!("changed")), (&json!("3"), &json!("new"))]);
}

#[tokio::test]
async fn every_node_gets_the_context_of_the_run() {
    let plugin = NativePlugin::new("p", "1")
        .node("a", |call, _| async move { Ok(json!({ "list": [call.context["user"]] })) })
        .node("b", |call, _| async move { Ok(json!({ "list": [call.context["user"]] })) });
    let world = World::new(TWO, plugin);
    let context = json!({ "user": "ada" });
    let request = StartRun { context, ..world.request(None, json!({})) };
    let run = world.engine.start(request).await.unwrap();
    let ended = world.engine.wait(&run).await.unwrap();
    assert_eq!(ended.state["list"], json!(["ada", "ada"]));
    // The context stays with the thread until a run has another one.
    let next = world.begin_on(Some(&run.thread), json!({ "list": [] })).await.unwrap();
    let ended = world.engine.wait(&next).await.unwrap();
    assert_eq!(ended.state["list"], json!(["ada", "ada", "ada", "ada"]));
}

fn asking() -> NativePlugin {
    let ask = |call: wattle_run::ports::sandbox::NodeCall,
               gate: std::sync::Arc<wattle_run::gate::Gate>| async move {
        let said = said(&gate.call(prompt("think")).await?);
        let payload = json!(call.node);
        let first = gate.ask(InterruptRequest { payload, response_schema: None }).await?;
        let second =
            gate.ask(InterruptRequest { payload: json!("and?"), response_schema: None }).await?;
        Ok(json!({ "list": [said, first, second] }))
    };
    NativePlugin::new("p", "1").node("a", ask).node("b", ask)
}

#[tokio::test]
async fn a_node_with_two_interrupts_calls_the_model_once() {
    let world = World::new(
        &TWO.replace("[\"a\", \"b\"]", "\"a\"")
            .replace("[graphs.two.nodes.b]\nplugin = \"p\"\n", ""),
        asking(),
    );
    let first = world.run(json!({})).await;
    let second = world.answer(&first.run.thread, json!(1)).await;
    assert_eq!(questions(&second)[0].payload, "and?");
    let ended = world.answer(&first.run.thread, json!(2)).await;
    assert_eq!(ended.state["list"], json!(["answer 1", 1, 2]));
    assert_eq!(world.model.calls(), 1);
}

#[tokio::test]
async fn partial_answers_keep_the_other_interrupts_pending() {
    let world = World::new(TWO, asking());
    let first = world.run(json!({})).await;
    let open = questions(&first);
    assert_eq!(open.len(), 2);
    let thread = &first.run.thread;
    let answers = [(open[0].id.as_str(), json!("one"))];
    let second = world.resume(thread, &answers, OnFailure::Keep).await.unwrap();
    let left = questions(&second);
    assert_eq!(left.len(), 2, "the other first question, and the second of the answered one");
    assert!(left.iter().any(|question| question.id == open[1].id));
    assert!(left.iter().any(|question| question.payload == "and?"));
    assert_eq!(world.model.calls(), 2);
}

#[tokio::test]
async fn answers_with_an_unknown_interrupt_id_are_refused_together() {
    let world = World::new(TWO, asking());
    let first = world.run(json!({})).await;
    let known = questions(&first)[0].id.clone();
    let answers = [(known.as_str(), json!(1)), ("nobody-asked", json!(2))];
    let refused = world.resume(&first.run.thread, &answers, OnFailure::Keep).await.unwrap_err();
    assert_eq!(refused.code, code::CONFLICT);
    assert!(refused.message.contains("`nobody-asked`"), "{refused}");
    let view = world.engine.thread(&first.run.thread).await.unwrap().unwrap();
    assert_eq!(view.interrupts.len(), 2, "both are still pending");
}

const PRIVATE: &str = r#"
[graphs.private]
entry = "first"
[graphs.private.channels.secret]
[graphs.private.channels.seen]
[graphs.private.nodes.first]
plugin = "p"
goto = ["second"]
[graphs.private.nodes.second]
plugin = "p"
"#;

#[tokio::test]
async fn a_send_has_an_input_that_is_not_part_of_the_state() {
    let plugin = NativePlugin::new("p", "1")
        .node("first", |_, _| async {
            let send = json!([{ "node": "second", "input": { "whisper": 7 } }]);
            Ok(json!({ "$goto": ["END"], "$send": send }))
        })
        .node("second", |call, _| async move { Ok(json!({ "seen": call.input })) });
    let ended = World::new(PRIVATE, plugin).run(json!({ "secret": "x" })).await;
    assert_eq!(ended.state["seen"], json!({ "whisper": 7 }));
    assert_eq!(ended.state.get("whisper"), None);
}
