//! Graph definitions as an author writes them, in TOML or as the same document in JSON.
//!
//! These types hold the document without checks. [`crate::check`] validates it.

mod byte_size;
mod duration;
mod shorthand;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{ChannelName, GraphName, NodeName, PluginName};

pub use self::byte_size::ByteSize;
pub use self::duration::{HumanDuration, ParseDurationError};

/// All graphs of one file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphDocument {
    /// The graphs by name.
    #[serde(default)]
    pub graphs: BTreeMap<GraphName, GraphDef>,
}

/// The definition of a graph.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphDef {
    /// Description of the graph.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub doc: String,
    /// Nodes that run first.
    #[serde(default, deserialize_with = "shorthand::one_or_many")]
    pub entry: Vec<NodeName>,
    /// Maximum number of supersteps of one run; [`crate::graph::DEFAULT_RECURSION_LIMIT`] if not
    /// given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recursion_limit: Option<u32>,
    /// Maximum number of tasks of a superstep that run at once; the host's limit if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u32>,
    /// Time after which a thread with a pending interrupt expires; unlimited if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupt_ttl: Option<HumanDuration>,
    /// Policies of all nodes that do not set their own.
    #[serde(default, skip_serializing_if = "NodeDefaults::is_empty")]
    pub defaults: NodeDefaults,
    /// Nodes before which a run is interrupted.
    #[serde(default, skip_serializing_if = "NodeSet::is_empty")]
    pub interrupt_before: NodeSet,
    /// Nodes after which a run is interrupted.
    #[serde(default, skip_serializing_if = "NodeSet::is_empty")]
    pub interrupt_after: NodeSet,
    /// JSON Schema of the run context; anything is accepted if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_schema: Option<Value>,
    /// The channels, which are the named parts of the state.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub channels: BTreeMap<ChannelName, ChannelDef>,
    /// The nodes.
    #[serde(default)]
    pub nodes: BTreeMap<NodeName, NodeDef>,
    /// The unconditional edges.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<EdgeDef>,
    /// The conditional branches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<BranchDef>,
}

/// Named nodes of a graph, or all of them (`"*"`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "shorthand::NodeSetRepr", into = "shorthand::NodeSetRepr")]
pub enum NodeSet {
    /// Every node of the graph.
    All,
    /// The named nodes.
    Named(BTreeSet<NodeName>),
}

impl Default for NodeSet {
    fn default() -> Self {
        Self::Named(BTreeSet::new())
    }
}

impl NodeSet {
    /// Returns true if the set contains no node of any graph.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Named(nodes) if nodes.is_empty())
    }

    /// Returns true if the set contains a node of the graph.
    pub fn contains(&self, node: &NodeName) -> bool {
        match self {
            Self::All => true,
            Self::Named(nodes) => nodes.contains(node),
        }
    }
}

/// The definition of a channel, which is a named part of the state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChannelDef {
    /// JSON Schema of the value; `{}` accepts anything.
    #[serde(default = "any_schema", skip_serializing_if = "is_any_schema")]
    pub schema: Value,
    /// The rule that combines writes with the value.
    #[serde(default, skip_serializing_if = "ReducerDef::is_last")]
    pub reducer: ReducerDef,
    /// Value on a new thread; the channel starts without a value if not given.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "shorthand::present_or_null"
    )]
    pub default: Option<Value>,
    /// Description of the channel.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub doc: String,
}

impl Default for ChannelDef {
    fn default() -> Self {
        Self {
            schema: any_schema(),
            reducer: ReducerDef::default(),
            default: None,
            doc: String::new(),
        }
    }
}

fn any_schema() -> Value {
    Value::Object(serde_json::Map::new())
}

/// Returns true if a schema accepts every value, so that no validation is needed.
pub(crate) fn is_any_schema(schema: &Value) -> bool {
    match schema {
        Value::Object(keywords) => keywords.is_empty(),
        other => other == &Value::Bool(true),
    }
}

/// The reducer of a channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ReducerDef {
    /// A reducer of the host.
    BuiltIn(BuiltInReducer),
    /// A reducer that a plugin exports.
    Plugin(PluginReducer),
}

impl Default for ReducerDef {
    fn default() -> Self {
        Self::BuiltIn(BuiltInReducer::Last)
    }
}

impl ReducerDef {
    /// Returns true for `last`, the default.
    pub fn is_last(&self) -> bool {
        *self == Self::default()
    }
}

/// The reducers of the host; see [`crate::channel::Reducer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BuiltInReducer {
    /// Replaces the value; two writes in one superstep are an error.
    Last,
    /// Appends to a list.
    Append,
    /// Replaces the value by the last write of a superstep.
    Any,
    /// Replaces top-level keys of an object.
    Merge,
    /// Adds numbers.
    Sum,
    /// Keeps the smallest number.
    Min,
    /// Keeps the largest number.
    Max,
    /// Updates a list of messages by their ids.
    Messages,
    /// Keeps the value for the next superstep only.
    Ephemeral,
}

/// A reducer that a plugin exports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginReducer {
    /// The plugin that exports the reducer.
    pub plugin: PluginName,
    /// Name of the export.
    pub reducer: String,
}

/// Policies of all nodes that do not set their own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeDefaults {
    /// Default of [`NodeDef::retry`].
    #[serde(default, with = "shorthand::policies", skip_serializing_if = "Vec::is_empty")]
    pub retry: Vec<RetryDef>,
    /// Default of [`NodeDef::timeout`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<TimeoutDef>,
    /// Default of [`NodeDef::cache`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheDef>,
    /// Default of [`NodeDef::on_error`]; it does not apply to the handler itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_error: Option<NodeName>,
}

