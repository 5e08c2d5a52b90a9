//! Searches and counts of the runs of all threads in the file.

use std::cmp::Reverse;
use std::collections::HashMap;

use redb::{ReadOnlyTable, ReadableTable as _};
use serde::de::DeserializeOwned;
use wattle_graph::id::ThreadId;
use wattle_run::ports::store::{
    RunCounts, RunCursor, RunSearch, RunSearchPage, RunSummary, StoreError,
};

use crate::codec::{named, packed, unpack, unpacked_bytes};
use crate::disk::field_cache::FieldCache;
use crate::disk::field_set::{FieldSet, listed_fields};
use crate::disk::snapshot::{READ, RECORD, RUN, Snapshot};
use crate::disk::table::{RECORDS, RECORDS_NAME, RUNS, RUNS_NAME};
use crate::error::{corrupt, redb_error};
use crate::file::handle::SharedFile;
use crate::query::ThreadFields;
use crate::run_search::{
    ExaminedRun, RunExaminer, RunFields, RunMatcher, RunPage, RunSearchCounts, RunThread,
};
use crate::search::FirstPositions;

/// Number of threads of which a scan remembers whether they match, so that the record of a thread
/// with many runs is decoded once. A few hundred bytes each.
const KNOWN_THREADS: usize = 16 * 1024;

type Table = ReadOnlyTable<&'static [u8], &'static [u8]>;

/// See [`Store::search_runs`](wattle_run::ports::Store::search_runs). Scans the file if the fields
/// of the runs and of their threads are not cached. Such a search and a cached one keep the
/// positions of only as many runs as they may examine.
pub(crate) fn search_runs(
    file: &SharedFile,
    cache: &FieldCache,
    search: &RunSearch,
) -> Result<RunSearchPage, StoreError> {
    let matcher = RunMatcher::of_page(search);
    let select = |runs: &FieldSet<RunFields>, threads: &FieldSet<ThreadFields>| {
        first_runs((runs, threads), search, &matcher)
    };
    let (snapshot, selected) = cache.select_runs(|| Snapshot::newest(file), select)?;
    let scan = snapshot.scan_runs(matcher)?;
    if let Some(positions) = selected {
        match scan.page(search, positions) {
            // A record was damaged after its fields were cached.
            Err(StoreError::Corrupt { .. }) => cache.clear(),
            page => return page,
        }
    }
    scan.page(search, scan.selected(search)?)
}

/// See [`Store::count_runs`](wattle_run::ports::Store::count_runs). Scans the file if the fields of
/// the runs and of their threads are not cached.
pub(crate) fn count_runs(
    file: &SharedFile,
    cache: &FieldCache,
    search: &RunSearch,
) -> Result<RunCounts, StoreError> {
    let matcher = RunMatcher::of_counts(search);
    let mut counts = RunSearchCounts::new(search);
    let count = |runs: &FieldSet<RunFields>, threads: &FieldSet<ThreadFields>| {
        count_fields((runs, threads), search, &matcher, &mut counts)
    };
    let (snapshot, selected) = cache.select_runs(|| Snapshot::newest(file), count)?;
    let scan = snapshot.scan_runs(matcher)?;
    if let Some(positions) = selected {
        match scan.examine_all(positions, &mut counts) {
            Ok(()) => return Ok(counts.finish()),
            // A record was damaged after its fields were cached.
            Err(StoreError::Corrupt { .. }) => cache.clear(),
            Err(error) => return Err(error),
        }
    }
    scan.count(search)
}

impl Snapshot {
    fn scan_runs(&self, matcher: RunMatcher) -> Result<RunScan, StoreError> {
        Ok(RunScan {
            runs: self.transaction.open_table(RUNS).map_err(redb_error(READ))?,
            records: self.transaction.open_table(RECORDS).map_err(redb_error(READ))?,
            matcher,
        })
    }
}

