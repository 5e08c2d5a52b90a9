//! Encodes a run as the UI message stream of the AI SDK.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use wattle_graph::event::Event;
use wattle_graph::failure::Failure;
use wattle_graph::id::{NodeName, RunId};
use wattle_project::ai_sdk::{self, AiSdkProjection, Chunk};
use wattle_project::projection::{EventState, Projection as _};
use wattle_run::caller_id::CallerId;
use wattle_run::ports::Store;

use crate::response::sse_response;
use crate::stream::client_tail::{ClientTail, HEARTBEAT_INTERVAL, TailRequest};
use crate::stream::parts::StreamParts;
use crate::stream::run_encoder::{RunEncoder, encode_event, encode_stream, find_unstarted};

/// Header with the protocol version of the AI SDK.
const VERSION_HEADER: &str = "x-vercel-ai-ui-message-stream";

/// Protocol version of the AI SDK.
const VERSION: &str = "v1";

/// Last message of a stream.
const DONE: Bytes = Bytes::from_static(b"data: [DONE]\n\n");

/// Responds with the stream of one run from its first event.
pub fn respond(parts: &StreamParts, request: TailRequest, nodes: Vec<NodeName>) -> Response {
    let encoder = AiSdkEncoder {
        owner: request.owner,
        chunks: AiSdkProjection::new(nodes),
        store: parts.engine.ports().store.clone(),
        run: request.run.clone(),
    };
    let tail = ClientTail::new(parts, request, HEARTBEAT_INTERVAL);
    let mut response = sse_response(encode_stream(tail, encoder, VecDeque::new()));
    let headers = response.headers_mut();
    headers.insert(HeaderName::from_static(VERSION_HEADER), HeaderValue::from_static(VERSION));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

struct AiSdkEncoder {
    owner: CallerId,
    chunks: AiSdkProjection,
    store: Arc<dyn Store>,
    run: Option<RunId>,
}

impl RunEncoder for AiSdkEncoder {
    async fn encode(&mut self, event: &Event) -> Vec<Bytes> {
        let state = EventState::default();
        let mut messages = encode_event(self.owner, &mut self.chunks, event, state).await;
        if self.chunks.is_over() {
            messages.push(DONE);
        }
        messages
    }

    fn is_over(&self) -> bool {
        self.chunks.is_over()
    }

    async fn log_ended(&mut self) -> Vec<Bytes> {
        let Some(run) = &self.run else { return Vec::new() };
        match find_unstarted(&*self.store, run).await {
            Ok(Some(record)) => ended(&ai_sdk::unstarted(record.failure)),
            // After a shutdown of the host, the run continues, so the stream has no `[DONE]`.
            Ok(None) => Vec::new(),
            Err(failure) => failed(&failure),
        }
    }

    fn read_failed(&mut self, failure: &Failure) -> Option<Vec<Bytes>> {
        Some(failed(failure))
    }
}

/// Messages that end a stream whose log cannot be read.
fn failed(failure: &Failure) -> Vec<Bytes> {
    ended(&Chunk::Error { error_text: failure.message.clone() })
}

/// Messages that end a stream with a chunk.
fn ended(chunk: &Chunk) -> Vec<Bytes> {
    vec![super::json_message(chunk), DONE]
}
