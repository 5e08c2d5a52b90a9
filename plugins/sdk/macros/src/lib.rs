//! Macros of the guest SDK. Plugins use them through `wattle_plugin::prelude`; the documentation of
//! `wattle_plugin` has examples.
//!
//! Each attribute keeps the function unchanged and adds a type of the same name, which describes
//! the function to the host. Functions and types have separate namespaces, so `export!` can name an
//! item by its path and tests can still call the function.

mod doc;
mod entry;
mod handler;
mod named;

use proc_macro::TokenStream;
use syn::{ItemFn, parse_macro_input};

/// Declares a function as a graph node.
///
/// The signature is `fn(&Context, Input) -> Result<Output, Failure>`. The documentation of the
/// function becomes that of the node. `#[node(name = "...")]` sets a name other than the
/// function's. `#[node(config = Config)]` publishes the schema of the configuration, which
/// `Context::config` returns.
#[proc_macro_attribute]
pub fn node(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let arguments = parse_macro_input!(arguments as named::Arguments);
    let function = parse_macro_input!(item as ItemFn);
    named::expand(named::Kind::Node, &arguments, function).into()
}

/// Declares a function as a tool.
///
/// The signature is `fn(&ToolContext, Args) -> Result<ToolOutput, Failure>`. Models read the
/// documentation of the function. `#[tool(name = "...")]` sets a name other than the function's.
/// With `#[tool(read_only)]` the author declares that a call has no effects, and with
/// `#[tool(idempotent)]` that a repeated call has no further effects.
#[proc_macro_attribute]
pub fn tool(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let arguments = parse_macro_input!(arguments as named::Arguments);
    let function = parse_macro_input!(item as ItemFn);
    named::expand(named::Kind::Tool, &arguments, function).into()
}

/// Declares a function as a reducer.
///
/// The signature is `fn(Option<Current>, Vec<Update>) -> Result<Value, Failure>`, and the function
/// must be pure. `#[reducer(name = "...")]` sets a name other than the function's.
#[proc_macro_attribute]
pub fn reducer(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let arguments = parse_macro_input!(arguments as named::Arguments);
    let function = parse_macro_input!(item as ItemFn);
    named::expand(named::Kind::Reducer, &arguments, function).into()
}

/// Declares a function as the web handler of an endpoint: `#[handler(POST, "/api/items/{id}")]`.
///
/// The signature is `fn(&Request) -> Result<Response, Failure>`.
#[proc_macro_attribute]
pub fn handler(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let endpoint = parse_macro_input!(arguments as handler::Endpoint);
    let function = parse_macro_input!(item as ItemFn);
    handler::expand(&endpoint, function).into()
}
