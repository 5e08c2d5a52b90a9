//! Gemini and Anthropic, whose wire formats crate `genai` speaks.

use std::collections::HashMap;
use std::sync::Arc;

use futures::StreamExt as _;
use genai::adapter::AdapterKind;
use genai::chat::{ChatOptions, ChatRequest, ChatStreamEvent, StreamEnd, ToolCall};
use genai::resolver::{AuthData, Endpoint};
use genai::{Client, Headers, ModelIden, ServiceTarget};
use serde_json::Value;
use wattle_graph::llm::Part;

use crate::config::ProviderKind;
use crate::provider::fault::{self, Fault};
use crate::provider::noted::Noted;
use crate::provider::options::chat_options;
use crate::provider::pace::{Pace, SAID_BYTES};
use crate::provider::reply::{self, Reply};
use crate::provider::{Aim, Ask, Provider};
use crate::sink::Sink;

/// The version of Anthropic's wire format, as `genai` sends it.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// One request.
pub(super) async fn ask(
    provider: &Provider,
    aim: Aim<'_>,
    ask: &Ask<'_>,
    sink: &Sink<'_>,
) -> Result<Reply, Fault> {
    let client = Client::builder()
        .with_reqwest(provider.http().clone())
        .build()
        .map_err(|error| fault::read(provider, aim, sink, error))?;
    let options = chat_options(provider.kind(), ask);
    if provider.streams() {
        return streamed(provider, &client, aim, ask.chat, options, sink).await;
    }
    let reply = whole(provider, &client, aim, ask.chat, &options, sink).await?;
    hand_on(&reply, sink);
    Ok(reply)
}

/// An answer that comes at once.
async fn whole(
    provider: &Provider,
    client: &Client,
    aim: Aim<'_>,
    chat: &ChatRequest,
    options: &ChatOptions,
    sink: &Sink<'_>,
) -> Result<Reply, Fault> {
    let call = client.exec_chat(target(provider, aim.model, false), chat.clone(), Some(options));
    match tokio::time::timeout(aim.timeout, call).await {
        Err(_) => Err(fault::timeout(provider, aim)),
        Ok(Ok(response)) => Ok(Reply::read(response)),
        Ok(Err(error)) => match reply::blocked(&error) {
            Some(reply) => Ok(reply),
            None => Err(fault::read(provider, aim, sink, error)),
        },
    }
}

/// Whoever asked sees the same pieces of an answer that came at once, in one go.
fn hand_on(reply: &Reply, sink: &Sink<'_>) {
    let mut calls = 0;
    for part in &reply.parts {
        match part {
            Part::Text(text) => sink.text(text),
            Part::Reasoning(text) => sink.reasoning(text),
            Part::ToolCall(call) => {
                sink.call(calls, &call.id, &call.name, &call.arguments.to_string());
                calls += 1;
            }
            _ => {}
        }
    }
}

/// An answer that comes piece by piece.
async fn streamed(
    provider: &Provider,
    client: &Client,
    aim: Aim<'_>,
    chat: &ChatRequest,
    options: ChatOptions,
    sink: &Sink<'_>,
) -> Result<Reply, Fault> {
    let noted = Arc::new(Noted::default());
    let options = options
        .with_stream_header_timeout(aim.timeout)
        .with_stream_read_timeout(aim.timeout)
        .with_raw_frame_sink_arc(noted.clone());
    let target = target(provider, aim.model, true);
    let stream = client.exec_chat_stream(target, chat.clone(), Some(&options)).await;
    let mut events = stream.map_err(|error| fault::read(provider, aim, sink, error))?.stream;
    let (mut calls, mut told, mut said, mut pace) =
        (Calls::default(), Told::default(), 0, Pace::new());
    loop {
        let event = tokio::select! {
            biased;
            reason = noted.exhausted() => return Err(fault::broken(provider, aim, &reason)),
            event = events.next() => event,
        };
        let Some(event) = event else { break };
        let carried = match event {
            Ok(ChatStreamEvent::Chunk(chunk)) => {
                sink.text(&chunk.content);
                told.text += chunk.content.len();
                chunk.content.len()
            }
            Ok(ChatStreamEvent::ReasoningChunk(chunk)) => {
                sink.reasoning(&chunk.content);
                told.reasoning += chunk.content.len();
                chunk.content.len()
            }
            Ok(ChatStreamEvent::ToolCallChunk(chunk)) => {
                calls.take(provider.kind(), &chunk.tool_call, sink)
            }
            Ok(ChatStreamEvent::ThoughtSignatureChunk(chunk)) => chunk.content.len(),
            Ok(ChatStreamEvent::End(end)) => {
                told.calls = calls.count;
                return ended(provider, aim, end, &told, &noted, sink);
            }
            Ok(ChatStreamEvent::Start | ChatStreamEvent::Heartbeat) => 0,
            Err(error) => {
                let blocked = noted.blocked(aim.model);
                return blocked.ok_or_else(|| fault::read(provider, aim, sink, error));
            }
        };
        if carried > 0 {
            noted.carried();
        }
        said += carried;
        if said > SAID_BYTES {
            let reason = format!("it says more than {SAID_BYTES} bytes");
            return Err(fault::broken(provider, aim, &reason));
        }
        pace.keep(carried).await;
    }
    Err(ended_early(provider, aim, &noted, sink))
}

