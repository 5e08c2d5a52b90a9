//! Retention plans: what a prune, a deletion of runs or a copy keeps of a thread. All stores share
//! them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use wattle_graph::checkpoint::CheckpointMeta;
use wattle_graph::event::{Event, EventKind, RunStatus};
use wattle_graph::id::{ChannelName, CheckpointId, Namespace, RunId, ThreadId};
use wattle_run::ports::store::{RunRecord, ThreadFailure, ThreadRecord, ThreadStatus};

/// The fields of a batch that a retention plan reads.
#[derive(Debug)]
pub(crate) struct BatchSummary {
    pub(crate) base: Option<CheckpointId>,
    /// Sequence number of the thread's newest event before the batch.
    pub(crate) after_seq: u64,
    /// Sequence number of the thread's newest event with the batch.
    pub(crate) last_seq: u64,
    /// Root checkpoints that the events of the batch record, with the sequence numbers of these
    /// events.
    pub(crate) checkpoints_made: Vec<(CheckpointId, u64)>,
    pub(crate) checkpoint: Option<CheckpointSummary>,
}

/// The fields of a checkpoint that a retention plan reads.
#[derive(Debug)]
pub(crate) struct CheckpointSummary {
    pub(crate) id: CheckpointId,
    pub(crate) namespace: Namespace,
    pub(crate) run: RunId,
    /// Newest checkpoints of the subgraphs that keep their state between invocations.
    pub(crate) subgraph_checkpoints: Vec<CheckpointId>,
    /// True if nodes run next.
    pub(crate) has_next: bool,
}

impl From<&CheckpointMeta> for CheckpointSummary {
    fn from(meta: &CheckpointMeta) -> Self {
        Self {
            id: meta.id,
            namespace: meta.namespace.clone(),
            run: meta.run.clone(),
            subgraph_checkpoints: meta.subgraph_checkpoints.values().copied().collect(),
            has_next: !meta.next.is_empty(),
        }
    }
}

/// Returns the root checkpoints that events record, with the sequence numbers of these events.
pub(crate) fn checkpoints_made_by(events: &[Event]) -> Vec<(CheckpointId, u64)> {
    let roots = events.iter().filter(|event| event.namespace.is_root());
    roots
        .filter_map(|event| match &event.kind {
            EventKind::Checkpointed(made) => Some((made.checkpoint, event.seq)),
            _ => None,
        })
        .collect()
}

/// A retention plan: what a rewrite keeps of a thread.
#[derive(Debug, Default)]
pub(crate) struct RetentionPlan {
    /// Checkpoints that are kept.
    keep: BTreeSet<CheckpointId>,
    /// The current checkpoint after the rewrite.
    pub(crate) current: Option<CheckpointId>,
    /// True if nodes run next at the current checkpoint of a thread that loses runs.
    has_next: bool,
    /// Events up to this sequence number are dropped.
    after: u64,
    /// Events of these runs are dropped.
    runs: BTreeSet<RunId>,
    /// Events with one of these base checkpoints are dropped.
    dropped: BTreeSet<CheckpointId>,
}

impl RetentionPlan {
    /// Returns a plan that keeps all events and checkpoints.
    pub(crate) fn keep_all(log: &[BatchSummary], current: Option<CheckpointId>) -> Self {
        Self {
            keep: checkpoints(log).map(|checkpoint| checkpoint.id).collect(),
            current,
            ..Self::default()
        }
    }

    /// Returns a plan that keeps the newest checkpoint of each namespace, the current checkpoint
    /// and the checkpoints that unfinished runs reopen on failure. The plan keeps all events since
    /// the oldest event that belongs to one of these root checkpoints, so that the log has no gap.
    pub(crate) fn keep_latest(
        log: &[BatchSummary],
        current: Option<CheckpointId>,
        runs: &[RunRecord],
    ) -> Self {
        let all = by_id(log);
        let newest: BTreeMap<&Namespace, CheckpointId> =
            all.values().map(|checkpoint| (&checkpoint.namespace, checkpoint.id)).collect();
        let unfinished = runs.iter().filter(|run| run.ended_ms.is_none());
        let mut wanted: Vec<CheckpointId> = newest.into_values().collect();
        wanted.extend(current);
        wanted.extend(unfinished.filter_map(|run| run.reopen));
        let keep = with_subgraphs(&all, wanted);
        let is_root = |id: &CheckpointId| {
            all.get(id).is_some_and(|checkpoint| checkpoint.namespace == Namespace::root())
        };
        let roots: BTreeSet<CheckpointId> = keep.iter().copied().filter(is_root).collect();
        let own = log.iter().filter(|batch| {
            batch.last_seq > batch.after_seq && batch.base.is_some_and(|base| roots.contains(&base))
        });
        // If a run stores only its last checkpoint, the pending events of this checkpoint have an
        // earlier base.
        let made = log.iter().flat_map(|batch| &batch.checkpoints_made);
        let made = made.filter(|(id, _)| roots.contains(id)).map(|(_, seq)| seq - 1);
        let first = own.map(|batch| batch.after_seq).chain(made).min();
        let last_seq = log.last().map_or(0, |batch| batch.last_seq);
        let after = match first {
            Some(after) => after,
            // Without a root checkpoint, all events of the thread are pending.
            None if roots.is_empty() => 0,
            None => last_seq,
        };
        Self { keep, current, after, ..Self::default() }
    }