/// Returns the first positions of runs whose cached fields and threads match, in the order of the
/// search.
fn first_runs(
    (runs, threads): (&FieldSet<RunFields>, &FieldSet<ThreadFields>),
    search: &RunSearch,
    matcher: &RunMatcher,
) -> Vec<RunCursor> {
    let limit = (!search.reads_contents()).then_some(search.limit);
    let mut first = FirstPositions::new(search.budget, limit);
    for run in runs.iter() {
        let position = run.sort_key();
        if !first.excludes(&position)
            && matcher.continues_with(run)
            && matcher.selects(run)
            && selects_thread(threads, run, matcher)
        {
            first.push(position);
        }
    }
    let positions = first.finish().into_iter();
    let positions =
        positions.map(|Reverse((position, run))| RunCursor { position, run: run.clone() });
    positions.collect()
}

/// Counts runs whose cached fields and threads match. If the search compares texts or metadata,
/// counts none and returns the first positions in the order in which a scan examines runs.
fn count_fields(
    (runs, threads): (&FieldSet<RunFields>, &FieldSet<ThreadFields>),
    search: &RunSearch,
    matcher: &RunMatcher,
    counts: &mut RunSearchCounts,
) -> Vec<RunCursor> {
    let mut first = FirstPositions::new(search.budget, None);
    for run in runs.iter() {
        if !matcher.selects(run) || !selects_thread(threads, run, matcher) {
            continue;
        }
        if search.reads_contents() {
            let Reverse((position, id)) = run.sort_key();
            first.push((Reverse(id), position));
        } else {
            counts.add(run.status);
        }
    }
    let positions = first.finish().into_iter();
    let positions =
        positions.map(|(Reverse(run), position)| RunCursor { position, run: run.clone() });
    positions.collect()
}

/// Returns whether the cached fields of the thread of a run match. A thread without fields is
/// damaged or was set aside, and does not match.
fn selects_thread(threads: &FieldSet<ThreadFields>, run: &RunFields, matcher: &RunMatcher) -> bool {
    threads.get(run.thread.as_str()).is_some_and(|thread| matcher.selects_thread(thread))
}

/// The tables that a search of runs reads.
struct RunScan {
    runs: Table,
    records: Table,
    matcher: RunMatcher,
}

impl RunScan {
    /// Examines runs for a page.
    fn page(
        &self,
        search: &RunSearch,
        positions: Vec<RunCursor>,
    ) -> Result<RunSearchPage, StoreError> {
        let mut page = RunPage::new(search);
        self.examine_all(positions, &mut page)?;
        Ok(page.finish())
    }

    /// Counts runs by a scan of all records.
    fn count(&self, search: &RunSearch) -> Result<RunCounts, StoreError> {
        let mut counts = RunSearchCounts::new(search);
        let mut known = HashMap::new();
        for run in self.runs()? {
            let run = run?;
            if !self.matcher.selects(&run) || !self.selects_thread(&run.thread, &mut known)? {
                continue;
            }
            if !search.reads_contents() {
                counts.add(run.status);
            } else if !self.examine(run.cursor(), &mut counts)? {
                break;
            }
        }
        Ok(counts.finish())
    }

    /// Returns the selecting fields of all runs. Most ids increase with time, so the highest id is
    /// the first one.
    fn runs(&self) -> Result<impl Iterator<Item = Result<RunFields, StoreError>>, StoreError> {
        let entries = self.runs.iter().map_err(redb_error(READ))?.rev();
        Ok(entries.filter_map(|entry| {
            let (key, stored) = match entry.map_err(redb_error(READ)) {
                Ok(entry) => entry,
                Err(error) => return Some(Err(error)),
            };
            listed_fields::<RunFields>(RUN, (RUNS_NAME, key.value()), stored.value()).map(Ok)
        }))
    }

