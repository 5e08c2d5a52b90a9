//! Lists of threads and runs, in pages.

use std::collections::BTreeMap;
use std::iter;
use std::ops::Bound;

use redb::{Range, ReadableTable};
use serde::Deserialize;
use serde_json::Value;
use wattle_graph::event::RunStatus;
use wattle_graph::id::{AppName, RunId, ThreadId};
use wattle_graph::principal::Principal;
use wattle_run::limit::{LIST_BYTES, ORPHANED_PAGE};
use wattle_run::meter::model_usage::ModelUsage;
use wattle_run::ports::store::{
    ListPage, OrphanedThread, RecoveryCount, RunKind, RunOptions, RunRecord, RunSpec, RunSummary,
    StaleAnswers, StoreError, ThreadCursor, ThreadKey, ThreadOrder, ThreadQuery, ThreadStatus,
    ThreadSummary,
};

use crate::codec::{named, packed, read, unpacked_bytes};
use crate::disk::field_cache::FieldCache;
use crate::disk::field_set::{FieldSet, listed_fields};
use crate::disk::snapshot::{READ, RECORD, RUN, Snapshot, run_of, run_of_thread, stored_run};
use crate::disk::table::{PENDING, RECORDS, RECORDS_NAME, RUNS, RUNS_NAME, THREAD_RUNS};
use crate::error::{corrupt, redb_error};
use crate::file::handle::SharedFile;
use crate::page::PageBuilder;
use crate::pending::PendingRuns;
use crate::query::{ThreadFields, sort_and_skip, thread_matches};

/// The ids of the runs of a thread, oldest first.
type RunIds = Range<'static, (u64, u64), &'static [u8]>;

/// See [`Store::threads`](wattle_run::ports::Store::threads). A thread with a damaged record is
/// logged and left out, so that it does not hide the others.
pub(crate) fn list_threads(
    file: &SharedFile,
    cache: &FieldCache,
    query: &ThreadQuery,
) -> Result<ListPage<ThreadSummary>, StoreError> {
    if query.order == ThreadOrder::Id {
        return Snapshot::newest(file)?.threads_by_id(query);
    }
    let select = |threads: &FieldSet<ThreadFields>| first_by_update(threads, query);
    let (snapshot, selected) = cache.select_threads(|| Snapshot::newest(file), select)?;
    if let Some(threads) = selected {
        match snapshot.page_of_threads(query, threads) {
            // A record was damaged after its fields were cached. The scan leaves it out.
            Err(StoreError::Corrupt { .. }) => cache.clear(),
            page => return page,
        }
    }
    snapshot.threads_by_update(query)
}

/// See [`Store::thread_keys`](wattle_run::ports::Store::thread_keys).
pub(crate) fn thread_keys(
    file: &SharedFile,
    cache: &FieldCache,
    query: &ThreadQuery,
) -> Result<ListPage<ThreadKey>, StoreError> {
    let select = |threads: &FieldSet<ThreadFields>| first_by_id(threads, query);
    let (snapshot, selected) = cache.select_threads(|| Snapshot::newest(file), select)?;
    if let Some(page) = selected {
        return Ok(page);
    }
    let query = ThreadQuery { offset: 0, ..query.clone() };
    snapshot.threads_by_id(&query).map(|page| ListPage::from(&page))
}

impl Snapshot {
    /// Lists threads by a scan of all records.
    fn threads_by_update(
        &self,
        query: &ThreadQuery,
    ) -> Result<ListPage<ThreadSummary>, StoreError> {
        let records = self.transaction.open_table(RECORDS).map_err(redb_error(READ))?;
        let mut matching = Vec::new();
        for entry in records.iter().map_err(redb_error(READ))? {
            let (key, packed) = entry.map_err(redb_error(READ))?;
            let matches = matching_thread(query, key.value(), packed.value());
            matching.extend(matches.map(|fields| (fields, ())));
        }
        self.page_of_threads(query, sort_and_skip(query, matching).map(|(id, ())| id))
    }

    /// Reads the records of a page from the threads that it may have.
    fn page_of_threads(
        &self,
        query: &ThreadQuery,
        threads: impl IntoIterator<Item = ThreadId>,
    ) -> Result<ListPage<ThreadSummary>, StoreError> {
        let records = self.transaction.open_table(RECORDS).map_err(redb_error(READ))?;
        let mut page = PageBuilder::new(query.limit.unwrap_or(usize::MAX), LIST_BYTES);
        for id in threads {
            let key = id.as_str().as_bytes();
            let packed = records.get(key).map_err(redb_error(READ))?;
            let packed = packed.ok_or_else(|| corrupt(named(RECORD, key), "it is missing"))?;
            if !add_thread(&mut page, key, packed.value())? {
                break;
            }
        }
        Ok(page.finish())
    }

