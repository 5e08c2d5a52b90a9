//! The Agent Server API: Wattle for clients of LangGraph servers.
//!
//! Threads, runs and states are the engine's. This crate shows them in another form, and adds what
//! the engine does not know: assistants, crons, webhooks, runs without a thread.
//!
//! # Layout
//!
//! * [`wire`]: what goes over the wire, without anything that reads or writes it.
//! * [`agents`]: what handlers work with; `route`: the paths, one resource a file; [`router`] puts
//!   them together, and `openapi` their descriptions.
//! * `caller` and `query`: who asks, for what. `fault`: why there is no answer; `page`: how much there
//!   may be of it. `whole`: work that goes on when its client hangs up.
//! * `graphs`: graphs by the ids that clients know; `assistants`: these with settings. `view`: threads as documents.
//! * `order`: from a request to a run; `asked`: what is to be run; `submit`: how the engine is asked for
//!   it. `doc`: what this server keeps beside threads.
//! * `hosts`: several that share their documents, and the webhooks that one that died leaves to the
//!   others.
//! * `crons`: runs that begin when their time comes. [`webhooks`]: telling others of their end.
//! * `run`: what became of a run; `answer`: as one document; `follow` and `stream`: as it goes on;
//!   `presence`: clients whose leaving ends a run; `past`: the states that events are shown with.
//! * `command`: what clients of the streaming protocol have done; `feed`: the typed events of a
//!   thread, `socket`: both over one connection. `joined`: all runs of a thread as one stream.

pub mod agents;
mod answer;
mod asked;
mod assistants;
mod caller;
mod command;
mod crons;
mod doc;
mod fault;
mod feed;
mod follow;
mod graphs;
mod hosts;
mod joined;
mod openapi;
mod order;
mod page;
mod past;
mod presence;
mod query;
mod route;
mod run;
mod socket;
mod stream;
mod submit;
mod view;
pub mod webhooks;
mod whole;
pub mod wire;

pub use self::agents::Agents;
pub use self::webhooks::Webhooks;

/// All paths of the server with their descriptions, at the root. They have no guards of their own: merge them behind those
/// of the API, see [`wattle_api::router_with`].
pub fn router(agents: Agents) -> utoipa_axum::router::OpenApiRouter {
    route::all(agents)
}

/// `GET /ok` alone, for a host that starts: it answers before there are [`Agents`].
pub fn starting_router() -> axum::Router {
    route::starting()
}
