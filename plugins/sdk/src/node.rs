//! Graph nodes: the context of a node and its outcome.

mod conversation;
mod reads;

use std::time::Duration;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use self::conversation::Conversation;
pub use self::reads::{ChannelRef, Reads};
use crate::failure::Failure;
use crate::json::{self, Extra, JsonText};

/// Target for [`Outcome::goto`] that ends this branch of the graph.
pub const END: &str = "END";

/// Key of [`Context::extra`] that contains the configuration of the node.
pub(crate) const CONFIG: &str = "config";

/// Key of [`Context::extra`] that contains the failure for an error handler.
const ERROR: &str = "error";

/// Key of [`Send::extra`] that contains the timeout of each attempt, in milliseconds.
const TIMEOUT_MS: &str = "timeout_ms";

/// The context in which a node runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Context {
    /// Name of the node in the plugin.
    pub node: String,
    /// Name of the graph.
    pub graph: String,
    /// Id of the thread.
    pub thread_id: String,
    /// Id of the run.
    pub run_id: String,
    /// Id of the task. It does not change when the task is executed again.
    pub task_id: String,
    /// Number of the superstep in its thread, from 0.
    pub step: u32,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Number of supersteps that the recursion limit still permits.
    pub remaining_steps: u32,
    /// Tenant of the thread, if it has one.
    pub tenant: Option<String>,
    /// The run context; `null` if there is none.
    pub context: Value,
    /// Extension fields.
    pub extra: Extra,
}

impl Context {
    /// Returns the run context as a type.
    ///
    /// ```
    /// use serde_json::json;
    /// use wattle_plugin::Context;
    ///
    /// #[derive(serde::Deserialize)]
    /// struct RunContext {
    ///     language: String,
    /// }
    ///
    /// let context = Context { context: json!({"language": "de"}), ..Context::default() };
    /// let run: RunContext = context.run_context()?;
    /// assert_eq!(run.language, "de");
    /// # Ok::<_, wattle_plugin::Failure>(())
    /// ```
    pub fn run_context<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        json::from_value("the run's context", &self.context)
    }

    /// Returns the configuration of the node as a type: the table `with` of the node in the graph
    /// file. If the table is missing, the type is deserialized from an empty object, which succeeds
    /// if all fields have defaults.
    ///
    /// `#[node(config = ...)]` publishes the schema of the type, so that the host rejects a graph
    /// with an invalid configuration when it loads the graph. It rejects every configuration of a
    /// node without a schema.
    ///
    /// ```
    /// use wattle_plugin::prelude::*;
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// #[serde(default, deny_unknown_fields)]
    /// struct Config {
    ///     /// Route of the model.
    ///     route: String,
    /// }
    ///
    /// impl Default for Config {
    ///     fn default() -> Self {
    ///         Self { route: "chat".to_owned() }
    ///     }
    /// }
    ///
    /// /// Returns the route that it would call.
    /// #[node(config = Config)]
    /// fn which(context: &Context, _input: Empty) -> Result<Value, Failure> {
    ///     let config: Config = context.config()?;
    ///     Ok(json!({ "route": config.route }))
    /// }
    ///
    /// # fn main() -> Result<(), Failure> {
    /// assert_eq!(which(&Context::default(), Empty {})?["route"], "chat");
    /// let context = Context::default().with_config(json!({"route": "fast"}));
    /// assert_eq!(which(&context, Empty {})?["route"], "fast");
    /// # Ok(())
    /// # }
    /// ```
    pub fn config<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let what = format!("the configuration of node `{}`", self.node);
        match self.extra.get(CONFIG) {
            None | Some(Value::Null) => json::from_value(&what, &Value::Object(Extra::new())),
            Some(config) => json::from_value(&what, config),
        }
    }

    /// Returns the failure that this node handles. Returns `None` unless the node runs as an error
    /// handler (`on_error` in the graph file).
    ///
    /// ```
    /// use wattle_plugin::prelude::*;
    ///
    /// /// Returns the message of the failure.
    /// #[node]
    /// fn apologize(context: &Context, _input: Empty) -> Result<Value, Failure> {
    ///     let reason = context.error().map(|error| error.message);
    ///     Ok(json!({ "answer": reason.unwrap_or_else(|| "all is well".to_owned()) }))
    /// }
    ///
    /// # fn main() -> Result<(), Failure> {
    /// let error = NodeError { message: "no seats left".to_owned(), ..NodeError::default() };
    /// let context = Context::default().with_error(error);
    /// assert_eq!(apologize(&context, Empty {})?["answer"], "no seats left");
    /// # Ok(())
    /// # }
    /// ```
    pub fn error(&self) -> Option<NodeError> {
        let error = self.extra.get(ERROR).filter(|error| !error.is_null())?;
        Some(
            NodeError::deserialize(error).unwrap_or_else(|_| NodeError {
                message: error.to_string(),
                ..NodeError::default()
            }),
        )
    }

    /// Sets the failure that the node handles, for tests.
    pub fn with_error(mut self, error: NodeError) -> Self {
        let NodeError { node, task, code, message, details } = error;
        let error = json!({
            "node": node, "task": task, "code": code, "message": message, "details": details,
        });
        self.extra.insert(ERROR.to_owned(), error);
        self
    }

    /// Sets the configuration of the node, for tests.
    pub fn with_config(mut self, config: impl Into<Value>) -> Self {
        self.extra.insert(CONFIG.to_owned(), config.into());
        self
    }
}

