//! Macros of the guest SDK. Use them through `wattle_plugin::prelude`, where they are documented
//! with examples.
//!
//! Each attribute keeps the function as it is and puts a type of the same name beside it, which
//! carries what the host wants to know. Functions and types have separate namespaces, so
//! `export!` can name an item by its path and tests can still call the function.

mod doc;
mod entry;
mod handler;
mod named;

use proc_macro::TokenStream;
use syn::{ItemFn, parse_macro_input};

/// Makes a function a graph node.
///
/// The function has the shape `fn(&Context, Input) -> Result<Output, Failure>`. Its documentation
/// becomes the node's. `#[node(name = "...")]` gives a name other than the function's.
/// `#[node(config = Config)]` publishes the schema of its configuration, which `Context::config`
/// reads.
#[proc_macro_attribute]
pub fn node(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let arguments = parse_macro_input!(arguments as named::Arguments);
    let function = parse_macro_input!(item as ItemFn);
    named::expand(named::Kind::Node, &arguments, function).into()
}

/// Makes a function a tool.
///
/// The function has the shape `fn(&ToolContext, Args) -> Result<ToolOutput, Failure>`. Its
/// documentation is what a model reads. `#[tool(name = "...")]` gives a name other than the
/// function's. `#[tool(read_only)]` and `#[tool(idempotent)]` promise that it changes nothing, or
/// nothing more when it is called again.
#[proc_macro_attribute]
pub fn tool(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let arguments = parse_macro_input!(arguments as named::Arguments);
    let function = parse_macro_input!(item as ItemFn);
    named::expand(named::Kind::Tool, &arguments, function).into()
}

/// Makes a function a reducer.
///
/// The function has the shape `fn(Option<Current>, Vec<Update>) -> Result<Value, Failure>` and
/// must be pure. `#[reducer(name = "...")]` gives a name other than the function's.
#[proc_macro_attribute]
pub fn reducer(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let arguments = parse_macro_input!(arguments as named::Arguments);
    let function = parse_macro_input!(item as ItemFn);
    named::expand(named::Kind::Reducer, &arguments, function).into()
}

/// Makes a function an HTTP endpoint: `#[handler(POST, "/api/items/{id}")]`.
///
/// The function has the shape `fn(&Request) -> Result<Response, Failure>`.
#[proc_macro_attribute]
pub fn handler(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let endpoint = parse_macro_input!(arguments as handler::Endpoint);
    let function = parse_macro_input!(item as ItemFn);
    handler::expand(&endpoint, function).into()
}
