//! Tools of other plugins and of MCP servers, all under one roof.
//!
//! A tool has its bare name (`add`) and a full reference (`calculator/add`, `mcp:graph/search`),
//! which is needed only where two granted tools have the same bare name. Arguments are checked
//! against the tool's schema before it sees them. A tool that traps, runs into a limit or is not
//! granted answers with a failure; one that went wrong in a way that the model should read about
//! answers with [`ToolOutput::is_error`].
//!
//! ```
//! use wattle_plugin::prelude::*;
//! use wattle_plugin::testing::FakeHost;
//!
//! let host = FakeHost::new().tool("add", |arguments| ToolOutput::json(&json!(arguments)));
//! host.run(|| {
//!     assert_eq!(tools::list()?[0].name, "add");
//!     let output = tools::Call::new("add", json!({"a": 1})).call()?;
//!     assert_eq!(output.structured, Some(json!({"a": 1})));
//!     Ok::<_, Failure>(())
//! })?;
//! # Ok::<_, Failure>(())
//! ```

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::Failure;
use crate::host;
use crate::json::Extra;
use crate::message::ToolCall;
use crate::tool::{ToolInfo, ToolOutput};

/// One call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Call {
    /// Which tool.
    pub tool: String,
    /// The model's id of the call; the host makes one if it is empty.
    pub call_id: String,
    /// The arguments.
    pub arguments: Value,
    /// The operator's limit without it.
    pub timeout_ms: Option<u32>,
    /// Named values beside the fixed fields.
    pub extra: Extra,
}

impl Call {
    /// A call.
    pub fn new(tool: impl Into<String>, arguments: impl Into<Value>) -> Self {
        Self { tool: tool.into(), arguments: arguments.into(), ..Self::default() }
    }

    /// Gives the call an id, by which its answer is found in a conversation.
    pub fn call_id(mut self, id: impl Into<String>) -> Self {
        self.call_id = id.into();
        self
    }

    /// Limits the call.
    pub fn timeout_ms(mut self, timeout_ms: u32) -> Self {
        self.timeout_ms = Some(timeout_ms);
        self
    }

    /// Lets the tool see a part of the caller's state, an object of channels, which it reads with
    /// [`ToolContext::state`](crate::tool::ToolContext::state).
    pub fn state(mut self, state: impl Into<Value>) -> Self {
        self.extra.insert("state".to_owned(), state.into());
        self
    }

    /// Calls the tool.
    pub fn call(self) -> Result<ToolOutput, Failure> {
        host::tools::call(self)
    }
}

/// A call that a model asked for.
impl From<&ToolCall> for Call {
    fn from(call: &ToolCall) -> Self {
        Self { call_id: call.id.clone(), ..Self::new(call.name.clone(), call.arguments.clone()) }
    }
}

/// The tools that this plugin was granted, as far as they are known now.
pub fn list() -> Result<Vec<ToolInfo>, Failure> {
    Ok(listing()?.tools)
}

/// What the host knows of the tools that this plugin was granted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Listing {
    /// The tools.
    pub tools: Vec<ToolInfo>,
    /// Places that do not say what they have.
    pub missing: Vec<Missing>,
}

/// A place that does not say which tools it has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Missing {
    /// What references to its tools begin with: `mcp:graph`.
    pub source: String,
    /// Why.
    pub failure: Failure,
}

/// The tools that this plugin was granted, and the servers that do not say what they have.
///
/// ```
/// use wattle_plugin::prelude::*;
/// use wattle_plugin::{testing::FakeHost, tool::ToolInfo};
///
/// let away = ToolInfo::missing("mcp:graph", &Failure::unavailable("it is down"));
/// let host = FakeHost::new().described_tool(away, |_| Ok(ToolOutput::text("")));
/// let listing = host.run(tools::listing)?;
/// assert!(listing.tools.is_empty());
/// assert_eq!(listing.missing[0].source, "mcp:graph");
/// # Ok::<_, Failure>(())
/// ```
pub fn listing() -> Result<Listing, Failure> {
    let mut listing = Listing::default();
    for info in host::tools::list()? {
        match info.place() {
            Some((source, failure)) => {
                listing.missing.push(Missing { source: source.to_owned(), failure });
            }
            None => listing.tools.push(info),
        }
    }
    Ok(listing)
}

/// Calls several tools at once; answers come in the order of the calls.
///
/// ```
/// use serde_json::json;
/// use wattle_plugin::tools::{self, Call};
/// use wattle_plugin::{testing::FakeHost, tool::ToolOutput};
///
/// let host = FakeHost::new().tool("echo", |value| Ok(ToolOutput::text(value.to_string())));
/// host.run(|| {
///     let answers = tools::call_all(vec![Call::new("echo", 1), Call::new("none", 2)]);
///     assert!(answers[0].is_ok() && answers[1].is_err());
/// });
/// ```
pub fn call_all(calls: Vec<Call>) -> Vec<Result<ToolOutput, Failure>> {
    host::tools::call_all(calls)
}
