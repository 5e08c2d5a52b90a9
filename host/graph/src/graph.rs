//! The checked graph that the engine runs.
//!
//! Only [`crate::check`] creates a [`Graph`]: every name in it exists, and every schema and
//! condition is compiled. A node is a function of a plugin or a subgraph. A subgraph is a graph of
//! the same app that runs in a [`Namespace`](crate::id::Namespace) below that of its parent graph.

mod retry;
mod timeout;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::channel::Channel;
use crate::definition::{BranchMode, GraphDef, SubgraphState};
use crate::expr::Condition;
use crate::expr::expression::CelExpression;
use crate::failure::{Failure, code};
use crate::id::{ChannelName, Digest, END, GraphName, NodeName, PluginName};
use crate::json_text::JsonWithText;
use crate::limit::GraphLimits;
use crate::schema::{Misfit, Schema};

pub use self::retry::RetryPolicy;
pub use self::timeout::TimeoutPolicy;

/// Default maximum number of supersteps of one run. The limit is far above the number of
/// supersteps that real graphs take, and low enough to stop an endless loop of model calls before it
/// is expensive.
pub const DEFAULT_RECURSION_LIMIT: u32 = 1000;

/// A checked graph.
#[derive(Debug)]
pub struct Graph {
    /// Name of the graph in its app.
    pub name: GraphName,
    /// Digest of the canonical definition and the name. Graphs with the same name whose definitions
    /// have the same content have equal digests, in TOML and in JSON.
    pub digest: Digest,
    pub(crate) definition: GraphDef,
    /// Schema of the run context, compiled from the definition; `None` accepts any run context.
    pub(crate) context: Option<Schema>,
    pub(crate) channels: BTreeMap<ChannelName, Channel>,
    pub(crate) nodes: BTreeMap<NodeName, Node>,
    pub(crate) entry: BTreeSet<NodeName>,
    pub(crate) edges: Vec<Edge>,
    pub(crate) branches: Vec<Branch>,
    pub(crate) limits: GraphLimits,
}

impl Graph {
    /// Returns the graph with other limits. Limits are not part of the definition, so the digest
    /// stays the same.
    pub fn with_limits(mut self, limits: GraphLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Returns the limits. The limit `run_tasks` of a root graph applies to all tasks of its runs,
    /// including those of subgraphs.
    pub fn limits(&self) -> GraphLimits {
        self.limits
    }

    /// Returns the channels of the state.
    pub fn channels(&self) -> &BTreeMap<ChannelName, Channel> {
        &self.channels
    }

    /// Returns the node with this name.
    pub fn node(&self, name: &NodeName) -> Option<&Node> {
        self.nodes.get(name)
    }

    /// Returns all nodes.
    pub fn nodes(&self) -> &BTreeMap<NodeName, Node> {
        &self.nodes
    }

    /// Returns the entry nodes, which run first.
    pub fn entry(&self) -> &BTreeSet<NodeName> {
        &self.entry
    }

    /// Returns the unconditional edges in the order of the definition.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// Returns the branches in the order of the definition.
    pub fn branches(&self) -> &[Branch] {
        &self.branches
    }

    /// Returns true if validating even a small value of a channel, or a small run context, can take
    /// long. Callers then move the validation off a thread that others share.
    pub fn has_expensive_schema(&self) -> bool {
        self.context.as_ref().is_some_and(Schema::is_expensive)
            || self.channels.values().any(Channel::is_expensive)
    }

    /// Checks a run context against `context_schema`. `null` is always accepted.
    ///
    /// # Errors
    ///
    /// `invalid`, with the location of the violation, if the context does not match the schema;
    /// `limit` if the validation takes too many steps.
    pub fn check_context(&self, context: &Value) -> Result<(), Failure> {
        let Some(schema) = self.context.as_ref().filter(|_| !context.is_null()) else {
            return Ok(());
        };
        schema.validate(context).map_err(|misfit| {
            let code = match &misfit {
                Misfit::Invalid(_) => code::INVALID,
                Misfit::Limit(_) => code::LIMIT,
            };
            let name = &self.name;
            let text =
                format!("the context does not fit `context_schema` of graph `{name}`: {misfit}");
            Failure::new(code, text)
        })
    }

    /// Returns the maximum number of supersteps of one run.
    pub fn recursion_limit(&self) -> u32 {
        self.definition.recursion_limit.unwrap_or(DEFAULT_RECURSION_LIMIT)
    }

    /// Returns the maximum number of tasks of a superstep that run concurrently; `None` applies the
    /// host's own limit.
    pub fn max_concurrency(&self) -> Option<u32> {
        self.definition.max_concurrency
    }

    /// Returns how long an interrupt may stay unanswered, in milliseconds; `None` is unlimited.
    pub fn interrupt_ttl_ms(&self) -> Option<u64> {
        self.definition.interrupt_ttl.map(crate::definition::HumanDuration::as_ms)
    }

    /// Returns true if a run stops before the node runs (`interrupt_before`).
    pub fn interrupts_before(&self, node: &NodeName) -> bool {
        self.definition.interrupt_before.contains(node)
    }

    /// Returns true if a run stops after the node has run (`interrupt_after`).
    pub fn interrupts_after(&self, node: &NodeName) -> bool {
        self.definition.interrupt_after.contains(node)
    }

    /// Returns the definition that the author wrote.
    pub fn definition(&self) -> &GraphDef {
        &self.definition
    }
}

/// A checked node.
#[derive(Clone, Debug)]
pub struct Node {
    /// Name of the node in its graph.
    pub name: NodeName,
    /// The function or subgraph that runs.
    pub body: NodeKind,
    /// Retry policies. The first one that covers a failure applies.
    pub retries: Vec<RetryPolicy>,
    /// Timeouts of one attempt.
    pub timeout: TimeoutPolicy,
    /// Cache policy; `None` disables the cache.
    pub cache: Option<CachePolicy>,
    /// Error handler: the node that runs in place of this one after a permanent failure.
    pub on_error: Option<NodeName>,
    /// Whether the node runs only once no other task is triggered.
    pub defer: bool,
    /// Channels that the node reads; `None` for the whole state. Nodes with the same function share
    /// the set, unless their configurations name the channels.
    pub reads: Option<Arc<BTreeSet<ChannelName>>>,
    /// The conversation that the node continues, in one of the channels that it reads. The graph may
    /// lack the channel; the conversation then has no messages, except in the input of a send. `None`
    /// for a node that declares none.
    pub conversation: Option<NodeConversation>,
    /// Configuration of the node; `null` if there is none. Every call of the node gets the text of
    /// the configuration.
    pub config: Arc<JsonWithText>,
    /// Description of the node, from the graph or else from the plugin.
    pub doc: String,
}

/// The conversation that a node continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeConversation {
    /// The channel with the messages.
    pub channel: ChannelName,
    /// Whether the node reads all messages and not only the current turn.
    pub is_whole: bool,
}

