//! Reads what staging needs of the history of threads. A writer caches most of it, so these reads
//! happen after a start, after an append by another host, and for a new run.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sqlx::Row as _;
use wattle_graph::checkpoint::CheckpointMeta;
use wattle_graph::id::{ChannelName, CheckpointId, RunId, ThreadId};
use wattle_run::ports::store::{Batch, QueueCondition, RunRecord};

use crate::codec::unpack;
use crate::postgres::database::PgTransaction;
use crate::postgres::head::number;
use crate::postgres::raw::list;
use crate::postgres::stage::{Desk, Stage};

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
pub(super) struct Wanted {
    /// Thread and checkpoint, and whether the versions of its channels are needed as well: a
    /// channel may have the version of a deleted checkpoint.
    checkpoints: BTreeSet<(i64, CheckpointId, bool)>,
    lists: BTreeSet<(i64, ChannelName, CheckpointId)>,
    runs: BTreeSet<RunId>,
    /// Threads whose pending runs are needed.
    pending: BTreeSet<i64>,
}

impl Wanted {
    /// Returns what `batches` need and the cache does not contain.
    pub(super) fn of(desks: &HashMap<ThreadId, Desk>, batches: &[(ThreadId, Batch)]) -> Self {
        let mut wanted = Self::default();
        for (thread, batch) in batches {
            let Some(desk) = desks.get(thread) else { continue };
            wanted.add(desk, batch);
        }
        wanted
    }

    /// Returns true if only the owners of runs are missing. The fast path does not look them up,
    /// because the table rejects a run of another thread.
    pub(super) fn is_of_runs_only(&self) -> bool {
        self.checkpoints.is_empty() && self.lists.is_empty() && self.pending.is_empty()
    }

    fn add(&mut self, desk: &Desk, batch: &Batch) {
        let Desk { head, past } = desk;
        if let Some(run) = &batch.run
            && !past.runs.contains(&run.id)
        {
            self.runs.insert(run.id.clone());
        }
        if !head.is_there {
            return;
        }
        if batch.queue_condition != QueueCondition::Unchecked
            && head.pending > 0
            && past.pending.is_none()
        {
            self.pending.insert(head.number);
        }
        if let Some(current) = batch.current
            && !past.checkpoints.contains_key(&current)
        {
            self.checkpoints.insert((head.number, current, false));
        }
        let Some(checkpoint) = &batch.checkpoint else { return };
        let meta = &checkpoint.meta;
        let is_known =
            |version: &CheckpointId| *version == meta.id || past.versions.contains(version);
        let unknown = meta.versions.values().filter(|version| !is_known(version));
        let before = self.checkpoints.len();
        self.checkpoints.extend(unknown.map(|version| (head.number, *version, false)));
        if let Some(parent) = meta.parent.filter(|_| self.checkpoints.len() > before) {
            self.checkpoints.insert((head.number, parent, true));
        }
        for (channel, tail) in &checkpoint.list_deltas {
            if !past.lists.contains_key(&(channel.clone(), tail.base)) {
                self.lists.insert((head.number, channel.clone(), tail.base));
            }
        }
    }
}

/// Reads the wanted rows into the stage.
pub(super) async fn read(
    transaction: &mut PgTransaction,
    stage: &mut Stage,
    wanted: Wanted,
) -> Result<(), sqlx::Error> {
    let mut by_number: HashMap<i64, &mut Desk> =
        stage.desks.values_mut().map(|desk| (desk.head.number, desk)).collect();
    if !wanted.checkpoints.is_empty() {
        read_checkpoints(transaction, &mut by_number, &wanted.checkpoints).await?;
    }
    if !wanted.lists.is_empty() {
        read_lists(transaction, &mut by_number, &wanted.lists).await?;
    }
    if !wanted.runs.is_empty() {
        stage.foreign_runs = read_runs(transaction, &mut by_number, &wanted.runs).await?;
    }
    if !wanted.pending.is_empty() {
        read_pending(transaction, &mut by_number, &wanted.pending).await?;
    }
    Ok(())
}

