//! Readers between the steps of commits: the cache has what a scan of the same snapshot has.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::vec::IntoIter;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{ProptestConfig, Strategy, any, prop_assert_eq, prop_oneof, proptest};
use proptest::test_runner::TestCaseError;
use redb::backends::InMemoryBackend;
use redb::{Builder, TableDefinition};
use serde_json::json;
use wattle_run::ports::store::{RunRecord, RunSearch, ThreadQuery, ThreadRecord, ThreadSearch};

use super::*;
use crate::codec::Packer;
use crate::disk::changed_keys::OpenKeys;
use crate::disk::create::{self, FILE};
use crate::disk::list::list_threads;
use crate::disk::run_search::{count_runs, search_runs};
use crate::disk::search::{count_threads, search_threads};
use crate::disk::table::{RECORDS, RUNS};
use crate::disk::write_set::{StagedRun, WriteSet, stored_record};
use crate::file::handle::SharedFile;

const THREADS: usize = 4;

/// A thread with its run, and the time of the update of both; `None` deletes them.
type Change = (usize, Option<i64>);

/// A step of the writer.
#[derive(Clone, Debug)]
enum Step {
    Begin(Vec<Change>),
    Commit(Vec<Change>),
    Settle,
    Suspend,
    Resume,
}

fn history() -> impl Strategy<Value = Vec<Step>> {
    let changes = || vec((0..THREADS, option::of(0..9_i64)), 1..3);
    let done = changes().prop_map(|changes| {
        vec![Step::Begin(changes.clone()), Step::Commit(changes), Step::Settle]
    });
    let failed = changes()
        .prop_map(|changes| vec![Step::Begin(changes), Step::Settle, Step::Suspend, Step::Resume]);
    // The commit appears when the file is reopened.
    let unknown = changes().prop_map(|changes| {
        vec![
            Step::Begin(changes.clone()),
            Step::Settle,
            Step::Suspend,
            Step::Commit(changes),
            Step::Resume,
        ]
    });
    let one = prop_oneof![8 => done, 1 => failed, 1 => unknown];
    vec(one, 1..40).prop_map(|parts| parts.concat())
}

fn empty_file() -> SharedFile {
    let database = Builder::new().create_with_backend(InMemoryBackend::new()).unwrap();
    create::create(&database).unwrap();
    SharedFile::new(PathBuf::new(), FILE, database)
}

fn thread_id(number: usize) -> ThreadId {
    ThreadId::new(format!("thread-{number}")).unwrap()
}

fn run_id(number: usize) -> RunId {
    RunId::new(format!("run-{number}")).unwrap()
}

/// Returns the packed record of a run.
fn packed_run(run: &RunId, thread: &ThreadId, started_ms: i64) -> Vec<u8> {
    let record = json!({
        "id": run, "thread": thread, "first_seq": 1, "status": "running", "started_ms": started_ms,
    });
    let record: RunRecord = serde_json::from_value(record).unwrap();
    Packer::default().pack(&record).unwrap()
}

fn write_set(changes: &[Change]) -> WriteSet {
    let mut write_set = WriteSet::default();
    for &(number, updated_ms) in changes {
        let (thread, run) = (thread_id(number), run_id(number));
        if let Some(updated_ms) = updated_ms {
            let record = ThreadRecord::unbound(thread.clone(), updated_ms);
            let packed = packed_run(&run, &thread, updated_ms);
            let staged = StagedRun::new(thread.clone(), &run, &packed);
            write_set.runs.insert(run, staged);
            let packed = Packer::default().pack(&record).unwrap();
            let stored = stored_record(&thread, &packed);
            write_set.records.insert(thread, stored);
        } else {
            write_set.deleted.0.push(thread);
            write_set.deleted.1.push(run);
        }
    }
    write_set
}

fn commit(file: &SharedFile, changes: &[Change]) {
    let handle = file.handle();
    let transaction = handle.writable().unwrap().begin_write().unwrap();
    write_set(changes).write(&transaction).unwrap();
    transaction.commit().unwrap();
}

/// Returns the threads of a set, each with the time of its update.
fn listed(threads: &FieldSet<ThreadFields>) -> BTreeMap<ThreadId, i64> {
    threads.iter().map(|fields| (fields.id.clone(), fields.updated_ms)).collect()
}

/// Returns the positions of the runs of a set.
fn listed_runs(runs: &FieldSet<RunFields>) -> BTreeMap<RunId, i64> {
    runs.iter().map(|fields| (fields.id.clone(), fields.cursor().position)).collect()
}

