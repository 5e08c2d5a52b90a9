//! Support for `export!` and the attributes. The module is not part of the public API and may
//! change at any time.

mod node;
mod openapi;
mod operation;
mod reducer;
mod tool;
mod web;

pub use self::node::{
    Node, NodeEntry, node_config_schema, node_input_schema, node_output_schema, run_node,
};
pub use self::openapi::{describe_routes, openapi};
pub use self::operation::Operation;
pub use self::reducer::{Reducer, ReducerEntry, reduce};
pub use self::tool::{Tool, ToolEntry, call_tool, tool_accepts_invalid, tool_arguments_schema};
pub use self::web::{Handler, HandlerEntry};
#[cfg(target_arch = "wasm32")]
pub use crate::wire::export::{
    describe, handle, list_reducers, list_routes, list_tools, reduce_named, run_named, tool_named,
};
