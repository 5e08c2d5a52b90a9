//! A graph as an author writes it, in TOML or as the same document in JSON.
//!
//! These types hold what was written. Whether it makes sense is decided by [`crate::check`].

mod list;
mod span;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{ChannelName, GraphName, NodeName, PluginName};

pub use self::span::{Span, SpanError};

/// All graphs of one file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// The graphs by name.
    #[serde(default)]
    pub graphs: BTreeMap<GraphName, GraphDef>,
}

/// One graph.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphDef {
    /// What it is for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub doc: String,
    /// Nodes that run first.
    #[serde(default, deserialize_with = "list::one_or_many")]
    pub entry: Vec<NodeName>,
    /// Supersteps that one run may take; [`crate::graph::DEFAULT_RECURSION_LIMIT`] if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recursion_limit: Option<u32>,
    /// Tasks of a superstep that run at once; the host's own limit if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u32>,
    /// How long a question may stay unanswered before the thread expires; forever if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupt_ttl: Option<Span>,
    /// What holds for every node that does not say otherwise.
    #[serde(default, skip_serializing_if = "NodeDefaults::is_empty")]
    pub defaults: NodeDefaults,
    /// Nodes before which a run stands still.
    #[serde(default, skip_serializing_if = "NodeSet::is_empty")]
    pub interrupt_before: NodeSet,
    /// Nodes after which a run stands still.
    #[serde(default, skip_serializing_if = "NodeSet::is_empty")]
    pub interrupt_after: NodeSet,
    /// JSON Schema of the run context; anything is accepted if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_schema: Option<Value>,
    /// The parts of the state.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub channels: BTreeMap<ChannelName, ChannelDef>,
    /// The nodes.
    #[serde(default)]
    pub nodes: BTreeMap<NodeName, NodeDef>,
    /// Unconditional ways on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<EdgeDef>,
    /// Conditional ways on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<BranchDef>,
}

/// Some nodes or, written `"*"`, all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "list::NodeSetText", into = "list::NodeSetText")]
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
    /// Whether no node is in the set, whatever the graph.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Named(nodes) if nodes.is_empty())
    }

    /// Whether a node of the graph is in the set.
    pub fn contains(&self, node: &NodeName) -> bool {
        match self {
            Self::All => true,
            Self::Named(nodes) => nodes.contains(node),
        }
    }
}

/// One named part of the state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChannelDef {
    /// JSON Schema of the value; `{}` accepts anything.
    #[serde(default = "any_schema", skip_serializing_if = "is_any_schema")]
    pub schema: Value,
    /// How writes combine with the value.
    #[serde(default, skip_serializing_if = "ReducerDef::is_last")]
    pub reducer: ReducerDef,
    /// Value of a new thread; none if not given.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "list::given")]
    pub default: Option<Value>,
    /// What it holds.
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

/// Whether a schema accepts every value, so that there is nothing to validate.
pub(crate) fn is_any_schema(schema: &Value) -> bool {
    match schema {
        Value::Object(keywords) => keywords.is_empty(),
        other => other == &Value::Bool(true),
    }
}

/// How writes combine with the value of a channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "a reducer is `last`, `append`, `any`, `merge`, `sum`, `min`, \
                               `max`, `messages`, `ephemeral` or `{ plugin, reducer }`"
)]
pub enum ReducerDef {
    /// One that the host has.
    BuiltIn(BuiltIn),
    /// One that a plugin exports.
    Plugin(PluginReducer),
}

impl Default for ReducerDef {
    fn default() -> Self {
        Self::BuiltIn(BuiltIn::Last)
    }
}

impl ReducerDef {
    /// Whether it is `last`, the default.
    pub fn is_last(&self) -> bool {
        *self == Self::default()
    }
}

/// The reducers that the host has; see [`crate::channel::Reducer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BuiltIn {
    /// The last write; two in a superstep are an error.
    Last,
    /// A list that grows.
    Append,
    /// Any of the writes of a superstep.
    Any,
    /// An object whose keys are replaced one by one.
    Merge,
    /// The sum of numbers.
    Sum,
    /// The smallest number.
    Min,
    /// The largest number.
    Max,
    /// A conversation: messages with ids.
    Messages,
    /// Seen in the next superstep only.
    Ephemeral,
}

/// A reducer that a plugin exports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginReducer {
    /// The plugin.
    pub plugin: PluginName,
    /// Its reducer.
    pub reducer: String,
}

/// What holds for every node that does not say otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeDefaults {
    /// As [`NodeDef::retry`].
    #[serde(default, with = "list::policies", skip_serializing_if = "Vec::is_empty")]
    pub retry: Vec<RetryDef>,
    /// As [`NodeDef::timeout`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<TimeoutDef>,
    /// As [`NodeDef::cache`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheDef>,
    /// As [`NodeDef::on_error`]; does not hold for the handler itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_error: Option<NodeName>,
}

