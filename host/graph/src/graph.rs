//! The checked graph that the engine runs.
//!
//! A [`Graph`] is only made by [`crate::check`]: every name in it exists, every schema and
//! condition is compiled. A node is a function of a plugin or a graph of the same app, which runs
//! in a [`Namespace`](crate::id::Namespace) below its parent's.

mod retry;
mod timeout;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::channel::Channel;
use crate::definition::{BranchMode, GraphDef, SubgraphState};
use crate::expr::Condition;
use crate::expr::formula::Formula;
use crate::failure::{Failure, code};
use crate::id::{ChannelName, Digest, END, GraphName, NodeName, PluginName};
use crate::limit::TaskLimits;
use crate::schema::{Misfit, Schema};

pub use self::retry::Retry;
pub use self::timeout::Timeout;

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
    /// Compiled from the definition; `None` if any run context is accepted.
    pub(crate) context: Option<Schema>,
    pub(crate) channels: BTreeMap<ChannelName, Channel>,
    pub(crate) nodes: BTreeMap<NodeName, Node>,
    pub(crate) entry: BTreeSet<NodeName>,
    pub(crate) edges: Vec<Edge>,
    pub(crate) branches: Vec<Branch>,
    pub(crate) tasks: TaskLimits,
}

impl Graph {
    /// The same with other limits of its tasks. They are no part of what it is, so its digest stays.
    pub fn with_task_limits(mut self, limits: TaskLimits) -> Self {
        self.tasks = limits;
        self
    }

    /// Limits of its tasks. Those of a run's own graph bound all tasks of the run.
    pub fn task_limits(&self) -> TaskLimits {
        self.tasks
    }

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

    /// Whether a run context may be handed to the nodes. None at all is always accepted.
    ///
    /// # Errors
    ///
    /// `invalid` with what does not fit `context_schema`, and where; `limit` if finding out takes too
    /// much work.
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

    /// Supersteps that one run may take.
    pub fn recursion_limit(&self) -> u32 {
        self.definition.recursion_limit.unwrap_or(DEFAULT_RECURSION_LIMIT)
    }

    /// Tasks of a superstep that run at once; `None` for the host's own limit.
    pub fn max_concurrency(&self) -> Option<u32> {
        self.definition.max_concurrency
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
#[derive(Clone, Debug)]
pub struct Node {
    /// Its name in the graph.
    pub name: NodeName,
    /// What runs.
    pub body: Body,
    /// When to try again: the first policy that covers a failure holds.
    pub retries: Vec<Retry>,
    /// How long one attempt may take.
    pub timeout: Timeout,
    /// When what it did before is taken over.
    pub cache: Option<Cache>,
    /// The node that runs in its place once it has failed for good.
    pub on_error: Option<NodeName>,
    /// Whether it runs only once nothing else is left to run.
    pub defer: bool,
    /// Channels that it sees; `None` for the whole state.
    pub reads: Option<BTreeSet<ChannelName>>,
    /// Its configuration; `null` if there is none.
    pub config: Value,
    /// What it does, by the graph or else by the plugin.
    pub doc: String,
}

impl Node {
    /// The plugin that it is a function of; `None` for a graph.
    pub fn plugin(&self) -> Option<&PluginName> {
        match &self.body {
            Body::Plugin { plugin, .. } => Some(plugin),
            Body::Graph { .. } => None,
        }
    }

    /// Milliseconds to wait before the attempt after `attempt` (from 1), which failed; `None` if
    /// there is none. `jitter` as in [`Retry::delay_ms`].
    pub fn retry_in_ms(&self, failure: &Failure, attempt: u32, jitter: f64) -> Option<u64> {
        let policy = self.retries.iter().find(|policy| policy.covers(failure))?;
        (attempt < policy.attempts).then(|| policy.delay_ms(attempt, jitter))
    }
}

/// What a node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// A function of a plugin.
    Plugin {
        /// The plugin that exports it.
        plugin: PluginName,
        /// The name under which it does.
        export: String,
    },
    /// A graph of the same app.
    Graph {
        /// The graph.
        graph: GraphName,
        /// What it remembers.
        state: SubgraphState,
    },
}

/// When what a node did before is taken over.
#[derive(Clone, Debug)]
pub struct Cache {
    /// What gives the key, over `input` and `context`; `None` for all of the input.
    pub key: Option<Formula>,
    /// How long it is kept, in milliseconds; `None` for ever.
    pub ttl_ms: Option<u64>,
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
