//! Tools that a plugin offers to models and to other nodes.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::Failure;
use crate::json::{self, Extra};
use crate::message::{Part, texts_of};
use crate::node::Update;

/// Where and for what a tool is called.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolContext {
    /// The tool, as the plugin names it.
    pub tool: String,
    /// The model's id of the call.
    pub call_id: String,
    /// The thread, if the call comes from a run.
    pub thread_id: Option<String>,
    /// The task, if the call comes from a run.
    pub task_id: Option<String>,
    /// Whose thread it is, on a host with tenants.
    pub tenant: Option<String>,
    /// Violations of the arguments schema, one sentence each.
    pub violations: Vec<String>,
    /// Named values beside the fixed fields.
    pub extra: Extra,
}

/// Key of the caller's state in a context.
const STATE: &str = "state";

impl ToolContext {
    /// What the caller lets the tool see of its graph's state, as a type. An agent of the plugin
    /// `std` shows the channels under `state` of its configuration.
    ///
    /// ```
    /// use wattle_plugin::tool::ToolContext;
    /// use wattle_plugin::prelude::{Value, json};
    ///
    /// let context = ToolContext::default().with_state(json!({"total": 3}));
    /// assert_eq!(context.state::<Value>()?["total"], 3);
    /// # Ok::<_, wattle_plugin::Failure>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `invalid` if it has another shape; without a state it reads an empty object.
    pub fn state<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let none = Value::Object(serde_json::Map::new());
        json::from_value("the caller's state", self.extra.get(STATE).unwrap_or(&none))
    }

    /// The same context with a state, for tests.
    pub fn with_state(mut self, state: impl Into<Value>) -> Self {
        self.extra.insert(STATE.to_owned(), state.into());
        self
    }
}

/// What a tool promises about its effects, said with `#[tool(read_only, idempotent)]`. Callers may
/// rely on it, for example to call again after a crash; the host does not enforce it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolHints {
    /// It changes nothing outside.
    pub read_only: bool,
    /// Called again with the same arguments, it changes nothing more.
    pub idempotent: bool,
}

/// Key of [`ToolInfo::extra`] under which hints travel.
pub(crate) const HINTS: &str = "hints";

/// Key of [`ToolInfo::extra`] under which the host tells the full reference of a tool.
const REFERENCE: &str = "reference";

/// Key of [`ToolInfo::extra`] with the reason why the tools of a place are not known.
const UNAVAILABLE: &str = "unavailable";

/// What the name of a place ends with.
const ALL: &str = "/*";

/// What a tool is, as a model reads it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolInfo {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments.
    pub arguments_schema: Value,
    /// Whether arguments that violate the schema still reach it.
    pub accepts_invalid: bool,
    /// Named values beside the fixed fields.
    pub extra: Extra,
}

impl ToolInfo {
    /// What the tool promises about its effects; nothing if it does not say.
    ///
    /// ```
    /// use serde_json::json;
    /// use wattle_plugin::tool::ToolInfo;
    ///
    /// let mut info = ToolInfo { name: "look".to_owned(), ..ToolInfo::default() };
    /// assert!(!info.hints().read_only);
    /// info.extra.insert("hints".to_owned(), json!({"read_only": true}));
    /// assert!(info.hints().read_only && !info.hints().idempotent);
    /// ```
    pub fn hints(&self) -> ToolHints {
        let hints = self.extra.get(HINTS);
        hints.and_then(|hints| ToolHints::deserialize(hints).ok()).unwrap_or_default()
    }

    /// The full reference of a tool that the host listed: `date/parse`, `mcp:graph/list`. The name
    /// is bare as long as no other granted tool has it; the reference is always the same.
    ///
    /// ```
    /// use wattle_plugin::tool::ToolInfo;
    ///
    /// let info = ToolInfo { name: "parse".to_owned(), ..ToolInfo::default() };
    /// assert_eq!(info.reference(), None);
    /// assert_eq!(info.with_reference("date/parse").reference(), Some("date/parse"));
    /// ```
    pub fn reference(&self) -> Option<&str> {
        self.extra.get(REFERENCE).and_then(Value::as_str)
    }

    /// Gives it a full reference, as the host does; for tests.
    pub fn with_reference(mut self, reference: impl Into<String>) -> Self {
        self.extra.insert(REFERENCE.to_owned(), reference.into().into());
        self
    }

    /// What a host lists for a place (`mcp:graph`) whose tools it does not know; for tests.
    pub fn missing(source: &str, failure: &Failure) -> Self {
        let reason = serde_json::to_value(failure).unwrap_or_default();
        let extra = Extra::from_iter([(UNAVAILABLE.to_owned(), reason)]);
        Self { name: format!("{source}{ALL}"), extra, ..Self::default() }
    }

    /// The place whose tools are not known, and why; `None` for a tool.
    pub(crate) fn place(&self) -> Option<(&str, Failure)> {
        let failure = Failure::deserialize(self.extra.get(UNAVAILABLE)?).ok()?;
        Some((self.name.strip_suffix(ALL).unwrap_or(&self.name), failure))
    }
}

