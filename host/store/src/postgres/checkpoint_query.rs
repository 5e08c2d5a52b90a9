//! Reads a checkpoint with its values and pending events in one statement.
//!
//! The server cannot read the versions in a `CheckpointMeta`. The statement therefore selects, for
//! each channel, the newest version up to the checkpoint. This is wrong for forked threads and for
//! subgraphs that share channel names. If a version differs from the `CheckpointMeta`, the
//! checkpoint is read again with several statements. The same happens if the server rejects the
//! statement because it needs too many resources.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sqlx::Row as _;
use sqlx::postgres::{PgArguments, PgRow, Postgres};
use sqlx::query::Query;
use wattle_graph::checkpoint::{Checkpoint, CheckpointMeta, ListDelta, Values};
use wattle_graph::event::Event;
use wattle_graph::id::{ChannelName, CheckpointId, Namespace, ThreadId};
use wattle_graph::limit::SHORT_JSON_BYTES;
use wattle_run::ports::store::{
    CheckpointOutline, CheckpointTuple, RunRecord, StoreError, ThreadHead, ThreadSnapshot,
};
use wattle_run::reads::{LargeRead, begin_large_read, needs_turn};

use crate::codec::unpack;
use crate::error::corrupt;
use crate::postgres::column::size;
use crate::postgres::database::Database;
use crate::postgres::decode::decode_on_blocking_pool;
use crate::postgres::history;
use crate::postgres::size::{record_bytes, record_start};
use crate::postgres::thread_row::{thread_head, utf8};
use crate::postgres::value::{self, Version, assemble};

/// Maximum size in bytes of a row that is decoded on the calling task. Larger rows would delay
/// other tasks. The JSON of the row also has a limit, [`SHORT_JSON_BYTES`]: compressed, it may be
/// far shorter.
const MAX_INLINE_BYTES: usize = 64 * 1024;

/// Selects a checkpoint of a thread. `bytes` is the length of its metadata in bytes of JSON. The
/// server sends metadata of at most `$2` bytes.
macro_rules! point {
    ($condition:literal) => {
        concat!(
            "SELECT checkpoint, bytes, CASE WHEN bytes <= $2 THEN meta END AS meta FROM (
                SELECT checkpoint, meta, ",
            record_bytes!("meta"),
            " AS bytes FROM (
                    SELECT checkpoint, meta, ",
            record_start!("meta"),
            " AS start FROM batches WHERE batches.thread = thread.number AND ",
            $condition,
            " OFFSET 0) AS record) AS record"
        )
    };
}

