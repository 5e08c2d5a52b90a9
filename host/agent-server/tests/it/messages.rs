//! Ids of messages of models: a message keeps its id from its first delta to its end.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use axum::http::HeaderValue;
use serde_json::{Value, json};
use wattle_graph::failure::Failure;
use wattle_graph::llm::{
    Completion, CompletionRequest, Delta, FinishReason, Message, Part, Role, Usage,
};
use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::ports::model::{DeltaSink, RouteInfo};
use wattle_run::ports::{BlobStore, Caller, Model};

use crate::host::{Host, TestResponse, request};
use crate::plugin::Closures;

/// `talker` adds a completion. `asker` adds a completion after an interrupt.
const GRAPHS: &str = r#"
[graphs.talker]
entry = "speak"
[graphs.talker.channels]
messages = { reducer = "messages" }
[graphs.talker.nodes.speak]
plugin = "p"

[graphs.asker]
entry = "check"
[graphs.asker.channels]
messages = { reducer = "messages" }
[graphs.asker.nodes.check]
plugin = "p"
"#;

/// A model that returns `Hello` in two deltas, after a restart if `hesitates` is set.
struct Talker {
    hesitates: bool,
}

#[async_trait]
impl Model for Talker {
    fn has_route(&self, _: &Caller, _: &str) -> bool {
        true
    }

    fn route(&self, _: &Caller, _: &str) -> Option<RouteInfo> {
        None
    }

    async fn complete(
        &self,
        _: &Caller,
        _: &CompletionRequest,
        _: &dyn BlobStore,
        deltas: &dyn DeltaSink,
    ) -> Result<Completion, Failure> {
        let say = |text: &str| deltas.push(Delta::Text { text: text.to_owned() });
        if self.hesitates {
            say("Good b");
            deltas.push(Delta::Restart);
        }
        say("Hel");
        say("lo");
        Ok(Completion {
            id: None,
            parts: vec![Part::Text("Hello".to_owned())],
            structured: None,
            finish_reason: FinishReason::Stop,
            usage: Usage::default(),
            model: "talker".to_owned(),
            attempts: Vec::new(),
        })
    }
}

fn prompt() -> CompletionRequest {
    let messages = vec![Message { role: Role::User, parts: vec![Part::Text("hi".to_owned())] }];
    CompletionRequest::new("chat", messages)
}

/// Returns the message object that a node stores for a completion.
fn stored_message(completion: &Completion) -> Value {
    json!({ "messages": [{ "id": completion.id, "role": "assistant", "content": "Hello" }] })
}

fn host(hesitates: bool) -> Host {
    let plugin = Closures::new("p")
        .node("speak", |_, gate| async move { Ok(stored_message(&gate.call(prompt()).await?)) })
        .node("check", |_, gate| async move {
            let completion = gate.call(prompt()).await?;
            gate.ask(InterruptRequest { payload: json!("May I say so?"), response_schema: None })
                .await?;
            Ok(stored_message(&completion))
        });
    Host::with_model(GRAPHS, plugin, Arc::new(Talker { hesitates }))
}

async fn stream(host: &Host, thread: &str, run: Value) -> TestResponse {
    let mut run = run;
    run["stream_mode"] = json!(["messages-tuple", "values"]);
    host.post(&format!("/threads/{thread}/runs/stream"), run).await
}

/// Returns the ids and texts of the messages in a stream, in order.
fn message_texts(response: &TestResponse) -> Vec<(String, String)> {
    let mut texts: Vec<(String, String)> = Vec::new();
    for (_, data, _) in response.frames().into_iter().filter(|(kind, ..)| kind == "messages") {
        let (id, text) = (data[0]["id"].as_str().unwrap(), data[0]["content"].as_str().unwrap());
        match texts.last_mut().filter(|(last, _)| last == id) {
            Some((_, all)) => all.push_str(text),
            None => texts.push((id.to_owned(), text.to_owned())),
        }
    }
    texts
}

/// Returns the id of the only message in the last state of a stream.
fn last_id(response: &TestResponse) -> String {
    let values = response.frames().into_iter().rfind(|(kind, ..)| kind == "values").unwrap().1;
    assert_eq!(values["messages"].as_array().unwrap().len(), 1, "{values}");
    values["messages"][0]["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn message_has_one_id_while_streamed_and_when_stored() {
    let host = host(false);
    let thread = host.thread().await;
    let streamed = stream(&host, &thread, json!({ "assistant_id": "talker", "input": {} })).await;
    assert_eq!(message_texts(&streamed), [(last_id(&streamed), "Hello".to_owned())]);
    let state = host.get(&format!("/threads/{thread}/state")).await.ok();
    assert_eq!(state["values"]["messages"][0]["id"], last_id(&streamed));
    let copy = host.post(&format!("/threads/{thread}/copy"), json!({})).await.ok();
    assert_eq!(copy["values"]["messages"][0]["id"], last_id(&streamed), "a copy keeps the id");
}

#[tokio::test]
async fn reconnect_receives_same_message_ids() {
    let host = host(true);
    let thread = host.thread().await;
    let first = stream(&host, &thread, json!({ "assistant_id": "talker", "input": {} })).await;
    let frames = first.frames();
    for known in std::iter::once("-1").chain(frames.iter().map(|(_, _, id)| id.as_str())) {
        let mut request = request("GET", first.header("location"), None);
        request.headers_mut().insert("last-event-id", HeaderValue::from_str(known).unwrap());
        let again = host.send(request).await.frames();
        let left = frames.iter().position(|(_, _, id)| id == known).map_or(0, |at| at + 1);
        assert_eq!(again, frames[left..], "after {known}");
    }
}

#[tokio::test]
async fn restarted_completion_is_stored_under_its_last_id() {
    let host = host(true);
    let thread = host.thread().await;
    let streamed = stream(&host, &thread, json!({ "assistant_id": "talker", "input": {} })).await;
    let texts = message_texts(&streamed);
    assert_eq!(texts.last(), Some(&(last_id(&streamed), "Hello".to_owned())));
    let ids: BTreeSet<&String> = texts.iter().map(|(id, _)| id).collect();
    assert_eq!(ids.len(), texts.len(), "discarded deltas are not continued: {texts:?}");
}

#[tokio::test]
async fn message_streamed_before_an_interrupt_is_stored_under_the_same_id() {
    let host = host(false);
    let thread = host.thread().await;
    let asked = stream(&host, &thread, json!({ "assistant_id": "asker", "input": {} })).await;
    let resume = json!({ "assistant_id": "asker", "command": { "resume": "yes" } });
    let resumed = stream(&host, &thread, resume).await;
    assert_eq!(message_texts(&asked), [(last_id(&resumed), "Hello".to_owned())]);
    assert_eq!(message_texts(&resumed), [], "the message was sent before");
}
