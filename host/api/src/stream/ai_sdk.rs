//! Encodes a run as the UI message stream of the AI SDK.

use std::collections::VecDeque;

use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use wattle_graph::event::Event;
use wattle_graph::failure::Failure;
use wattle_graph::id::NodeName;
use wattle_project::ai_sdk::{AiSdkProjection, Chunk};
use wattle_project::projection::{EventState, Projection as _};

use crate::response::sse_response;
use crate::stream::client_tail::{ClientTail, HEARTBEAT_INTERVAL, TailRequest};
use crate::stream::parts::StreamParts;
use crate::stream::run_encoder::{RunEncoder, encode_stream};

/// Header with the protocol version of the AI SDK.
const VERSION_HEADER: &str = "x-vercel-ai-ui-message-stream";

/// Protocol version of the AI SDK.
const VERSION: &str = "v1";

/// Last message of a stream.
const DONE: Bytes = Bytes::from_static(b"data: [DONE]\n\n");

/// Responds with the stream of one run from its first event.
pub fn respond(parts: &StreamParts, request: TailRequest, nodes: Vec<NodeName>) -> Response {
    let tail = ClientTail::new(parts, request, HEARTBEAT_INTERVAL);
    let encoder = AiSdkEncoder(AiSdkProjection::new(nodes));
    let mut response = sse_response(encode_stream(tail, encoder, VecDeque::new()));
    let headers = response.headers_mut();
    headers.insert(HeaderName::from_static(VERSION_HEADER), HeaderValue::from_static(VERSION));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

struct AiSdkEncoder(AiSdkProjection);

impl RunEncoder for AiSdkEncoder {
    async fn encode(&mut self, event: &Event) -> Vec<Bytes> {
        let chunks = self.0.apply(event, &EventState::default());
        let mut messages: Vec<Bytes> = chunks.iter().map(super::json_message).collect();
        if self.0.is_over() {
            messages.push(DONE);
        }
        messages
    }

    fn is_over(&self) -> bool {
        self.0.is_over()
    }

    fn read_failed(&mut self, failure: &Failure) -> Option<Vec<Bytes>> {
        let error = Chunk::Error { error_text: failure.message.clone() };
        Some(vec![super::json_message(&error), DONE])
    }
}
