//! One binary for all integration tests: linking the host takes longer than running them.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod asset;
mod engine;
mod host;
mod tidy;
