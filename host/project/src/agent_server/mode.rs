//! Stream modes.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A stream mode, which selects server-sent events of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The state after each superstep.
    Values,
    /// The writes of each task.
    Updates,
    /// Custom events of guests, and the progress of nodes.
    Custom,
    /// Starts and ends of tasks.
    Tasks,
    /// Each checkpoint with its tasks.
    Checkpoints,
    /// Tasks and checkpoints together.
    Debug,
    /// Events of graphs, nodes, models and tools, under the names of LangChain.
    Events,
    /// Messages: whole messages, and the content so far of streamed messages.
    Messages,
    /// Messages and deltas, each with the metadata of the run and the task.
    MessagesTuple,
}

impl Mode {
    const ALL: [(&'static str, Self); 9] = [
        ("values", Self::Values),
        ("updates", Self::Updates),
        ("custom", Self::Custom),
        ("tasks", Self::Tasks),
        ("checkpoints", Self::Checkpoints),
        ("debug", Self::Debug),
        ("events", Self::Events),
        ("messages", Self::Messages),
        ("messages-tuple", Self::MessagesTuple),
    ];

    /// Returns the mode with a name.
    ///
    /// # Errors
    ///
    /// Returns [`UnknownMode`] if there is no such mode.
    pub fn of(name: &str) -> Result<Self, UnknownMode> {
        let known = Self::ALL.iter().find(|(known, _)| *known == name);
        known.map(|(_, mode)| *mode).ok_or_else(|| UnknownMode(name.to_owned()))
    }
}

/// Error: a name that is not a stream mode of a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a stream mode of a run; use one of {names}", names = Mode::ALL.map(|(name, _)| name).join(", "))]
pub struct UnknownMode(pub String);