impl NodeDefaults {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The definition of a node: a function of a plugin, or a graph of the same app.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeDef {
    /// The plugin that exports the node; the app's default plugin if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<PluginName>,
    /// Name of the export; the name of the node if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Graph of the app that runs as this node, in place of a plugin's function. The input of the
    /// subgraph is the channels that both graphs have. The output is those of these channels that
    /// the subgraph changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<GraphName>,
    /// State that the subgraph keeps between invocations; see [`SubgraphState`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<SubgraphState>,
    /// True if the node runs only once no other node is triggered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub defer: bool,
    /// Retry policies. The first that matches a failure applies; no retry if not given.
    #[serde(default, with = "shorthand::policies", skip_serializing_if = "Vec::is_empty")]
    pub retry: Vec<RetryDef>,
    /// Timeouts of one attempt. Without a run timeout the host's limit applies. Without an idle
    /// timeout an attempt may be idle until the run timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<TimeoutDef>,
    /// When a cached outcome replaces an execution of the node; never if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheDef>,
    /// Node that runs in place of a task that failed permanently; the run fails if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_error: Option<NodeName>,
    /// Nodes that this node may run next with `goto` or `send`. Checks treat them as reachable, and
    /// diagrams show them. The host does not restrict the node to them.
    #[serde(
        default,
        deserialize_with = "shorthand::one_or_many",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub goto: Vec<NodeName>,
    /// Configuration that every execution receives; none if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<Value>,
    /// Keys of the configuration whose values are the contents of text files in the app's folder,
    /// such as prompts. The check inlines the files into `with`, so this map is empty in a checked
    /// graph.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub with_files: BTreeMap<String, String>,
    /// Description of the node.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub doc: String,
}

/// The state that a subgraph keeps between invocations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubgraphState {
    /// No state. The checkpoints of an invocation are stored with the checkpoints of the thread.
    #[default]
    Inherit,
    /// The state of the subgraph: an invocation continues with the state of the previous one on the
    /// thread.
    Own,
    /// Neither state nor checkpoints. After a crash or an interrupt the subgraph runs from its
    /// beginning again, and its calls return their journaled results.
    None,
}

/// The timeouts of one attempt of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum TimeoutDef {
    /// The run timeout alone.
    Run(HumanDuration),
    /// The run timeout and the idle timeout.
    Detailed(DetailedTimeoutDef),
}

impl<'de> Deserialize<'de> for TimeoutDef {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        shorthand::timeout(deserializer)
    }
}

/// The run timeout and the idle timeout of one attempt of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DetailedTimeoutDef {
    /// Maximum duration of an attempt; the host's limit if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<HumanDuration>,
    /// Maximum time without a heartbeat; unlimited if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<HumanDuration>,
    /// What counts as a heartbeat.
    #[serde(default, skip_serializing_if = "HeartbeatSource::is_auto")]
    pub refresh: HeartbeatSource,
}

/// The heartbeats of a task, which reset its idle timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeartbeatSource {
    /// Every host call, result and streamed delta.
    #[default]
    Auto,
    /// Only an event that the node emits (`emit`).
    Heartbeat,
}

impl HeartbeatSource {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde requires this signature")]
    fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

/// The cache policy of a node: when a cached outcome replaces an execution.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheDef {
    /// CEL expression over `input` and `context` that returns the key; the whole input if not
    /// given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// How long an entry is valid; unlimited if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<HumanDuration>,
}

/// A retry policy of a node. Fields that are not given have the defaults of
/// [`RetryPolicy`](crate::graph::RetryPolicy).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetryDef {
    /// Maximum number of attempts, including the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// Delay after the first attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial: Option<HumanDuration>,
    /// Factor by which the delay grows with each attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// Maximum delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<HumanDuration>,
    /// True if delays are shortened at random, so that many tasks do not retry at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<bool>,
    /// Failure codes on which the policy retries; every retryable failure if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<BTreeSet<String>>,
}

/// An unconditional edge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EdgeDef {
    /// Source nodes. An edge with several sources is a barrier: its targets run once all of the
    /// sources have run.
    #[serde(default, deserialize_with = "shorthand::one_or_many")]
    pub from: Vec<NodeName>,
    /// Nodes that run next; `END` ends the path.
    #[serde(default, deserialize_with = "shorthand::one_or_many")]
    pub to: Vec<NodeName>,
}

/// Which matching cases of a branch are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BranchMode {
    /// The first case that matches.
    #[default]
    First,
    /// Every case that matches.
    All,
}

impl BranchMode {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde requires this signature")]
    fn is_first(&self) -> bool {
        *self == Self::First
    }
}

/// A conditional branch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BranchDef {
    /// Unique in the graph.
    #[serde(default)]
    pub name: String,
    /// Source nodes. The branch is evaluated once any of them has run.
    #[serde(default, deserialize_with = "shorthand::one_or_many")]
    pub from: Vec<NodeName>,
    /// Which matching cases are taken.
    #[serde(default, skip_serializing_if = "BranchMode::is_first")]
    pub mode: BranchMode,
    /// The cases, in order.
    #[serde(default)]
    pub cases: Vec<CaseDef>,
}

/// One case of a branch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseDef {
    /// CEL condition over `state`; a case without a condition is taken if no other case matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Nodes that run next; `END` ends the path.
    #[serde(default, deserialize_with = "shorthand::one_or_many")]
    pub to: Vec<NodeName>,
}
