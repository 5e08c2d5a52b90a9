//! Errors of applying a superstep, a write, an edit or an input.

use serde_json::{Value, json};

use crate::failure::{Failure, code};
use crate::id::{ChannelName, NodeName};
use crate::limit::Exceeded;

/// The error of applying a superstep, a write, an edit or an input.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StepError {
    /// Several tasks of one superstep wrote a channel whose reducer accepts one write.
    #[error(
        "channel `{channel}` was written by {} in one superstep: give it a reducer such as \
         `append`, `merge` or `any`, or run the nodes one after the other",
        writer_list(nodes)
    )]
    ConcurrentWrites {
        /// The channel.
        channel: ChannelName,
        /// The writers, in task order.
        nodes: Vec<NodeName>,
    },
    /// Several writes of one superstep overwrite the same channel.
    #[error(
        "channel `{channel}` was overwritten by {} in one superstep: only one write can replace \
         a value",
        writer_list(nodes)
    )]
    DoubleOverwrite {
        /// The channel.
        channel: ChannelName,
        /// The writers, in task order.
        nodes: Vec<NodeName>,
    },
    /// A node wrote a channel that the graph does not have.
    #[error(
        "node `{node}` wrote channel `{channel}`, which the graph does not have: add \
             `channels.{channel}` to the graph or remove the update"
    )]
    UnknownChannel {
        /// The node whose task made the write.
        node: NodeName,
        /// The channel.
        channel: ChannelName,
    },
    /// A value does not fit its channel.
    #[error("channel `{channel}` does not accept the value{}: {message}", node_suffix(node.as_ref()))]
    InvalidValue {
        /// The writer; `None` for an input or a combined value.
        node: Option<NodeName>,
        /// The channel.
        channel: ChannelName,
        /// What is wrong with the value.
        message: String,
    },
    /// A `goto` or a send of a node has a target that the graph does not have.
    #[error("node `{node}` names unknown target `{target}`")]
    UnknownNode {
        /// The node with the `goto` or send.
        node: NodeName,
        /// The missing node.
        target: NodeName,
    },
    /// A condition could not be evaluated.
    #[error("branch `{branch}` could not be evaluated: {message}")]
    Condition {
        /// The branch.
        branch: String,
        /// Error of the condition.
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
        /// Error of the reducer.
        message: String,
    },
    /// A limit was exceeded.
    #[error("{0}")]
    Limit(Exceeded),
    /// An edit names no node to write as, and several nodes are possible.
    #[error(
        "the node that the edit writes as is ambiguous: name one of {}",
        quoted_list(candidates)
    )]
    AmbiguousEdit {
        /// The possible nodes, in order.
        candidates: Vec<NodeName>,
    },
    /// An edit is not valid.
    #[error("the edit cannot be applied: {message}")]
    InvalidEdit {
        /// What is wrong, and what is accepted.
        message: String,
    },
    /// An input does not fit the graph.
    #[error("the input cannot be applied: {message}")]
    InvalidInput {
        /// What is wrong, and what is accepted.
        message: String,
    },
}

impl StepError {
    /// Returns the error as a failure for guests, events and HTTP responses.
    pub fn to_failure(&self) -> Failure {
        match self {
            Self::Limit(exceeded) => exceeded.to_failure(),
            _ => Failure::new(code::INVALID, self.to_string()).with_details(self.details()),
        }
    }

    /// Returns the details of the failure for programs: `kind` and the subject.
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

/// Lists the writers for a message.
fn writer_list(nodes: &[NodeName]) -> String {
    match nodes {
        [] => "several writes".to_owned(),
        [first, rest @ ..] if rest.iter().all(|node| node == first) => {
            format!("`{first}` more than once")
        }
        nodes => quoted(nodes).join(" and "),
    }
}

fn quoted_list(nodes: &[NodeName]) -> String {
    quoted(nodes).join(", ")
}

fn quoted(nodes: &[NodeName]) -> Vec<String> {
    nodes.iter().map(|node| format!("`{node}`")).collect()
}

fn node_suffix(node: Option<&NodeName>) -> String {
    node.map(|node| format!(" of node `{node}`")).unwrap_or_default()
}
