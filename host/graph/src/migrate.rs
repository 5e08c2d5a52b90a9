//! Migration of a thread to another version of its graph.
//!
//! A thread is pinned to the version of its first run. A migration requires that the state fits the
//! channels of the new graph, and that the nodes that run next exist there. [`migrate`] reports the
//! changes and the obstacles, and creates the checkpoint from which the thread continues.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::checkpoint::{
    ChannelValue, Checkpoint, CheckpointMeta, CheckpointSource, Trigger, Values, Versions,
};
use crate::graph::Graph;
use crate::id::{ChannelName, CheckpointId, NodeName};
use crate::omit::is_zero;
use crate::schema::StepBudget;
use crate::step::CheckpointStamp;

/// Options of a migration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MigrateOptions {
    /// Whether values of channels that the new graph does not have may be dropped.
    pub drop: bool,
    /// New values that replace those of the thread.
    pub set: BTreeMap<ChannelName, Value>,
}

/// A change that a migration makes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Change {
    /// The new graph has an additional channel, which starts with its default.
    ChannelAdded {
        /// The channel.
        channel: ChannelName,
    },
    /// The value of a channel that the new graph does not have is dropped.
    ChannelDropped {
        /// The channel.
        channel: ChannelName,
    },
    /// The options replace a value.
    ValueSet {
        /// The channel.
        channel: ChannelName,
    },
    /// The task of a node that runs next starts from the beginning. Its journal since the last
    /// checkpoint is discarded.
    TaskRestarted {
        /// The node.
        node: NodeName,
        /// Number of pending interrupts of the task. They are dropped until the node raises them
        /// again.
        #[serde(default, skip_serializing_if = "is_zero")]
        interrupts: u32,
    },
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ChannelAdded { channel } => {
                write!(f, "channel `{channel}` is added with its default")
            }
            Self::ChannelDropped { channel } => {
                write!(f, "the value of channel `{channel}` is dropped")
            }
            Self::ValueSet { channel } => write!(f, "channel `{channel}` gets the given value"),
            Self::TaskRestarted { node, interrupts } => {
                write!(
                    f,
                    "node `{node}` starts from the beginning, and what it did since the checkpoint \
                     is discarded"
                )?;
                match interrupts {
                    0 => Ok(()),
                    1 => f.write_str(
                        "; its pending interrupt is dropped until the node raises it again",
                    ),
                    count => write!(
                        f,
                        "; its {count} pending interrupts are dropped until the node raises them \
                         again"
                    ),
                }
            }
        }
    }
}

/// A task that has started since the checkpoint of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartedTask {
    /// Node of the task.
    pub node: NodeName,
    /// Number of its pending interrupts.
    pub interrupts: u32,
}

/// An obstacle to a migration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Obstacle {
    /// A channel with a value is not in the new graph.
    ChannelGone {
        /// The channel.
        channel: ChannelName,
    },
    /// A value does not fit its channel in the new graph.
    ValueInvalid {
        /// The channel.
        channel: ChannelName,
        /// Description of the violation.
        message: String,
    },
    /// A node that runs next is not in the new graph.
    NodeGone {
        /// The node.
        node: NodeName,
    },
    /// A barrier that some of its sources have reached is not in the new graph.
    BarrierGone {
        /// Key of the barrier, such as `a+b->c`.
        barrier: String,
    },
}

impl std::fmt::Display for Obstacle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ChannelGone { channel } => write!(
                f,
                "channel `{channel}` has a value and is not in the new graph: set `drop` to drop it"
            ),
            Self::ValueInvalid { channel, message } => write!(
                f,
                "the value of channel `{channel}` does not fit: {message}; set another value"
            ),
            Self::NodeGone { node } => write!(
                f,
                "node `{node}` is to run next and is not in the new graph: finish the run first, \
                 or edit the thread"
            ),
            Self::BarrierGone { barrier } => write!(
                f,
                "barrier `{barrier}` waits for a node and is not in the new graph: finish the run \
                 first"
            ),
        }
    }
}

