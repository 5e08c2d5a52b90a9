//! Macros of the guest SDK. Plugins use them through `wattle_plugin::prelude`; the documentation of
//! `wattle_plugin` has examples.
//!
//! Each attribute adds a type with the name of its function, which describes the function to the
//! host. Functions and types have separate namespaces, so `export!` can use the type by the same
//! path with which tests call the function. The function itself is unchanged, except that the
//! attributes of parameters that are fields of the input move to these fields.

mod doc;
mod entry;
mod handler;
mod named;
mod parameters;
mod signature;

use proc_macro::TokenStream;
use syn::{ItemFn, parse_macro_input};

/// Declares a function as a graph node.
///
/// The signature is `fn(&Context, Input) -> Result<Output, Failure>`, where the fields of `Input` are
/// the channels that the node reads. A function that does not begin with a reference takes the
/// channels as parameters instead of a context and a type:
/// `fn(title: String, limit: Option<u32>) -> Result<Output, Failure>`. Their documentation and their
/// attributes of `serde` and `schemars` are those of fields. The documentation of the function
/// becomes the description of the node. `#[node(name = "...")]` sets another name than that of the
/// function. `#[node(config = Config)]` publishes the schema of the configuration that
/// `Context::config` returns. `#[node(reads = READS)]` declares the channels that the node reads, as
/// a constant of the type `Reads`.
///
/// # Context, input or channels
///
/// The first parameter is a context if its type is written as a reference, such as `&Context`. The
/// macro does not see types, so the rule is the one of `#[tool]`:
///
/// | function | reads |
/// |---|---|
/// | `#[node] fn(title: String, limit: u32)` | the channels `title` and `limit` |
/// | `#[node] fn(note: Note)` | the channel `note` |
/// | `#[node] fn(&Context, note: Note)` | the channels that are the fields of `Note` |
/// | `#[node(channels)] fn(&Context, note: Note)` | the channel `note` |
/// | `#[node(channels)] fn(&Context, title: String, limit: u32)` | the channels `title` and `limit` |
#[proc_macro_attribute]
pub fn node(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let arguments = parse_macro_input!(arguments as named::Arguments);
    let function = parse_macro_input!(item as ItemFn);
    named::expand(named::Kind::Node, &arguments, function).into()
}

/// Declares a function as a tool.
///
/// The signature is `fn(&ToolContext, Args) -> Result<ToolOutput, Failure>`. A function that does
/// not begin with a reference takes its arguments as parameters instead of a context and a type:
/// `fn(title: String, limit: Option<u32>) -> Result<ToolOutput, Failure>`. Their documentation and
/// their attributes of `serde` and `schemars` are those of fields. The documentation of the
/// function becomes the description for models. `#[tool(name = "...")]` sets another name than that
/// of the function. `#[tool(read_only)]` declares that a call has no effects, and
/// `#[tool(idempotent)]` that a repeated call has no further effects.
///
/// # Context or arguments
///
/// The first parameter is a context if its type is written as a reference, such as `&ToolContext`.
/// The macro does not see types: a type alias of such a reference is no context but the type of an
/// argument, which the compiler rejects.
///
/// Each parameter of a tool without a context is one argument with the name of the parameter.
/// A struct is no exception: the arguments of `fn(note: Note)` are `{"note": {...}}`. To take the
/// fields of a struct as the arguments, begin with a context: `fn(_: &ToolContext, note: Note)`.
#[proc_macro_attribute]
pub fn tool(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let arguments = parse_macro_input!(arguments as named::Arguments);
    let function = parse_macro_input!(item as ItemFn);
    named::expand(named::Kind::Tool, &arguments, function).into()
}

/// Declares a function as a reducer.
///
/// The signature is `fn(Option<Current>, Vec<Update>) -> Result<Value, Failure>`, and the function
/// must be pure. `#[reducer(name = "...")]` sets another name than that of the function.
#[proc_macro_attribute]
pub fn reducer(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let arguments = parse_macro_input!(arguments as named::Arguments);
    let function = parse_macro_input!(item as ItemFn);
    named::expand(named::Kind::Reducer, &arguments, function).into()
}

/// Declares a function as the web handler of an endpoint: `#[handler(POST, "/api/items/{id}")]`. A
/// macro that takes a part of the path joins literals by `concat!`.
///
/// The signature is `fn(&Request) -> Result<Response, Failure>`. The documentation of the function
/// and the types that further arguments declare become the OpenAPI description of the endpoint:
///
/// | argument | declares |
/// |---|---|
/// | `query(limit: Option<u32>)` | parameters of the query string |
/// | `body = Type` | the JSON body of the request; it may be missing with `body = Option<Type>` |
/// | `returns = Type` | a response with status 200 and a JSON body |
/// | `returns(201) = Type`, `returns(204)` | a response with this status, without a type without a body |
/// | `events = Type` | server-sent events with status 200; the type is that of one event |
/// | `bytes = "text/csv"` | a response with status 200 and a body of this media type |
/// | `error = Type` | the JSON body of all other responses |
#[proc_macro_attribute]
pub fn handler(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let endpoint = parse_macro_input!(arguments as handler::Endpoint);
    let function = parse_macro_input!(item as ItemFn);
    handler::expand(&endpoint, function).into()
}
