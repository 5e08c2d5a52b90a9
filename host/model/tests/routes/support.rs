//! Routes to a stand-in provider, requests, and servers with scripted responses.

use std::collections::HashMap;
use std::sync::Mutex;

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::Digest;
use wattle_graph::llm::{
    Completion, CompletionRequest, Delta, Message, Part, ResponseSchema, Role, ToolCall,
    ToolDefinition,
};
use wattle_model::{ModelConfig, Routes};
use wattle_run::caller_id::CallerId;
use wattle_run::ports::blob::{BlobInfo, BlobRef};
use wattle_run::ports::model::{DeltaSink, DiscardDeltas};
use wattle_run::ports::{BlobStore, Caller, Model};
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, ResponseTemplate};

/// The key of every stand-in. No message contains the key.
pub(crate) const KEY: &str = "sk-very-secret-0123456789";

/// An in-memory blob store that derives the reference of a blob from its first byte.
#[derive(Default)]
pub(crate) struct Blobs(Mutex<HashMap<BlobRef, (Bytes, String)>>);

pub(crate) fn blob(first: u8) -> BlobRef {
    let text = format!("{first:02x}").repeat(32);
    BlobRef(text.parse::<Digest>().unwrap())
}

#[async_trait]
impl BlobStore for Blobs {
    async fn put(&self, bytes: Bytes, media_type: &str) -> Result<BlobRef, Failure> {
        let reference = blob(bytes[0]);
        self.0.lock().unwrap().insert(reference, (bytes, media_type.to_owned()));
        Ok(reference)
    }

    async fn get(&self, blob: BlobRef, _: u64, _: Option<u64>) -> Result<Bytes, Failure> {
        let found = self.0.lock().unwrap().get(&blob).map(|(bytes, _)| bytes.clone());
        found.ok_or_else(|| Failure::new(code::NOT_FOUND, "no such blob"))
    }

    async fn stat(&self, blob: BlobRef) -> Result<BlobInfo, Failure> {
        let size = self.get(blob, 0, None).await?.len() as u64;
        Ok(BlobInfo { blob, size, media_type: String::new() })
    }
}

pub(crate) fn caller() -> Caller {
    Caller {
        app: "demo".to_owned().try_into().unwrap(),
        plugin: "demo".to_owned().try_into().unwrap(),
        tenant: None,
        owner: CallerId::default(),
    }
}

/// Creates the routes of a `[model]` table. Every variable that ends in `_KEY` has the value `KEY`;
/// other variables are not set.
pub(crate) fn routes(config: Value) -> Routes {
    let config: ModelConfig = serde_json::from_value(config).unwrap();
    let env = |name: &str| name.ends_with("_KEY").then(|| KEY.to_owned());
    Routes::new(config, &env).unwrap()
}

/// Returns a table with one route `chat` to the stand-in at `base`, without retries. `route` and
/// `provider` override its keys. Responses of Gemini and Anthropic are not streamed by default.
pub(crate) fn table(kind: &str, base: &str, provider: &Value, route: &Value) -> Value {
    let stream = kind == "openai";
    let mut first =
        json!({ "kind": kind, "base_url": base, "key_env": "PROVIDER_KEY", "stream": stream });
    let mut chat = json!({ "provider": "first", "model": "m-1", "timeout": "5s", "retries": 0 });
    merge(&mut first, provider);
    merge(&mut chat, route);
    json!({ "providers": { "first": first }, "routes": { "chat": chat } })
}

fn merge(target: &mut Value, source: &Value) {
    for (name, value) in source.as_object().unwrap() {
        target[name] = value.clone();
    }
}

pub(crate) fn simple(kind: &str, base: &str) -> Routes {
    routes(table(kind, base, &json!({}), &json!({})))
}

pub(crate) fn ask(text: &str) -> CompletionRequest {
    let messages = vec![
        message(Role::System, vec![Part::Text("be brief".into())]),
        message(Role::User, vec![Part::Text(text.into())]),
    ];
    CompletionRequest::new("chat", messages)
}

pub(crate) fn message(role: Role, parts: Vec<Part>) -> Message {
    Message { role, parts }
}

/// Returns a request for `{"city": "...", "zip": "..."?}`.
pub(crate) fn ask_city() -> CompletionRequest {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": { "city": { "type": "string" }, "zip": { "type": "string" } },
        "required": ["city"],
    });
    let response_schema = Some(ResponseSchema { name: "place".into(), schema });
    CompletionRequest { response_schema, ..ask("where?") }
}

pub(crate) async fn complete(
    routes: &Routes,
    request: &CompletionRequest,
) -> Result<Completion, Failure> {
    routes.complete(&caller(), request, &Blobs::default(), &DiscardDeltas).await
}

/// Records the deltas of a call.
#[derive(Default)]
pub(crate) struct RecordedDeltas(Mutex<Vec<Delta>>);

impl DeltaSink for RecordedDeltas {
    fn push(&self, delta: Delta) {
        self.0.lock().unwrap().push(delta);
    }
}

