//! Support for `export!` and the attributes. The module is not part of the public API and may
//! change at any time.

mod node;
mod openapi;
mod operation;
mod reducer;
mod tool;
mod web;

pub use self::node::{Node, NodeEntry, NodeFunction, TypedNode, node_config_schema};
pub use self::openapi::{describe_routes, openapi};
pub use self::operation::Operation;
pub use self::reducer::{Reducer, ReducerEntry, reduce};
pub use self::tool::{Tool, ToolEntry, ToolFunction, TypedTool};
pub use self::web::{Handler, HandlerEntry};
#[cfg(target_arch = "wasm32")]
pub use crate::wire::export::{
    describe, handle, list_reducers, list_routes, list_tools, reduce_named, run_named, tool_named,
};
