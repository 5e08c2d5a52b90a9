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
//! * `provider/openai`: OpenAI's format and its many dialects; `provider/sse`: its streams.
//! * [`recorded`]: answers in that format without a connection, for checks.
//! * `provider/image`: pictures that models make, in the formats of Google and OpenAI.
//! * `provider/by_genai`: Gemini and Anthropic; `provider/reply`: their answers in our words.
//! * `provider/fault`: errors in our words.
//! * `sink`: pieces of an answer on their way to whoever asked.
//! * `retry`: which faults are tried again, and after what pause.
//! * `message`: our messages in the words of crate `genai`; `message/picture`: their pictures.
//! * `structured`: answers of a wanted shape: ask, read, validate, repair once.
//!
//! # Streams
//!
//! Answers are asked for piece by piece, handed on at once and put together to the same answer
//! that a provider would have given as a whole. A retry or a fallback is possible as long as no
//! piece was handed on; a stream that breaks off later fails as `unavailable` or `timeout`, both
//! of which may be tried again, and the node's own retry makes the whole call anew. Dropping a
//! call closes its connection.
//!
//! # Crate `genai`
//!
//! It speaks the formats of Gemini and Anthropic. What it does not do is done here and said where
//! it is done: pictures that models make, Gemini's JSON mode, pictures by address for Anthropic,
//! blocked prompts, models' names in streams, providers without a key. It reads an answer's body
//! without a bound in size: a provider is an address that the operator chose. For OpenAI's format
//! there is a client of our own, because `genai` takes only streams that keep to the letter of it.

pub mod config;
pub mod error;
pub mod extra;
mod message;
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
pub use routes::Routes;
pub use tenant::Tenants;
