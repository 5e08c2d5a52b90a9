//! Run options, which override the settings of the graph.

use wattle_graph::definition::NodeSet;
use wattle_graph::failure::{Failure, code};
use wattle_graph::graph::Graph;
use wattle_graph::id::NodeName;

use crate::limit;
use crate::ports::store::RunOptions;
use crate::task::context::GraphContext;

impl GraphContext {
    /// Returns the maximum number of supersteps of the graph.
    pub(crate) fn recursion_limit(&self) -> u32 {
        let own = self.options.recursion_limit.filter(|_| self.is_root());
        own.unwrap_or(self.graph_version.graph.recursion_limit())
    }

    /// Returns the maximum number of concurrent tasks of a superstep.
    pub(crate) fn max_concurrency(&self) -> usize {
        let wanted = self.options.max_concurrency.or(self.graph_version.graph.max_concurrency());
        let wanted = wanted.map_or(limit::STEP_CONCURRENCY, |wanted| wanted as usize);
        wanted.clamp(1, limit::STEP_CONCURRENCY)
    }

    /// Returns true if the run has a breakpoint before the node.
    pub(crate) fn has_breakpoint_before(&self, node: &NodeName) -> bool {
        match self.options.interrupt_before.as_ref().filter(|_| self.is_root()) {
            Some(nodes) => nodes.contains(node),
            None => self.graph_version.graph.interrupts_before(node),
        }
    }

    /// Returns true if the run has a breakpoint after the node.
    pub(crate) fn has_breakpoint_after(&self, node: &NodeName) -> bool {
        match self.options.interrupt_after.as_ref().filter(|_| self.is_root()) {
            Some(nodes) => nodes.contains(node),
            None => self.graph_version.graph.interrupts_after(node),
        }
    }

    /// Returns true if the run must stop before its next superstep.
    pub(crate) fn must_stop(&self) -> bool {
        self.drain.is_set() || self.handover.is_set()
    }

    /// Returns true for the root graph. Run options about nodes and supersteps apply to the root
    /// graph only.
    fn is_root(&self) -> bool {
        self.log.namespace().is_root()
    }
}

/// Checks the run options of a client.
///
/// # Errors
///
/// `invalid` for a limit of 0 and for an unknown node.
pub(crate) fn check(options: &RunOptions, graph: &Graph) -> Result<(), Failure> {
    let limits = [
        ("recursion_limit", options.recursion_limit),
        ("max_concurrency", options.max_concurrency),
    ];
    if let Some((name, _)) = limits.into_iter().find(|(_, limit)| *limit == Some(0)) {
        return Err(invalid(format!("`{name}` of the run options must be at least 1")));
    }
    let sets = [
        ("interrupt_before", &options.interrupt_before),
        ("interrupt_after", &options.interrupt_after),
    ];
    for (name, nodes) in sets {
        let Some(NodeSet::Named(nodes)) = nodes else { continue };
        if let Some(unknown) = nodes.iter().find(|node| graph.node(node).is_none()) {
            let known: Vec<String> = graph.nodes().keys().map(|node| format!("`{node}`")).collect();
            return Err(invalid(format!(
                "`{name}` of the run options names unknown node `{unknown}` of graph `{}`; \
                 its nodes are {}",
                graph.name,
                known.join(", ")
            )));
        }
    }
    Ok(())
}

fn invalid(message: String) -> Failure {
    Failure::new(code::INVALID, message)
}
