//! Copies a thread under another id.

use std::collections::{BTreeSet, HashMap};

use wattle_graph::event::Event;
use wattle_graph::id::{RunId, ThreadId};
use wattle_run::ports::store::{RunRecord, StoreError};

use crate::codec::unpack;
use crate::postgres::database::{Database, PgTransaction};
use crate::postgres::delete::refuse_held;
use crate::postgres::head;
use crate::postgres::history::bytes;
use crate::postgres::outcome::commit;
use crate::postgres::retry::{RetryState, TxError};
use crate::postgres::rewrite::{Anew, Entry, OPERATION, Whole, read_all};
use crate::postgres::stage::{Body, Frame};
use crate::retention_plan::copied_records;
use crate::validate;

const KNOWN: &str = "SELECT record FROM runs WHERE id = ANY($1) LIMIT 1";

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
    let mut heads = head::lock(&mut transaction, &ids, &BTreeSet::from([to])).await?;
    let (source, target) = (heads.remove(from), heads.remove(to));
    let Some(source) = source.filter(|head| head.is_there) else { return Ok(None) };
    refuse_held(&mut transaction, from, &source).await?;
    let Some(target) = target.filter(|head| from != to && !head.is_there) else {
        return Err(validate::thread_exists_error(to).into());
    };
    let whole = read_all(&mut transaction, from, source).await?;
    validate::ensure_not_running(&whole.record)?;
    let log = parsed(&whole)?;
    let names: HashMap<RunId, RunId> =
        runs(&whole, &log).map(|run| (run.clone(), run_id(run))).collect();
    let (record, runs) = copied_records(&whole.record, whole.runs.clone(), to, incarnation, &names);
    refuse_known(&mut transaction, to, &runs).await?;
    let mut anew = Anew::new(to, &whole, None, target.lease, target.ledger);
    let first = log.iter().flatten().next().map(|event| event.seq);
    anew.begin(&mut transaction, first).await?;
    for (entry, events) in whole.log.into_iter().zip(log) {
        let (frame, body) = renamed(&mut anew, entry, events, &names)?;
        anew.put(frame, body);
        anew.write_if_due(&mut transaction).await?;
    }
    let last_seq = anew.finish(&mut transaction, &record, &runs).await?;
    commit(database, transaction).await?;
    Ok(Some(last_seq))
}

/// Parses the events of each batch.
fn parsed(whole: &Whole) -> Result<Vec<Vec<Event>>, StoreError> {
    whole.log.iter().map(Entry::events).collect()
}

/// Returns all run ids that occur in a thread, some more than once.
fn runs<'a>(whole: &'a Whole, log: &'a [Vec<Event>]) -> impl Iterator<Item = &'a RunId> {
    let records = whole.runs.iter().map(|run| &run.id);
    let metas = whole.log.iter().filter_map(|entry| entry.meta.as_ref()).map(|meta| &meta.run);
    records.chain(metas).chain(log.iter().flatten().map(|event| &event.run))
}

async fn refuse_known(
    transaction: &mut PgTransaction,
    to: &ThreadId,
    runs: &[RunRecord],
) -> Result<(), TxError> {
    let ids: Vec<&[u8]> = runs.iter().map(|run| run.id.as_str().as_bytes()).collect();
    let known = sqlx::query(KNOWN).bind(ids).fetch_optional(&mut **transaction).await?;
    let Some(known) = known else { return Ok(()) };
    let run: RunRecord = unpack("run", bytes(&known, "record")?)?;
    Err(validate::run_exists_error(to, &run.id).into())
}

/// Returns a batch with the run ids of the copy.
fn renamed(
    anew: &mut Anew,
    entry: Entry,
    mut events: Vec<Event>,
    names: &HashMap<RunId, RunId>,
) -> Result<(Frame, Body), StoreError> {
    let Entry { raw, meta } = entry;
    let name = |run: &mut RunId| {
        if let Some(name) = names.get(run) {
            run.clone_from(name);
        }
    };
    for event in &mut events {
        name(&mut event.run);
    }
    let meta = meta.map(|mut meta| {
        name(&mut meta.run);
        meta
    });
    let frame = anew.frame(raw.base, &events, raw.checkpoint);
    let events = (!events.is_empty()).then(|| anew.json(&events)).transpose()?;
    let meta = meta.map(|meta| anew.json(&meta)).transpose()?;
    Ok((frame, Body { events, meta, values: raw.body.values }))
}