/// The outcome of a migration.
#[derive(Clone, Debug, PartialEq)]
pub struct Migration {
    /// Changes that the migration makes.
    pub changes: Vec<Change>,
    /// Obstacles to the migration. The checkpoint must not be used unless this is empty.
    pub obstacles: Vec<Obstacle>,
    /// The checkpoint from which the thread continues.
    pub checkpoint: Checkpoint,
}

/// Migrates a checkpoint to another version of its graph.
///
/// The triggers stay the same, and their tasks start from the beginning. `started` has the tasks
/// that have started since the checkpoint.
pub fn migrate(
    new: &Graph,
    base: &Checkpoint,
    started: &[StartedTask],
    options: &MigrateOptions,
    at: CheckpointStamp,
) -> Migration {
    let mut migration = MigrationBuilder { changes: Vec::new(), obstacles: Vec::new() };
    let values = migration.values(new, base, options);
    let versions = versions(base, &values, at.id);
    for trigger in base.meta.next.iter().chain(&base.meta.deferred) {
        migration.node(new, trigger);
    }
    for barrier in base.meta.barriers.keys() {
        if new.edges().iter().all(|edge| edge.key != *barrier) {
            migration.obstacles.push(Obstacle::BarrierGone { barrier: barrier.clone() });
        }
    }
    let restarted = started
        .iter()
        .map(|task| Change::TaskRestarted { node: task.node.clone(), interrupts: task.interrupts });
    migration.changes.extend(restarted);
    let meta = CheckpointMeta {
        id: at.id,
        parent: Some(base.meta.id),
        source: CheckpointSource::Update,
        run: at.run,
        at_ms: at.at_ms,
        version: Some(at.version),
        versions,
        event_seq: None,
        ..base.meta.clone()
    };
    let MigrationBuilder { changes, obstacles } = migration;
    let checkpoint = Checkpoint::new(meta, values);
    Migration { changes, obstacles, checkpoint }
}

struct MigrationBuilder {
    changes: Vec<Change>,
    obstacles: Vec<Obstacle>,
}

impl MigrationBuilder {
    /// Returns the state for the new graph. Records changes and obstacles.
    fn values(&mut self, new: &Graph, base: &Checkpoint, options: &MigrateOptions) -> Values {
        let mut values = Values::new();
        for (name, value) in &base.values {
            match new.channels().contains_key(name) {
                true => {
                    values.insert(name.clone(), value.clone());
                }
                false if options.drop => {
                    self.changes.push(Change::ChannelDropped { channel: name.clone() });
                }
                false => self.obstacles.push(Obstacle::ChannelGone { channel: name.clone() }),
            }
        }
        let budget = StepBudget::default();
        for (name, channel) in new.channels() {
            if let Some(value) = options.set.get(name) {
                values.insert(name.clone(), value.clone().into());
                self.changes.push(Change::ValueSet { channel: name.clone() });
            } else if let (false, Some(default)) = (values.contains_key(name), &channel.default) {
                values.insert(name.clone(), default.clone().into());
                self.changes.push(Change::ChannelAdded { channel: name.clone() });
            }
            let validate = |value: &ChannelValue| channel.validate_within(&value.value(), &budget);
            if let Some(Err(misfit)) = values.get(name).map(validate) {
                let message = misfit.to_string();
                self.obstacles.push(Obstacle::ValueInvalid { channel: name.clone(), message });
            }
        }
        let unknown = options.set.keys().filter(|name| !new.channels().contains_key(*name));
        self.obstacles.extend(unknown.map(|name| Obstacle::ValueInvalid {
            channel: name.clone(),
            message: "the new graph has no such channel".to_owned(),
        }));
        values
    }

    fn node(&mut self, new: &Graph, trigger: &Trigger) {
        let gone = Obstacle::NodeGone { node: trigger.node.clone() };
        if new.node(&trigger.node).is_none() && !self.obstacles.contains(&gone) {
            self.obstacles.push(gone);
        }
    }
}