    /// Returns a plan that drops the events and the checkpoints of some runs.
    pub(crate) fn drop_runs(
        log: &[BatchSummary],
        current: Option<CheckpointId>,
        runs: BTreeSet<RunId>,
    ) -> Self {
        let all = by_id(log);
        let others = all.values().filter(|checkpoint| !runs.contains(&checkpoint.run));
        // Checkpoints of subgraphs are kept with the checkpoints that refer to them.
        let keep = with_subgraphs(&all, others.map(|checkpoint| checkpoint.id).collect());
        let (kept, dropped): (Vec<&CheckpointSummary>, Vec<&CheckpointSummary>) =
            checkpoints(log).partition(|checkpoint| keep.contains(&checkpoint.id));
        let roots = kept.iter().filter(|checkpoint| checkpoint.namespace == Namespace::root());
        let newest = roots.map(|checkpoint| checkpoint.id).max();
        let dropped: BTreeSet<CheckpointId> =
            dropped.iter().map(|checkpoint| checkpoint.id).collect();
        let current = current.filter(|current| !dropped.contains(current)).or(newest);
        let at = current.and_then(|current| all.get(&current));
        let has_next = at.is_some_and(|checkpoint| checkpoint.has_next);
        Self { keep, current, has_next, after: 0, runs, dropped }
    }

    /// Returns whether nothing is dropped.
    pub(crate) fn is_noop(&self, log: &[BatchSummary]) -> bool {
        let first = log.first().map_or(0, |batch| batch.after_seq);
        checkpoints(log).all(|checkpoint| self.keep.contains(&checkpoint.id))
            && self.after <= first
            && self.runs.is_empty()
    }

    /// Returns whether runs are dropped and no current checkpoint is left.
    pub(crate) fn drops_thread(&self) -> bool {
        !self.runs.is_empty() && self.current.is_none()
    }

    /// Returns whether a checkpoint is kept.
    pub(crate) fn keeps(&self, id: CheckpointId) -> bool {
        self.keep.contains(&id)
    }

    /// Returns whether events of a batch may be kept. Which runs the events belong to is not known.
    pub(crate) fn may_keep_events(&self, batch: &BatchSummary) -> bool {
        batch.last_seq > batch.after_seq.max(self.after) && !self.drops_base(batch.base)
    }

    /// Returns whether the events with a base checkpoint are dropped.
    fn drops_base(&self, base: Option<CheckpointId>) -> bool {
        base.is_some_and(|base| self.dropped.contains(&base))
    }

    /// Returns the events of a batch that are kept.
    pub(crate) fn events(&self, base: Option<CheckpointId>, mut events: Vec<Event>) -> Vec<Event> {
        if self.drops_base(base) {
            return Vec::new();
        }
        events.retain(|event| event.seq > self.after && !self.runs.contains(&event.run));
        events
    }

    /// Returns the record of a thread without the dropped runs. `left` are the runs that are kept,
    /// oldest first.
    pub(crate) fn record(&self, mut record: ThreadRecord, left: &[RunRecord]) -> ThreadRecord {
        if record.run.as_ref().is_some_and(|run| self.runs.contains(run)) {
            let newest = left.iter().rev().find(|run| run.status != RunStatus::Pending);
            record.run = newest.map(|run| run.id.clone());
            record.failure = newest.and_then(|run| run.failure.as_ref()).map(ThreadFailure::from);
            record.expires_ms = None;
            let was_cancelled =
                |run: &RunRecord| run.status == RunStatus::Cancelled && run.has_started();
            record.stopped = self.has_next && newest.is_some_and(was_cancelled);
            record.status = newest.map_or(ThreadStatus::Idle, |run| match run.status {
                RunStatus::Running => ThreadStatus::Running,
                RunStatus::Interrupted => ThreadStatus::Interrupted,
                RunStatus::Failed => ThreadStatus::Error,
                RunStatus::Pending | RunStatus::Completed | RunStatus::Cancelled => {
                    ThreadStatus::Idle
                }
            });
        }
        record
    }

