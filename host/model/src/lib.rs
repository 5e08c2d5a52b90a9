//! Language models behind named routes.
//!
//! A guest names a route; the operator decides which provider, model, fallbacks and limits stand
//! behind it. This crate is the adapter for the port `wattle_run::ports::Model`.
//!
//! # Layout
//!
//! * [`config`]: the `[model]` table of `wattle.toml`, with aliases and models that variables name;
//!   [`extra`]: fields of a provider's own.
//! * [`routes`]: [`Routes`], the port; `route`: one call with its fallbacks; `route/image`: one
//!   call for pictures.
//! * [`tenant`]: routes that tenants bring along.
//! * `provider`: one provider: client, key, bounded concurrency; one turn, with retries.
//! * `provider/exchange`: one request and its answer over HTTP; `provider/sse`: streams of events.
//! * `provider/openai`, `provider/gemini`, `provider/anthropic`: the formats, of which OpenAI's has many
//!   dialects.
//! * `provider/schema`: schemas of tools in the form that each provider demands.
//! * `provider/state`: what a provider sent for itself, and gets back.
//! * `provider/think`: reasoning that a model writes into its text; `provider/arguments`: arguments of requests for
//!   tools, in pieces.
//! * [`recorded`]: answers without a connection, for checks.
//! * `provider/image`: pictures that models make, in the formats of Google and OpenAI.
//! * `provider/fault`: errors in our words.
//! * `sink`: pieces of an answer on their way to the caller.
//! * `retry`: which faults are tried again, and after what pause.
//! * `chat`: a conversation that can be sent; `chat/picture`: its pictures.
//! * `structured`: answers of a wanted shape: ask, read, validate, repair once.
//!
//! # Streams
//!
//! Answers are asked for piece by piece, handed on at once and put together to the same answer
//! that a provider would have given as a whole. A retry or a fallback is possible as long as no
//! piece was handed on; a stream that breaks off later fails as `unavailable` or `timeout`, both
//! of which may be tried again, and the node's own retry makes the whole call anew. Dropping a
//! call closes its connection.

mod chat;
pub mod config;
pub mod error;
pub mod extra;
mod header;
mod provider;
pub mod recorded;
mod retry;
mod route;
pub mod routes;
mod sink;
mod structured;
pub mod tenant;

pub use config::ModelConfig;
pub use error::ConfigError;
pub use provider::schema_changes;
pub use routes::Routes;
pub use tenant::Tenants;
