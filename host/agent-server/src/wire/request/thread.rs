//! Requests about threads and their states.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use wattle_project::agent_server::document::Checkpoint;
use wattle_project::agent_server::message::ReadContext;

use super::bounded_list::{at_most, at_most_opt};
use super::messages::convert_messages;
use super::{RequestError, RunCommand};
use crate::wire::response::Ttl;

/// Maximum number of supersteps of a new thread, and of updates in one superstep. A longer history
/// takes several requests.
const MAX_SUPERSTEPS: usize = 1_000;

/// Behavior if the resource already exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum IfExists {
    /// The request is rejected.
    #[default]
    Raise,
    /// The existing resource is returned.
    DoNothing,
}

/// TTL of a thread: a number of minutes, or an object with a strategy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
#[schema(as = TtlWish)]
pub enum TtlInput {
    /// Minutes until the thread is deleted.
    Minutes(f64),
    /// TTL with a strategy.
    WithStrategy(Ttl),
}

impl TtlInput {
    /// Returns the TTL with its strategy, by default the deletion of the thread.
    pub fn ttl(self) -> Ttl {
        match self {
            Self::Minutes(minutes) => Ttl { strategy: Default::default(), minutes },
            Self::WithStrategy(ttl) => ttl,
        }
    }
}

/// A superstep in the history of a new thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Superstep {
    /// Updates of the tasks of the superstep: at most 1,000.
    #[serde(deserialize_with = "at_most::<MAX_SUPERSTEPS, _, _>")]
    pub updates: Vec<UpdateInput>,
}

/// The update of one task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct UpdateInput {
    /// Channel values.
    pub values: Option<Value>,
    /// Command whose `update` is written instead of `values`.
    pub command: Option<RunCommand>,
    /// Node on whose behalf the update writes.
    pub as_node: Option<String>,
}

/// A new thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct ThreadCreate {
    /// Id of the thread. By default the server generates one.
    #[schema(format = "uuid")]
    pub thread_id: Option<String>,
    /// Arbitrary metadata.
    pub metadata: Option<Map<String, Value>>,
    /// Behavior if the thread already exists.
    pub if_exists: Option<IfExists>,
    /// TTL of the thread.
    pub ttl: Option<TtlInput>,
    /// History of the thread: at most 1,000 supersteps.
    #[serde(deserialize_with = "at_most_opt::<MAX_SUPERSTEPS, _, _>")]
    pub supersteps: Option<Vec<Superstep>>,
}

/// A change of a thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct ThreadPatch {
    /// Metadata to merge into the current metadata.
    pub metadata: Option<Map<String, Value>>,
    /// TTL of the thread.
    pub ttl: Option<TtlInput>,
}

/// An update of the state of a thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct StateUpdate {
    /// Channel values: an object, or an array of objects.
    pub values: Option<Value>,
    /// Node on whose behalf the update writes.
    pub as_node: Option<String>,
    /// Checkpoint to update. The default is the current one.
    pub checkpoint: Option<Checkpoint>,
    /// Id of the checkpoint to update.
    pub checkpoint_id: Option<String>,
}

impl StateUpdate {
    /// Returns the checkpoint to update.
    pub fn checkpoint_id(&self) -> Option<&str> {
        let of_address = || self.checkpoint.as_ref()?.id();
        self.checkpoint_id.as_deref().or_else(of_address)
    }
}

/// A request for a state by the address of its checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct StateRequest {
    /// Address of the checkpoint.
    pub checkpoint: Checkpoint,
    /// Whether to include the states of subgraphs.
    pub subgraphs: Option<bool>,
    /// Fields to return. `values.<channel>` is the value of one channel.
    pub select: Option<Vec<String>>,
}

/// The checkpoint before which the history is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Before {
    /// Id of the checkpoint.
    Id(String),
    /// Configuration with the address of the checkpoint, as other libraries store it.
    Config {
        /// Address of the checkpoint.
        configurable: Checkpoint,
    },
    /// Address of the checkpoint.
    Checkpoint(Checkpoint),
}

impl Before {
    /// Returns the id of the checkpoint.
    pub fn id(&self) -> Option<&str> {
        match self {
            Self::Id(id) => Some(id),
            Self::Checkpoint(checkpoint) | Self::Config { configurable: checkpoint } => {
                checkpoint.id()
            }
        }
    }
}

/// A filter for the history of a thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct HistoryRequest {
    /// Maximum number of states. The default is 1.
    #[schema(minimum = 1)]
    pub limit: Option<usize>,
    /// Only states older than this checkpoint.
    pub before: Option<Before>,
    /// Metadata that a state must have.
    pub metadata: Option<Map<String, Value>>,
    /// Address of the graph whose history is listed.
    pub checkpoint: Option<Checkpoint>,
    /// Fields to return. `values.<channel>` is the value of one channel.
    pub select: Option<Vec<String>>,
}

impl StateUpdate {
    /// Returns the channel values. Messages are converted to the format of the host.
    ///
    /// # Errors
    ///
    /// [`RequestError::Unprocessable`] for the first invalid message.
    pub fn channel_values(
        &self,
        channels: &BTreeSet<String>,
        context: &mut ReadContext<'_>,
    ) -> Result<Value, RequestError> {
        convert_messages(self.values.as_ref().unwrap_or(&Value::Null), channels, context)
    }
}