/// The failure that an error handler handles.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct NodeError {
    /// Name of the node that failed.
    pub node: String,
    /// Id of the failed task.
    pub task: String,
    /// Code of the failure, see [`code`](crate::failure::code).
    pub code: String,
    /// Message of the failure. It contains the name of the node.
    pub message: String,
    /// Structured details; `null` if there are none.
    pub details: Value,
}

/// Updates of channels together with the nodes to run next.
///
/// A node that only writes channels can return a struct of updates. `Outcome` adds targets, sends
/// and overwrites.
///
/// ```
/// use wattle_plugin::prelude::*;
///
/// #[derive(Serialize, JsonSchema)]
/// struct Update {
///     draft: String,
/// }
///
/// fn revise(_context: &Context, _input: Value) -> Result<Outcome<Update>, Failure> {
///     let update = Update { draft: "better".to_owned() };
///     Ok(Outcome::new(update).overwrite("draft").goto("review").send("notify", json!({"n": 1})))
/// }
/// # assert!(revise(&Context::default(), Value::Null).is_ok());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome<U> {
    updates: U,
    goto: Vec<String>,
    sends: Vec<Result<Send<JsonText>, Failure>>,
    overwrites: Vec<String>,
    extra: Extra,
}

impl<U> Outcome<U> {
    /// Creates an outcome that writes the updates and follows the edges of the graph.
    pub fn new(updates: U) -> Self {
        Self {
            updates,
            goto: Vec::new(),
            sends: Vec::new(),
            overwrites: Vec::new(),
            extra: Extra::new(),
        }
    }

    /// Selects a node to run next, instead of the nodes to which the edges lead. Repeated calls
    /// select several nodes. See [`END`].
    pub fn goto(mut self, node: impl Into<String>) -> Self {
        self.goto.push(node.into());
        self
    }

    /// Runs a node in the next superstep with its own input instead of the state. Repeated calls
    /// send several tasks.
    pub fn send(self, node: impl Into<String>, input: impl Serialize) -> Self {
        self.push_send(node.into(), input, Extra::new())
    }

    /// Like [`send`](Self::send), with a timeout in milliseconds for each attempt of the task.
    pub fn send_within(
        self,
        node: impl Into<String>,
        input: impl Serialize,
        timeout: Duration,
    ) -> Self {
        let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        let extra = [(TIMEOUT_MS.to_owned(), Value::from(timeout_ms))].into_iter().collect();
        self.push_send(node.into(), input, extra)
    }

    fn push_send(mut self, node: String, input: impl Serialize, extra: Extra) -> Self {
        let input = json::to_text(format_args!("the input sent to `{node}`"), &input);
        self.sends.push(input.map(|input| Send { node, input, extra }));
        self
    }

    /// Makes the update of a channel an overwrite, which replaces the value instead of passing it
    /// to the reducer. The outcome fails with `internal` if the updates do not contain the channel.
    pub fn overwrite(mut self, channel: impl Into<String>) -> Self {
        self.overwrites.push(channel.into());
        self
    }

    /// Applies the whole outcome to the parent graph, which runs this graph as a node. The updates
    /// apply to channels of the parent, `goto` and sends to nodes of the parent, and this graph
    /// ends. Invalid in a root graph.
    pub fn for_parent(self) -> Self {
        self.with_extra("parent", true)
    }

    /// Adds an extension field.
    pub fn with_extra(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.extra.insert(key.into(), value.into());
        self
    }
}

impl Outcome<()> {
    /// Creates an outcome without updates.
    pub fn nothing() -> Self {
        Self::new(())
    }
}

/// A write to one state channel.
#[derive(Debug, Clone, PartialEq)]
pub struct Update<V = Value> {
    /// Name of the channel to write.
    pub channel: String,
    /// Value that the reducer combines with the channel.
    pub value: V,
    /// True to replace the value of the channel instead of calling the reducer.
    pub overwrite: bool,
}

/// A task for the next superstep with its own input instead of the state.
#[derive(Debug, Clone, PartialEq)]
pub struct Send<V = Value> {
    /// Name of the node.
    pub node: String,
    /// Input of the task.
    pub input: V,
    /// Extension fields.
    pub extra: Extra,
}

/// The outcome of a node with one update per channel. The host receives the values as
/// [`JsonText`], and tests as [`Value`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Decision<V = Value> {
    /// Writes to the state.
    pub updates: Vec<Update<V>>,
    /// Nodes to run next, instead of those to which the edges lead.
    pub goto: Vec<String>,
    /// Tasks for the next superstep, each with its own input.
    pub sends: Vec<Send<V>>,
    /// Extension fields.
    pub extra: Extra,
}