impl RecordedDeltas {
    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    pub(crate) fn restarts(&self) -> usize {
        self.0.lock().unwrap().iter().filter(|delta| **delta == Delta::Restart).count()
    }

    /// Returns the parts that result from the deltas since the last restart: reasoning, text, tool
    /// calls.
    pub(crate) fn parts(&self) -> Vec<Part> {
        let (mut reasoning, mut text) = (String::new(), String::new());
        let mut calls: Vec<(String, String, String)> = Vec::new();
        for delta in self.0.lock().unwrap().iter() {
            match delta {
                Delta::Text { text: piece } => text.push_str(piece),
                Delta::Reasoning { text: piece } => reasoning.push_str(piece),
                Delta::ToolCall { index, id, name, arguments } => {
                    if let (Some(id), Some(name)) = (id, name) {
                        assert_eq!(*index as usize, calls.len());
                        calls.push((id.clone(), name.clone(), String::new()));
                    }
                    calls[*index as usize].2.push_str(arguments);
                }
                _ => (reasoning, text, calls) = Default::default(),
            }
        }
        let texts = [Part::Reasoning(reasoning), Part::Text(text)];
        let calls = calls.into_iter().map(|(id, name, text)| {
            // A call without any delta of its arguments has no arguments.
            let arguments = match text.as_str() {
                "" => json!({}),
                text => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
            };
            Part::ToolCall(ToolCall { id, name, arguments })
        });
        let spoken = texts.into_iter().filter(|part| match part {
            Part::Text(text) | Part::Reasoning(text) => !text.is_empty(),
            _ => false,
        });
        spoken.chain(calls).collect()
    }
}

/// Makes a call and records its deltas.
pub(crate) async fn stream(
    routes: &Routes,
    request: &CompletionRequest,
) -> (Result<Completion, Failure>, RecordedDeltas) {
    let kept = RecordedDeltas::default();
    let answer = routes.complete(&caller(), request, &Blobs::default(), &kept).await;
    (answer, kept)
}

/// Returns a request with tools, which the stand-in calls as the user says.
pub(crate) fn ask_tools(text: &str) -> CompletionRequest {
    let tool = |name: &str| ToolDefinition {
        name: name.into(),
        description: "does it".into(),
        arguments_schema: json!({ "type": "object", "properties": {} }),
    };
    CompletionRequest { tools: vec![tool("add"), tool("save")], ..ask(text) }
}

/// Returns a response of OpenAI.
pub(crate) fn chat(text: &str) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m-1-dated",
        "choices": [{
            "index": 0, "finish_reason": "stop",
            "message": { "role": "assistant", "content": text, "refusal": null },
        }],
        "usage": {
            "prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15,
            "prompt_tokens_details": { "cached_tokens": 4 },
            "completion_tokens_details": { "reasoning_tokens": 2 },
        },
    })
}

/// Starts a server that returns these responses in order, and the last one from then on.
pub(crate) async fn server(answers: Vec<ResponseTemplate>) -> MockServer {
    let server = MockServer::start().await;
    let last = answers.len() - 1;
    for (index, answer) in answers.into_iter().enumerate() {
        let mut mock = Mock::given(any()).respond_with(answer).with_priority(index as u8 + 1);
        if index < last {
            mock = mock.up_to_n_times(1);
        }
        mock.mount(&server).await;
    }
    server
}

/// Starts a server that reads the start of a request and then runs `then`.
pub(crate) async fn raw_server<F, R>(then: F) -> String
where
    F: FnOnce(tokio::net::TcpStream) -> R + Send + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = [0; 16];
        stream.read_exact(&mut head).await.unwrap();
        then(stream).await;
    });
    format!("http://{address}")
}

pub(crate) fn json_response(body: &Value) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_json(body)
}

pub(crate) fn error_status(code: u16) -> ResponseTemplate {
    let error = json!({ "error": { "message": format!("it went wrong {KEY}"), "code": null } });
    ResponseTemplate::new(code).set_body_json(error)
}

/// Returns the bodies that a server received.
pub(crate) async fn bodies(server: &MockServer) -> Vec<Value> {
    let requests = server.received_requests().await.unwrap();
    requests.iter().map(|request| request.body_json().unwrap()).collect()
}

/// Checks that no form of a failure shows the key.
pub(crate) fn assert_no_key(failure: &Failure) {
    let shown = format!("{failure} {failure:?} {}", serde_json::to_string(failure).unwrap());
    assert!(!shown.contains(KEY), "{shown}");
}

/// Returns the attempts in a failure: provider, model, tries, code.
pub(crate) fn attempts_in(failure: &Failure) -> Vec<(String, String, u64, String)> {
    let attempts = failure.details.as_ref().unwrap()["attempts"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let read = |told: &Value| {
        assert!(!text(&told["message"]).is_empty(), "{told}");
        let tries = told["tries"].as_u64().unwrap();
        (text(&told["provider"]), text(&told["model"]), tries, text(&told["code"]))
    };
    attempts.iter().map(read).collect()
}
