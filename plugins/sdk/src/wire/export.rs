//! The exports of a guest. Each finds the entry by name, and converts arguments and results.

mod node;
mod reducer;
mod tool;
mod web;

pub use self::node::{describe, run_named};
pub use self::reducer::{list_reducers, reduce_named};
pub use self::tool::{list_tools, tool_named};
pub use self::web::{handle, list_routes};