fn times(times: &[(usize, i64)]) -> BTreeMap<ThreadId, i64> {
    times.iter().map(|&(number, updated_ms)| (thread_id(number), updated_ms)).collect()
}

/// Lists the threads of the newest snapshot; `None` if the caller must scan.
fn list(cache: &FieldCache, file: &SharedFile) -> Option<BTreeMap<ThreadId, i64>> {
    cache.select_threads(|| Snapshot::newest(file), listed).unwrap().1
}

struct Writer<'a> {
    file: &'a SharedFile,
    changed: &'a ChangedKeys,
    steps: IntoIter<Step>,
    open: Option<OpenKeys<'a>>,
}

impl Writer<'_> {
    fn advance(&mut self, steps: usize) {
        for step in self.steps.by_ref().take(steps) {
            match step {
                Step::Begin(changes) => self.open = Some(self.changed.begin(&write_set(&changes))),
                Step::Commit(changes) => commit(self.file, &changes),
                Step::Settle => self.open = None,
                Step::Suspend => self.changed.suspend(),
                Step::Resume => self.changed.resume(),
            }
        }
    }
}

/// The number of steps of the writer before a read, before its snapshot is opened, and before it
/// adds the open keys; whether it reads runs.
type Read = (usize, usize, usize, bool);

/// Reads between the steps of a writer.
fn interleave(steps: Vec<Step>, reads: &[Read]) -> Result<(), TestCaseError> {
    let file = empty_file();
    let changed = Arc::<ChangedKeys>::default();
    let cache = FieldCache::new(changed.clone(), u64::MAX);
    let mut writer =
        Writer { file: &file, changed: &changed, steps: steps.into_iter(), open: None };
    for &(before, opening, after, with_runs) in reads {
        writer.advance(before);
        let open = || {
            writer.advance(opening);
            let snapshot = Snapshot::newest(&file);
            writer.advance(after);
            snapshot
        };
        let (snapshot, selected) = if with_runs {
            cache.select_runs(open, |runs, threads| (listed(threads), Some(listed_runs(runs))))
        } else {
            cache.select_threads(open, |threads| (listed(threads), None))
        }
        .unwrap();
        let Some((threads, runs)) = selected else { continue };
        let scanned = FieldSet::read(&snapshot, usize::MAX).unwrap().unwrap();
        prop_assert_eq!(threads, listed(&scanned));
        if let Some(runs) = runs {
            let scanned = FieldSet::read(&snapshot, usize::MAX).unwrap().unwrap();
            prop_assert_eq!(runs, listed_runs(&scanned));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn cached_fields_are_those_of_the_snapshot(
        steps in history(),
        reads in vec((0..4_usize, 0..4_usize, 0..4_usize, any::<bool>()), 1..40),
    ) {
        interleave(steps, &reads)?;
    }
}

#[test]
fn only_changed_records_are_decoded_again() {
    let (file, changed) = (empty_file(), Arc::<ChangedKeys>::default());
    let cache = FieldCache::new(changed.clone(), u64::MAX);
    commit(&file, &[(0, Some(1)), (1, Some(1))]);
    assert_eq!(list(&cache, &file), Some(times(&[(0, 1), (1, 1)])));
    // No key is noted, so the list shows that it has not read the records.
    commit(&file, &[(0, Some(2)), (1, Some(2))]);
    assert_eq!(list(&cache, &file), Some(times(&[(0, 1), (1, 1)])));
    drop(changed.begin(&write_set(&[(1, Some(2))])));
    assert_eq!(list(&cache, &file), Some(times(&[(0, 1), (1, 2)])));
}

#[test]
fn fields_are_not_cached_while_a_commit_without_noted_keys_is_open() {
    let (file, changed) = (empty_file(), Arc::<ChangedKeys>::default());
    let cache = FieldCache::new(changed.clone(), u64::MAX);
    let open = changed.begin(&write_set(&[(0, Some(1))]));
    assert_eq!(list(&cache, &file), None);
    commit(&file, &[(0, Some(1))]);
    drop(open);
    assert_eq!(list(&cache, &file), Some(times(&[(0, 1)])));
}

#[test]
fn fields_are_not_cached_while_the_file_has_failed() {
    let (file, changed) = (empty_file(), Arc::<ChangedKeys>::default());
    let cache = FieldCache::new(changed.clone(), u64::MAX);
    assert_eq!(list(&cache, &file), Some(times(&[])));
    changed.suspend();
    assert_eq!(list(&cache, &file), None);
    commit(&file, &[(0, Some(1))]);
    changed.resume();
    assert_eq!(list(&cache, &file), Some(times(&[(0, 1)])));
}

#[test]
fn too_large_fields_are_not_cached() {
    let (file, changed) = (empty_file(), Arc::<ChangedKeys>::default());
    let cache = FieldCache::new(changed, 2 * size_of::<ThreadFields>() as u64);
    assert_eq!(list(&cache, &file), Some(times(&[])));
    commit(&file, &[(0, Some(1))]);
    cache.clear();
    assert_eq!(list(&cache, &file), None);
    commit(&file, &[(0, None)]);
    assert_eq!(list(&cache, &file), None, "no list tries to read the fields again");
}

#[test]
fn fields_that_were_too_large_are_read_again_in_the_next_epoch() {
    let (file, changed) = (empty_file(), Arc::<ChangedKeys>::default());
    let max_bytes = 2 * size_of::<ThreadFields>() as u64;
    let cache = FieldCache::new(changed.clone(), max_bytes);
    commit(&file, &[(0, Some(1))]);
    assert_eq!(list(&cache, &file), None);
    commit(&file, &[(0, None)]);
    changed.suspend();
    assert_eq!(list(&cache, &file), None, "the file has failed");
    changed.resume();
    assert_eq!(list(&cache, &file), Some(times(&[])));
}

/// Replaces a record by bytes that are no record, without noting its key.
fn damage(file: &SharedFile, table: TableDefinition<'_, &'static [u8], &'static [u8]>, key: &str) {
    let handle = file.handle();
    let transaction = handle.writable().unwrap().begin_write().unwrap();
    let mut records = transaction.open_table(table).unwrap();
    records.insert(key.as_bytes(), &b"damaged"[..]).unwrap();
    drop(records);
    transaction.commit().unwrap();
}

#[test]
fn record_that_is_damaged_after_it_was_cached_is_left_out() {
    let (file, cache) = (empty_file(), FieldCache::new(Arc::default(), u64::MAX));
    let all = ThreadSearch::default();
    let contents = ThreadSearch { text: Some("thread".to_owned()), ..ThreadSearch::default() };
    let query = ThreadQuery::default();
    let all_runs = RunSearch::default();
    let run_contents = RunSearch { text: Some("thread".to_owned()), ..RunSearch::default() };
    let reads: [&dyn Fn() -> usize; 6] = [
        &|| list_threads(&file, &cache, &query).unwrap().items.len(),
        &|| search_threads(&file, &cache, &all).unwrap().items.len(),
        &|| search_threads(&file, &cache, &contents).unwrap().items.len(),
        &|| count_threads(&file, &cache, &contents).unwrap().total() as usize,
        &|| search_runs(&file, &cache, &all_runs).unwrap().items.len(),
        &|| count_runs(&file, &cache, &run_contents).unwrap().total() as usize,
    ];
    for read in reads {
        commit(&file, &[(0, Some(1)), (1, Some(2))]);
        cache.clear();
        assert_eq!(read(), 2);
        damage(&file, RECORDS, thread_id(1).as_str());
        damage(&file, RUNS, run_id(1).as_str());
        assert_eq!(list(&cache, &file).map(|threads| threads.len()), Some(2), "it is cached");
        assert_eq!(read(), 1);
    }
}

#[test]
fn search_of_runs_goes_on_after_a_thread_that_is_damaged_after_it_was_cached() {
    let (file, cache) = (empty_file(), FieldCache::new(Arc::default(), u64::MAX));
    commit(&file, &[(0, Some(1)), (1, Some(2)), (2, Some(3))]);
    let search = RunSearch { limit: 1, ..RunSearch::default() };
    let first = search_runs(&file, &cache, &search).unwrap();
    assert_eq!(first.items[0].run.id, run_id(2));
    damage(&file, RECORDS, thread_id(2).as_str());
    let first = search_runs(&file, &cache, &search).unwrap();
    assert_eq!(first.items[0].run.id, run_id(1));
    assert!(first.next.is_some(), "run 0 follows");
}

#[test]
fn damaged_record_of_a_thread_that_is_set_aside_is_left_out() {
    let (file, changed) = (empty_file(), Arc::<ChangedKeys>::default());
    let cache = FieldCache::new(changed.clone(), u64::MAX);
    commit(&file, &[(0, Some(1)), (1, Some(2))]);
    assert_eq!(list(&cache, &file), Some(times(&[(0, 1), (1, 2)])));
    damage(&file, RECORDS, thread_id(1).as_str());
    let aside = vec![(thread_id(1), "its record is damaged".to_owned())];
    drop(changed.begin(&WriteSet { aside, ..WriteSet::default() }));
    assert_eq!(list(&cache, &file), Some(times(&[(0, 1)])));
}
