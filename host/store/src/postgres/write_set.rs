//! The write set of one group of batches, column by column. One statement writes the whole write
//! set.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::postgres::{PgArguments, Postgres};
use sqlx::query::Query;
use wattle_graph::id::{CheckpointId, Digest, RunId};
use wattle_run::caller_id::CallerId;

/// Inserts all rows if every thread is in its expected state and no new run exists; otherwise
/// changes nothing and returns no row. The statement locks the rows of the threads first, in the
/// order of their ids, so that two writers never deadlock, and compares a row again if it had to
/// wait for the lock. So the statement needs neither a read before it nor a transaction around it.
///
/// The statement returns the id of the transaction, by which the outcome of the transaction can be
/// checked.
const WRITE: &str = "
    WITH new AS MATERIALIZED (
        SELECT * FROM unnest($28::bytea[], $29::bigint[], $30::bigint[], $31::bigint[],
            $32::bigint[], $33::bigint[], $34::bigint[], $35::bytea[], $36::bigint[],
            $37::bigint[], $38::boolean[], $39::bytea[], $40::text[], $41::text[], $42::bytea[],
            $43::bigint[], $44::bigint[], $45::bigint[], $47::bigint[], $48::bigint[])
        AS new (id, number, place_before, epoch_before, last_seq, last_checkpoint, current, seal,
            last_place, bytes, frees, record, app, status, tenant, updated_ms, expires_ms,
            ttl_ends_ms, ledger_before, pending)),
    held AS MATERIALIZED (
        SELECT threads.id FROM new JOIN threads ON threads.id = new.id
        WHERE threads.number = new.number AND threads.last_place = new.place_before
            AND threads.epoch IS NOT DISTINCT FROM new.epoch_before
            AND threads.ledger = new.ledger_before
        ORDER BY threads.id FOR UPDATE OF threads),
    expected AS MATERIALIZED (
        SELECT 1 WHERE (SELECT count(*) FROM held) = (SELECT count(*) FROM new)
            AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = ANY($50::bytea[]))),
    batch AS (
        INSERT INTO batches (thread, place, after_seq, last_seq, base, checkpoint, namespace,
            events, meta, seal)
        SELECT added.* FROM expected, unnest($1::bigint[], $2::bigint[], $3::bigint[],
            $4::bigint[], $5::bigint[], $6::bigint[], $7::bytea[], $8::bytea[], $9::bytea[],
            $10::bytea[]) AS added),
    value AS (
        INSERT INTO channel_values (thread, channel, version, place, value, base, keep, root,
            items, tails, tail_bytes, whole_bytes)
        SELECT added.* FROM expected, unnest($11::bigint[], $12::bytea[], $13::bigint[],
            $14::bigint[], $15::bytea[], $16::bigint[], $17::bigint[], $18::bigint[],
            $19::bigint[], $20::bigint[], $21::bigint[], $22::bigint[]) AS added),
    run AS (
        INSERT INTO runs (id, thread, record, due_ms, caller)
        SELECT added.* FROM expected,
            unnest($23::bytea[], $24::bigint[], $25::bytea[], $46::bigint[], $49::bytea[]) AS added
        ON CONFLICT (id) DO UPDATE SET record = excluded.record, due_ms = excluded.due_ms,
            caller = excluded.caller,
            -- NULL for a run that another thread has taken meanwhile, which the table rejects.
            thread = CASE WHEN runs.thread = excluded.thread THEN runs.thread END),
    mention AS (
        INSERT INTO mentions (thread, blob)
        SELECT added.* FROM expected, unnest($26::bigint[], $27::bytea[]) AS added
        ON CONFLICT DO NOTHING)
    UPDATE threads SET
        last_seq = new.last_seq, last_checkpoint = new.last_checkpoint, current = new.current,
        seal = new.seal, last_place = new.last_place, bytes = new.bytes,
        pending = new.pending,
        holder = CASE WHEN new.frees THEN NULL ELSE threads.holder END,
        epoch = CASE WHEN new.frees THEN NULL ELSE threads.epoch END,
        record = coalesce(new.record, threads.record),
        app = CASE WHEN new.record IS NULL THEN threads.app ELSE new.app END,
        status = CASE WHEN new.record IS NULL THEN threads.status ELSE new.status END,
        tenant = CASE WHEN new.record IS NULL THEN threads.tenant ELSE new.tenant END,
        updated_ms = CASE WHEN new.record IS NULL THEN threads.updated_ms
            ELSE new.updated_ms END,
        expires_ms = CASE WHEN new.record IS NULL THEN threads.expires_ms
            ELSE new.expires_ms END,
        ttl_ends_ms = CASE WHEN new.record IS NULL THEN threads.ttl_ends_ms
            ELSE new.ttl_ends_ms END
    FROM new, expected WHERE threads.id = new.id
    RETURNING pg_current_xact_id()::text";

