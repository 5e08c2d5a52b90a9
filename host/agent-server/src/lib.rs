//! The Agent Server API: Wattle for clients of LangGraph servers.
//!
//! The engine owns threads, runs and states. This crate converts them to the JSON formats of this
//! API. The engine has no assistants, crons, webhooks and stateless runs; this crate implements
//! them.
//!
//! # Layout
//!
//! * [`wire`]: requests, responses and commands as plain data, without I/O.
//! * [`state`]: the state that handlers share. `route`: the paths, one resource per file.
//!   [`router`] combines them, and `openapi` describes them.
//! * `extractors` and `query`: extractors for the caller, the body, the path and the query.
//!   `error`: errors of this API. `page`: limits on the size of a response.
//! * `graphs`: graphs by the ids that clients use. `assistants`: graphs with settings. `view`:
//!   threads and states as JSON. `namespaces`: namespaces of subgraphs.
//! * `create_run`: creates the run of a request. `resolve`: resolves a request into a run
//!   specification. `message_reader`: reads the messages of a request. `unknown_keys`: keys of
//!   inputs and updates that name no channel. `cancel_run`: cancels and deletes runs. `records`:
//!   records that this server stores in addition to threads.
//! * `hosts`: takes over the webhooks of dead hosts. `crons`: creates the runs of crons that are
//!   due. [`webhooks`]: notifies URLs of the end of runs.
//!   `client_jobs`: lists webhooks and crons for the native API.
//! * `run`: a run and its result. `wait_response`: the response with the result of a run.
//!   `run_stream`: the stream of a run. `disconnect`: cancels a run when its client disconnects.
//!   `event_states`: the states that are needed to encode events.
//! * `command`: executes commands of the streaming protocol. `subscriptions`: the typed events of a
//!   thread. `websocket`: commands and events over one WebSocket. `thread_stream`: all runs of a
//!   thread as one stream.

mod assistants;
mod cancel_run;
mod client_jobs;
mod command;
mod create_run;
mod crons;
mod disconnect;
mod error;
mod event_states;
mod extractors;
mod graphs;
mod hosts;
mod message_reader;
mod namespaces;
mod openapi;
mod page;
mod query;
mod records;
mod resolve;
mod route;
mod run;
mod run_stream;
pub mod state;
mod subscriptions;
mod thread_stream;
mod unknown_keys;
mod view;
mod wait_response;
pub mod webhooks;
mod websocket;
pub mod wire;

pub use self::state::{AgentServer, AgentServerConfig};
pub use self::unknown_keys::UnknownKeys;
pub use self::webhooks::WebhookSettings;

/// Returns the router of all paths with their OpenAPI descriptions. The router has no guards: pass
/// it to [`wattle_api::router_with`], which adds the guards of the native API.
pub fn router(server: AgentServer) -> utoipa_axum::router::OpenApiRouter {
    route::router(server)
}

/// Returns the router of `GET /ok` only. A host that is starting serves this path before an
/// [`AgentServer`] exists.
pub fn starting_router() -> axum::Router {
    route::starting()
}
