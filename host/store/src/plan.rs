//! What stays of a thread when something is taken away from it. The same for every store.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use wattle_graph::checkpoint::CheckpointMeta;
use wattle_graph::event::{Event, EventKind, RunStatus};
use wattle_graph::id::{ChannelName, CheckpointId, Namespace, RunId, ThreadId};
use wattle_run::ports::store::{RunRecord, ThreadRecord, ThreadStatus};

/// A batch as far as plans look at it.
#[derive(Debug)]
pub(crate) struct Outline {
    pub(crate) base: Option<CheckpointId>,
    /// The newest event before it.
    pub(crate) after_seq: u64,
    /// The newest event with it.
    pub(crate) last_seq: u64,
    /// Checkpoints of the root that its events say were made, with their places in the log.
    pub(crate) made: Vec<(CheckpointId, u64)>,
    pub(crate) checkpoint: Option<Point>,
}

/// A checkpoint as far as plans look at it.
#[derive(Debug)]
pub(crate) struct Point {
    pub(crate) id: CheckpointId,
    pub(crate) namespace: Namespace,
    pub(crate) run: RunId,
    /// Checkpoints of nested graphs that it goes on from.
    pub(crate) children: Vec<CheckpointId>,
}

impl From<&CheckpointMeta> for Point {
    fn from(meta: &CheckpointMeta) -> Self {
        Self {
            id: meta.id,
            namespace: meta.namespace.clone(),
            run: meta.run.clone(),
            children: meta.children.values().copied().collect(),
        }
    }
}

/// Checkpoints of the root that events say were made.
pub(crate) fn made_by(events: &[Event]) -> Vec<(CheckpointId, u64)> {
    let roots = events.iter().filter(|event| event.namespace.is_root());
    roots
        .filter_map(|event| match &event.kind {
            EventKind::Checkpointed(made) => Some((made.checkpoint, event.seq)),
            _ => None,
        })
        .collect()
}

/// What stays.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Checkpoints that stay.
    keep: BTreeSet<CheckpointId>,
    /// Where the thread stands then.
    pub(crate) current: Option<CheckpointId>,
    /// Events up to this one go.
    after: u64,
    /// Events of these runs go.
    runs: BTreeSet<RunId>,
    /// Events that belong to these checkpoints go.
    gone: BTreeSet<CheckpointId>,
}

impl Plan {
    /// Everything stays.
    pub(crate) fn all(log: &[Outline], current: Option<CheckpointId>) -> Self {
        Self { keep: points(log).map(|point| point.id).collect(), current, ..Self::default() }
    }

    /// The newest checkpoint of each namespace stays, and where the thread stands or may go back
    /// to, with what happened since: the log stays without a gap from the oldest event that
    /// belongs to one of the root.
    pub(crate) fn latest(
        log: &[Outline],
        current: Option<CheckpointId>,
        runs: &[RunRecord],
    ) -> Self {
        let all = by_id(log);
        let newest: BTreeMap<&Namespace, CheckpointId> =
            all.values().map(|point| (&point.namespace, point.id)).collect();
        let unfinished = runs.iter().filter(|run| run.ended_ms.is_none());
        let mut wanted: Vec<CheckpointId> = newest.into_values().collect();
        wanted.extend(current);
        wanted.extend(unfinished.filter_map(|run| run.reopen));
        let keep = with_children(&all, wanted);
        let is_root = |id: &CheckpointId| {
            all.get(id).is_some_and(|point| point.namespace == Namespace::root())
        };
        let roots: BTreeSet<CheckpointId> = keep.iter().copied().filter(is_root).collect();
        let own = log.iter().filter(|outline| {
            outline.last_seq > outline.after_seq
                && outline.base.is_some_and(|base| roots.contains(&base))
        });
        // A run that stores only its last checkpoint leaves what is pending on it below another.
        let made = log.iter().flat_map(|outline| &outline.made);
        let made = made.filter(|(id, _)| roots.contains(id)).map(|(_, seq)| seq - 1);
        let first = own.map(|outline| outline.after_seq).chain(made).min();
        let last_seq = log.last().map_or(0, |outline| outline.last_seq);
        let after = match first {
            Some(after) => after,
            // Before its first checkpoint, all that happened to a thread is yet to come.
            None if roots.is_empty() => 0,
            None => last_seq,
        };
        Self { keep, current, after, ..Self::default() }
    }

    /// What some runs did goes.
    pub(crate) fn without(
        log: &[Outline],
        current: Option<CheckpointId>,
        runs: BTreeSet<RunId>,
    ) -> Self {
        let all = by_id(log);
        let others = all.values().filter(|point| !runs.contains(&point.run));
        // What nested graphs go on from stays with the checkpoints that say so.
        let keep = with_children(&all, others.map(|point| point.id).collect());
        let (kept, gone): (Vec<&Point>, Vec<&Point>) =
            points(log).partition(|point| keep.contains(&point.id));
        let roots = kept.iter().filter(|point| point.namespace == Namespace::root());
        let newest = roots.map(|point| point.id).max();
        let gone: BTreeSet<CheckpointId> = gone.iter().map(|point| point.id).collect();
        let current = current.filter(|current| !gone.contains(current)).or(newest);
        Self { keep, current, after: 0, runs, gone }
    }

