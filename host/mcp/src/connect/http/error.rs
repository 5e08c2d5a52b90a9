//! The error of requests to an MCP server.

use rmcp::transport::streamable_http_client::StreamableHttpError;

/// An error of the transport, of the server, or of the protocol.
pub(super) type Error = StreamableHttpError<reqwest::Error>;