/// Returns the version of each value. An unchanged value keeps its version, so the store does not
/// write it again.
fn versions(base: &Checkpoint, values: &Values, id: CheckpointId) -> Versions {
    let version = |name: &ChannelName, value: &ChannelValue| {
        let same = base.values.get(name).is_some_and(|old| old.is_shared_with(value));
        base.meta.versions.get(name).copied().filter(|_| same).unwrap_or(id)
    };
    values.iter().map(|(name, value)| (name.clone(), version(name, value))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{at, costly_graph, costly_values, graph, start};

    const OLD: &str = r#"[graphs.g]
        entry = "a"
        channels = { kept = {}, gone = {} }
        nodes.a = {}
    "#;

    fn moved(new: &str, options: &MigrateOptions) -> Migration {
        let lineage = start(&graph(OLD), &json!({ "kept": 1, "gone": 2 })).unwrap();
        migrate(&graph(new), &lineage.checkpoint, &[], options, at(2))
    }

    #[test]
    fn unchanged_values_keep_their_version_and_new_channels_get_defaults() {
        let new = r#"[graphs.g]
            entry = "a"
            channels = { kept = {}, added = { default = [] } }
            nodes = { a = {} }
        "#;
        let migration = moved(new, &MigrateOptions { drop: true, ..MigrateOptions::default() });
        assert_eq!(migration.obstacles, []);
        assert_eq!(migration.checkpoint.state(), json!({ "kept": 1, "added": [] }));
        let versions: Vec<(&str, u64)> =
            migration.checkpoint.meta.versions.iter().map(|(n, v)| (n.as_str(), v.0)).collect();
        assert_eq!(versions, [("added", 2), ("kept", 1)]);
        assert_eq!(migration.changes.len(), 2);
    }

    #[test]
    fn all_obstacles_are_reported_at_once() {
        let new = r#"[graphs.g]
            entry = "b"
            channels = { kept = { schema = { type = "string" } } }
            nodes.b = {}
        "#;
        let set = BTreeMap::from([("typo".parse().unwrap(), json!(1))]);
        let migration = moved(new, &MigrateOptions { set, drop: false });
        let told: Vec<String> = migration.obstacles.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 4, "{told:?}");
        assert!(told.iter().any(|line| line.contains("node `a` is to run next")), "{told:?}");
    }

    #[test]
    fn restarted_tasks_have_their_dropped_interrupts() {
        let lineage = start(&graph(OLD), &json!({ "kept": 1 })).unwrap();
        let started = |interrupts| {
            let task = StartedTask { node: "a".parse().unwrap(), interrupts };
            let options = MigrateOptions::default();
            let changes =
                migrate(&graph(OLD), &lineage.checkpoint, &[task], &options, at(2)).changes;
            (json!(changes), changes[0].to_string())
        };
        let (none, told) = started(0);
        assert_eq!(none, json!([{ "kind": "task_restarted", "node": "a" }]));
        assert!(!told.contains("interrupt"), "{told}");
        let (some, told) = started(1);
        assert_eq!(some[0]["interrupts"], 1);
        assert!(told.contains("its pending interrupt is dropped"), "{told}");
        assert!(started(2).1.contains("its 2 pending interrupts are dropped"));
    }

    #[test]
    fn validations_of_one_migration_share_a_budget_of_steps() {
        let lineage = start(&graph(OLD), &json!({ "kept": 1, "gone": 2 })).unwrap();
        let obstacles = |count: usize| {
            let set = costly_values(count);
            let set = set.into_iter().map(|(name, value)| (name.parse().unwrap(), value));
            let options = MigrateOptions { set: set.collect(), drop: true };
            migrate(&costly_graph(), &lineage.checkpoint, &[], &options, at(2)).obstacles
        };
        assert_eq!(obstacles(2), []);
        let told: Vec<String> = obstacles(20).iter().map(ToString::to_string).collect();
        assert!(told.iter().any(|line| line.contains("steps")), "{told:?}");
    }
}
