//! The stream modes of a run.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use wattle_project::agent_server::mode::Mode;

use super::RequestError;

/// One mode or an array of modes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Modes {
    /// The name of a single mode.
    One(String),
    /// The names of several modes.
    Many(Vec<String>),
}

impl Modes {
    /// Parses the modes. The default is `values`.
    ///
    /// # Errors
    ///
    /// [`RequestError::Unprocessable`] for an unknown mode.
    pub fn parse(modes: Option<&Self>) -> Result<BTreeSet<Mode>, RequestError> {
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
