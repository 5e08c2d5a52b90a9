//! What clients do with threads and their states.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use wattle_project::agent_server::document::Checkpoint;
use wattle_project::agent_server::message::Fresh;

use super::Command;
use super::Invalid;
use super::run::read_values;
use super::several::{at_most, at_most_if_any};
use crate::wire::shape::Ttl;

/// Supersteps of the past that a new thread is given, and tasks of one of them: longer ones are given
/// step by step.
const STEPS: usize = 1_000;

/// What happens if there is such a thing already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum IfExists {
    /// The request is refused.
    #[default]
    Raise,
    /// The one that is there is the answer.
    DoNothing,
}

/// How long a thread is to be kept: minutes, or with what happens then.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum TtlWish {
    /// Minutes; it is deleted then.
    Minutes(f64),
    /// Both.
    Whole(Ttl),
}

impl TtlWish {
    /// What was asked for.
    pub fn ttl(self) -> Ttl {
        match self {
            Self::Minutes(minutes) => Ttl { strategy: Default::default(), minutes },
            Self::Whole(ttl) => ttl,
        }
    }
}

/// One step of the past that a new thread is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Superstep {
    /// What its tasks wrote: at most 1,000.
    #[serde(deserialize_with = "at_most::<STEPS, _, _>")]
    pub updates: Vec<UpdateInput>,
}

/// What one task wrote.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct UpdateInput {
    /// Channel values.
    pub values: Option<Value>,
    /// Further wishes.
    pub command: Option<Command>,
    /// The node that counts as the writer.
    pub as_node: Option<String>,
}

/// A new thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct ThreadCreate {
    /// Its id; a fresh one without it.
    #[schema(format = "uuid")]
    pub thread_id: Option<String>,
    /// Free facts.
    pub metadata: Option<Map<String, Value>>,
    /// If there is such a thread already.
    pub if_exists: Option<IfExists>,
    /// How long it is kept.
    pub ttl: Option<TtlWish>,
    /// Its past: at most 1,000 steps.
    #[serde(deserialize_with = "at_most_if_any::<STEPS, _, _>")]
    pub supersteps: Option<Vec<Superstep>>,
}

/// A change of a thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct ThreadPatch {
    /// Facts that are added to those that it has.
    pub metadata: Option<Map<String, Value>>,
    /// How long it is kept.
    pub ttl: Option<TtlWish>,
}

/// A change of a thread's state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct StateUpdate {
    /// Channel values: an object, or a list of such.
    pub values: Option<Value>,
    /// The node that counts as the writer.
    pub as_node: Option<String>,
    /// The checkpoint to change.
    pub checkpoint: Option<Checkpoint>,
    /// The same by its id.
    pub checkpoint_id: Option<String>,
}

impl StateUpdate {
    /// The checkpoint to change.
    pub fn checkpoint_id(&self) -> Option<&str> {
        let of_address = || self.checkpoint.as_ref()?.id();
        self.checkpoint_id.as_deref().or_else(of_address)
    }
}

/// A state that is asked for by its address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct StateRequest {
    /// Where.
    pub checkpoint: Checkpoint,
    /// Whether with the states of subgraphs.
    pub subgraphs: Option<bool>,
    /// Only these fields.
    pub select: Option<Vec<String>>,
}

/// A checkpoint before which history is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Before {
    /// By its id.
    Id(String),
    /// By the configuration that other libraries keep it in.
    Config {
        /// The address.
        configurable: Checkpoint,
    },
    /// By its address.
    Checkpoint(Checkpoint),
}

impl Before {
    /// The id of the checkpoint.
    pub fn id(&self) -> Option<&str> {
        match self {
            Self::Id(id) => Some(id),
            Self::Checkpoint(checkpoint) | Self::Config { configurable: checkpoint } => {
                checkpoint.id()
            }
        }
    }
}

/// Which points of a thread's past are wanted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct HistoryRequest {
    /// At most so many; one without it.
    pub limit: Option<usize>,
    /// Only older ones.
    pub before: Option<Before>,
    /// All of these facts must be equal.
    pub metadata: Option<Map<String, Value>>,
    /// Of which graph.
    pub checkpoint: Option<Checkpoint>,
    /// Only these fields.
    pub select: Option<Vec<String>>,
}

impl StateUpdate {
    /// The values with their messages in our form.
    ///
    /// # Errors
    ///
    /// [`Invalid::Schema`] with the first message that is none.
    pub fn read(&self, channels: &BTreeSet<String>, fresh: Fresh<'_>) -> Result<Value, Invalid> {
        read_values(self.values.as_ref().unwrap_or(&Value::Null), channels, fresh)
    }
}
