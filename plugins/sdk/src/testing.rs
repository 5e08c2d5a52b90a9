//! Tests without a host: [`FakeHost`] implements every import with a script, and records the calls.
//! Available in native builds only.
//!
//! ```
//! use wattle_plugin::prelude::*;
//! use wattle_plugin::testing::{self, FakeHost};
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Input {
//!     text: String,
//! }
//!
//! #[derive(Serialize, JsonSchema)]
//! struct Update {
//!     summary: String,
//! }
//!
//! /// Summarizes a text.
//! #[node]
//! fn summarize(_context: &Context, input: Input) -> Result<Update, Failure> {
//!     let completion = llm::Request::route("chat").user(input.text).complete()?;
//!     Ok(Update { summary: completion.text() })
//! }
//!
//! # fn main() -> Result<(), Failure> {
//! let host = FakeHost::new().llm(|_| Ok(Completion::of_text("short")));
//!
//! // The function itself, with types.
//! let update = host.run(|| summarize(&Context::default(), Input { text: "long".to_owned() }))?;
//! assert_eq!(update.summary, "short");
//!
//! // As the host calls it, with documents.
//! let input = json!({"text": "long"});
//! let decision = host.run(|| testing::run_node::<summarize>(&Context::default(), &input))?;
//! assert_eq!(decision.update("summary"), Some(&json!("short")));
//! assert_eq!(host.llm_requests()[0].text(), "long");
//! # Ok(())
//! # }
//! ```
//!
//! A call outside of [`FakeHost::run`], or without a script, fails with the code `unsupported` and
//! the name of the missing method. A call that cannot return a failure panics.

pub(crate) mod answer;
mod civil;
mod fake;
mod record;
mod state;

use std::fs;

use serde_json::Value;

pub use self::fake::FakeHost;
pub use self::record::{Logged, SqlAnswer, Statement};
use crate::export::{self, HandlerEntry, Node, Tool};
use crate::failure::Failure;
use crate::json::{self, JsonText};
use crate::node::{CONFIG, Context, Conversation, Decision, Reads, Send, Update};
use crate::tool::{ToolContext, ToolOutput};

/// Runs a node with an input, as the host does. For a node with a conversation, the context gets
/// one whose messages are all in the input, unless it has one.
pub fn run_node<N: Node>(context: &Context, input: &Value) -> Result<Decision, Failure> {
    let context = match whole_conversation::<N>(context, input) {
        Some(conversation) => &context.clone().with_conversation(conversation),
        None => context,
    };
    parsed((N::ENTRY.function)().run(context, &input.to_string())?)
}

/// Returns the conversation of a node for an input with all messages. `None` if the context has a
/// conversation, or if the node declares none.
fn whole_conversation<N: Node>(context: &Context, input: &Value) -> Option<Conversation> {
    if context.conversation().is_ok() {
        return None;
    }
    let channel = N::ENTRY.reads?.conversation_channel(context.extra.get(CONFIG))?;
    let length = input.get(channel.as_str()).and_then(Value::as_array).map_or(0, Vec::len);
    Some(Conversation { channel, from: 0, length })
}

/// Parses the values of a decision, as the host does.
fn parsed(decision: Decision<JsonText>) -> Result<Decision, Failure> {
    let update = |Update { channel, value, overwrite }: Update<JsonText>| {
        let value = json::read(format_args!("the update of channel `{channel}`"), value.as_str())?;
        Ok::<Update, Failure>(Update { channel, value, overwrite })
    };
    let send = |Send { node, input, extra }: Send<JsonText>| {
        let input = json::read(format_args!("the input sent to `{node}`"), input.as_str())?;
        Ok::<Send, Failure>(Send { node, input, extra })
    };
    Ok(Decision {
        updates: decision.updates.into_iter().map(update).collect::<Result<_, _>>()?,
        goto: decision.goto,
        sends: decision.sends.into_iter().map(send).collect::<Result<_, _>>()?,
        extra: decision.extra,
    })
}

/// Returns the schemas of a node's input and updates, as the host receives them.
pub fn node_schemas<N: Node>() -> (Value, Value) {
    let function = (N::ENTRY.function)();
    (function.input_schema(), function.output_schema())
}

/// Returns the schema of a node's configuration, if it has one.
pub fn config_schema<N: Node>() -> Option<Value> {
    N::ENTRY.config_schema.map(|schema| schema())
}

/// Returns the channels that a node declares with `reads`, as the host receives them.
pub fn node_reads<N: Node>() -> Option<Value> {
    N::ENTRY.reads.map(Reads::describe)
}

/// Calls a tool with arguments, as the host does.
pub fn call_tool<T: Tool>(context: &ToolContext, arguments: &Value) -> Result<ToolOutput, Failure> {
    (T::ENTRY.function)().call(context, &arguments.to_string())
}

/// Returns the schema of a tool's arguments, as models receive it.
pub fn tool_schema<T: Tool>() -> Value {
    (T::ENTRY.function)().arguments_schema()
}

/// Asserts that a text contains all parts, such as a prompt the rules of an app.
///
/// ```
/// wattle_plugin::testing::assert_contains("Be brief. Invent nothing.", &["brief", "Invent"]);
/// ```
///
/// # Panics
///
/// If a part is missing. The message has the part and the text.
#[track_caller]
pub fn assert_contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is missing in:\n{text}");
    }
}

/// Environment variable with which [`check_openapi`] writes the file.
const WRITE_OPENAPI: &str = "WATTLE_WRITE_OPENAPI";

/// Checks that a file has the OpenAPI document of a plugin's handlers, which `export!` lists in
/// `WATTLE_HANDLERS`. With the environment variable `WATTLE_WRITE_OPENAPI`, the file is written
/// instead.
///
/// ```no_run
/// use wattle_plugin::prelude::*;
///
/// #[derive(Serialize, JsonSchema)]
/// struct Health {
///     ready: bool,
/// }
///
/// /// Reports whether the plugin is ready.
/// #[handler(GET, "/health", returns = Health)]
/// fn health(_request: &Request) -> Result<Response, Failure> {
///     Response::json(200, &Health { ready: true })
/// }
///
/// wattle_plugin::export! { handlers: [health] }
///
/// # fn main() {
/// let file = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
/// wattle_plugin::testing::check_openapi(file, "health", WATTLE_HANDLERS);
/// # }
/// ```
///
/// # Panics
///
/// If the file is missing or has another document, or cannot be written.
#[expect(clippy::disallowed_methods, reason = "a developer sets it for one execution of the tests")]
#[track_caller]
pub fn check_openapi(file: &str, title: &str, handlers: &[HandlerEntry]) {
    let document = export::openapi(title, handlers);
    if std::env::var_os(WRITE_OPENAPI).is_some() {
        let written = fs::write(file, format!("{document:#}\n"));
        return written.unwrap_or_else(|error| panic!("write `{file}`: {error}"));
    }
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("read `{file}`: {error}"));
    let known: Option<Value> = serde_json::from_str(&text).ok();
    assert!(
        known.as_ref() == Some(&document),
        "`{file}` does not describe the handlers; run this test with `{WRITE_OPENAPI}=1`, which \
         writes the file"
    );
}
