//! Copies a thread under another id.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;

use wattle_graph::id::{RunId, ThreadId};
use wattle_run::ports::store::{RunRecord, StoreError};

use crate::codec::unpack;
use crate::postgres::column::bytes;
use crate::postgres::database::{Database, PgTransaction};
use crate::postgres::decode::decode_on_blocking_pool;
use crate::postgres::delete::ensure_unleased;
use crate::postgres::in_doubt::commit;
use crate::postgres::retry::{RetryState, TxError};
use crate::postgres::rewrite::log_pages::{LogBatch, LogPages};
use crate::postgres::rewrite::{OPERATION, ThreadRewriter, read_all};
use crate::postgres::stage::{BatchHeader, Body};
use crate::postgres::thread_row;
use crate::retention_plan::copied_records;
use crate::validate;

const EXISTING_RUNS: &str = "SELECT record FROM runs WHERE id = ANY($1) LIMIT 1";

/// Returns the id of a run in the copy.
type Rename<'a> = &'a (dyn for<'r> Fn(&'r RunId) -> RunId + Send + Sync);

/// Copies a thread. Returns its newest sequence number, or `None` if the thread does not exist.
pub(in crate::postgres) async fn copy(
    database: &Database,
    from: &ThreadId,
    to: &ThreadId,
    incarnation: &RunId,
    run_id: Rename<'_>,
) -> Result<Option<u64>, StoreError> {
    let mut retry = RetryState::default();
    loop {
        match Box::pin(copy_once(database, from, to, incarnation, run_id)).await {
            Ok(last_seq) => return Ok(last_seq),
            Err(TxError::Database(error)) => retry.wait_or_fail(OPERATION, error).await?,
            Err(TxError::Store(error)) => return Err(error),
        }
    }
}

async fn copy_once(
    database: &Database,
    from: &ThreadId,
    to: &ThreadId,
    incarnation: &RunId,
    run_id: Rename<'_>,
) -> Result<Option<u64>, TxError> {
    let mut transaction = database.transaction(OPERATION).await?;
    let ids = BTreeSet::from([from, to]);
    let mut rows = thread_row::lock(&mut transaction, &ids, &BTreeSet::from([to])).await?;
    let (source, target) = (rows.remove(from), rows.remove(to));
    let Some(source) = source.filter(|row| row.exists) else { return Ok(None) };
    ensure_unleased(&mut transaction, from, &source).await?;
    let Some(target) = target.filter(|row| from != to && !row.exists) else {
        return Err(validate::thread_exists_error(to).into());
    };
    let contents = read_all(&mut transaction, from, source).await?;
    validate::ensure_not_running(&contents.record)?;
    let number = contents.row.number;
    let pages = LogPages::new(number).without_values();
    let found = pages.fold(&mut transaction, Found::default(), Found::add).await?;
    let all_runs = contents.runs.iter().map(|run| &run.id).chain(&found.runs);
    let new_ids: HashMap<RunId, RunId> = all_runs.map(|run| (run.clone(), run_id(run))).collect();
    let (record, runs) =
        copied_records(&contents.record, contents.runs.clone(), to, incarnation, &new_ids);
    ensure_runs_new(&mut transaction, to, &runs).await?;
    let mut rewriter = ThreadRewriter::new(to, &contents, None, target.lease, target.ledger);
    rewriter.begin(&mut transaction, found.first_seq).await?;
    let new_ids = Arc::new(new_ids);
    let mut pages = LogPages::new(number);
    while let Some(rows) = pages.read_next(&mut transaction).await? {
        let new_ids = new_ids.clone();
        let add = move || {
            for batch in LogBatch::decode(&rows)? {
                let (header, body) = rename_runs(&mut rewriter, batch, &new_ids)?;
                rewriter.push_batch(header, body);
            }
            Ok(rewriter)
        };
        rewriter = decode_on_blocking_pool(OPERATION, None, add).await?;
        rewriter.flush_if_full(&mut transaction).await?;
    }
    let last_seq = rewriter.finish(&mut transaction, &record, &runs).await?;
    commit(database, transaction).await?;
    Ok(Some(last_seq))
}

/// What a copy reads of the log before it writes.
#[derive(Default)]
struct Found {
    /// All runs that occur in the log.
    runs: BTreeSet<RunId>,
    /// Sequence number of the oldest event.
    first_seq: Option<u64>,
}

impl Found {
    fn add(&mut self, batch: &LogBatch) -> Result<ControlFlow<()>, StoreError> {
        let events = batch.events()?;
        self.first_seq = self.first_seq.or(events.first().map(|event| event.seq));
        self.runs.extend(batch.meta.as_ref().map(|meta| meta.run.clone()));
        self.runs.extend(events.into_iter().map(|event| event.run));
        Ok(ControlFlow::Continue(()))
    }
}

/// Fails if one of the runs exists already.
async fn ensure_runs_new(
    transaction: &mut PgTransaction,
    to: &ThreadId,
    runs: &[RunRecord],
) -> Result<(), TxError> {
    let ids: Vec<&[u8]> = runs.iter().map(|run| run.id.as_str().as_bytes()).collect();
    let existing = sqlx::query(EXISTING_RUNS).bind(ids).fetch_optional(&mut **transaction).await?;
    let Some(existing) = existing else { return Ok(()) };
    let run: RunRecord = unpack("run", bytes(&existing, "record")?)?;
    Err(validate::run_exists_error(to, &run.id).into())
}

/// Returns a batch with the run ids of the copy.
fn rename_runs(
    rewriter: &mut ThreadRewriter,
    batch: LogBatch,
    new_ids: &HashMap<RunId, RunId>,
) -> Result<(BatchHeader, Body), StoreError> {
    let mut events = batch.events()?;
    let LogBatch { scanned, meta } = batch;
    let rename = |run: &mut RunId| {
        if let Some(new_id) = new_ids.get(run) {
            run.clone_from(new_id);
        }
    };
    for event in &mut events {
        rename(&mut event.run);
    }
    let meta = meta.map(|mut meta| {
        rename(&mut meta.run);
        meta
    });
    let header = rewriter.batch_header(scanned.base, &events, scanned.checkpoint);
    let events = (!events.is_empty()).then(|| rewriter.json(&events)).transpose()?;
    let meta = meta.map(|meta| rewriter.json(&meta)).transpose()?;
    Ok((header, Body { events, meta, values: scanned.body.values }))
}
