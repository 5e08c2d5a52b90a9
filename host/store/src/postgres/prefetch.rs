//! Reads the rows of the history of threads that staging needs. A writer caches most of these rows,
//! so these reads happen after a start, after an append by another host, and for a new run.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sqlx::Row as _;
use wattle_graph::checkpoint::CheckpointMeta;
use wattle_graph::id::{ChannelName, CheckpointId, RunId, ThreadId};
use wattle_run::ports::store::{Batch, QueueCondition, RunRecord};

use crate::codec::unpack;
use crate::postgres::batch_scan::chain_stats;
use crate::postgres::database::PgTransaction;
use crate::postgres::stage::{CachedThread, CommitGroup};
use crate::postgres::thread_row::{decode_error, unsigned, utf8};

const CHECKPOINTS: &str = "
    SELECT wanted.thread, wanted.checkpoint, namespace = '' AS root,
        CASE WHEN wanted.whole THEN meta END AS meta
    FROM unnest($1::bigint[], $2::bigint[], $3::boolean[]) AS wanted (thread, checkpoint, whole)
    JOIN batches USING (thread, checkpoint)";

const LISTS: &str = "
    SELECT thread, channel, version, root, items, tails, tail_bytes, whole_bytes
    FROM unnest($1::bigint[], $2::bytea[], $3::bigint[]) AS wanted (thread, channel, version)
    JOIN channel_values USING (thread, channel, version)";

const PENDING: &str = "
    SELECT thread, id, due_ms FROM runs WHERE thread = ANY($1) AND due_ms IS NOT NULL";

const RUNS: &str = "SELECT id, thread, record FROM runs WHERE id = ANY($1)";

/// The rows that a group needs.
#[derive(Debug, Default)]
pub(super) struct Lookups {
    /// Thread and checkpoint, and whether the lookup also reads the versions of the channels of the
    /// checkpoint: a channel may have the version of a deleted checkpoint.
    checkpoints: BTreeSet<(i64, CheckpointId, bool)>,
    lists: BTreeSet<(i64, ChannelName, CheckpointId)>,
    runs: BTreeSet<RunId>,
    /// Threads whose pending runs are needed.
    pending: BTreeSet<i64>,
}

impl Lookups {
    /// Returns the rows that `batches` need and that the cache does not contain.
    pub(super) fn of(
        threads: &HashMap<ThreadId, CachedThread>,
        batches: &[(ThreadId, Batch)],
    ) -> Self {
        let mut lookups = Self::default();
        for (thread, batch) in batches {
            let Some(cached) = threads.get(thread) else { continue };
            lookups.add(cached, batch);
        }
        lookups
    }

    /// Returns true if only the owners of runs are missing. The fast path does not need the owners:
    /// the table rejects a run of another thread, and the statement rejects a new run that exists.
    pub(super) fn needs_only_run_owners(&self) -> bool {
        self.checkpoints.is_empty() && self.lists.is_empty() && self.pending.is_empty()
    }

    fn add(&mut self, cached: &CachedThread, batch: &Batch) {
        let CachedThread { row, history } = cached;
        if let Some(run) = &batch.run
            && !history.runs.contains(&run.id)
        {
            self.runs.insert(run.id.clone());
        }
        if !row.exists {
            return;
        }
        if batch.queue_condition != QueueCondition::Unchecked
            && row.pending > 0
            && history.pending.is_none()
        {
            self.pending.insert(row.number);
        }
        if let Some(current) = batch.current
            && !history.checkpoints.contains_key(&current)
        {
            self.checkpoints.insert((row.number, current, false));
        }
        let Some(checkpoint) = &batch.checkpoint else { return };
        let meta = &checkpoint.meta;
        let is_known =
            |version: &CheckpointId| *version == meta.id || history.versions.contains(version);
        let unknown = meta.versions.values().filter(|version| !is_known(version));
        let before = self.checkpoints.len();
        self.checkpoints.extend(unknown.map(|version| (row.number, *version, false)));
        if let Some(parent) = meta.parent.filter(|_| self.checkpoints.len() > before) {
            self.checkpoints.insert((row.number, parent, true));
        }
        for (channel, delta) in &checkpoint.list_deltas {
            if !history.lists.contains_key(&(channel.clone(), delta.base)) {
                self.lists.insert((row.number, channel.clone(), delta.base));
            }
        }
    }
}

