//! Tools of MCP servers: the adapter for the port `wattle_run::ports::ToolServers`.
//!
//! # Layout
//!
//! * [`config`]: settings of each server, with secrets resolved.
//! * [`servers`]: [`McpServers`], the port.
//! * `server`: one server with its session and its tool list.
//! * `connect`: opens sessions; `connect/http` and `connect/stdio` are the two transports,
//!   `connect/guarded_resolver` checks addresses.
//! * `client`: the client side of a session.
//! * `running_call`: tool calls in progress, during which a server may send elicitations; `calls`:
//!   the calls of one session, and which of them an elicitation belongs to; `held_calls`: held
//!   calls; `elicitation`: converts questions and answers between the types of the engine and of
//!   the protocol.
//! * `permit`: whether a message with an effect may be sent.
//! * `normalize`: normalizes messages of servers part by part; `normalize/form` the forms of
//!   elicitations.
//! * `tool_list`: converts a tool list; `tool_result`: converts a tool result; `same_json`: whether
//!   a text of a result repeats its document.
//! * [`check`]: the report of `wattle mcp check`.
//! * [`parse`]: parses responses without a connection, for tests.
//! * `failure`: converts errors to failures; `sanitizer`: quotes text of a server in messages.
//!
//! The crate `rmcp` implements both generations of the protocol. The host tries the stateless
//! protocol of 2026-07-28 first and falls back to a handshake and a session if the server does not
//! know that protocol. A stdio server that exits or does not respond to the first request is
//! started again with a handshake, which costs at most five seconds once. A server over HTTP that
//! does not respond costs ten seconds. A response that the stateless protocol does not define also
//! causes a handshake. A server can be configured to begin with the handshake.
//!
//! What a server sends is untrusted text: names and descriptions are cleaned and bounded, results
//! are bounded, and requests of the server to its client (sampling, roots) are refused. An
//! elicitation becomes an interrupt of the thread.

mod calls;
pub mod check;
mod client;
pub mod config;
mod connect;
mod elicitation;
pub mod error;
mod failure;
mod held_calls;
mod normalize;
pub mod parse;
mod permit;
mod running_call;
mod same_json;
mod sanitizer;
mod server;
pub mod servers;
mod tool_list;
mod tool_result;

pub use config::{HttpConfig, McpConfig, ServerConfig, StdioConfig, TransportConfig};
pub use error::ConfigError;
pub use servers::McpServers;
