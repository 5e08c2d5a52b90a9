//! Model routes: the adapter for the port `wattle_run::ports::Model`.
//!
//! A guest names a route. The operator configures the provider, model, fallbacks and limits that
//! the route resolves to.
//!
//! # Layout
//!
//! * [`config`]: the `[model]` table of `wattle.toml`, with aliases and models from environment
//!   variables; [`extra`]: provider-specific request fields.
//! * [`routes`]: [`Routes`], the implementation of the port; `route`: one call with its fallbacks;
//!   `route/image`: one image call.
//! * [`tenant`]: tenant routes.
//! * `provider`: one provider with its client, key and concurrency limit; one turn with its
//!   retries.
//! * `provider/exchange`: one HTTP request and its response; `provider/sse`: server-sent events;
//!   `provider/event_data`: data of events that is not one document.
//! * `provider/openai`, `provider/gemini`, `provider/anthropic`: the formats. OpenAI's format has
//!   many dialects.
//! * `provider/schema`: tool schemas in the form that each provider accepts.
//! * `provider/provider_state`: provider state: data that a provider sends and requires back.
//! * `provider/think_tags`: reasoning within a text; `provider/arguments`: arguments of tool calls.
//! * `provider/finish_reason`: names of finish reasons; `provider/token_counts`: token counts.
//! * `provider/left_out`: the log of parts of responses that are left out.
//! * `provider/rejections`: what services reject; `provider/rejected_schemas`: response schemas;
//!   `provider/optional_fields`: optional fields of requests.
//! * `provider/model_family`: families of models.
//! * `provider/thought_signature`: signatures that Gemini requires.
//! * [`recorded`]: recorded responses, read without a connection.
//! * `provider/image`: image generation in the formats of Google and OpenAI.
//! * `provider/error`: conversion of provider errors to failures.
//! * `sink`: the deltas of a call.
//! * `retry`: which errors are retried, and the backoff.
//! * `chat`: conversations in a provider-independent form; `chat/image`: their images.
//! * `structured`: structured modes, validation, coercion and repair.
//!
//! # Streams
//!
//! The host emits the deltas of a streamed response and assembles them to the completion that an
//! unstreamed response would contain. After the first delta neither a retry nor a fallback follows:
//! a stream that ends early fails as `unavailable` or `timeout`. Both are retryable, and a retry of
//! the node repeats the whole call. Dropping a call closes its connection.

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
pub use structured::read_structured;
pub use tenant::TenantRoutesConfig;