    /// Returns the first positions of runs whose stored fields and threads match, in the order of
    /// the search.
    fn selected(&self, search: &RunSearch) -> Result<Vec<RunCursor>, StoreError> {
        let limit = (!search.reads_contents()).then_some(search.limit);
        let mut known = HashMap::new();
        let mut first = FirstPositions::new(search.budget, limit);
        // From the highest id on, `first` soon has the newest runs, and the threads of older runs
        // are not read.
        for run in self.runs()? {
            let run = run?;
            let position = run.cursor();
            if first.excludes(&position)
                || !self.matcher.continues_at(&position)
                || !self.matcher.selects(&run)
            {
                continue;
            }
            if self.selects_thread(&run.thread, &mut known)? {
                first.push(position);
            }
        }
        Ok(first.finish())
    }

    /// Returns whether the thread of a run matches. A thread that is damaged or was set aside does
    /// not, so that it does not hide the runs of others. `known` has the results for the threads
    /// that were read before.
    fn selects_thread(
        &self,
        id: &ThreadId,
        known: &mut HashMap<ThreadId, bool>,
    ) -> Result<bool, StoreError> {
        if let Some(selects) = known.get(id) {
            return Ok(*selects);
        }
        let thread: Option<(RunThread, u64)> = self.thread(id)?;
        let selects = thread.is_some_and(|(thread, _)| self.matcher.selects_thread(&thread));
        if known.len() == KNOWN_THREADS {
            known.clear();
        }
        known.insert(id.clone(), selects);
        Ok(selects)
    }

    /// Examines runs until the examiner needs no further ones.
    fn examine_all(
        &self,
        positions: Vec<RunCursor>,
        examiner: &mut impl RunExaminer,
    ) -> Result<(), StoreError> {
        for position in positions {
            if !self.examine(position, examiner)? {
                break;
            }
        }
        Ok(())
    }

    /// Examines a run. Returns false if the examiner needs no further runs.
    fn examine(
        &self,
        position: RunCursor,
        examiner: &mut impl RunExaminer,
    ) -> Result<bool, StoreError> {
        let examined = self.found(position)?;
        let id = examined.run.thread.clone();
        examiner.examine(examined, || {
            let metadata = self.thread(&id)?;
            Ok(metadata.map(|(metadata, _)| metadata).unwrap_or_default())
        })
    }

    /// Reads a run with its thread. Fails if the record of the thread was damaged after its fields
    /// were cached: the positions were selected with this thread, so without the run, a page would
    /// end before its limit although the search continues.
    fn found(&self, position: RunCursor) -> Result<ExaminedRun, StoreError> {
        let key = position.run.as_str().as_bytes();
        let stored = self.runs.get(key).map_err(redb_error(READ))?;
        let stored = stored.ok_or_else(|| corrupt(named(RUN, key), "it is missing"))?;
        let record = packed(RUN, (RUNS_NAME, key), stored.value())?;
        let run: RunSummary = unpack(RUN, record)?;
        let (thread, bytes) = self.thread(&run.thread)?.ok_or_else(|| {
            corrupt(named(RECORD, run.thread.as_str().as_bytes()), "it cannot be read")
        })?;
        let bytes = unpacked_bytes(record).saturating_add(bytes);
        Ok(ExaminedRun { position, run, thread, bytes })
    }

    /// Reads fields of the thread of a run, and the bytes of JSON of its record.
    fn thread<T: DeserializeOwned>(&self, id: &ThreadId) -> Result<Option<(T, u64)>, StoreError> {
        let key = id.as_str().as_bytes();
        let stored = self.records.get(key).map_err(redb_error(READ))?;
        let Some(stored) = stored else { return Ok(None) };
        let thread = listed_fields(RECORD, (RECORDS_NAME, key), stored.value());
        // The record was read, so it is not truncated.
        let bytes = packed(RECORD, (RECORDS_NAME, key), stored.value()).map_or(0, unpacked_bytes);
        Ok(thread.map(|thread| (thread, bytes)))
    }
}
