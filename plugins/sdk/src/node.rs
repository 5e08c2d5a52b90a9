//! Graph nodes: where a node runs and what it decides.

use std::time::Duration;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::json::{self, Extra};

/// Goes into [`Outcome::goto`] to end this path of the graph.
pub const END: &str = "END";

/// Key of [`Context::extra`] under which the host hands over the node's configuration.
const CONFIG: &str = "config";

/// Key of [`Context::extra`] under which the host hands over what a handler handles.
const ERROR: &str = "error";

/// Key of [`Send::extra`] that says how long one attempt may take.
const TIMEOUT_MS: &str = "timeout_ms";

/// Where and for what a node runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Context {
    /// The node, as the plugin names it.
    pub node: String,
    /// The graph.
    pub graph: String,
    /// The thread.
    pub thread_id: String,
    /// The run.
    pub run_id: String,
    /// Stable over re-executions of the same task.
    pub task_id: String,
    /// Number of the superstep in its thread, from 0.
    pub step: u32,
    /// 1 for the first attempt.
    pub attempt: u32,
    /// Supersteps left before the recursion limit ends the run.
    pub remaining_steps: u32,
    /// Whose thread it is, on a host with tenants.
    pub tenant: Option<String>,
    /// The run's context; `null` if there is none.
    pub context: Value,
    /// Named values beside the fixed fields.
    pub extra: Extra,
}

impl Context {
    /// The run's context as a type.
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

    /// The node's configuration, `with` of the node in the graph file, as a type. Without one it
    /// is read from an empty object, so a type whose fields all have defaults always works.
    ///
    /// `#[node(config = ...)]` publishes the schema of the type, so that a graph with a wrong
    /// configuration is refused when it is loaded.
    ///
    /// ```
    /// use wattle_plugin::prelude::*;
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// #[serde(default, deny_unknown_fields)]
    /// struct Config {
    ///     /// Which model to ask.
    ///     route: String,
    /// }
    ///
    /// impl Default for Config {
    ///     fn default() -> Self {
    ///         Self { route: "chat".to_owned() }
    ///     }
    /// }
    ///
    /// /// Says which model it would ask.
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

    /// What failed, if this node runs in the place of one that did (`on_error` in the graph file).
    ///
    /// ```
    /// use wattle_plugin::prelude::*;
    ///
    /// /// Says what went wrong.
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

    /// Says what failed, as tests do.
    pub fn with_error(mut self, error: NodeError) -> Self {
        let NodeError { node, task, code, message, details } = error;
        let error = json!({
            "node": node, "task": task, "code": code, "message": message, "details": details,
        });
        self.extra.insert(ERROR.to_owned(), error);
        self
    }

    /// Gives the node a configuration, as tests do.
    pub fn with_config(mut self, config: impl Into<Value>) -> Self {
        self.extra.insert(CONFIG.to_owned(), config.into());
        self
    }
}

/// The failure of a node in whose place another runs.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct NodeError {
    /// The node that failed.
    pub node: String,
    /// Its task.
    pub task: String,
    /// Code of the failure, see [`code`](crate::failure::code).
    pub code: String,
    /// Why, with the node named.
    pub message: String,
    /// Structured details; `null` if there are none.
    pub details: Value,
}

/// Updates together with where to go next.
///
/// A node that only writes channels returns its struct as it is; `Outcome` is for the rest.
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
    sends: Vec<Result<Send, Failure>>,
    overwrites: Vec<String>,
    extra: Extra,
}

impl<U> Outcome<U> {
    /// Updates, and on along the edges of the graph.
    pub fn new(updates: U) -> Self {
        Self {
            updates,
            goto: Vec::new(),
            sends: Vec::new(),
            overwrites: Vec::new(),
            extra: Extra::new(),
        }
    }

    /// Runs this node next, instead of the edges; may be said several times. See [`END`].
    pub fn goto(mut self, node: impl Into<String>) -> Self {
        self.goto.push(node.into());
        self
    }

    /// Runs a node next with an input of its own instead of the state; may be said several times.
    pub fn send(self, node: impl Into<String>, input: impl Serialize) -> Self {
        self.push_send(node.into(), input, Extra::new())
    }

    /// The same, with a time of its own that one attempt may take.
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
        let input = json::to_value(&format!("the input sent to `{node}`"), input);
        self.sends.push(input.map(|input| Send { node, input, extra }));
        self
    }

    /// Replaces the value of a channel that the updates write, instead of reducing it.
    pub fn overwrite(mut self, channel: impl Into<String>) -> Self {
        self.overwrites.push(channel.into());
        self
    }

    /// Hands all of it to the graph above, which runs this node's graph as a node: the updates are
    /// for its channels, `goto` and sends for its nodes. This graph ends with it. Invalid in a
    /// graph that is not a node of another.
    pub fn for_parent(self) -> Self {
        self.with_extra("parent", true)
    }

    /// Adds a named value beside the fixed fields.
    pub fn with_extra(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.extra.insert(key.into(), value.into());
        self
    }
}

impl Outcome<()> {
    /// No updates.
    pub fn nothing() -> Self {
        Self::new(())
    }
}

