//! The errors of requests to an MCP server.

use rmcp::model::{ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::StreamableHttpError;
use wattle_run::service_memory::ServicesFull;

/// An error of the transport, of the server, or of the protocol.
pub(super) type Error = StreamableHttpError<reqwest::Error>;

/// The error of a body that cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    /// The body does not get memory.
    #[error(transparent)]
    Memory(#[from] ServicesFull),
    /// The transport failed, or the body is too large.
    #[error(transparent)]
    Transport(#[from] Error),
}

/// Returns the message that replaces the response to a request with an error.
pub(super) fn replaced_response(error: ErrorData, request: &RequestId) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::error(error, Some(request.clone()))
}