    /// Reads no further than to the end of the page.
    fn threads_by_id(&self, query: &ThreadQuery) -> Result<ListPage<ThreadSummary>, StoreError> {
        let records = self.transaction.open_table(RECORDS).map_err(redb_error(READ))?;
        let mut page = PageBuilder::new(query.limit.unwrap_or(usize::MAX), LIST_BYTES);
        let mut skipped = 0;
        let all = records.range::<&[u8]>(keys_after(query.after.as_ref()));
        for entry in all.map_err(redb_error(READ))? {
            let (key, packed) = entry.map_err(redb_error(READ))?;
            if matching_thread(query, key.value(), packed.value()).is_none() {
                continue;
            }
            if skipped < query.offset {
                skipped += 1;
            } else if !add_thread(&mut page, key.value(), packed.value())? {
                break;
            }
        }
        Ok(page.finish())
    }

    /// Returns a page of the running threads after a thread, in the order of their ids. A thread
    /// with a damaged record is logged and left out.
    pub(crate) fn running(
        &self,
        after: Option<&ThreadId>,
    ) -> Result<Vec<OrphanedThread>, StoreError> {
        let records = self.transaction.open_table(RECORDS).map_err(redb_error(READ))?;
        let running = ThreadQuery { status: Some(ThreadStatus::Running), ..ThreadQuery::default() };
        let mut found = Vec::new();
        for entry in records.range::<&[u8]>(keys_after(after)).map_err(redb_error(READ))? {
            let (key, packed) = entry.map_err(redb_error(READ))?;
            if matching_thread(&running, key.value(), packed.value()).is_some() {
                found.push(read(RECORD, (RECORDS_NAME, key.value()), packed.value())?);
            }
            if found.len() == ORPHANED_PAGE {
                break;
            }
        }
        Ok(found)
    }

    /// Returns the pending runs in order, without reading their inputs. A run with a damaged id or
    /// record is logged and left out; a survey finds the damage in its thread.
    pub(crate) fn pending_runs(&self) -> Result<PendingRuns, StoreError> {
        let table = self.transaction.open_table(PENDING).map_err(redb_error(READ))?;
        let mut pending = PendingRuns::default();
        for entry in table.iter().map_err(redb_error(READ))? {
            let (key, position) = entry.map_err(redb_error(READ))?;
            let Some(run) = run_of(key.value()) else {
                tracing::error!(run = named(RUN, key.value()), "pending run has an invalid id");
                continue;
            };
            match self.pending_run(key.value()) {
                Ok(Some(record)) if record.status == RunStatus::Pending => {
                    pending.insert(position.value(), &record);
                }
                Ok(_) => tracing::error!(%run, "run in the table of pending runs is not pending"),
                Err(error) => tracing::error!(%run, %error, "pending run cannot be read"),
            }
        }
        Ok(pending)
    }

    /// Reads the record of a pending run without its input.
    fn pending_run(&self, key: &[u8]) -> Result<Option<RunRecord>, StoreError> {
        let runs = self.transaction.open_table(RUNS).map_err(redb_error(READ))?;
        let Some(stored) = runs.get(key).map_err(redb_error(READ))? else {
            return Ok(None);
        };
        let record: PendingRecord = read(RUN, (RUNS_NAME, key), stored.value())?;
        Ok(Some(record.into_record()))
    }

    /// See [`Store::runs`](wattle_run::ports::Store::runs).
    pub(crate) fn oldest_runs(
        &self,
        thread: &ThreadId,
        skip: usize,
        limit: usize,
    ) -> Result<ListPage<RunSummary>, StoreError> {
        self.page_of_runs(thread, RunIds::next, skip, limit, |page, run| {
            let run = run_of_thread(run, thread, |run: &RunSummary| &run.thread)?;
            page.add(run.memory_bytes(), || Ok(run))
        })
    }

    /// See [`Store::newest_runs`](wattle_run::ports::Store::newest_runs). The size of a record is
    /// known before it is decoded.
    pub(crate) fn newest_runs(
        &self,
        thread: &ThreadId,
        skip: usize,
        limit: usize,
    ) -> Result<ListPage<RunRecord>, StoreError> {
        self.page_of_runs(thread, RunIds::next_back, skip, limit, |page, (id, stored)| {
            let bytes = unpacked_bytes(packed(RUN, (RUNS_NAME, id), stored)?);
            page.add(bytes, || run_of_thread((id, stored), thread, |run: &RunRecord| &run.thread))
        })
    }

