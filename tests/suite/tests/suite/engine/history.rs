//! Histories: requests whose messages the host takes from the input of a task.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use serde_json::{Value, json};
use wattle_graph::call::CallKind;
use wattle_graph::event::{Called, EventKind};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{PluginName, ThreadId};
use wattle_graph::llm::CompletionRequest;
use wattle_graph::tool::ToolRequest;
use wattle_run::app::App;
use wattle_run::caller_id::CallerId;
use wattle_run::gate::Gate;
use wattle_run::gate::unwind::CallError;
use wattle_run::grant::Grants;
use wattle_run::hostcall::runs::{RunOutcome, RunService};
use wattle_run::limit::{JOURNAL_REQUEST_BYTES, Limits};
use wattle_run::ports::sandbox::{WebBody, WebRequest};
use wattle_run::ports::tool_server::NoToolServers;
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::{NoSql, get, prompt, said};
use wattle_suite::world::{self, World, failure};
use wattle_suite::{guests, server};

pub(super) const TALK: &str = r#"
[graphs.talk]
entry = "reply"
[graphs.talk.channels.messages]
reducer = "messages"
[graphs.talk.channels.title]
[graphs.talk.channels.out]
[graphs.talk.nodes.reply]
plugin = "p"
"#;

/// The graph of a component, whose node calls a model with the history of its input: alone, twice
/// in a batch, and as a stream.
const CONVERSE: &str = r#"
[graphs.talk]
entry = "converse"
[graphs.talk.channels.messages]
reducer = "messages"
[graphs.talk.channels.route]
[graphs.talk.channels.history]
[graphs.talk.channels.title]
[graphs.talk.channels.results]
[graphs.talk.channels.read]
[graphs.talk.nodes.converse]
plugin = "p"
"#;

/// Returns a request with one message, and then a history: a channel from a position on, and one
/// more message with an id.
pub(super) fn request(
    gate: &Gate,
    channel: &str,
    from: u64,
    id: &str,
) -> Result<CompletionRequest, Failure> {
    let append = [json!({ "id": id, "role": "user", "content": "and?" })];
    let history = json!({ "channel": channel, "at": 1, "from": from, "append": append });
    let reference = serde_json::from_value(history).unwrap();
    gate.with_history(prompt("be brief"), reference).expect("the budget has room")
}

/// Returns a plugin whose node asks a model with a history, and then makes a slow call. The history
/// begins at `first` in the first execution, and `step` positions later in each further one.
pub(super) fn replying(first: u64, step: u64) -> NativePlugin {
    let from = Arc::new(AtomicU64::new(first));
    NativePlugin::new("p", "1").node("reply", move |call, gate| {
        let from = from.fetch_add(step, Ordering::SeqCst);
        async move {
            let request = request(&gate, "messages", from, call.task.as_str())?;
            let said = said(&gate.call(request).await?);
            gate.call(get("https://example.com/slow")).await?;
            Ok(json!({ "out": said }))
        }
    })
}

pub(super) fn user(id: &str, content: &str) -> Value {
    json!({ "id": id, "role": "user", "content": content })
}

/// Returns the texts of the messages that the model got.
fn seen(world: &World) -> Vec<Value> {
    let messages = world.model.last_request().unwrap().messages;
    messages.iter().map(|message| json!(message)["parts"][0]["text"].clone()).collect()
}

async fn model_calls(world: &World, thread: &ThreadId) -> Vec<Called> {
    let events = world.events(thread).await.into_iter();
    let called = events.filter_map(|event| match event.kind {
        EventKind::Called(called) if called.function == CallKind::Complete.name() => Some(*called),
        _ => None,
    });
    called.collect()
}

#[tokio::test]
async fn a_model_gets_the_messages_of_a_history_and_the_log_has_them() {
    let world = World::new(TALK, replying(1, 0));
    let messages = [user("m1", "hi"), user("m2", "how many?")];
    let ended = world.run(json!({ "messages": messages })).await;
    assert_eq!(ended.state["out"], "answer 1");
    assert_eq!(seen(&world), ["be brief", "how many?", "and?"]);
    let called = model_calls(&world, &ended.run.thread).await.remove(0);
    assert_eq!(called.completion_request(), world.model.last_request());
}

#[tokio::test]
async fn the_history_of_a_send_is_the_list_that_was_sent() {
    let graph = format!("{TALK}goto = [\"other\"]\n[graphs.talk.nodes.other]\nplugin = \"p\"\n");
    let plugin = NativePlugin::new("p", "1")
        .node("reply", |_, _| async move {
            let sent = json!({ "messages": [user("s1", "sent")] });
            Ok(json!({ "$send": [{ "node": "other", "input": sent }] }))
        })
        .node("other", |_, gate| async move {
            let completion = gate.call(request(&gate, "messages", 0, "m")?).await?;
            Ok(json!({ "out": said(&completion) }))
        });
    let world = World::new(&graph, plugin);
    let ended = world.run(json!({ "messages": [user("m1", "hi")] })).await;
    assert_eq!(ended.state["out"], "answer 1");
    assert_eq!(seen(&world), ["be brief", "sent", "and?"]);
}

