//! `POST /api/chat/stream`: sends a message and streams the run.

use wattle_plugin::chat::ChatRequest;
use wattle_plugin::prelude::{Failure, Request, Response, Value, handler};
use wattle_plugin::web::{ErrorDocument, respond};

use crate::web::CHAT;

/// Sends a message to a conversation and streams the run: as the host's own events, or with
/// `?format=ai-sdk` as a message of the AI SDK.
#[handler(POST, "/api/chat/stream", query(format: Option<String>), body = ChatRequest,
    events = Value, error = ErrorDocument)]
pub(crate) fn stream(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorDocument>(request, || CHAT.stream(request))
}
