//! JSON bodies of migrations and verifications.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wattle_graph::migrate::{Change, Obstacle};
use wattle_graph::omit::is_zero;
use wattle_run::engine::migrate::MigrationReport;
use wattle_run::ports::store::SealReport;

/// The result of a migration or of its dry run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MigrationDocument {
    /// Digest of the graph and components to which the thread was pinned.
    pub from: String,
    /// Digest of the loaded graph and components.
    pub to: String,
    /// Changes of the state.
    pub changes: Vec<ChangeDocument>,
    /// Reasons why the thread cannot be migrated.
    pub obstacles: Vec<ObstacleDocument>,
    /// True if the migration was applied.
    pub applied: bool,
}

/// A change that a migration makes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ChangeDocument {
    /// The new graph has an additional channel, which starts with its default.
    ChannelAdded {
        /// The channel.
        channel: String,
    },
    /// The value of a channel that the new graph does not have is dropped.
    ChannelDropped {
        /// The channel.
        channel: String,
    },
    /// The request replaces the value of a channel.
    ValueSet {
        /// The channel.
        channel: String,
    },
    /// A node that runs next starts from the beginning. The work of the node since the last
    /// checkpoint is discarded.
    TaskRestarted {
        /// The node.
        node: String,
        /// Number of pending interrupts of the task; absent without any. They are dropped until the
        /// node raises them again.
        #[serde(default, skip_serializing_if = "is_zero")]
        interrupts: u32,
    },
}

/// An obstacle to a migration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ObstacleDocument {
    /// A channel with a value is not in the new graph.
    ChannelGone {
        /// The channel.
        channel: String,
    },
    /// A value is not valid for its channel in the new graph.
    ValueInvalid {
        /// The channel.
        channel: String,
        /// Description of the violation.
        message: String,
    },
    /// A node that runs next is not in the new graph.
    NodeGone {
        /// The node.
        node: String,
    },
    /// A barrier that some of its sources have reached is not in the new graph.
    BarrierGone {
        /// Key of the barrier, such as `a+b->c`.
        barrier: String,
    },
}

/// The result of the verification of a thread's seals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SealDocument {
    /// Sequence number of the last event before the first seal. Events up to it are not sealed.
    pub sealed_after: u64,
    /// Sequence number of the newest event.
    pub last_seq: u64,
    /// Seal of the newest batch; `null` for a thread without seals. A comparison with a copy of
    /// this seal that is kept elsewhere reveals a later change of the history, even if all seals
    /// were changed with it.
    pub seal: Option<String>,
}

impl From<MigrationReport> for MigrationDocument {
    fn from(report: MigrationReport) -> Self {
        Self {
            from: report.from.to_hex(),
            to: report.to.to_hex(),
            changes: report.changes.into_iter().map(Into::into).collect(),
            obstacles: report.obstacles.into_iter().map(Into::into).collect(),
            applied: report.applied,
        }
    }
}

impl From<Change> for ChangeDocument {
    fn from(change: Change) -> Self {
        match change {
            Change::ChannelAdded { channel } => Self::ChannelAdded { channel: channel.into() },
            Change::ChannelDropped { channel } => Self::ChannelDropped { channel: channel.into() },
            Change::ValueSet { channel } => Self::ValueSet { channel: channel.into() },
            Change::TaskRestarted { node, interrupts } => {
                Self::TaskRestarted { node: node.into(), interrupts }
            }
        }
    }
}

impl From<Obstacle> for ObstacleDocument {
    fn from(obstacle: Obstacle) -> Self {
        match obstacle {
            Obstacle::ChannelGone { channel } => Self::ChannelGone { channel: channel.into() },
            Obstacle::ValueInvalid { channel, message } => {
                Self::ValueInvalid { channel: channel.into(), message }
            }
            Obstacle::NodeGone { node } => Self::NodeGone { node: node.into() },
            Obstacle::BarrierGone { barrier } => Self::BarrierGone { barrier },
        }
    }
}

impl From<SealReport> for SealDocument {
    fn from(report: SealReport) -> Self {
        Self {
            sealed_after: report.sealed_after,
            last_seq: report.last_seq,
            seal: report.seal.map(Into::into),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The command line deserializes the documents as [`MigrationReport`] and [`SealReport`].
    #[test]
    fn migration_and_seal_documents_serialize_like_the_reports_of_the_engine() {
        let digest = "1".repeat(64);
        let report = json!({
            "from": digest, "to": "2".repeat(64), "applied": false,
            "changes": [
                { "kind": "channel_added", "channel": "a" },
                { "kind": "channel_dropped", "channel": "b" },
                { "kind": "value_set", "channel": "c" },
                { "kind": "task_restarted", "node": "n" },
                { "kind": "task_restarted", "node": "n", "interrupts": 2 },
            ],
            "obstacles": [
                { "kind": "channel_gone", "channel": "a" },
                { "kind": "value_invalid", "channel": "b", "message": "too long" },
                { "kind": "node_gone", "node": "n" },
                { "kind": "barrier_gone", "barrier": "a+b->c" },
            ],
        });
        let read: MigrationReport = serde_json::from_value(report.clone()).unwrap();
        assert_eq!(json!(MigrationDocument::from(read)), report);
        for seal in [json!(digest), Value::Null] {
            let report = json!({ "sealed_after": 1, "last_seq": 9, "seal": seal });
            let read: SealReport = serde_json::from_value(report.clone()).unwrap();
            assert_eq!(json!(SealDocument::from(read)), report);
        }
    }
}