/// Gemini has no event for the end of a stream: an answer without a reason to stop was cut off.
fn ended(
    provider: &Provider,
    aim: Aim<'_>,
    end: StreamEnd,
    told: &Told,
    noted: &Noted,
    sink: &Sink<'_>,
) -> Result<Reply, Fault> {
    if end.captured_stop_reason.is_some() {
        let reply = Reply::streamed(provider.kind(), end, noted.model(aim.model));
        if Told::by(&reply) == *told {
            return Ok(reply);
        }
        let reason = "a block began before the block before it ended";
        return Err(fault::broken(provider, aim, reason));
    }
    noted.blocked(aim.model).ok_or_else(|| ended_early(provider, aim, noted, sink))
}

fn ended_early(provider: &Provider, aim: Aim<'_>, noted: &Noted, sink: &Sink<'_>) -> Fault {
    if noted.heard() {
        return fault::cut(provider, aim, sink, None);
    }
    let reason =
        "it is no stream of events; set `stream = false` for the provider if it knows none";
    fault::broken(provider, aim, reason)
}

/// Bytes of text and reasoning and the number of named requests for tools in an answer. The end of a
/// stream repeats what its pieces said, except for blocks that `genai` loses.
#[derive(Debug, Default, PartialEq)]
struct Told {
    text: usize,
    reasoning: usize,
    calls: usize,
}

impl Told {
    fn by(reply: &Reply) -> Self {
        let mut told = Self::default();
        for part in &reply.parts {
            match part {
                Part::Text(text) => told.text += text.len(),
                Part::Reasoning(text) => told.reasoning += text.len(),
                Part::ToolCall(call) => told.calls += usize::from(!call.name.is_empty()),
                _ => {}
            }
        }
        told
    }
}

/// Requests for tools on their way through: `genai` repeats what came before with every piece.
#[derive(Default)]
struct Calls {
    /// Index and bytes of arguments handed on, by id.
    known: HashMap<String, (usize, usize)>,
    count: usize,
}

impl Calls {
    /// Hands on what is new of a request, and says how many bytes that are.
    fn take(&mut self, kind: ProviderKind, call: &ToolCall, sink: &Sink<'_>) -> usize {
        let arguments = match &call.fn_arguments {
            Value::String(text) => text.clone(),
            document => document.to_string(),
        };
        // Gemini's requests come whole, and their ids are not their own.
        let known = self.known.get_mut(&call.call_id).filter(|_| kind != ProviderKind::Gemini);
        if let Some((index, bytes)) = known {
            let new = arguments.get(*bytes..).unwrap_or_default();
            sink.arguments(*index, new);
            *bytes = arguments.len();
            return new.len();
        }
        // A request is handed on with its name, which may still come.
        if call.fn_name.is_empty() {
            return arguments.len();
        }
        let index = self.count;
        self.count += 1;
        self.known.insert(call.call_id.clone(), (index, arguments.len()));
        let made_up = reply::made_up_id(&call.call_id, &call.fn_name, index);
        sink.call(index, made_up.as_ref().unwrap_or(&call.call_id), &call.fn_name, &arguments);
        call.fn_name.len() + arguments.len()
    }
}

fn target(provider: &Provider, model: &str, stream: bool) -> ServiceTarget {
    let kind = match provider.kind() {
        ProviderKind::Openai => AdapterKind::OpenAI,
        ProviderKind::Gemini => AdapterKind::Gemini,
        ProviderKind::Anthropic => AdapterKind::Anthropic,
    };
    let auth = match provider.key() {
        Some(key) => AuthData::from_single(key),
        None => anonymous(provider, model, stream),
    };
    ServiceTarget {
        endpoint: Endpoint::from_owned(provider.url("")),
        auth,
        model: ModelIden::new(kind, model),
    }
}

/// A call without a key. `genai` wants a key for every provider unless address and headers are
/// given whole.
fn anonymous(provider: &Provider, model: &str, stream: bool) -> AuthData {
    let (url, headers) = match (provider.kind(), stream) {
        (ProviderKind::Anthropic, _) => {
            (provider.url("messages"), Headers::from(("anthropic-version", ANTHROPIC_VERSION)))
        }
        (_, false) => {
            (provider.url(&format!("models/{model}:generateContent")), Headers::default())
        }
        (_, true) => {
            let path = format!("models/{model}:streamGenerateContent?alt=sse");
            (provider.url(&path), Headers::default())
        }
    };
    AuthData::RequestOverride { url, headers }
}
