//! The Agent Server as its clients see it: requests and responses over an engine in memory.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod answers;
mod assistants;
mod away;
mod cancel;
mod command;
mod context;
mod crons;
mod crowd;
mod database;
mod durability;
mod gated;
mod growth;
mod handover;
mod host;
mod hosts;
mod joined;
mod leaving;
mod live;
mod messages;
mod native;
mod openapi;
mod past;
mod plugin;
mod protocol;
mod queue;
mod retried;
mod runs;
mod short;
mod socket;
mod state;
mod stateless;
mod store;
mod stream;
mod surprises;
mod tenancy;
mod threads;
mod unreadable;
mod webhooks;