impl NodeDefaults {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// One node: a function of a plugin, or a graph of the same app.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeDef {
    /// The plugin that exports it; the app's own plugin if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<PluginName>,
    /// The export's name; the node's own name if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// A graph of the app that runs as this node, in place of a plugin's function. Channels that
    /// both graphs have go in, and what it changed of them comes out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<GraphName>,
    /// What that graph remembers; see [`SubgraphState`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<SubgraphState>,
    /// Whether it runs only once nothing else is left to run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub defer: bool,
    /// When to try again: one policy or several, of which the first that covers a failure holds;
    /// never if not given.
    #[serde(default, with = "list::policies", skip_serializing_if = "Vec::is_empty")]
    pub retry: Vec<RetryDef>,
    /// How long one attempt may take; the host's own limit if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<TimeoutDef>,
    /// When what it did before is taken over in place of running it; never if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheDef>,
    /// The node that runs in its place once it has failed for good; the run fails if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_error: Option<NodeName>,
    /// Nodes that this one may run next by itself, with `goto` or `send`. They count as reachable
    /// and are drawn; what a node really does is not limited to them.
    #[serde(
        default,
        deserialize_with = "list::one_or_many",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub goto: Vec<NodeName>,
    /// Its configuration, handed to every execution; nothing if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<Value>,
    /// Keys of the configuration whose values are texts in files of the app's folder, such as
    /// prompts. The check puts the texts into `with`, so a checked graph has none of these.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub with_files: BTreeMap<String, String>,
    /// What it does.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub doc: String,
}

/// What a graph that runs as a node remembers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubgraphState {
    /// Nothing from one invocation to the next; its checkpoints are kept with its thread's.
    #[default]
    Inherit,
    /// It goes on with the state of its last invocation on the thread.
    Own,
    /// Nothing, and it makes no checkpoints: after a crash or a question it runs from its beginning
    /// again, with its calls answered from the journal.
    None,
}

/// How long one attempt of a node may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum TimeoutDef {
    /// In all.
    Run(Span),
    /// In all, and without a sign of life.
    Both(TimeoutsDef),
}

impl<'de> Deserialize<'de> for TimeoutDef {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        list::timeout(deserializer)
    }
}

/// How long one attempt of a node may take, in all and without a sign of life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimeoutsDef {
    /// In all; the host's own limit if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Span>,
    /// Without a sign of life; any time if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<Span>,
    /// What is a sign of life.
    #[serde(default, skip_serializing_if = "Refresh::is_auto")]
    pub refresh: Refresh,
}

/// What shows that a node is alive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refresh {
    /// Every host call, answer and piece of an answer.
    #[default]
    Auto,
    /// Only an event that it emits (`emit`).
    Heartbeat,
}

impl Refresh {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
    fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

/// When what a node did before is taken over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheDef {
    /// A CEL expression over `input` and `context` that gives the key; all of the input if not
    /// given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// How long it is kept; for ever if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Span>,
}

/// When and how often a node is tried again. What is not given has the default of
/// [`crate::graph::Retry`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetryDef {
    /// How often it is tried in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// Pause after the first attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial: Option<Span>,
    /// How much longer each further pause is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// Longest pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<Span>,
    /// Whether pauses are shortened at random, so that many tasks do not retry at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<bool>,
    /// Failure codes to retry on; every retryable failure if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<BTreeSet<String>>,
}

/// An unconditional way on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EdgeDef {
    /// Where it starts; with several nodes, all of them must have run.
    #[serde(default, deserialize_with = "list::one_or_many")]
    pub from: Vec<NodeName>,
    /// What runs next; `END` ends the path.
    #[serde(default, deserialize_with = "list::one_or_many")]
    pub to: Vec<NodeName>,
}

/// Which matching cases of a branch are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BranchMode {
    /// The first that matches.
    #[default]
    First,
    /// Every one that matches.
    All,
}

impl BranchMode {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
    fn is_first(&self) -> bool {
        *self == Self::First
    }
}

/// A conditional way on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BranchDef {
    /// Unique in the graph.
    #[serde(default)]
    pub name: String,
    /// Where it starts; with several nodes, any of them.
    #[serde(default, deserialize_with = "list::one_or_many")]
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
    /// A CEL condition over `state`; a case without one is taken if no other is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// What runs next; `END` ends the path.
    #[serde(default, deserialize_with = "list::one_or_many")]
    pub to: Vec<NodeName>,
}