/// What a tool answered.
///
/// ```
/// use wattle_plugin::prelude::*;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Args {
///     a: i64,
///     b: i64,
/// }
///
/// /// Adds two numbers.
/// #[tool]
/// fn add(_context: &ToolContext, args: Args) -> Result<ToolOutput, Failure> {
///     ToolOutput::json(&json!({"sum": args.a + args.b}))
/// }
///
/// wattle_plugin::export! { tools: [add] }
/// # fn main() -> Result<(), Failure> {
/// let output = add(&ToolContext::default(), Args { a: 1, b: 2 })?;
/// assert_eq!(output.text_content(), r#"{"sum":3}"#);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolOutput {
    /// What the model reads.
    pub content: Vec<Part>,
    /// The same as data, for programs.
    pub structured: Option<Value>,
    /// Whether the tool failed in a way that the model should read about.
    pub is_error: bool,
    /// Writes to the state of the calling graph.
    pub updates: Vec<Update>,
    /// Named values beside the fixed fields.
    pub extra: Extra,
}

impl ToolOutput {
    /// An answer in words.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Part::Text(text.into())], ..Self::default() }
    }

    /// An answer as data: structured for programs, the same as text for the model.
    pub fn json(value: &impl Serialize) -> Result<Self, Failure> {
        let value = json::to_value("the tool's answer", value)?;
        Ok(Self { structured: Some(value.clone()), ..Self::text(value.to_string()) })
    }

    /// An error that the model should read and react to.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// Adds a piece of content, such as a picture.
    pub fn with_part(mut self, part: impl Into<Part>) -> Self {
        self.content.push(part.into());
        self
    }

    /// Writes a channel of the calling graph.
    pub fn with_update(mut self, channel: impl Into<String>, value: impl Into<Value>) -> Self {
        let update = Update { channel: channel.into(), value: value.into(), overwrite: false };
        self.updates.push(update);
        self
    }

    /// Sets a channel of the calling graph, whatever its reducer. Of several calls that one task
    /// makes in order, the last one holds.
    pub fn with_overwrite(mut self, channel: impl Into<String>, value: impl Into<Value>) -> Self {
        let update = Update { channel: channel.into(), value: value.into(), overwrite: true };
        self.updates.push(update);
        self
    }

    /// All text parts, with a line break between them.
    ///
    /// ```
    /// use wattle_plugin::tool::ToolOutput;
    ///
    /// let output = ToolOutput::text("BRK.B 12").with_part("AAPL 7");
    /// assert_eq!(output.text_content(), "BRK.B 12\nAAPL 7");
    /// ```
    pub fn text_content(&self) -> String {
        texts_of(&self.content).collect::<Vec<_>>().join("\n")
    }

    /// The structured answer as a type.
    pub fn structured<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let value = self.structured.as_ref().ok_or_else(|| {
            Failure::invalid("the tool answered without structured data; read its text instead")
        })?;
        json::from_value("the tool's answer", value)
    }
}

/// Arguments of a tool that wants to see even those that violate its schema.
///
/// ```
/// use wattle_plugin::prelude::*;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Expense {
///     amount: f64,
/// }
///
/// /// Records an expense.
/// #[tool]
/// fn record(_context: &ToolContext, args: Unchecked<Expense>) -> Result<ToolOutput, Failure> {
///     if let Some(violation) = args.violations.first() {
///         return Ok(ToolOutput::error(format!("ask the user: {violation}")));
///     }
///     Ok(ToolOutput::text(args.parse()?.amount.to_string()))
/// }
///
/// wattle_plugin::export! { tools: [record] }
/// # fn main() {}
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Unchecked<T> {
    /// The arguments as they came.
    pub raw: Value,
    /// Violations of the schema of `T`, one sentence each; empty if valid.
    pub violations: Vec<String>,
    kind: std::marker::PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> Unchecked<T> {
    /// For tests, and for tools that call others.
    pub fn new(raw: Value, violations: Vec<String>) -> Self {
        Self { raw, violations, kind: std::marker::PhantomData }
    }

    /// The arguments as their type.
    pub fn parse(&self) -> Result<T, Failure> {
        json::from_value("the arguments", &self.raw)
    }
}

/// What a tool may take as arguments: a type, or [`Unchecked`] around one.
pub trait ToolArguments: Sized {
    /// Whether arguments that violate the schema reach the tool.
    const ACCEPTS_INVALID: bool;

    /// JSON Schema of the arguments.
    fn schema() -> Value;

    /// Reads the arguments.
    fn read(context: &ToolContext, text: &str) -> Result<Self, Failure>;
}

impl<T: DeserializeOwned + JsonSchema> ToolArguments for T {
    const ACCEPTS_INVALID: bool = false;

    fn schema() -> Value {
        json::input_schema::<T>()
    }

    fn read(_context: &ToolContext, text: &str) -> Result<Self, Failure> {
        json::read("the arguments", text)
    }
}

impl<T: DeserializeOwned + JsonSchema> ToolArguments for Unchecked<T> {
    const ACCEPTS_INVALID: bool = true;

    fn schema() -> Value {
        <T as ToolArguments>::schema()
    }

    fn read(context: &ToolContext, text: &str) -> Result<Self, Failure> {
        Ok(Self::new(json::read("the arguments", text)?, context.violations.clone()))
    }
}