#[tokio::test]
async fn the_log_has_the_digest_of_a_long_history() {
    let world = World::new(TALK, replying(0, 0));
    let long = "x".repeat(2 * JOURNAL_REQUEST_BYTES);
    let ended = world.run(json!({ "messages": [user("m1", &long)] })).await;
    assert_eq!(seen(&world), ["be brief", &*long, "and?"]);
    let called = model_calls(&world, &ended.run.thread).await.remove(0);
    let request = called.completion_request().unwrap();
    let history = request.history.as_ref().unwrap();
    assert_eq!((history.from, history.to, history.length), (0, 1, 1));
    assert!(history.bytes > long.len() as u64);
    assert_eq!(request.messages.len(), 1, "only the request's own message");
    assert!(called.request.to_string().len() < JOURNAL_REQUEST_BYTES);
}

#[tokio::test]
async fn a_completion_is_not_requested_again_after_a_crash() {
    let mut world = World::new(TALK, replying(0, 0));
    world.net.hang_next(1);
    let run = world.begin(json!({ "messages": [user("m1", "hi")] })).await.unwrap();
    world.net.hung().await;
    world.crash().await;
    assert_eq!(world.engine.recover().await, 1);
    let ended = world.engine.wait(&run).await.unwrap();
    assert_eq!((&ended.state["out"], world.model.calls()), (&json!("answer 1"), 1));
}

#[tokio::test]
async fn another_history_after_a_crash_is_a_divergence() {
    let mut world = World::new(TALK, replying(0, 1));
    world.net.hang_next(1);
    let run = world.begin(json!({ "messages": [user("m1", "hi")] })).await.unwrap();
    world.net.hung().await;
    world.crash().await;
    assert_eq!(world.engine.recover().await, 1);
    let ended = world.engine.wait(&run).await.unwrap();
    assert_eq!((failure(&ended).code.as_str(), world.model.calls()), (code::DIVERGENCE, 1));
}

/// The task of the second run has another id, which is in the message after the conversation.
#[tokio::test]
async fn the_completion_of_a_cancelled_run_is_reused_for_the_same_conversation() {
    let world = World::new(TALK, replying(0, 0));
    world.net.hang_next(1);
    let run = world.begin(json!({ "messages": [user("m1", "hi")] })).await.unwrap();
    world.net.hung().await;
    world.engine.cancel(&run).await.unwrap();
    assert_eq!(world.engine.wait(&run).await.unwrap().outcome, RunOutcome::Cancelled);
    for (input, answer) in
        [(json!({}), "answer 1"), (json!({ "messages": [user("m2", "how many?")] }), "answer 2")]
    {
        let run = world.begin_on(Some(&run.thread), input).await.unwrap();
        assert_eq!(world.engine.wait(&run).await.unwrap().state["out"], answer);
    }
    assert_eq!(world.model.calls(), 2);
}

#[tokio::test]
async fn a_node_can_refer_only_to_a_list_of_its_input() {
    let plugin = NativePlugin::new("p", "1").node("reply", |_, gate| async move {
        let code = |channel: &str| request(&gate, channel, 0, "m").unwrap_err().code;
        Ok(json!({ "out": [code("missing"), code("title")] }))
    });
    let ended = World::new(TALK, plugin).run(json!({ "title": "hi" })).await;
    assert_eq!(ended.state["out"], json!([code::NOT_FOUND, code::INVALID]));
}

#[tokio::test]
async fn tools_and_web_handlers_have_no_history() {
    let caller = NativePlugin::new("p", "1").node("reply", |_, gate| async move {
        let request = ToolRequest {
            tool: "t/peek".to_owned(),
            call_id: String::new(),
            arguments: json!({}),
            timeout_ms: None,
            state: None,
        };
        Ok(json!({ "out": gate.call(request).await?.structured }))
    });
    let tool = NativePlugin::new("t", "1").tool("peek", |_, gate| async move {
        Ok(json!(request(&gate, "messages", 0, "m").unwrap_err().code))
    });
    let world = World::with_tools(TALK, vec![caller, tool], Arc::new(NoToolServers));
    let ended = world.run(json!({ "messages": [user("m1", "hi")] })).await;
    assert_eq!(ended.state["out"], code::UNSUPPORTED);

    let handler = replying(0, 0).web(|_, gate| async move {
        Ok(json!(request(&gate, "messages", 0, "m").unwrap_err().code))
    });
    let app = world::app(TALK, vec![(Arc::new(handler), Grants::default())]);
    let app = Arc::new(App { web: Some(PluginName::new("p").unwrap()), ..app });
    let request = WebRequest {
        method: "GET".to_owned(),
        path: "/".to_owned(),
        route: "/".to_owned(),
        params: Vec::new(),
        query: Vec::new(),
        headers: Vec::new(),
        body: Bytes::new(),
        tenant: None,
    };
    let response = world.engine.handle_web(&app, request, None, CallerId::default()).await;
    let WebBody::Bytes(body) = response.unwrap().body else { panic!("the body is whole") };
    assert_eq!(body, json!(code::UNSUPPORTED).to_string());
}