    /// Reads a page of the runs of a thread in the order of `next`. `add` gets the id and the
    /// stored record of a run, adds the run to the page, and returns whether the run fits.
    fn page_of_runs<T>(
        &self,
        thread: &ThreadId,
        next: impl Fn(&mut RunIds) -> Option<<RunIds as Iterator>::Item>,
        skip: usize,
        limit: usize,
        add: impl Fn(&mut PageBuilder<T>, (&[u8], &[u8])) -> Result<bool, StoreError>,
    ) -> Result<ListPage<T>, StoreError> {
        let mut page = PageBuilder::new(limit, LIST_BYTES);
        let Some(head) = self.head(thread)? else {
            return Ok(page.finish());
        };
        let runs = self.transaction.open_table(RUNS).map_err(redb_error(READ))?;
        let thread_runs = self.transaction.open_table(THREAD_RUNS).map_err(redb_error(READ))?;
        let all = (head.number, 0)..=(head.number, u64::MAX);
        let mut ids = thread_runs.range(all).map_err(redb_error(READ))?;
        for entry in iter::from_fn(|| next(&mut ids)).skip(skip) {
            let (_, id) = entry.map_err(redb_error(READ))?;
            if page.is_full() {
                page.truncate();
                break;
            }
            let stored = stored_run(&runs, id.value())?;
            if !add(&mut page, (id.value(), stored.value()))? {
                break;
            }
        }
        Ok(page.finish())
    }
}

/// Returns the threads whose cached fields match a query, newest update first, from its offset on:
/// those of the page, and one more, which shows that the list continues.
fn first_by_update(threads: &FieldSet<ThreadFields>, query: &ThreadQuery) -> Vec<ThreadId> {
    let matching = threads.iter().filter(|fields| thread_matches(query, fields));
    let keys = matching.map(|fields| ThreadCursor::sort_key(fields.updated_ms, &fields.id));
    let mut keys: Vec<_> = keys.collect();
    keys.sort_unstable();
    let most = query.limit.map_or(usize::MAX, |limit| limit.saturating_add(1));
    let listed = keys.into_iter().skip(query.offset).take(most);
    listed.map(|(_, thread)| thread.clone()).collect()
}

/// Returns a page of the threads whose cached fields match a query, in the order of their ids.
fn first_by_id(threads: &FieldSet<ThreadFields>, query: &ThreadQuery) -> ListPage<ThreadKey> {
    let matching = threads.iter().filter(|fields| thread_matches(query, fields));
    let mut matching: Vec<&ThreadFields> = matching.collect();
    let limit = query.limit.unwrap_or(usize::MAX);
    let is_last = matching.len() <= limit;
    if !is_last {
        // Only the threads of the page are sorted.
        matching.select_nth_unstable_by(limit, |one, other| one.id.cmp(&other.id));
        matching.truncate(limit);
    }
    matching.sort_unstable_by(|one, other| one.id.cmp(&other.id));
    ListPage { items: matching.into_iter().map(ThreadFields::key).collect(), is_last }
}

/// Returns the range of the keys after a thread, or of all keys.
fn keys_after(after: Option<&ThreadId>) -> (Bound<&[u8]>, Bound<&[u8]>) {
    let first = after.map_or(Bound::Unbounded, |id| Bound::Excluded(id.as_str().as_bytes()));
    (first, Bound::Unbounded)
}

/// Returns the fields of a stored record if they match a query.
fn matching_thread(query: &ThreadQuery, key: &[u8], stored: &[u8]) -> Option<ThreadFields> {
    let fields: Option<ThreadFields> = listed_fields(RECORD, (RECORDS_NAME, key), stored);
    fields.filter(|fields| thread_matches(query, fields))
}

/// Adds a stored record to a page, without its run context. Returns false if it does not fit.
fn add_thread(
    page: &mut PageBuilder<ThreadSummary>,
    key: &[u8],
    stored: &[u8],
) -> Result<bool, StoreError> {
    let thread: ThreadSummary = read(RECORD, (RECORDS_NAME, key), stored)?;
    page.add(thread.memory_bytes(), || Ok(thread))
}

/// The fields of a record that a list of pending runs needs. The input of the run is not decoded.
#[derive(Deserialize)]
struct PendingRecord {
    id: RunId,
    thread: ThreadId,
    status: RunStatus,
    started_ms: i64,
    spec: Option<PendingSpec>,
}

#[derive(Deserialize)]
struct PendingSpec {
    app: AppName,
    due_ms: i64,
    principal: Option<Principal>,
}

impl PendingRecord {
    /// Returns the record with default values in all fields that were not decoded.
    fn into_record(self) -> RunRecord {
        let spec = |spec: PendingSpec| RunSpec {
            kind: RunKind::Continue,
            stale_answers: StaleAnswers::default(),
            app: spec.app,
            graph: None,
            context: Value::Null,
            metadata: BTreeMap::new(),
            due_ms: spec.due_ms,
            ttl: None,
            client: Value::Null,
            principal: spec.principal,
        };
        RunRecord {
            id: self.id,
            thread: self.thread,
            first_seq: 0,
            status: self.status,
            failure: None,
            created_ms: None,
            started_ms: self.started_ms,
            ended_ms: None,
            last_checkpoint: None,
            reopen: None,
            options: RunOptions::default(),
            first_step: None,
            origin: None,
            usage: ModelUsage::default(),
            recovery_count: RecoveryCount::default(),
            spec: self.spec.map(spec).map(Box::new),
        }
    }
}
