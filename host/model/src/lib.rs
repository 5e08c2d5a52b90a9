//! Language models behind named routes.
//!
//! A guest names a route; the operator decides which provider, model, fallbacks and limits stand
//! behind it. This crate is the adapter for the port `wattle_run::ports::Model`.
//!
//! # Layout
//!
//! * [`config`]: the `[model]` table of `wattle.toml`.
//! * [`routes`]: [`Routes`], the port; one call with its fallbacks and its bound in time.
//! * `provider`: one provider: client, key, bounded concurrency; one turn, with retries.
//! * `provider/reply`: a provider's answer in our words; `provider/fault`: its errors likewise.
//! * `retry`: which faults are tried again, and after what pause.
//! * `message`: our messages in the words of crate `genai`; `message/picture`: their pictures.
//! * `structured`: answers of a wanted shape: ask, read, validate, repair once.
//!
//! The wire formats are those of crate `genai`. What it does not do is done here and said where
//! it is done: OpenAI's non-strict schemas, Gemini's JSON mode, pictures by address for Anthropic,
//! refusals, blocked prompts and providers without a key. `genai` reads an answer's body without
//! a bound in size: a provider is an address that the operator chose.

pub mod config;
pub mod error;
mod message;
mod provider;
mod retry;
pub mod routes;
mod structured;

pub use config::ModelConfig;
pub use error::ConfigError;
pub use routes::Routes;
