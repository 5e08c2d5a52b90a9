//! What a client wants to see of a run.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Invalid;

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
    /// [`Invalid::Schema`] if there is none.
    pub fn of(name: &str) -> Result<Self, Invalid> {
        let known = Self::ALL.iter().find(|(known, _)| *known == name);
        known.map(|(_, mode)| *mode).ok_or_else(|| {
            let names = Self::ALL.map(|(name, _)| name).join(", ");
            Invalid::Schema(format!("`{name}` is no stream mode of a run; use one of {names}"))
        })
    }
}

/// One mode or a list of them, as clients write it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Modes {
    /// One.
    One(String),
    /// Several.
    Many(Vec<String>),
}

impl Modes {
    /// The modes; `values` without any.
    ///
    /// # Errors
    ///
    /// [`Invalid::Schema`] if one of them is none.
    pub fn read(modes: Option<&Self>) -> Result<BTreeSet<Mode>, Invalid> {
        let names = match modes {
            None => &[][..],
            Some(Self::One(name)) => std::slice::from_ref(name),
            Some(Self::Many(names)) => names,
        };
        let mut read =
            names.iter().map(|name| Mode::of(name)).collect::<Result<BTreeSet<_>, _>>()?;
        if read.is_empty() {
            read.insert(Mode::Values);
        }
        Ok(read)
    }
}
