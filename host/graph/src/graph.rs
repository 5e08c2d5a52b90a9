//! The checked graph that the engine runs.
//!
//! A [`Graph`] is only made by [`crate::check`]: every name in it exists, every schema and
//! condition is compiled. Subgraphs will be a kind of node with a graph of its own and a
//! [`Namespace`](crate::id::Namespace) below its parent's; deferred nodes a flag of [`Node`] that
//! holds its trigger back while others remain.

mod retry;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::channel::Channel;
use crate::definition::{BranchMode, GraphDef};
use crate::expr::Condition;
use crate::id::{ChannelName, Digest, END, GraphName, NodeName, PluginName};

pub use self::retry::Retry;

/// Supersteps of one run unless the graph says otherwise: far above what real graphs take, low
/// enough that an endless loop of model calls stops before it is expensive.
pub const DEFAULT_RECURSION_LIMIT: u32 = 1000;

/// A graph in which everything was checked.
#[derive(Debug)]
pub struct Graph {
    /// Its name in the app.
    pub name: GraphName,
    /// Digest of the canonical definition with its name: equal graphs have equal digests, however
    /// they were written.
    pub digest: Digest,
    pub(crate) definition: GraphDef,
    pub(crate) channels: BTreeMap<ChannelName, Channel>,
    pub(crate) nodes: BTreeMap<NodeName, Node>,
    pub(crate) entry: BTreeSet<NodeName>,
    pub(crate) edges: Vec<Edge>,
    pub(crate) branches: Vec<Branch>,
}

impl Graph {
    /// The parts of the state.
    pub fn channels(&self) -> &BTreeMap<ChannelName, Channel> {
        &self.channels
    }

    /// The node of that name.
    pub fn node(&self, name: &NodeName) -> Option<&Node> {
        self.nodes.get(name)
    }

    /// All nodes.
    pub fn nodes(&self) -> &BTreeMap<NodeName, Node> {
        &self.nodes
    }

    /// Nodes that run first.
    pub fn entry(&self) -> &BTreeSet<NodeName> {
        &self.entry
    }

    /// Unconditional ways on, in the order of the definition.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// Conditional ways on, in the order of the definition.
    pub fn branches(&self) -> &[Branch] {
        &self.branches
    }

    /// Supersteps that one run may take.
    pub fn recursion_limit(&self) -> u32 {
        self.definition.recursion_limit.unwrap_or(DEFAULT_RECURSION_LIMIT)
    }

    /// How long a question may stay unanswered, in milliseconds; `None` for any time.
    pub fn interrupt_ttl_ms(&self) -> Option<u64> {
        self.definition.interrupt_ttl.map(crate::definition::Span::as_ms)
    }

    /// Whether a run stands still before the node runs.
    pub fn interrupts_before(&self, node: &NodeName) -> bool {
        self.definition.interrupt_before.contains(node)
    }

    /// Whether a run stands still after the node has run.
    pub fn interrupts_after(&self, node: &NodeName) -> bool {
        self.definition.interrupt_after.contains(node)
    }

    /// What the author wrote.
    pub fn definition(&self) -> &GraphDef {
        &self.definition
    }
}

/// A checked node.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its name in the graph.
    pub name: NodeName,
    /// The plugin that exports it.
    pub plugin: PluginName,
    /// The name under which the plugin exports it.
    pub export: String,
    /// When to try again.
    pub retry: Retry,
    /// How long one attempt may take, in milliseconds; `None` for the host's own limit.
    pub timeout_ms: Option<u64>,
    /// Channels that it sees; `None` for the whole state.
    pub reads: Option<BTreeSet<ChannelName>>,
    /// Its configuration; `null` if there is none.
    pub config: Value,
    /// What it does, by the graph or else by the plugin.
    pub doc: String,
}

/// An unconditional way on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Where it starts. With several nodes it is a barrier: all of them must have run.
    pub from: BTreeSet<NodeName>,
    /// What runs next; may contain `END`.
    pub to: Vec<NodeName>,
    /// Stable name of the barrier in a checkpoint, such as `a+b->c`.
    pub key: String,
}

impl Edge {
    /// Whether it waits for several nodes.
    pub fn is_barrier(&self) -> bool {
        self.from.len() > 1
    }
}

/// A conditional way on.
#[derive(Debug)]
pub struct Branch {
    /// Unique in the graph.
    pub name: String,
    /// Where it starts: it is decided whenever one of these has run.
    pub from: BTreeSet<NodeName>,
    /// Which matching cases are taken.
    pub mode: BranchMode,
    /// The cases, in order.
    pub cases: Vec<Case>,
}

/// One case of a branch.
#[derive(Debug)]
pub struct Case {
    /// When it matches; `None` for the case that is taken if no other is.
    pub when: Option<Condition>,
    /// What runs next; may contain `END`.
    pub to: Vec<NodeName>,
}

/// Whether a target ends its path instead of naming a node.
pub fn is_end(target: &NodeName) -> bool {
    target.as_str() == END
}