impl Node {
    /// Returns the plugin that exports the node; `None` for a subgraph.
    pub fn plugin(&self) -> Option<&PluginName> {
        match &self.body {
            NodeKind::Plugin { plugin, .. } => Some(plugin),
            NodeKind::Graph { .. } => None,
        }
    }

    /// Returns the delay after failed attempt number `attempt` (from 1), in milliseconds; `None` if
    /// no further attempt follows. `jitter` has the meaning that [`RetryPolicy::backoff_ms`] gives
    /// it.
    pub fn retry_in_ms(&self, failure: &Failure, attempt: u32, jitter: f64) -> Option<u64> {
        let policy = self.retries.iter().find(|policy| policy.matches(failure))?;
        (attempt < policy.attempts).then(|| policy.backoff_ms(attempt, jitter))
    }
}

/// What a node runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// A function of a plugin.
    Plugin {
        /// The plugin that exports the function.
        plugin: PluginName,
        /// Name of the exported function.
        export: String,
    },
    /// A subgraph, which is a graph of the same app.
    Graph {
        /// Name of the graph.
        graph: GraphName,
        /// State that the subgraph keeps across invocations.
        state: SubgraphState,
    },
}

/// The cache policy of a node.
#[derive(Clone, Debug)]
pub struct CachePolicy {
    /// Expression over `input` and `context` that yields the key; `None` uses the whole input.
    pub key: Option<CelExpression>,
    /// Lifetime of an entry, in milliseconds; `None` is unlimited.
    pub ttl_ms: Option<u64>,
}

/// An unconditional edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Source nodes. An edge with several sources is a barrier: its targets run once all of them
    /// have run.
    pub from: BTreeSet<NodeName>,
    /// Target nodes; may contain `END`.
    pub to: Vec<NodeName>,
    /// Stable name of the barrier in a checkpoint, such as `a+b->c`.
    pub key: String,
}

impl Edge {
    /// Returns true if the edge waits for several nodes.
    pub fn is_barrier(&self) -> bool {
        self.from.len() > 1
    }
}

/// A conditional edge.
#[derive(Debug)]
pub struct Branch {
    /// Name of the branch, unique in the graph.
    pub name: String,
    /// Source nodes. The conditions are evaluated whenever one of them has run.
    pub from: BTreeSet<NodeName>,
    /// Which matching cases are taken.
    pub mode: BranchMode,
    /// The cases, in order.
    pub cases: Vec<Case>,
}

/// One case of a branch.
#[derive(Debug)]
pub struct Case {
    /// Condition of the case; `None` for the default case, which is taken if no other case matches.
    pub when: Option<Condition>,
    /// Target nodes; may contain `END`.
    pub to: Vec<NodeName>,
}

/// Returns true if a target is `END`, which ends the path, and not a node.
pub fn is_end(target: &NodeName) -> bool {
    target.as_str() == END
}
