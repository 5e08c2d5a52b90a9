//! One binary for all integration tests: linking the host takes longer than running them.

#![expect(clippy::unwrap_used, reason = "a panic in a helper fails the test that called it")]

mod agent;
mod asset;
mod attack;
mod components;
mod crash;
mod demo;
mod engine;
mod eval;
mod expense;
mod host;
mod languages;
mod mcp;
mod nl2sql;
mod notes;
mod observe;
mod peers;
mod reasoning;
mod replays;
mod studio;
mod tidy;
mod travel;
mod welcome;
