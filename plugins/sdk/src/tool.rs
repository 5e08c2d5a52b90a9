//! Tools that a plugin provides to models and to other nodes. See [`tools`](crate::tools) for
//! calling tools.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::Failure;
use crate::json::{self, Extra};
use crate::message::{Part, texts_of};
use crate::node::Update;

/// The context in which a tool is called.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolContext {
    /// Name of the tool in the plugin.
    pub tool: String,
    /// Id of the call, with which the caller matches the result.
    pub call_id: String,
    /// Id of the thread, if the call belongs to a run.
    pub thread_id: Option<String>,
    /// Id of the task, if the call belongs to a run.
    pub task_id: Option<String>,
    /// Tenant of the thread, if it has one.
    pub tenant: Option<String>,
    /// Violations of the arguments schema, one sentence per violation; empty if the arguments are
    /// valid.
    pub violations: Vec<String>,
    /// Extension fields.
    pub extra: Extra,
}

/// Key of [`ToolContext::extra`] that contains the state of the caller.
const STATE: &str = "state";

impl ToolContext {
    /// Returns the visible state of the caller as a type. The agent of the plugin `std` passes the
    /// channels that its configuration lists under `state`. If the caller passes no state, the type
    /// is deserialized from an empty object.
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
    /// `invalid` if the state does not fit the type.
    pub fn state<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let none = Value::Object(serde_json::Map::new());
        json::from_value("the caller's state", self.extra.get(STATE).unwrap_or(&none))
    }

    /// Sets the state of the caller, for tests.
    pub fn with_state(mut self, state: impl Into<Value>) -> Self {
        self.extra.insert(STATE.to_owned(), state.into());
        self
    }
}

/// Hints about the effects of a tool, which its author declares with
/// `#[tool(read_only, idempotent)]`. The host does not enforce them. Callers may rely on them, for
/// example to repeat a call after a crash.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolHints {
    /// True if a call has no effects.
    pub read_only: bool,
    /// True if a repeated call with the same arguments has no further effect.
    pub idempotent: bool,
}

/// Key of [`ToolInfo::extra`] that contains the hints.
pub(crate) const HINTS: &str = "hints";

/// Key of [`ToolInfo::extra`] that contains the tool reference.
const REFERENCE: &str = "reference";

/// Key of [`ToolInfo::extra`] that contains the failure of an unavailable tool source.
const UNAVAILABLE: &str = "unavailable";

/// Suffix that marks an entry as an unavailable tool source.
const ALL: &str = "/*";

/// The description of a tool for models.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolInfo {
    /// Name of the tool.
    pub name: String,
    /// Description of the tool.
    pub description: String,
    /// JSON Schema of the arguments.
    pub arguments_schema: Value,
    /// True if the host calls the tool with arguments that violate the schema. Otherwise the host
    /// rejects them.
    pub accepts_invalid: bool,
    /// Extension fields.
    pub extra: Extra,
}

impl ToolInfo {
    /// Returns the declared hints of the tool. Both are false if it declares none.
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

    /// Returns the tool reference, such as `date/parse` or `mcp:graph/list`. A tool is listed under
    /// its bare name while no other granted tool has the same name; its reference never changes.
    /// Returns `None` for a tool that the host did not list.
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

    /// Sets the tool reference, for tests.
    pub fn with_reference(mut self, reference: impl Into<String>) -> Self {
        self.extra.insert(REFERENCE.to_owned(), reference.into().into());
        self
    }

    /// Builds the list entry of an unavailable tool source such as `mcp:graph`, for tests.
    pub fn missing(source: &str, failure: &Failure) -> Self {
        let reason = serde_json::to_value(failure).unwrap_or_default();
        let extra = Extra::from_iter([(UNAVAILABLE.to_owned(), reason)]);
        Self { name: format!("{source}{ALL}"), extra, ..Self::default() }
    }

    /// Returns the name and the failure of an unavailable tool source. Returns `None` for a tool.
    pub(crate) fn place(&self) -> Option<(&str, Failure)> {
        let failure = Failure::deserialize(self.extra.get(UNAVAILABLE)?).ok()?;
        Some((self.name.strip_suffix(ALL).unwrap_or(&self.name), failure))
    }
}

/// The output of a tool.
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
    /// Content for the model.
    pub content: Vec<Part>,
    /// Structured output for programs.
    pub structured: Option<Value>,
    /// True if the content is an error message for the model.
    pub is_error: bool,
    /// Writes to the state of the graph that called the tool.
    pub updates: Vec<Update>,
    /// Extension fields.
    pub extra: Extra,
}

