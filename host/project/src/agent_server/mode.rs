//! What a client wants to see of a run.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One kind of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The state after each superstep.
    Values,
    /// What each task wrote.
    Updates,
    /// What nodes emit.
    Custom,
    /// How tasks begin and end.
    Tasks,
    /// Each checkpoint with its tasks.
    Checkpoints,
    /// Tasks and checkpoints in one.
    Debug,
    /// What models and nodes do, as one list of named events.
    Events,
    /// Messages, whole or as far as they are.
    Messages,
    /// Messages and pieces of them, each with where it comes from.
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

    /// The mode of a name.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn of(name: &str) -> Result<Self, UnknownMode> {
        let known = Self::ALL.iter().find(|(known, _)| *known == name);
        known.map(|(_, mode)| *mode).ok_or_else(|| UnknownMode(name.to_owned()))
    }
}

/// A name that is no mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no stream mode of a run; use one of {names}", names = Mode::ALL.map(|(name, _)| name).join(", "))]
pub struct UnknownMode(pub String);