/// Selects the events since the checkpoint `point`. `bytes` is their length in bytes of JSON. The
/// server sends events of at most `$2` bytes.
macro_rules! pending_events {
    () => {
        concat!(
            "SELECT max(bytes) AS bytes,
                array_agg(CASE WHEN bytes <= $2 THEN events END ORDER BY place) AS events
            FROM (
                SELECT place, events, (sum(",
            record_bytes!("events"),
            ") OVER ())::bigint AS bytes FROM (
                    SELECT place, events, ",
            record_start!("events"),
            " AS start FROM batches
                    WHERE batches.thread = thread.number AND batches.base = point.checkpoint
                        AND batches.events IS NOT NULL OFFSET 0) AS record) AS record"
        )
    };
}

/// Selects a thread, one of its checkpoints, the pending events, and the delta chains of channel
/// values. `$columns` are the selected columns of the thread, `$point` is the condition for the
/// checkpoint. `json_bytes` is the length of the state in bytes of JSON. If it is greater than
/// `$2`, the server may omit parts of the state.
macro_rules! statement {
    ($columns:literal, $point:literal) => {
        concat!(
            "SELECT ",
            $columns,
            ", coalesce(point.bytes, 0) + coalesce(pending.bytes, 0) + coalesce(value.bytes, 0)
                    AS json_bytes,
                point.meta, pending.events, value.channels, value.versions, value.packed,
                value.bases, value.keeps, value.items
            FROM threads AS thread
            LEFT JOIN LATERAL (",
            point!($point),
            ") AS point ON true
            LEFT JOIN LATERAL (",
            pending_events!(),
            ") AS pending ON true
            LEFT JOIN LATERAL (
                -- Steps from one channel to the next by the index.
                WITH RECURSIVE channel (name) AS (
                    (SELECT channel FROM channel_values WHERE channel_values.thread = thread.number
                        ORDER BY channel LIMIT 1)
                    UNION ALL
                    SELECT (SELECT channel FROM channel_values
                        WHERE channel_values.thread = thread.number
                            AND channel_values.channel > channel.name ORDER BY channel LIMIT 1)
                    FROM channel WHERE channel.name IS NOT NULL)
                SELECT max(link.bytes) AS bytes, array_agg(link.channel) AS channels,
                    array_agg(link.version) AS versions,
                    array_agg(CASE WHEN link.bytes <= $2 THEN link.value END) AS packed,
                    array_agg(link.base) AS bases, array_agg(link.keep) AS keeps,
                    array_agg(link.items) AS items
                FROM (
                    SELECT link.*, (sum(",
            record_bytes!("link.value"),
            ") OVER ())::bigint AS bytes
                    FROM channel, LATERAL (
                        SELECT version, root FROM channel_values
                        WHERE channel_values.thread = thread.number
                            AND channel_values.channel = channel.name
                            AND version <= point.checkpoint ORDER BY version DESC LIMIT 1)
                        AS newest,
                    LATERAL (
                        SELECT channel, version, value, base, keep, items, ",
            record_start!("value"),
            " AS start
                        FROM channel_values
                        WHERE channel_values.thread = thread.number
                            AND channel_values.channel = channel.name
                            AND channel_values.version BETWEEN newest.root AND newest.version
                        -- `OFFSET 0` keeps this after `newest`, so that it reads only the chain.
                        OFFSET 0) AS link) AS link
            ) AS value ON true
            WHERE thread.id = $1 AND thread.record IS NOT NULL"
        )
    };
}

const LATEST: &str = statement!(
    "thread.record, thread.last_seq, thread.last_checkpoint, thread.current, thread.pruned_seq,
        thread.seal, thread.pruned_seal, thread.bytes, (SELECT runs.record FROM runs
            WHERE runs.thread = thread.number ORDER BY runs.place DESC LIMIT 1) AS run",
    "batches.checkpoint = thread.current"
);

const BY_ID: &str =
    statement!("thread.number", "batches.checkpoint = $4 AND batches.namespace = $3");

const NEWEST: &str = statement!(
    "thread.number",
    "batches.checkpoint IS NOT NULL AND batches.namespace = $3
        ORDER BY batches.checkpoint DESC LIMIT 1"
);

/// See [`Store::thread_snapshot`](wattle_run::ports::Store::thread_snapshot).
pub(super) async fn latest(
    database: &Database,
    thread: &ThreadId,
) -> Result<Option<ThreadSnapshot>, StoreError> {
    let read =
        |max_bytes: i64| sqlx::query(LATEST).bind(thread.as_str().as_bytes()).bind(max_bytes);
    let (row, large) = match read_row(database, "read a thread", read).await? {
        Reply::Rejected => return latest_multi(database, thread).await,
        Reply::Missing => return Ok(None),
        Reply::Row(row, large) => (row, large),
    };
    let head = thread_head(&row)?;
    let mut run: Option<RunRecord> =
        column::<Option<&[u8]>>(&row, "run")?.map(|packed| unpack("run", packed)).transpose()?;
    if run.as_ref().map(|run| &run.id) != head.record.run.as_ref() {
        run = run_of(database, &head).await?;
    }
    let tuple = match decode_row(row, large, decode).await? {
        QueryResult::Tuple(tuple) => Some(*tuple),
        QueryResult::Missing => None,
        QueryResult::Incomplete(id) => {
            history::checkpoint_multi(database, thread, &Namespace::root(), Some(id)).await?
        }
    };
    Ok(Some(ThreadSnapshot { head, tuple, run }))
}

/// Reads a thread, its current checkpoint and its newest run with several statements.
async fn latest_multi(
    database: &Database,
    thread: &ThreadId,
) -> Result<Option<ThreadSnapshot>, StoreError> {
    let Some(head) = history::thread(database, thread).await? else { return Ok(None) };
    let run = run_of(database, &head).await?;
    let tuple = match head.current {
        Some(id) => {
            history::checkpoint_multi(database, thread, &Namespace::root(), Some(id)).await?
        }
        None => None,
    };
    Ok(Some(ThreadSnapshot { head, tuple, run }))
}

async fn run_of(database: &Database, head: &ThreadHead) -> Result<Option<RunRecord>, StoreError> {
    match &head.record.run {
        Some(id) => history::run(database, id).await,
        None => Ok(None),
    }
}

/// See [`Store::checkpoint`](wattle_run::ports::Store::checkpoint).
pub(super) async fn checkpoint(
    database: &Database,
    thread: &ThreadId,
    namespace: &Namespace,
    id: Option<CheckpointId>,
) -> Result<Option<CheckpointTuple>, StoreError> {
    // An id that does not fit the column is greater than all stored ids.
    let number = id.map(|id| i64::try_from(id.0).unwrap_or(i64::MAX));
    let read = |max_bytes: i64| {
        let statement = if number.is_some() { BY_ID } else { NEWEST };
        let read = sqlx::query(statement).bind(thread.as_str().as_bytes()).bind(max_bytes);
        let read = read.bind(namespace.as_str().as_bytes());
        match number {
            Some(number) => read.bind(number),
            None => read,
        }
    };
    let (row, large) = match read_row(database, "read a checkpoint", read).await? {
        Reply::Rejected => {
            return history::checkpoint_multi(database, thread, namespace, id).await;
        }
        Reply::Missing => return Ok(None),
        Reply::Row(row, large) => (row, large),
    };
    match decode_row(row, large, decode).await? {
        QueryResult::Tuple(tuple) => Ok(Some(*tuple)),
        QueryResult::Missing => Ok(None),
        QueryResult::Incomplete(id) => {
            history::checkpoint_multi(database, thread, namespace, Some(id)).await
        }
    }
}

/// Selects a thread, one of its checkpoints and the pending events, without channel values.
const OUTLINE: &str = concat!(
    "SELECT thread.record, thread.last_seq, thread.last_checkpoint, thread.current,
        thread.pruned_seq, thread.seal, thread.pruned_seal, thread.bytes,
        point.bytes + coalesce(pending.bytes, 0) AS json_bytes, point.meta, pending.events
    FROM threads AS thread
    JOIN LATERAL (",
    point!("batches.checkpoint = $4 AND batches.namespace = $3"),
    ") AS point ON true
    LEFT JOIN LATERAL (",
    pending_events!(),
    ") AS pending ON true
    WHERE thread.id = $1 AND thread.record IS NOT NULL"
);

/// See [`Store::checkpoint_outline`](wattle_run::ports::Store::checkpoint_outline).
pub(super) async fn outline(
    database: &Database,
    thread: &ThreadId,
    namespace: &Namespace,
    id: CheckpointId,
) -> Result<Option<CheckpointOutline>, StoreError> {
    // An id that does not fit the column is greater than all stored ids.
    let number = i64::try_from(id.0).unwrap_or(i64::MAX);
    let read = |max_bytes: i64| {
        let read = sqlx::query(OUTLINE).bind(thread.as_str().as_bytes()).bind(max_bytes);
        read.bind(namespace.as_str().as_bytes()).bind(number)
    };
    match read_row(database, "read a checkpoint", read).await? {
        Reply::Row(row, large) => decode_row(row, large, decode_outline).await.map(Some),
        Reply::Missing => Ok(None),
        Reply::Rejected => history::outline_multi(database, thread, namespace, id).await,
    }
}

fn decode_outline(row: &PgRow) -> Result<CheckpointOutline, StoreError> {
    let meta: CheckpointMeta = unpack("checkpoint", column(row, "meta")?)?;
    let checkpoint = Checkpoint::new(meta, Values::new());
    let tuple = CheckpointTuple { checkpoint, events: pending_events(row)? };
    Ok(CheckpointOutline { head: thread_head(row)?, tuple })
}

/// The decoded content of a row.
enum QueryResult {
    /// The checkpoint does not exist.
    Missing,
    /// The row lacks values of the checkpoint.
    Incomplete(CheckpointId),
    /// The complete checkpoint.
    Tuple(Box<CheckpointTuple>),
}

/// The reply to a statement that selects a state.
enum Reply {
    /// The server rejects the statement.
    Rejected,
    /// The thread or the checkpoint does not exist.
    Missing,
    /// The row of the state, and the turn of the read if the state may be large.
    Row(PgRow, Option<LargeRead>),
}

/// Reads the row of a state. `query` gets the maximum length of the state in bytes of JSON. If the
/// state has more than [`SHORT_JSON_BYTES`], the server sends it only after the read has waited for
/// its turn.
async fn read_row<'q>(
    database: &Database,
    operation: &'static str,
    query: impl Fn(i64) -> Query<'q, Postgres, PgArguments>,
) -> Result<Reply, StoreError> {
    let mut large = if needs_turn() { None } else { Some(begin_large_read().await) };
    loop {
        let max_bytes = if large.is_some() { i64::MAX } else { size(SHORT_JSON_BYTES) };
        let row = match database.row_if_supported(operation, || query(max_bytes)).await? {
            Some(Some(row)) => row,
            Some(None) => return Ok(Reply::Missing),
            None => return Ok(Reply::Rejected),
        };
        if column::<i64>(&row, "json_bytes")? <= max_bytes {
            return Ok(Reply::Row(row, large));
        }
        drop(row);
        large = Some(begin_large_read().await);
    }
}

/// Decodes a row. A long row is decoded on the blocking pool, in the turn of the read.
async fn decode_row<T: Send + 'static>(
    row: PgRow,
    large: Option<LargeRead>,
    decode: fn(&PgRow) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    if !is_long(&row)? {
        return decode(&row);
    }
    decode_on_blocking_pool("read a checkpoint", large, move || decode(&row)).await
}

/// Returns whether decoding a row delays other tasks on the same thread.
fn is_long(row: &PgRow) -> Result<bool, StoreError> {
    let bytes: usize = (0..row.len())
        .filter_map(|column| row.try_get_raw(column).ok()?.as_bytes().ok().map(<[u8]>::len))
        .sum();
    let json_bytes: i64 = column(row, "json_bytes")?;
    Ok(bytes > MAX_INLINE_BYTES || json_bytes > size(SHORT_JSON_BYTES))
}

fn decode(row: &PgRow) -> Result<QueryResult, StoreError> {
    let Some(meta) = column::<Option<&[u8]>>(row, "meta")? else { return Ok(QueryResult::Missing) };
    let meta: CheckpointMeta = unpack("checkpoint", meta)?;
    let columns = Columns::read(row)?;
    let mut newest: BTreeMap<ChannelName, CheckpointId> = BTreeMap::new();
    let mut chain_links = HashMap::with_capacity(columns.packed.len());
    for index in 0..columns.packed.len() {
        let (version, chain_link) = columns.chain_link(index)?;
        let latest = newest.entry(version.0.clone()).or_default();
        *latest = version.1.max(*latest);
        chain_links.insert(version, chain_link);
    }
    let has_newer = |(channel, version): (&ChannelName, &CheckpointId)| {
        newest.get(channel).is_some_and(|newest| newest > version)
    };
    if meta.versions.iter().any(has_newer) {
        return Ok(QueryResult::Incomplete(meta.id));
    }
    let wanted: BTreeSet<Version> =
        meta.versions.iter().map(|(channel, version)| (channel.clone(), *version)).collect();
    let loaded = assemble(&chain_links, &wanted)?;
    let values: Values = loaded.into_iter().map(|((channel, _), value)| (channel, value)).collect();
    let checkpoint = Checkpoint::new(meta, values);
    let events = pending_events(row)?;
    Ok(QueryResult::Tuple(Box::new(CheckpointTuple { checkpoint, events })))
}

fn pending_events(row: &PgRow) -> Result<Vec<Event>, StoreError> {
    let mut events = Vec::new();
    for packed in column::<Option<Vec<Vec<u8>>>>(row, "events")?.unwrap_or_default() {
        events.extend(unpack::<Vec<Event>>("events", &packed)?);
    }
    Ok(events)
}

/// Full values and list deltas, column by column.
struct Columns {
    channels: Vec<Vec<u8>>,
    versions: Vec<i64>,
    packed: Vec<Vec<u8>>,
    bases: Vec<Option<i64>>,
    keeps: Vec<Option<i64>>,
    items: Vec<Option<i64>>,
}

impl Columns {
    fn read(row: &PgRow) -> Result<Self, StoreError> {
        Ok(Self {
            channels: list(row, "channels")?,
            versions: list(row, "versions")?,
            packed: list(row, "packed")?,
            bases: list(row, "bases")?,
            keeps: list(row, "keeps")?,
            items: list(row, "items")?,
        })
    }

    fn chain_link(&self, index: usize) -> Result<(Version, value::ChainLink<'_>), StoreError> {
        let Self { channels, versions, packed, bases, keeps, items } = self;
        let channel = utf8(&channels[index]).map_err(|error| corrupt("value", error))?;
        let channel = ChannelName::new(channel).map_err(|error| corrupt("value", error))?;
        let keep = keeps[index].map(u32::try_from).transpose();
        let keep = keep.map_err(|error| corrupt("value", error))?;
        let delta = bases[index].zip(keep);
        let chain_link = value::ChainLink {
            packed: &packed[index],
            delta: delta.map(|(base, keep)| ListDelta {
                base: CheckpointId(base.cast_unsigned()),
                prefix_len: keep,
            }),
            items: items[index].map(i64::cast_unsigned),
        };
        Ok(((channel, CheckpointId(versions[index].cast_unsigned())), chain_link))
    }
}

fn list<'r, T>(row: &'r PgRow, name: &str) -> Result<Vec<T>, StoreError>
where
    Vec<T>: sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>,
{
    column::<Option<Vec<T>>>(row, name).map(Option::unwrap_or_default)
}

fn column<'r, T>(row: &'r PgRow, name: &str) -> Result<T, StoreError>
where
    T: sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>,
{
    row.try_get(name).map_err(|error| corrupt(name, error))
}
