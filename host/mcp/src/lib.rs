//! Tools of MCP servers: the adapter for the port `wattle_run::ports::ToolServers`.
//!
//! # Layout
//!
//! * [`config`]: settings of each server, with secrets resolved.
//! * [`servers`]: [`McpServers`], the port.
//! * `server`: one server with its session and its tool list.
//! * `connect`: opens sessions; `connect/http` and `connect/child` are the two transports, `connect/guard` checks
//!   addresses.
//! * `client`: the client side of a session.
//! * `asking`: tool calls in progress, during which a server may send elicitations; `calls`: the calls of one session,
//!   and which of them an elicitation belongs to; `held`: held calls; `question`: converts questions and answers
//!   between the types of the engine and of the protocol.
//! * `permit`: whether a message with an effect may be sent.
//! * `mend`: normalizes messages of servers part by part; `mend/form` the forms of elicitations.
//! * `listing`: converts a tool list; `outcome`: converts a tool result.
//! * [`check`]: the report of `wattle mcp check`.
//! * [`answer`]: parses responses without a connection, for tests.
//! * `fault`: converts errors to failures; `speaker`: quotes text of a server in messages.
//!
//! The crate `rmcp` implements both generations of the protocol. The host tries the stateless protocol of
//! 2026-07-28 first and falls back to a handshake and a session if the server does not know it. A stdio server that
//! exits or is silent at the first request is started again with a handshake, which costs at most five seconds once. A
//! server over HTTP that does not respond costs ten seconds; any response that is not one of the stateless protocol
//! leads to a handshake as well. A server can be configured to begin with the handshake.
//!
//! What a server sends is untrusted text: names and descriptions are cleaned and bounded, results are bounded, and
//! requests of the server to its client (sampling, roots) are refused. An elicitation becomes an interrupt of the
//! thread.

pub mod answer;
mod asking;
mod calls;
pub mod check;
mod client;
pub mod config;
mod connect;
pub mod error;
mod fault;
mod held;
mod listing;
mod mend;
mod outcome;
mod permit;
mod question;
mod server;
pub mod servers;
mod speaker;

pub use config::{CommandConfig, HttpConfig, McpConfig, Reach, ServerConfig};
pub use error::ConfigError;
pub use servers::McpServers;
