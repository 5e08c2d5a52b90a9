//! Why a superstep, a write, an edit or an input could not be applied.

use serde_json::{Value, json};

use crate::failure::{Failure, code};
use crate::id::{ChannelName, NodeName};
use crate::limit::Exceeded;

/// Why a superstep, a write, an edit or an input could not be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StepError {
    /// Two tasks of one superstep wrote a channel that holds one value.
    #[error(
        "channel `{channel}` was written by {} in one superstep: give it a reducer such as \
         `append`, `merge` or `any`, or run the nodes one after the other",
        list(nodes)
    )]
    ConcurrentWrites {
        /// The channel.
        channel: ChannelName,
        /// The writers, in order.
        nodes: Vec<NodeName>,
    },
    /// Two writes of one superstep want to replace the same channel.
    #[error(
        "channel `{channel}` was overwritten by {} in one superstep: only one write can replace \
         a value",
        list(nodes)
    )]
    DoubleOverwrite {
        /// The channel.
        channel: ChannelName,
        /// The writers, in order.
        nodes: Vec<NodeName>,
    },
    /// A node wrote a channel that the graph does not have.
    #[error(
        "node `{node}` wrote channel `{channel}`, which the graph does not have: add \
             `channels.{channel}` to the graph or remove the update"
    )]
    UnknownChannel {
        /// The writer.
        node: NodeName,
        /// The channel.
        channel: ChannelName,
    },
    /// A value does not fit its channel.
    #[error("channel `{channel}` does not accept the value{}: {message}", of_node(node.as_ref()))]
    InvalidValue {
        /// The writer; `None` for an input or a combined value.
        node: Option<NodeName>,
        /// The channel.
        channel: ChannelName,
        /// What is wrong with the value.
        message: String,
    },
    /// A node named a node that the graph does not have.
    #[error("node `{node}` wants to run node `{target}` next, which the graph does not have")]
    UnknownNode {
        /// The node that named it.
        node: NodeName,
        /// The missing node.
        target: NodeName,
    },
    /// A condition could not be evaluated.
    #[error("branch `{branch}` could not be decided: {message}")]
    Condition {
        /// The branch.
        branch: String,
        /// Why.
        message: String,
    },
    /// No case of a branch matched.
    #[error("no case of branch `{branch}` matches: add a last case without `when`")]
    NoCase {
        /// The branch.
        branch: String,
    },
    /// The values of a channel could not be combined.
    #[error("channel `{channel}` could not combine its values: {message}")]
    Reduce {
        /// The channel.
        channel: ChannelName,
        /// Why.
        message: String,
    },
    /// A limit was reached.
    #[error("{0}")]
    Limit(Exceeded),
    /// It cannot be said as which node an edit writes.
    #[error("it is not clear as which node the edit writes: name one of {}", known(candidates))]
    AmbiguousEdit {
        /// The nodes that it may be, in order.
        candidates: Vec<NodeName>,
    },
    /// An edit makes no sense.
    #[error("the edit cannot be applied: {message}")]
    InvalidEdit {
        /// What is wrong and what would fit.
        message: String,
    },
    /// An input does not fit the graph.
    #[error("the input cannot be applied: {message}")]
    InvalidInput {
        /// What is wrong and what would fit.
        message: String,
    },
}

impl StepError {
    /// The same as a failure for guests, events and HTTP answers.
    pub fn to_failure(&self) -> Failure {
        match self {
            Self::Limit(exceeded) => exceeded.to_failure(),
            _ => Failure::new(code::INVALID, self.to_string()).with_details(self.details()),
        }
    }

    /// Facts for programs: `kind`, and the subject.
    fn details(&self) -> Value {
        match self {
            Self::ConcurrentWrites { channel, nodes } => {
                json!({ "kind": "concurrent_writes", "channel": channel, "nodes": nodes })
            }
            Self::DoubleOverwrite { channel, nodes } => {
                json!({ "kind": "double_overwrite", "channel": channel, "nodes": nodes })
            }
            Self::UnknownChannel { node, channel } => {
                json!({ "kind": "unknown_channel", "channel": channel, "node": node })
            }
            Self::InvalidValue { node, channel, .. } => {
                json!({ "kind": "invalid_value", "channel": channel, "node": node })
            }
            Self::UnknownNode { node, target } => {
                json!({ "kind": "unknown_node", "node": node, "target": target })
            }
            Self::Condition { branch, .. } => json!({ "kind": "condition", "branch": branch }),
            Self::NoCase { branch } => json!({ "kind": "no_case", "branch": branch }),
            Self::Reduce { channel, .. } => json!({ "kind": "reduce", "channel": channel }),
            Self::Limit(exceeded) => json!({ "kind": "limit", "limit": exceeded.limit }),
            Self::AmbiguousEdit { candidates } => {
                json!({ "kind": "ambiguous_edit", "candidates": candidates })
            }
            Self::InvalidEdit { .. } => json!({ "kind": "invalid_edit" }),
            Self::InvalidInput { .. } => json!({ "kind": "invalid_input" }),
        }
    }
}

/// The writers in a sentence.
fn list(nodes: &[NodeName]) -> String {
    match nodes {
        [] => "several writes".to_owned(),
        [first, rest @ ..] if rest.iter().all(|node| node == first) => {
            format!("`{first}` more than once")
        }
        nodes => quoted(nodes).join(" and "),
    }
}

fn known(nodes: &[NodeName]) -> String {
    quoted(nodes).join(", ")
}

fn quoted(nodes: &[NodeName]) -> Vec<String> {
    nodes.iter().map(|node| format!("`{node}`")).collect()
}

fn of_node(node: Option<&NodeName>) -> String {
    node.map(|node| format!(" of node `{node}`")).unwrap_or_default()
}
