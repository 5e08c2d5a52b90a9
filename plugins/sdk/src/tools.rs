//! Calls of tools that other plugins and MCP servers provide. See [`tool`](mod@crate::tool) for
//! providing tools.
//!
//! A tool has a bare name (`add`) and a tool reference (`calculator/add`, `mcp:graph/search`). The
//! reference is needed only if two granted tools have the same bare name. The host checks the
//! arguments against the schema of the tool before it calls the tool. A call fails if the tool
//! traps, exceeds a limit or is not granted. An error that the model should read is an output with
//! [`ToolOutput::is_error`].
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

/// A tool call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Call {
    /// Bare name or reference of the tool.
    pub tool: String,
    /// Id of the call. If it is empty, the host generates one.
    pub call_id: String,
    /// The arguments.
    pub arguments: Value,
    /// Timeout of the call in milliseconds; `None` selects the operator's limit.
    pub timeout_ms: Option<u32>,
    /// Extension fields.
    pub extra: Extra,
}

impl Call {
    /// Creates a call.
    pub fn new(tool: impl Into<String>, arguments: impl Into<Value>) -> Self {
        Self { tool: tool.into(), arguments: arguments.into(), ..Self::default() }
    }

    /// Sets the id of the call, by which messages refer to it.
    pub fn call_id(mut self, id: impl Into<String>) -> Self {
        self.call_id = id.into();
        self
    }

    /// Sets the timeout of the call, in milliseconds.
    pub fn timeout_ms(mut self, timeout_ms: u32) -> Self {
        self.timeout_ms = Some(timeout_ms);
        self
    }

    /// Passes visible state to the tool, as an object of channel values. The tool reads it with
    /// [`ToolContext::state`](crate::tool::ToolContext::state).
    pub fn state(mut self, state: impl Into<Value>) -> Self {
        self.extra.insert("state".to_owned(), state.into());
        self
    }

    /// Calls the tool and waits for its output.
    pub fn call(self) -> Result<ToolOutput, Failure> {
        host::tools::call(self)
    }
}

/// Converts a tool call that a model requests.
impl From<&ToolCall> for Call {
    fn from(call: &ToolCall) -> Self {
        Self { call_id: call.id.clone(), ..Self::new(call.name.clone(), call.arguments.clone()) }
    }
}

/// Lists the granted tools. Omits the tools of unavailable sources, which [`listing`] reports.
pub fn list() -> Result<Vec<ToolInfo>, Failure> {
    Ok(listing()?.tools)
}

/// The granted tools and the unavailable tool sources.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Listing {
    /// Tools of the available sources.
    pub tools: Vec<ToolInfo>,
    /// Tool sources whose tools could not be listed.
    pub missing: Vec<Missing>,
}

/// A tool source whose tools could not be listed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Missing {
    /// Prefix of the references to its tools, such as `mcp:graph`.
    pub source: String,
    /// Reason why the tools could not be listed.
    pub failure: Failure,
}

/// Lists the granted tools, and the tool sources whose tools could not be listed.
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

/// Calls several tools concurrently. Returns the results in the order of the calls.
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
