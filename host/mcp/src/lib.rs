//! Tools of MCP servers: the adapter for the port `wattle_run::ports::ToolServers`.
//!
//! # Layout
//!
//! * [`config`]: settings of each server, with secrets resolved.
//! * [`servers`]: [`McpServers`], the port.
//! * `server`: one server with its session and its tool list.
//! * `connect`: opens sessions; `connect/http` and `connect/stdio` are the two transports,
//!   `connect/guarded_resolver` checks addresses; `connect/server_requests` bounds the requests of
//!   a server.
//! * `client`: the client side of a session.
//! * `running_call`: tool calls in progress, during which a server may send elicitations; `calls`:
//!   the calls of one session, and which of them an elicitation belongs to; `held_calls`: held
//!   calls; `elicitation`: converts questions and answers between the types of the engine and of
//!   the protocol.
//! * `permit`: whether a message with an effect may be sent.
//! * `normalize`: normalizes messages of servers part by part; `normalize/form` the forms of
//!   elicitations; `normalize/unparsable` drops fields that cannot be parsed.
//! * `tool_list`: converts a tool list; `tool_result`: converts a tool result; `same_json`: whether
//!   a text of a result repeats its document; `encoded`: encoded files in results.
//! * [`check`]: the report of `wattle mcp check`.
//! * [`parse`]: parses responses without a connection, for tests.
//! * `failure`: converts errors to failures; `unreadable`: messages above a limit; `sanitizer`:
//!   quotes text of a server in messages and in the log; `log_budget`: limits the lines of a server
//!   in the log; `pace`: the rate at which the host reads what a server sends.
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
mod encoded;
pub mod error;
mod failure;
mod held_calls;
mod log_budget;
mod normalize;
mod pace;
pub mod parse;
mod permit;
mod running_call;
mod same_json;
mod sanitizer;
mod server;
pub mod servers;
mod tool_list;
mod tool_result;
mod unreadable;

pub use config::{HttpConfig, McpConfig, ServerConfig, StdioConfig, TransportConfig};
pub use error::ConfigError;
pub use servers::McpServers;