impl<V> Decision<V> {
    /// Returns the value that is written to a channel, if there is one.
    pub fn update(&self, channel: &str) -> Option<&V> {
        self.updates.iter().find(|update| update.channel == channel).map(|update| &update.value)
    }
}

impl From<Decision> for Decision<JsonText> {
    fn from(decision: Decision) -> Self {
        let update = |Update { channel, value, overwrite }: Update| Update {
            channel,
            value: JsonText::from(value),
            overwrite,
        };
        let send =
            |Send { node, input, extra }: Send| Send { node, input: JsonText::from(input), extra };
        Self {
            updates: decision.updates.into_iter().map(update).collect(),
            goto: decision.goto,
            sends: decision.sends.into_iter().map(send).collect(),
            extra: decision.extra,
        }
    }
}

/// The return type of a node: a struct whose fields are channels, an [`Outcome`] around one, or
/// `()`.
///
/// A field that serde skips (`skip_serializing_if`) is not written.
pub trait NodeOutput {
    /// Returns the JSON Schema of the updates.
    fn schema() -> Value;

    /// Splits the updates by channel. A [`Decision`] with values converts with `into`.
    fn decide(self) -> Result<Decision<JsonText>, Failure>;
}

impl<U: Serialize + JsonSchema> NodeOutput for U {
    fn schema() -> Value {
        let schema = json::output_schema::<U>();
        if json::is_null_schema(&schema) { json::empty_object_schema() } else { schema }
    }

    fn decide(self) -> Result<Decision<JsonText>, Failure> {
        Outcome::new(self).decide()
    }
}

impl<U: Serialize + JsonSchema> NodeOutput for Outcome<U> {
    fn schema() -> Value {
        <U as NodeOutput>::schema()
    }

    fn decide(self) -> Result<Decision<JsonText>, Failure> {
        let mut updates = writes(&self.updates)?;
        for channel in self.overwrites {
            let update = updates.iter_mut().find(|update| update.channel == channel);
            update.ok_or_else(|| not_written(&channel))?.overwrite = true;
        }
        let sends = self.sends.into_iter().collect::<Result<_, _>>()?;
        Ok(Decision { updates, goto: self.goto, sends, extra: self.extra })
    }
}

fn writes(updates: &impl Serialize) -> Result<Vec<Update<JsonText>>, Failure> {
    let fields = json::to_fields("the updates", updates)?.ok_or_else(|| {
        Failure::internal(
            "the updates of a node are not an object; return a struct with one field per channel",
        )
    })?;
    let update = |(channel, value)| Update { channel, value, overwrite: false };
    Ok(fields.into_iter().map(update).collect())
}

fn not_written(channel: &str) -> Failure {
    Failure::internal(format!("overwrite channel `{channel}`: the updates do not write it"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use schemars::JsonSchema;
    use serde::Serialize;
    use serde_json::json;

    use super::{Context, NodeError, NodeOutput, Outcome};
    use crate::json::JsonText;

    #[derive(Serialize, JsonSchema)]
    struct Updates {
        kept: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        absent: Option<u32>,
        null: Option<u32>,
    }

    fn updates() -> Updates {
        Updates { kept: 1, absent: None, null: None }
    }

    #[test]
    fn each_serialized_field_is_one_write() {
        let decision = updates().decide().unwrap();
        let writes: Vec<_> = decision.updates.iter().map(|update| &*update.channel).collect();
        assert_eq!(writes, ["kept", "null"]);
        assert_eq!(decision.update("null").map(JsonText::as_str), Some("null"));
    }

    #[test]
    fn outcome_has_overwrites_targets_and_sends() {
        let outcome = Outcome::new(updates()).overwrite("kept").goto("a").goto("b").send("c", 1);
        let decision = outcome.decide().unwrap();
        assert!(decision.updates[0].overwrite && !decision.updates[1].overwrite);
        assert_eq!(decision.goto, ["a", "b"]);
        assert_eq!(decision.sends[0].input.as_str(), "1");
    }

    #[test]
    fn outcome_can_be_for_the_parent_graph() {
        let decision = Outcome::new(updates()).goto("review").for_parent().decide().unwrap();
        assert_eq!(decision.extra["parent"], true);
    }

    #[test]
    fn send_can_have_a_timeout() {
        let outcome = Outcome::nothing().send_within("c", 1, Duration::from_secs(2));
        assert_eq!(outcome.decide().unwrap().sends[0].extra["timeout_ms"], 2000);
    }

    #[test]
    fn error_handler_gets_the_failure() {
        assert_eq!(Context::default().error(), None);
        let error = NodeError { node: "work".into(), code: "timeout".into(), ..Default::default() };
        assert_eq!(Context::default().with_error(error.clone()).error(), Some(error));
    }

    #[test]
    fn overwrite_of_an_unwritten_channel_fails() {
        let failure = Outcome::new(updates()).overwrite("absent").decide().unwrap_err();
        assert!(failure.message.contains("`absent`"));
    }

    #[test]
    fn empty_outcome_has_no_updates() {
        assert!(().decide().unwrap().updates.is_empty());
        assert_eq!(<() as NodeOutput>::schema(), json!({"type": "object", "properties": {}}));
        assert!(7.decide().is_err());
    }
}