    /// Whether nothing goes.
    pub(crate) fn is_idle(&self, log: &[Outline]) -> bool {
        let first = log.first().map_or(0, |outline| outline.after_seq);
        points(log).all(|point| self.keep.contains(&point.id))
            && self.after <= first
            && self.runs.is_empty()
    }

    /// Whether nothing is left that the thread could stand at.
    pub(crate) fn loses_all(&self) -> bool {
        !self.runs.is_empty() && self.current.is_none()
    }

    /// Whether a checkpoint stays.
    pub(crate) fn keeps(&self, id: CheckpointId) -> bool {
        self.keep.contains(&id)
    }

    /// The events of a batch that stay.
    pub(crate) fn events(&self, base: Option<CheckpointId>, mut events: Vec<Event>) -> Vec<Event> {
        if base.is_some_and(|base| self.gone.contains(&base)) {
            return Vec::new();
        }
        events.retain(|event| event.seq > self.after && !self.runs.contains(&event.run));
        events
    }

    /// The facts of a thread without the runs that went.
    pub(crate) fn record(&self, mut record: ThreadRecord, left: &[RunRecord]) -> ThreadRecord {
        if record.run.as_ref().is_some_and(|run| self.runs.contains(run)) {
            let newest = left.iter().rev().find(|run| run.status != RunStatus::Pending);
            record.run = newest.map(|run| run.id.clone());
            record.expires_ms = None;
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

    /// The runs that stay.
    pub(crate) fn runs(&self, mut runs: Vec<RunRecord>) -> Vec<RunRecord> {
        runs.retain(|run| !self.runs.contains(&run.id));
        runs
    }
}

/// A thread's facts and runs as those of its copy. `names` are the new names of runs.
pub(crate) fn copied(
    record: &ThreadRecord,
    mut runs: Vec<RunRecord>,
    to: &ThreadId,
    names: &HashMap<RunId, RunId>,
) -> (ThreadRecord, Vec<RunRecord>) {
    // What is pending on a thread is not asked for a second time.
    runs.retain(|run| run.status != RunStatus::Pending);
    let name = |run: &RunId| names.get(run).unwrap_or(run).clone();
    for run in &mut runs {
        run.thread = to.clone();
        run.origin = Some(run.origin().clone());
        run.id = name(&run.id);
    }
    let run = record.run.as_ref().map(name);
    let record = ThreadRecord {
        id: to.clone(),
        // A new name of a run is as new as the copy.
        born: run.clone(),
        origin: Some(record.origin().clone()),
        run,
        ..record.clone()
    };
    (record, runs)
}

fn by_id(log: &[Outline]) -> BTreeMap<CheckpointId, &Point> {
    points(log).map(|point| (point.id, point)).collect()
}

/// Checkpoints with those that nested graphs go on from there.
fn with_children(
    all: &BTreeMap<CheckpointId, &Point>,
    mut wanted: Vec<CheckpointId>,
) -> BTreeSet<CheckpointId> {
    let mut keep = BTreeSet::new();
    while let Some(id) = wanted.pop() {
        if let Some(point) = all.get(&id)
            && keep.insert(id)
        {
            wanted.extend(&point.children);
        }
    }
    keep
}

fn points(log: &[Outline]) -> impl Iterator<Item = &Point> {
    log.iter().filter_map(|outline| outline.checkpoint.as_ref())
}

/// Where channel values stand in a log that is written anew, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Homes<H> {
    values: HashMap<(ChannelName, CheckpointId), H>,
    /// Checkpoints that were written.
    written: HashMap<CheckpointId, H>,
}

/// Where a checkpoint finds its channels of an older version.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Home<H> {
    /// All in one frame.
    There(H),
    /// Nowhere, or scattered: its own frame has to hold them.
    Carry,
}

impl<H: Copy + PartialEq> Homes<H> {
    /// Where a version of a channel stands.
    pub(crate) fn get(&self, channel: &ChannelName, version: CheckpointId) -> Option<H> {
        self.values.get(&(channel.clone(), version)).copied()
    }

    /// Where several channels of one version stand.
    pub(crate) fn find(&self, version: CheckpointId, channels: &[&ChannelName]) -> Home<H> {
        let mut home = None;
        for channel in channels {
            match self.get(channel, version) {
                // A checkpoint that is there and has no value for a channel never had one.
                None if self.written.contains_key(&version) => {}
                Some(found) if home.is_none_or(|home| home == found) => home = Some(found),
                _ => return Home::Carry,
            }
        }
        home.or_else(|| self.written.get(&version).copied()).map_or(Home::Carry, Home::There)
    }

    /// Notes that a frame holds a version of a channel.
    pub(crate) fn insert(&mut self, channel: &ChannelName, version: CheckpointId, home: H) {
        self.values.insert((channel.clone(), version), home);
    }

    /// Notes that a checkpoint is written.
    pub(crate) fn written(&mut self, id: CheckpointId, home: H) {
        self.written.insert(id, home);
    }
}

/// Channels of a checkpoint by their version.
pub(crate) fn by_version(meta: &CheckpointMeta) -> BTreeMap<CheckpointId, Vec<&ChannelName>> {
    let mut by_version: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (channel, version) in &meta.versions {
        by_version.entry(*version).or_default().push(channel);
    }
    by_version
}
