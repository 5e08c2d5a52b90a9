//! The guest SDK: write Wattle plugins in Rust.
//!
#![doc = include_str!("../README.md")]

#[cfg(all(feature = "allocator", target_arch = "wasm32", target_os = "unknown"))]
mod allocator;
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub mod bindings;
pub mod blob;
pub mod chat;
pub mod clock;
pub mod emit;
#[doc(hidden)]
pub mod export;
#[macro_use]
mod export_macro;
mod failure;
mod host;
pub mod http;
pub mod interrupt;
mod json;
pub mod llm;
pub mod log;
#[doc(hidden)]
pub mod manifest;
pub mod memory;
pub mod message;
pub mod node;
pub mod prelude;
pub mod projection;
pub mod prompt;
pub mod random;
pub mod redact;
pub mod runs;
pub mod settings;
pub mod sql;
pub mod tenants;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
pub mod tool;
pub mod tools;
pub mod web;
#[cfg(target_arch = "wasm32")]
mod wire;

#[doc(hidden)]
pub use schemars;
#[doc(hidden)]
pub use serde;
#[doc(hidden)]
pub use serde_json;
pub use wattle_plugin_macros::{handler, node, reducer, tool};

pub use crate::blob::BlobRef;
pub use crate::failure::{Failure, code};
pub use crate::json::{Empty, Extra, JsonText};
pub use crate::node::{Context, NodeError, Outcome};

// The attributes generate paths that begin with `wattle_plugin`. The tests of the SDK itself need
// the name, too.
#[cfg(test)]
extern crate self as wattle_plugin;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod vectors;

// Compiles the Rust code of the pages for authors of plugins, and runs their examples.
#[cfg(doctest)]
#[doc = include_str!("../../../host/docs/plugins.md")]
struct Guide;
#[cfg(doctest)]
#[doc = include_str!("../../../host/docs/sdk-example.md")]
struct Example;
#[cfg(doctest)]
#[doc = include_str!("../../../host/docs/agents.md")]
struct Agent;
