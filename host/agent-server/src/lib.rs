//! The Agent Server API: Wattle for clients of LangGraph servers.
//!
//! Threads, runs and states are the engine's. This crate shows them in another form, and adds what
//! the engine does not know: assistants, runs that wait for their turn, runs without a thread.
//!
//! # Layout
//!
//! * [`wire`]: what goes over the wire, without anything that reads or writes it.
//! * [`agents`]: what handlers work with; `route`: the paths, one resource a file; [`router`] puts
//!   them together.
//! * `caller` and `query`: who asks, for what. `fault`: why there is no answer.
//! * `graphs`: graphs by the ids that clients know. `view`: threads as documents.
//! * `asked`: from a request to the run that is to be; `doc`: where that is written down; `queue`:
//!   whose turn it is; `begin`: how it begins in the engine.
//! * `run`: what became of a run; `answer`: as one document; `follow` and `stream`: as it goes on;
//!   `presence`: clients whose leaving ends a run.

pub mod agents;
mod answer;
mod asked;
mod begin;
mod caller;
mod doc;
mod fault;
mod follow;
mod graphs;
mod presence;
mod query;
mod queue;
mod route;
mod run;
mod stream;
mod view;
pub mod wire;

pub use self::agents::Agents;

/// All paths of the server, at the root. They have no guards of their own: merge them behind those
/// of the API, see [`wattle_api::router_with`].
pub fn router(agents: Agents) -> axum::Router {
    route::all(agents)
}