/// Reads the rows into the group.
pub(super) async fn read(
    transaction: &mut PgTransaction,
    group: &mut CommitGroup,
    lookups: Lookups,
) -> Result<(), sqlx::Error> {
    let mut by_number: HashMap<i64, &mut CachedThread> =
        group.threads.values_mut().map(|cached| (cached.row.number, cached)).collect();
    if !lookups.checkpoints.is_empty() {
        read_checkpoints(transaction, &mut by_number, &lookups.checkpoints).await?;
    }
    if !lookups.lists.is_empty() {
        read_lists(transaction, &mut by_number, &lookups.lists).await?;
    }
    if !lookups.runs.is_empty() {
        group.run_owners = read_runs(transaction, &mut by_number, &lookups.runs).await?;
    }
    if !lookups.pending.is_empty() {
        read_pending(transaction, &mut by_number, &lookups.pending).await?;
    }
    Ok(())
}

async fn read_pending(
    transaction: &mut PgTransaction,
    threads: &mut HashMap<i64, &mut CachedThread>,
    wanted: &BTreeSet<i64>,
) -> Result<(), sqlx::Error> {
    let rows = sqlx::query(PENDING)
        .bind(wanted.iter().copied().collect::<Vec<_>>())
        .fetch_all(&mut **transaction)
        .await?;
    for number in wanted {
        if let Some(cached) = threads.get_mut(number) {
            cached.history.pending = Some(BTreeMap::new());
        }
    }
    for row in rows {
        let Some(cached) = threads.get_mut(&row.try_get("thread")?) else { continue };
        let run = RunId::new(utf8(row.try_get("id")?)?).map_err(decode_error)?;
        let pending = cached.history.pending.get_or_insert_default();
        pending.insert(run, row.try_get("due_ms")?);
    }
    Ok(())
}

async fn read_checkpoints(
    transaction: &mut PgTransaction,
    threads: &mut HashMap<i64, &mut CachedThread>,
    wanted: &BTreeSet<(i64, CheckpointId, bool)>,
) -> Result<(), sqlx::Error> {
    let rows = sqlx::query(CHECKPOINTS)
        .bind(wanted.iter().map(|wanted| wanted.0).collect::<Vec<_>>())
        .bind(wanted.iter().map(|wanted| wanted.1.0.cast_signed()).collect::<Vec<_>>())
        .bind(wanted.iter().map(|wanted| wanted.2).collect::<Vec<_>>())
        .fetch_all(&mut **transaction)
        .await?;
    for row in rows {
        let Some(cached) = threads.get_mut(&row.try_get("thread")?) else { continue };
        let checkpoint = CheckpointId(unsigned(&row, "checkpoint")?);
        cached.history.checkpoints.insert(checkpoint, row.try_get("root")?);
        cached.history.versions.insert(checkpoint);
        if let Some(meta) = row.try_get::<Option<&[u8]>, _>("meta")? {
            let meta: CheckpointMeta = unpack("checkpoint", meta).map_err(decode_error)?;
            cached.history.versions.extend(meta.versions.values());
        }
    }
    Ok(())
}

async fn read_lists(
    transaction: &mut PgTransaction,
    threads: &mut HashMap<i64, &mut CachedThread>,
    wanted: &BTreeSet<(i64, ChannelName, CheckpointId)>,
) -> Result<(), sqlx::Error> {
    let rows = sqlx::query(LISTS)
        .bind(wanted.iter().map(|wanted| wanted.0).collect::<Vec<_>>())
        .bind(wanted.iter().map(|wanted| wanted.1.as_str().as_bytes()).collect::<Vec<_>>())
        .bind(wanted.iter().map(|wanted| wanted.2.0.cast_signed()).collect::<Vec<_>>())
        .fetch_all(&mut **transaction)
        .await?;
    for row in rows {
        let Some(cached) = threads.get_mut(&row.try_get("thread")?) else { continue };
        let channel = utf8(row.try_get("channel")?)?;
        let channel = ChannelName::new(channel).map_err(decode_error)?;
        cached
            .history
            .lists
            .insert((channel, CheckpointId(unsigned(&row, "version")?)), chain_stats(&row)?);
    }
    Ok(())
}

/// Returns the owners of the runs that belong to threads outside of the group.
async fn read_runs(
    transaction: &mut PgTransaction,
    threads: &mut HashMap<i64, &mut CachedThread>,
    wanted: &BTreeSet<RunId>,
) -> Result<HashMap<RunId, ThreadId>, sqlx::Error> {
    let rows = sqlx::query(RUNS)
        .bind(wanted.iter().map(|run| run.as_str().as_bytes()).collect::<Vec<_>>())
        .fetch_all(&mut **transaction)
        .await?;
    let mut owners = HashMap::new();
    for row in rows {
        let record: RunRecord = unpack("run", row.try_get("record")?).map_err(decode_error)?;
        match threads.get_mut(&row.try_get("thread")?) {
            Some(cached) => drop(cached.history.runs.insert(record.id)),
            None => drop(owners.insert(record.id, record.thread)),
        }
    }
    Ok(owners)
}