    /// Returns the runs that are kept.
    pub(crate) fn runs(&self, mut runs: Vec<RunRecord>) -> Vec<RunRecord> {
        runs.retain(|run| !self.runs.contains(&run.id));
        runs
    }
}

/// Returns the record and the runs of a copy of a thread. `names` maps the run ids to the run ids
/// of the copy. The incarnation of the copy is a separate id, because a thread may have no run.
pub(crate) fn copied_records(
    record: &ThreadRecord,
    mut runs: Vec<RunRecord>,
    to: &ThreadId,
    incarnation: &RunId,
    names: &HashMap<RunId, RunId>,
) -> (ThreadRecord, Vec<RunRecord>) {
    // Pending runs of the original are not copied, so that no run is requested twice.
    runs.retain(|run| run.status != RunStatus::Pending);
    let name = |run: &RunId| names.get(run).unwrap_or(run).clone();
    for run in &mut runs {
        run.thread = to.clone();
        run.origin = Some(run.origin().clone());
        run.id = name(&run.id);
    }
    let record = ThreadRecord {
        id: to.clone(),
        incarnation: Some(incarnation.clone()),
        origin: Some(record.origin().clone()),
        run: record.run.as_ref().map(name),
        ..record.clone()
    };
    (record, runs)
}

fn by_id(log: &[BatchSummary]) -> BTreeMap<CheckpointId, &CheckpointSummary> {
    checkpoints(log).map(|checkpoint| (checkpoint.id, checkpoint)).collect()
}

/// Returns checkpoints together with the checkpoints of subgraphs that they refer to.
fn with_subgraphs(
    all: &BTreeMap<CheckpointId, &CheckpointSummary>,
    mut wanted: Vec<CheckpointId>,
) -> BTreeSet<CheckpointId> {
    let mut keep = BTreeSet::new();
    while let Some(id) = wanted.pop() {
        if let Some(checkpoint) = all.get(&id)
            && keep.insert(id)
        {
            wanted.extend(&checkpoint.subgraph_checkpoints);
        }
    }
    keep
}

fn checkpoints(log: &[BatchSummary]) -> impl Iterator<Item = &CheckpointSummary> {
    log.iter().filter_map(|batch| batch.checkpoint.as_ref())
}

/// Where channel values are stored in a log that is being rewritten, oldest frame first.
#[derive(Debug, Default)]
pub(crate) struct ValueIndex<F> {
    values: HashMap<(ChannelName, CheckpointId), F>,
    /// Checkpoints written so far.
    written: HashMap<CheckpointId, F>,
}

/// Where the values of an older version are stored for a rewritten checkpoint.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Placement<F> {
    /// One frame has all values.
    InFrame(F),
    /// No single frame has all values, so the frame of the checkpoint gets a copy of each value.
    Carry,
}

impl<F: Copy + PartialEq> ValueIndex<F> {
    /// Returns where a version of a channel is stored.
    pub(crate) fn get(&self, channel: &ChannelName, version: CheckpointId) -> Option<F> {
        self.values.get(&(channel.clone(), version)).copied()
    }

    /// Returns where several channels of one version are stored.
    pub(crate) fn find(&self, version: CheckpointId, channels: &[&ChannelName]) -> Placement<F> {
        let mut frame = None;
        for channel in channels {
            match self.get(channel, version) {
                // A written checkpoint without a value for a channel never had a value for the
                // channel.
                None if self.written.contains_key(&version) => {}
                Some(found) if frame.is_none_or(|frame| frame == found) => frame = Some(found),
                _ => return Placement::Carry,
            }
        }
        frame
            .or_else(|| self.written.get(&version).copied())
            .map_or(Placement::Carry, Placement::InFrame)
    }

    /// Records that a frame has a version of a channel.
    pub(crate) fn insert(&mut self, channel: &ChannelName, version: CheckpointId, frame: F) {
        self.values.insert((channel.clone(), version), frame);
    }

    /// Records that a checkpoint was written.
    pub(crate) fn insert_checkpoint(&mut self, id: CheckpointId, frame: F) {
        self.written.insert(id, frame);
    }
}

/// Groups the channels of a checkpoint by version.
pub(crate) fn by_version(meta: &CheckpointMeta) -> BTreeMap<CheckpointId, Vec<&ChannelName>> {
    let mut by_version: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (channel, version) in &meta.versions {
        by_version.entry(*version).or_default().push(channel);
    }
    by_version
}