impl ToolOutput {
    /// Creates an output with a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Part::Text(text.into())], ..Self::default() }
    }

    /// Creates an output from a value: structured output for programs, and the same JSON as text
    /// for the model.
    pub fn json(value: &impl Serialize) -> Result<Self, Failure> {
        let value = json::to_value("the output of the tool", value)?;
        let text = value.to_string();
        Ok(Self { structured: Some(value), ..Self::text(text) })
    }

    /// Creates an error message for the model, which can react to it.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// Adds a part to the content, such as an image.
    pub fn with_part(mut self, part: impl Into<Part>) -> Self {
        self.content.push(part.into());
        self
    }

    /// Writes to a channel of the graph that called the tool.
    pub fn with_update(mut self, channel: impl Into<String>, value: impl Into<Value>) -> Self {
        let update = Update { channel: channel.into(), value: value.into(), overwrite: false };
        self.updates.push(update);
        self
    }

    /// Overwrites a channel of the graph that called the tool. If several calls of one task
    /// overwrite a channel, the last one takes effect.
    pub fn with_overwrite(mut self, channel: impl Into<String>, value: impl Into<Value>) -> Self {
        let update = Update { channel: channel.into(), value: value.into(), overwrite: true };
        self.updates.push(update);
        self
    }

    /// Returns all text parts, with a line break between them.
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

    /// Returns the structured output as a type.
    ///
    /// # Errors
    ///
    /// `invalid` if the tool returned no structured output, or if it does not fit the type.
    pub fn structured<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let value = self.structured.as_ref().ok_or_else(|| {
            Failure::invalid("the tool returned no structured output; read its text instead")
        })?;
        json::from_value("the output of the tool", value)
    }

    /// Returns the structured output, or else the text of the output as JSON: servers of the Model
    /// Context Protocol may return a document only as text, also cut into several parts.
    ///
    /// ```
    /// use serde_json::json;
    /// use wattle_plugin::tool::ToolOutput;
    ///
    /// assert_eq!(ToolOutput::json(&json!([1]))?.document()?, json!([1]));
    /// assert_eq!(ToolOutput::text("[1]").document()?, json!([1]));
    /// assert!(ToolOutput::text("one").document().is_err());
    /// # Ok::<_, wattle_plugin::Failure>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The error of the JSON parser, which `?` converts to a failure.
    pub fn document(&self) -> Result<Value, serde_json::Error> {
        if let Some(document) = &self.structured {
            return Ok(document.clone());
        }
        // Parts without line breaks between them come second: a server may cut within a string.
        serde_json::from_str(&self.text_content()).or_else(|error| {
            serde_json::from_str(&texts_of(&self.content).collect::<String>()).map_err(|_| error)
        })
    }
}

/// Arguments of a tool that also accepts arguments that violate its schema.
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
    /// The arguments as the caller passed them.
    pub raw: Value,
    /// Violations of the schema of `T`, one sentence per violation; empty if the arguments are
    /// valid.
    pub violations: Vec<String>,
    kind: std::marker::PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> Unchecked<T> {
    /// Creates arguments, for tests and for tools that call other tools.
    pub fn new(raw: Value, violations: Vec<String>) -> Self {
        Self { raw, violations, kind: std::marker::PhantomData }
    }

    /// Returns the arguments as a type.
    ///
    /// # Errors
    ///
    /// `invalid` if the arguments do not fit the type.
    pub fn parse(&self) -> Result<T, Failure> {
        json::from_value("the arguments", &self.raw)
    }
}

/// The argument type of a tool: a type, or [`Unchecked`] around one.
pub trait ToolArguments: Sized {
    /// True if the host calls the tool with arguments that violate the schema.
    const ACCEPTS_INVALID: bool;

    /// Returns the JSON Schema of the arguments.
    fn schema() -> Value;

    /// Parses the arguments.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::ToolOutput;

    #[test]
    fn documents_are_structured_or_text_of_one_or_several_parts() {
        for (output, expected) in [
            (ToolOutput::json(&json!({"a": 1})).unwrap(), json!({"a": 1})),
            (ToolOutput { structured: Some(json!(1)), ..ToolOutput::text("one") }, json!(1)),
            (ToolOutput::text("[1,").with_part("2]"), json!([1, 2])),
            (ToolOutput::text("[\"a").with_part("b\"]"), json!(["ab"])),
        ] {
            assert_eq!(output.document().unwrap(), expected, "{output:?}");
        }
        let error = ToolOutput::text("<html>").with_part("<body>").document().unwrap_err();
        assert_eq!(error.to_string(), "expected value at line 1 column 1");
    }
}