/// The write set of a group.
#[derive(Debug, Default)]
pub(super) struct WriteSet {
    /// Thread rows by thread id.
    pub(super) threads: BTreeMap<Vec<u8>, ThreadUpdate>,
    pub(super) batches: Vec<BatchRow>,
    pub(super) values: Vec<ValueRow>,
    /// Run records in the order of their first batches, without duplicates.
    pub(super) runs: Vec<RunRow>,
    /// Runs that must not exist. If one of them exists, nothing is written.
    pub(super) new_runs: BTreeSet<RunId>,
    pub(super) mentions: BTreeSet<(i64, Digest)>,
}

/// The state of a thread after the group.
#[derive(Debug, Default)]
pub(super) struct ThreadUpdate {
    pub(super) expected: ExpectedState,
    pub(super) last_seq: i64,
    pub(super) last_checkpoint: Option<i64>,
    pub(super) current: Option<i64>,
    pub(super) seal: Option<Digest>,
    pub(super) last_position: i64,
    pub(super) bytes: i64,
    /// Number of pending runs.
    pub(super) pending: i64,
    /// True if the group ends the lease of the thread.
    pub(super) ends_lease: bool,
    /// The new record of the thread, if the group has one.
    pub(super) record: Option<RecordRow>,
}

/// The expected state of a row. If the row differs, nothing is written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ExpectedState {
    pub(super) number: i64,
    pub(super) position: i64,
    pub(super) epoch: Option<i64>,
    pub(super) ledger: i64,
}

/// A new thread record, with the columns by which threads are listed.
#[derive(Debug)]
pub(super) struct RecordRow {
    pub(super) packed: Vec<u8>,
    pub(super) app: String,
    pub(super) status: &'static str,
    pub(super) tenant: Option<Vec<u8>>,
    pub(super) updated_ms: i64,
    pub(super) expires_ms: Option<i64>,
    pub(super) ttl_ends_ms: Option<i64>,
}

/// A row of `batches`.
#[derive(Debug)]
pub(super) struct BatchRow {
    pub(super) thread: i64,
    pub(super) position: i64,
    pub(super) after_seq: i64,
    pub(super) last_seq: i64,
    pub(super) base: Option<i64>,
    /// Id and namespace of the batch's checkpoint.
    pub(super) checkpoint: Option<(i64, Vec<u8>)>,
    pub(super) events: Option<Vec<u8>>,
    pub(super) meta: Option<Vec<u8>>,
    pub(super) seal: Digest,
}

/// A row of `channel_values`: a full value or a list delta.
#[derive(Debug)]
pub(super) struct ValueRow {
    pub(super) thread: i64,
    pub(super) channel: Vec<u8>,
    pub(super) version: i64,
    pub(super) position: i64,
    pub(super) packed: Vec<u8>,
    /// The base version of a list delta, and the number of items that it keeps.
    pub(super) delta: Option<(i64, i64)>,
    pub(super) chain: ChainStats,
}

/// The chain sizes of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChainStats {
    /// Version of the full value.
    pub(super) root: CheckpointId,
    /// Items of the list; `None` if the value is not a list.
    pub(super) items: Option<u64>,
    /// Number of list deltas since the full value.
    pub(super) deltas: u64,
    /// Packed bytes of these list deltas.
    pub(super) delta_bytes: u64,
    /// Packed bytes of the full value.
    pub(super) full_bytes: u64,
}

/// A row of `runs`.
#[derive(Debug)]
pub(super) struct RunRow {
    pub(super) id: RunId,
    pub(super) thread: i64,
    pub(super) packed: Vec<u8>,
    /// Due time of a pending run; `None` for other runs.
    pub(super) due_ms: Option<i64>,
    /// Caller of a pending run; `None` for other runs.
    pub(super) caller: Option<CallerId>,
}

