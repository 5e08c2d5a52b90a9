//! Migrates a thread to the version of its graph that is loaded now.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wattle_graph::event::{
    Checkpointed, EventKind, InterruptRaised, Migrated, RunEnded, RunStatus,
};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{AppName, Digest, TaskId, ThreadId};
use wattle_graph::migrate::{Change, MigrateOptions, Migration, Obstacle, StartedTask, migrate};
use wattle_graph::principal::Principal;
use wattle_graph::step::CheckpointStamp;

use super::owner::check_owner;
use super::{Engine, ThreadClaim, new_run_id, thread_not_found};
use crate::log::Commit;
use crate::ports::store::{CheckpointTuple, RunRecord, ThreadHead, ThreadStatus};
use crate::unpersisted_events;
use crate::view;

/// A request to migrate a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MigrateThread {
    /// The thread to migrate.
    pub thread: ThreadId,
    /// App of the caller. A thread of another app is not found. `None` for any app.
    #[serde(default)]
    pub app: Option<AppName>,
    /// Tenant of the caller. A thread of another tenant is not found.
    #[serde(default)]
    pub tenant: Option<String>,
    /// Which changes of the state are allowed.
    #[serde(default)]
    pub options: MigrateOptions,
    /// True to report the changes without applying them.
    #[serde(default)]
    pub dry_run: bool,
    /// The caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
}

/// The result of a migration or of its dry run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MigrationReport {
    /// The version that the thread was pinned to.
    pub from: Digest,
    /// The version that is loaded now.
    pub to: Digest,
    /// Changes of the state.
    pub changes: Vec<Change>,
    /// Reasons why the thread cannot be migrated.
    pub obstacles: Vec<Obstacle>,
    /// True if the migration was applied.
    pub applied: bool,
}

impl Engine {
    /// Migrates a thread to the version of its graph that is loaded now. Changes nothing if there
    /// are obstacles, or on a dry run.
    ///
    /// # Errors
    ///
    /// `not-found` if the thread does not exist or its graph is not loaded; `unavailable` while its
    /// app is loaded for the first time; `busy` while a run is active.
    pub async fn migrate(&self, request: &MigrateThread) -> Result<MigrationReport, Failure> {
        let thread = &request.thread;
        let slot = self.claim(thread, new_run_id()).await?;
        let head = self.unexpired_thread(thread).await?.ok_or_else(|| thread_not_found(thread))?;
        check_owner(&head, request.app.as_ref(), request.tenant.as_ref())?;
        let record = &head.record;
        self.0.catalog.check_loading(&record.app)?;
        let graph_version = self.0.catalog.app(&record.app).and_then(|app| {
            let graph_version = app.graphs.get(&record.graph)?;
            Some(graph_version.clone())
        });
        let graph_version = graph_version.ok_or_else(|| {
            let text = format!("graph `{}` of app `{}` is not loaded", record.graph, record.app);
            Failure::new(code::NOT_FOUND, text)
        })?;
        let mut report = MigrationReport {
            from: record.version,
            to: graph_version.version,
            changes: Vec::new(),
            obstacles: Vec::new(),
            applied: false,
        };
        if report.from == report.to {
            return Ok(report);
        }
        let tuple = view::current_checkpoint(&self.0.states, &head).await?;
        let tuple = tuple.ok_or_else(|| thread_not_found(thread))?;
        let at = CheckpointStamp {
            id: unpersisted_events::next_checkpoint_id(&head, Some(&tuple)),
            run: slot.run.clone(),
            at_ms: self.now_ms(),
            version: graph_version.version,
            parents: BTreeMap::new(),
            tasks: None,
        };
        let base = &tuple.checkpoint;
        let migration =
            migrate(&graph_version.graph, base, &started_tasks(&tuple), &request.options, at);
        report.changes.clone_from(&migration.changes);
        report.obstacles.clone_from(&migration.obstacles);
        if report.obstacles.is_empty() && !request.dry_run {
            self.write_migration(&slot, head, migration, request.principal.clone()).await?;
            self.clear_set_aside(thread);
            report.applied = true;
        }
        Ok(report)
    }

    async fn write_migration(
        &self,
        slot: &ThreadClaim,
        head: ThreadHead,
        migration: Migration,
        principal: Option<Principal>,
    ) -> Result<(), Failure> {
        let checkpoint = migration.checkpoint;
        let mut record = head.record.clone();
        let to = checkpoint.meta.version.unwrap_or(record.version);
        let log = self.thread_log(&head, slot, principal.as_ref());
        // The orphaned run cannot continue, because its tasks belong to the former version.
        let run = self.orphaned_run(&record).await?.map(|run| self.cancelled_record(run));
        if let Some(run) = &run {
            log.push_for_run(&run.id, EventKind::RunEnded(cancelled_event(principal.clone())));
        }
        log.push(EventKind::Migrated(Migrated { from: record.version, to, principal }));
        log.push(EventKind::Checkpointed(Checkpointed::from(&checkpoint.meta)));
        record.version = to;
        record.updated_ms = self.now_ms();
        record.status = if checkpoint.meta.next.is_empty() {
            ThreadStatus::Idle
        } else {
            ThreadStatus::Interrupted
        };
        record.stopped = false;
        record.failure = None;
        // No run continues from a state of the former version.
        self.0.states.remove(&record.id);
        log.commit(Commit {
            record: Some(record),
            run,
            checkpoint: Some(checkpoint),
            ..Commit::default()
        })
        .await;
        Ok(log.wait_durable().await?)
    }

    fn cancelled_record(&self, run: RunRecord) -> RunRecord {
        RunRecord { status: RunStatus::Cancelled, ended_ms: Some(self.now_ms()), ..run }
    }
}

fn cancelled_event(principal: Option<Principal>) -> RunEnded {
    let status = RunStatus::Cancelled;
    RunEnded { status, failure: None, drained: false, principal, store_us: 0 }
}

/// Returns the tasks that have started since a checkpoint, in the root graph and in its subgraphs.
fn started_tasks(tuple: &CheckpointTuple) -> Vec<StartedTask> {
    let mut tasks: BTreeMap<TaskId, StartedTask> = BTreeMap::new();
    for event in &tuple.events {
        if let EventKind::TaskStarted(started) = &event.kind {
            let task = StartedTask { node: started.node.clone(), interrupts: 0 };
            tasks.insert(started.task.clone(), task);
        }
    }
    let (lineage, subgraphs) = view::lineage_and_subgraphs(tuple);
    for (_, interrupt) in view::pending_with_graphs(&lineage, &subgraphs) {
        let InterruptRaised { task, node, .. } = interrupt.raised;
        // A fork copies an interrupt without a start of its task.
        let task = tasks.entry(task).or_insert(StartedTask { node, interrupts: 0 });
        task.interrupts += 1;
    }
    tasks.into_values().collect()
}