/// The text of the request is far shorter than the limit.
#[tokio::test]
async fn the_bytes_of_a_conversation_count_as_those_of_a_call() {
    let limits = Limits { host_call_bytes: 10_000, ..Limits::default() };
    let grants = Grants { limits, ..Grants::default() };
    let world = World::with_sql(TALK, replying(0, 0), Arc::new(NoSql), grants);
    let ended = world.run(json!({ "messages": [user("m1", &"x".repeat(10_000))] })).await;
    assert_eq!(failure(&ended).details.unwrap()["limit"], "host_call_bytes");
    assert_eq!(world.model.calls(), 0);
}

#[tokio::test]
async fn a_search_for_a_missing_message_counts_as_a_call_with_the_conversation() {
    let plugin = NativePlugin::new("p", "1").node("reply", |_, gate| async move {
        let search = || {
            let start = json!({ "after": "missing" });
            let history = json!({ "channel": "messages", "at": 0, "from": start });
            gate.with_history(prompt("hi"), serde_json::from_value(history).unwrap())
        };
        let found = search().map_err(CallError::Unwind)?;
        assert_eq!(found.unwrap_err().code, code::NOT_FOUND);
        let found = search().map_err(CallError::Unwind)?;
        Ok(json!({ "out": found.unwrap_err().code }))
    });
    let limits = Limits { host_call_bytes: 10_000, ..Limits::default() };
    let grants = Grants { limits, ..Grants::default() };
    let world = World::with_sql(TALK, plugin, Arc::new(NoSql), grants);
    let ended = world.run(json!({ "messages": [user("m1", &"x".repeat(6_000))] })).await;
    assert_eq!(failure(&ended).details.unwrap()["limit"], "host_call_bytes");
}

/// Returns a world with [`CONVERSE`].
pub(super) async fn conversing() -> World {
    let (name, bytes) = (PluginName::new("p").unwrap(), guests::bytes("wattle-guest-tools"));
    let plugin = server::sandbox().load(&name, bytes).await.unwrap();
    World::with_plugin(CONVERSE, plugin, Arc::new(NoSql), Grants::default())
}

/// Returns the input of [`CONVERSE`]: a conversation with a call whose id is `c`.
pub(super) fn conversation(history: Value) -> Value {
    let call = json!({ "id": "c", "name": "find", "arguments": {} });
    let messages = [
        user("m1", "hi"),
        json!({ "id": "m2", "role": "assistant", "content": "", "tool_calls": [call] }),
        json!({ "id": "m3", "role": "tool", "tool_call_id": "c", "content": "1" }),
    ];
    json!({ "route": "chat", "history": history, "messages": messages, "title": "hi" })
}

#[tokio::test]
async fn every_model_call_of_a_guest_can_have_a_history() {
    let world = conversing().await;
    world.model.call_tools(&["c", "d"]);
    let ended = world.run(conversation(json!({ "channel": "messages", "at": 1 }))).await;
    let unique = json!({ "call_ids": ["c-2", "d"] });
    assert_eq!(ended.state["results"], json!([unique, unique, unique, unique]));
    assert_eq!((&ended.state["read"], world.model.calls()), (&json!(3), 4));
    let messages = world.model.last_request().unwrap().messages;
    let roles: Vec<Value> = messages.iter().map(|message| json!(message.role)).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool"]);
}

#[tokio::test]
async fn a_completion_without_tool_calls_or_without_a_history_has_no_call_ids() {
    let world = conversing().await;
    let ended = world.run(conversation(json!({ "channel": "messages", "at": 1 }))).await;
    assert_eq!(ended.state["results"][0], json!({ "call_ids": null }));
    world.model.call_tools(&["c"]);
    let ended = world.run(conversation(Value::Null)).await;
    assert_eq!(ended.state["results"][0], json!({ "call_ids": null }));
}

#[tokio::test]
async fn a_history_that_the_host_cannot_read_as_the_guest_means_it_is_a_failure() {
    for (history, code) in [
        (json!({ "channel": "missing", "at": 0 }), code::NOT_FOUND),
        (json!({ "channel": "title", "at": 0 }), code::INVALID),
        (json!({ "channel": "messages", "at": 2 }), code::INVALID),
        (json!({ "channel": "messages", "at": 0, "to": 4 }), code::INVALID),
        (json!({ "channel": "messages", "at": 0, "from": { "after": "m4" } }), code::NOT_FOUND),
        (json!({ "channel": "messages", "at": 0, "turns": 2 }), code::INVALID),
        (json!("messages"), code::INVALID),
    ] {
        let world = conversing().await;
        let ended = world.run(conversation(history.clone())).await;
        let failed = json!({ "failure": code });
        assert_eq!(ended.state["results"], json!([failed, failed, failed, failed]), "{history}");
        assert_eq!(world.model.calls(), 0);
    }
}