/// A write to one state channel.
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    /// Which channel.
    pub channel: String,
    /// The value for its reducer.
    pub value: Value,
    /// Replace the value instead of reducing it.
    pub overwrite: bool,
}

/// A task for the next superstep with an input of its own instead of the state.
#[derive(Debug, Clone, PartialEq)]
pub struct Send {
    /// Which node.
    pub node: String,
    /// Its input.
    pub input: Value,
    /// Named values beside the fixed fields.
    pub extra: Extra,
}

/// What a node decided, with the updates taken apart by channel.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Decision {
    /// Writes to the state.
    pub updates: Vec<Update>,
    /// Nodes to run next instead of the edges.
    pub goto: Vec<String>,
    /// Tasks with an input of their own.
    pub sends: Vec<Send>,
    /// Named values beside the fixed fields.
    pub extra: Extra,
}

impl Decision {
    /// The value written to a channel, if there is one.
    pub fn update(&self, channel: &str) -> Option<&Value> {
        self.updates.iter().find(|update| update.channel == channel).map(|update| &update.value)
    }
}

/// What a node may return: a struct whose fields are channels, an [`Outcome`] around one, or `()`.
///
/// A field that is left out when serialized (`skip_serializing_if`) is not written.
pub trait NodeOutput {
    /// JSON Schema of the updates.
    fn schema() -> Value;

    /// Takes the updates apart by channel.
    fn decide(self) -> Result<Decision, Failure>;
}

impl<U: Serialize + JsonSchema> NodeOutput for U {
    fn schema() -> Value {
        let schema = json::output_schema::<U>();
        if json::is_null_schema(&schema) { json::empty_object_schema() } else { schema }
    }

    fn decide(self) -> Result<Decision, Failure> {
        let updates = writes(json::to_value("the updates", self)?)?;
        Ok(Decision { updates, ..Decision::default() })
    }
}

impl<U: Serialize + JsonSchema> NodeOutput for Outcome<U> {
    fn schema() -> Value {
        <U as NodeOutput>::schema()
    }

    fn decide(self) -> Result<Decision, Failure> {
        let mut updates = writes(json::to_value("the updates", self.updates)?)?;
        for channel in self.overwrites {
            let update = updates.iter_mut().find(|update| update.channel == channel);
            update.ok_or_else(|| not_written(&channel))?.overwrite = true;
        }
        let sends = self.sends.into_iter().collect::<Result<_, _>>()?;
        Ok(Decision { updates, goto: self.goto, sends, extra: self.extra })
    }
}

fn writes(updates: Value) -> Result<Vec<Update>, Failure> {
    match updates {
        Value::Null => Ok(Vec::new()),
        Value::Object(fields) => Ok(fields
            .into_iter()
            .map(|(channel, value)| Update { channel, value, overwrite: false })
            .collect()),
        _ => Err(Failure::internal(
            "a node returned updates that are no object; return a struct with a field per channel",
        )),
    }
}

fn not_written(channel: &str) -> Failure {
    Failure::internal(format!("overwrite channel `{channel}`: the updates do not write it"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use schemars::JsonSchema;
    use serde::Serialize;
    use serde_json::{Value, json};

    use super::{Context, NodeError, NodeOutput, Outcome};

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
    fn every_serialized_field_is_one_write() {
        let decision = updates().decide().unwrap();
        let writes: Vec<_> = decision.updates.iter().map(|update| &*update.channel).collect();
        assert_eq!(writes, ["kept", "null"]);
        assert_eq!(decision.update("null"), Some(&Value::Null));
    }

    #[test]
    fn an_outcome_carries_where_to_go() {
        let outcome = Outcome::new(updates()).overwrite("kept").goto("a").goto("b").send("c", 1);
        let decision = outcome.decide().unwrap();
        assert!(decision.updates[0].overwrite && !decision.updates[1].overwrite);
        assert_eq!(decision.goto, ["a", "b"]);
        assert_eq!(decision.sends[0].input, json!(1));
    }

    #[test]
    fn an_outcome_may_be_for_the_graph_above() {
        let decision = Outcome::new(updates()).goto("review").for_parent().decide().unwrap();
        assert_eq!(decision.extra["parent"], true);
    }

    #[test]
    fn a_send_may_say_how_long_it_may_take() {
        let outcome = Outcome::nothing().send_within("c", 1, Duration::from_secs(2));
        assert_eq!(outcome.decide().unwrap().sends[0].extra["timeout_ms"], 2000);
    }

    #[test]
    fn a_handler_is_told_what_failed() {
        assert_eq!(Context::default().error(), None);
        let error = NodeError { node: "work".into(), code: "timeout".into(), ..Default::default() };
        assert_eq!(Context::default().with_error(error.clone()).error(), Some(error));
    }

    #[test]
    fn overwriting_what_is_not_written_is_a_failure() {
        let failure = Outcome::new(updates()).overwrite("absent").decide().unwrap_err();
        assert!(failure.message.contains("`absent`"));
    }

    #[test]
    fn nothing_writes_nothing() {
        assert!(().decide().unwrap().updates.is_empty());
        assert_eq!(<() as NodeOutput>::schema(), json!({"type": "object", "properties": {}}));
        assert!(7.decide().is_err());
    }
}