fn column<'a, R: 'a, T>(
    rows: impl IntoIterator<Item = &'a R>,
    cell: impl Fn(&'a R) -> T,
) -> Vec<T> {
    rows.into_iter().map(cell).collect()
}

fn digest(digest: &Digest) -> &[u8] {
    digest.as_bytes().as_slice()
}

impl WriteSet {
    /// Adds a run record, or replaces the record that the group already has of this run.
    pub(super) fn upsert_run(&mut self, row: RunRow) {
        match self.runs.iter_mut().find(|existing| existing.id == row.id) {
            Some(existing) => *existing = row,
            None => self.runs.push(row),
        }
    }

    /// Returns the bytes of all batches and values except the first `batches` and `values`.
    pub(super) fn bytes_after(&self, batches: usize, values: usize) -> usize {
        let size = |bytes: &Option<Vec<u8>>| bytes.as_ref().map_or(0, Vec::len);
        let batches = self.batches.iter().skip(batches);
        let batches: usize = batches.map(|row| size(&row.events) + size(&row.meta)).sum();
        let values = self.values.iter().skip(values);
        batches + values.map(|row| row.packed.len()).sum::<usize>()
    }

    /// Returns the statement that writes the whole write set.
    pub(super) fn statement(&self) -> Query<'static, Postgres, PgArguments> {
        let query = self.bind_batches(sqlx::query(WRITE));
        let query = self.bind_values(query);
        let query = query
            .bind(column(&self.runs, |run| run.id.as_str().as_bytes()))
            .bind(column(&self.runs, |run| run.thread))
            .bind(column(&self.runs, |run| run.packed.as_slice()))
            .bind(column(&self.mentions, |mention| mention.0))
            .bind(column(&self.mentions, |mention| digest(&mention.1)));
        self.bind_threads(query)
    }

    fn bind_batches(
        &self,
        query: Query<'static, Postgres, PgArguments>,
    ) -> Query<'static, Postgres, PgArguments> {
        let rows = &self.batches;
        query
            .bind(column(rows, |row| row.thread))
            .bind(column(rows, |row| row.position))
            .bind(column(rows, |row| row.after_seq))
            .bind(column(rows, |row| row.last_seq))
            .bind(column(rows, |row| row.base))
            .bind(column(rows, |row| row.checkpoint.as_ref().map(|checkpoint| checkpoint.0)))
            .bind(column(rows, |row| row.checkpoint.as_ref().map(|it| it.1.as_slice())))
            .bind(column(rows, |row| row.events.as_deref()))
            .bind(column(rows, |row| row.meta.as_deref()))
            .bind(column(rows, |row| digest(&row.seal)))
    }

    fn bind_values(
        &self,
        query: Query<'static, Postgres, PgArguments>,
    ) -> Query<'static, Postgres, PgArguments> {
        let rows = &self.values;
        query
            .bind(column(rows, |row| row.thread))
            .bind(column(rows, |row| row.channel.as_slice()))
            .bind(column(rows, |row| row.version))
            .bind(column(rows, |row| row.position))
            .bind(column(rows, |row| row.packed.as_slice()))
            .bind(column(rows, |row| row.delta.map(|delta| delta.0)))
            .bind(column(rows, |row| row.delta.map(|delta| delta.1)))
            .bind(column(rows, |row| row.chain.root.0.cast_signed()))
            .bind(column(rows, |row| row.chain.items.map(u64::cast_signed)))
            .bind(column(rows, |row| row.chain.deltas.cast_signed()))
            .bind(column(rows, |row| row.chain.delta_bytes.cast_signed()))
            .bind(column(rows, |row| row.chain.full_bytes.cast_signed()))
    }

    fn bind_threads(
        &self,
        query: Query<'static, Postgres, PgArguments>,
    ) -> Query<'static, Postgres, PgArguments> {
        let rows = self.threads.values();
        let records = || self.threads.values().map(|thread| thread.record.as_ref());
        query
            .bind(self.threads.keys().map(Vec::as_slice).collect::<Vec<_>>())
            .bind(column(rows.clone(), |row| row.expected.number))
            .bind(column(rows.clone(), |row| row.expected.position))
            .bind(column(rows.clone(), |row| row.expected.epoch))
            .bind(column(rows.clone(), |row| row.last_seq))
            .bind(column(rows.clone(), |row| row.last_checkpoint))
            .bind(column(rows.clone(), |row| row.current))
            .bind(column(rows.clone(), |row| row.seal.as_ref().map(digest)))
            .bind(column(rows.clone(), |row| row.last_position))
            .bind(column(rows.clone(), |row| row.bytes))
            .bind(column(rows, |row| row.ends_lease))
            .bind(records().map(|it| it.map(|it| it.packed.as_slice())).collect::<Vec<_>>())
            .bind(records().map(|it| it.map(|it| it.app.as_str())).collect::<Vec<_>>())
            .bind(records().map(|it| it.map(|it| it.status)).collect::<Vec<_>>())
            .bind(records().map(|it| it.and_then(|it| it.tenant.as_deref())).collect::<Vec<_>>())
            .bind(records().map(|it| it.map(|it| it.updated_ms)).collect::<Vec<_>>())
            .bind(records().map(|it| it.and_then(|it| it.expires_ms)).collect::<Vec<_>>())
            .bind(records().map(|it| it.and_then(|it| it.ttl_ends_ms)).collect::<Vec<_>>())
            .bind(column(&self.runs, |run| run.due_ms))
            .bind(column(self.threads.values(), |row| row.expected.ledger))
            .bind(column(self.threads.values(), |row| row.pending))
            .bind(column(&self.runs, |run| run.caller.as_ref().map(CallerId::as_bytes)))
            .bind(column(&self.new_runs, |run| run.as_str().as_bytes()))
    }
}
