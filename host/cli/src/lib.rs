//! The wattle binary: configuration, wiring and commands.
//!
//! As a library it starts whole servers in the process of a test, see [`server::Server`].
//!
//! # Layout
//!
//! * [`args`]: the command line; [`command`]: one verb a file; [`exit`]: exit codes.
//! * [`config`]: what `wattle.toml` says.
//! * [`wire`]: from configuration to adapters and engine; the only place that names them all.
//! * [`load`]: apps and plugins on disk, also when they change.
//! * [`server`]: a running server; [`client`]: how commands reach it, or do without.
//! * [`project`]: files that apps make of their events.
//! * [`output`]: the only place that prints; [`telemetry`]: logs.
//! * [`error`]: why a command could not do its work.

pub mod args;
pub mod client;
pub mod command;
pub mod config;
pub mod error;
pub mod exit;
pub mod load;
pub mod output;
pub mod project;
pub mod server;
pub mod telemetry;
pub mod wire;
