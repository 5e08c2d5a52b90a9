//! The Agent Server as its clients see it: requests and responses over an engine in memory.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod assistants;
mod cancel;
mod client_jobs;
mod command;
mod context;
mod continued_runs;
mod crons;
mod database;
mod disconnect;
mod durability;
mod gated_store;
mod history;
mod host;
mod hosts;
mod live_stream;
mod many_clients;
mod messages;
mod native_api;
mod openapi;
mod plugin;
mod protocol;
mod protocol_quirks;
mod queue;
mod read_cost;
mod run_end;
mod runs;
mod short;
mod stale_answers;
mod state;
mod stateless;
mod store;
mod stream;
mod tenancy;
mod thread_stream;
mod threads;
mod unavailable;
mod unreadable;
mod webhooks;
mod websocket;
