//! The events of a thread that a session uses.

use wattle_plugin::chat::Agent;
pub(crate) use wattle_plugin::runs::{RunLog as Run, by_run as runs_of};

use crate::channel;

/// The agent of the graph, and the channel with its conversation.
pub(crate) const AGENT: Agent =
    Agent { model_node: "agent", tool_node: "tools", channel: channel::MESSAGES };