async fn read_pending(
    transaction: &mut PgTransaction,
    desks: &mut HashMap<i64, &mut Desk>,
    wanted: &BTreeSet<i64>,
) -> Result<(), sqlx::Error> {
    let rows = sqlx::query(PENDING)
        .bind(wanted.iter().copied().collect::<Vec<_>>())
        .fetch_all(&mut **transaction)
        .await?;
    for number in wanted {
        if let Some(desk) = desks.get_mut(number) {
            desk.past.pending = Some(BTreeMap::new());
        }
    }
    for row in rows {
        let Some(desk) = desks.get_mut(&row.try_get("thread")?) else { continue };
        let run = RunId::new(text(row.try_get("id")?)?).map_err(decode)?;
        let pending = desk.past.pending.get_or_insert_default();
        pending.insert(run, row.try_get("due_ms")?);
    }
    Ok(())
}

async fn read_checkpoints(
    transaction: &mut PgTransaction,
    desks: &mut HashMap<i64, &mut Desk>,
    wanted: &BTreeSet<(i64, CheckpointId, bool)>,
) -> Result<(), sqlx::Error> {
    let rows = sqlx::query(CHECKPOINTS)
        .bind(wanted.iter().map(|wanted| wanted.0).collect::<Vec<_>>())
        .bind(wanted.iter().map(|wanted| wanted.1.0.cast_signed()).collect::<Vec<_>>())
        .bind(wanted.iter().map(|wanted| wanted.2).collect::<Vec<_>>())
        .fetch_all(&mut **transaction)
        .await?;
    for row in rows {
        let Some(desk) = desks.get_mut(&row.try_get("thread")?) else { continue };
        let checkpoint = CheckpointId(number(&row, "checkpoint")?);
        desk.past.checkpoints.insert(checkpoint, row.try_get("root")?);
        desk.past.versions.insert(checkpoint);
        if let Some(meta) = row.try_get::<Option<&[u8]>, _>("meta")? {
            let meta: CheckpointMeta = unpack("checkpoint", meta).map_err(decode)?;
            desk.past.versions.extend(meta.versions.values());
        }
    }
    Ok(())
}

async fn read_lists(
    transaction: &mut PgTransaction,
    desks: &mut HashMap<i64, &mut Desk>,
    wanted: &BTreeSet<(i64, ChannelName, CheckpointId)>,
) -> Result<(), sqlx::Error> {
    let rows = sqlx::query(LISTS)
        .bind(wanted.iter().map(|wanted| wanted.0).collect::<Vec<_>>())
        .bind(wanted.iter().map(|wanted| wanted.1.as_str().as_bytes()).collect::<Vec<_>>())
        .bind(wanted.iter().map(|wanted| wanted.2.0.cast_signed()).collect::<Vec<_>>())
        .fetch_all(&mut **transaction)
        .await?;
    for row in rows {
        let Some(desk) = desks.get_mut(&row.try_get("thread")?) else { continue };
        let channel = text(row.try_get("channel")?)?;
        let channel = ChannelName::new(channel).map_err(decode)?;
        desk.past.lists.insert((channel, CheckpointId(number(&row, "version")?)), list(&row)?);
    }
    Ok(())
}

/// Returns the owners of those runs that belong to threads outside of the group.
async fn read_runs(
    transaction: &mut PgTransaction,
    desks: &mut HashMap<i64, &mut Desk>,
    wanted: &BTreeSet<RunId>,
) -> Result<HashMap<RunId, ThreadId>, sqlx::Error> {
    let rows = sqlx::query(RUNS)
        .bind(wanted.iter().map(|run| run.as_str().as_bytes()).collect::<Vec<_>>())
        .fetch_all(&mut **transaction)
        .await?;
    let mut foreign = HashMap::new();
    for row in rows {
        let record: RunRecord = unpack("run", row.try_get("record")?).map_err(decode)?;
        match desks.get_mut(&row.try_get("thread")?) {
            Some(desk) => drop(desk.past.runs.insert(record.id)),
            None => drop(foreign.insert(record.id, record.thread)),
        }
    }
    Ok(foreign)
}

/// Decodes a name from a column of bytes.
pub(super) fn text(bytes: &[u8]) -> Result<&str, sqlx::Error> {
    std::str::from_utf8(bytes).map_err(decode)
}

fn decode(error: impl std::error::Error + Send + Sync + 'static) -> sqlx::Error {
    sqlx::Error::Decode(Box::new(error))
}
