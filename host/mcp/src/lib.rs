//! Tools that live on MCP servers: the adapter for the port `wattle_run::ports::ToolServers`.
//!
//! # Layout
//!
//! * [`config`]: what an operator says about a server; secrets are filled in already.
//! * [`servers`]: [`McpServers`], the port.
//! * `server`: one server: its session, shared and renewed, and its list of tools.
//! * `connect`: from a configuration to a session; `connect/http` and `connect/child` for the two
//!   ways; `connect/guard` for the addresses that may be reached.
//! * `client`: what we are to a server: a client that calls tools and can ask people.
//! * `asking`: calls on their way, in which a server may ask; `calls`: those of one session, and which of them a
//!   question belongs to; `held`: those that wait for people; `question`: questions and answers in our words.
//! * `permit`: whether a message that has an effect may leave.
//! * `mend`: messages of servers in the form of the protocol, part by part; `mend/form` for what people are asked.
//! * `listing`: a server's tools in our words; `outcome`: a tool's result likewise.
//! * [`check`]: what a server says when it is looked at.
//! * [`answer`]: answers of servers without a server, for checks.
//! * `fault`: what went wrong, in our words; `speaker`: the words of a server in them.
//!
//! The protocol is that of crate `rmcp`, in both eras: a server is asked for the stateless
//! protocol of 2026-07-28 first, and addressed with a handshake and a session if it does not know
//! it. A program that does not answer that first question, or ends at it, is started again for a handshake; that costs
//! at most five seconds once. A server over HTTP that does not answer costs ten; one that answers in no way of the newer
//! protocol is addressed with a handshake as well. A server can be configured to begin with the handshake.
//!
//! What a server says is foreign text: names and descriptions are cleaned and bounded, results
//! are bounded, and what a server asks of its client (to sample, to list roots) is refused. What it asks a person
//! becomes a question of the thread.

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
