//! A survey: reads the whole file and reports the damage.
//!
//! A survey collects the thread ids of all tables that contain thread ids, so one of these tables
//! may be damaged. Each thread is then read completely: its records, its frames with their seals,
//! and the indexes of its frames and blobs. An error or a panic of redb at a damaged page counts as
//! damage of the thread or table that was read. An unreadable file ends the survey, since redb then
//! reads nothing more and the rest of the file may be intact.

mod check;

use std::collections::{BTreeMap, BTreeSet};

use redb::{Key, TableDefinition, TableError, Value};
use wattle_graph::id::{RunId, ThreadId};
use wattle_run::ports::store::{Damage, DamageReport, RunRecord, StoreError};

use crate::codec::{has_checksum, packed, read};
use crate::disk::migrate::UNCHECKED_FORMAT;
use crate::disk::snapshot::{Snapshot, run_of, thread_of};
use crate::disk::table::{
    FORMAT, HEADS, HEADS_NAME, LOG, MARKS, MENTIONS, META, ORPHANS, PENDING, RECORDS, RECORDS_NAME,
    RUNS, RUNS_NAME, THREAD_RUNS,
};
use crate::error::{corrupt, redb_error};
use crate::file::guarded;
use crate::file::kind::META_FORMAT;
use crate::file::scan::scan_table;

pub(crate) use check::IntactThread;

pub(super) const OP_READ: &str = "read its tables";

/// The content of the tables, without the data of the threads.
pub(crate) struct Tables {
    /// Threads that were already set aside when the survey began, each with the reason. The host
    /// refuses all work on them.
    pub(crate) aside: Vec<(ThreadId, String)>,
    /// Damage that belongs to no single thread.
    pub(crate) damaged: Vec<Damage>,
    /// Positions of pending runs, if their table can be read. A damaged page may contain wrong
    /// positions, so a rebuild uses the positions only to order runs that were requested at the
    /// same time.
    pub(crate) positions: BTreeMap<RunId, u64>,
    /// Whether at least one table names all threads.
    pub(crate) is_complete: bool,
    /// All threads that a table names and that were not set aside.
    names: BTreeSet<ThreadId>,
}

/// The result of a survey.
pub(crate) struct SurveyResult {
    /// The intact threads, and for each damaged thread the reason.
    pub(crate) threads: BTreeMap<ThreadId, Result<IntactThread, String>>,
    pub(crate) tables: Tables,
}

impl SurveyResult {
    /// Converts the result to a [`DamageReport`].
    pub(crate) fn to_damage_report(&self) -> DamageReport {
        let damaged = self.threads.iter().filter_map(|(thread, found)| damage_of(thread, found));
        to_report(self.threads.len(), damaged.collect(), &self.tables)
    }
}

fn damage_of(thread: &ThreadId, found: &Result<IntactThread, String>) -> Option<Damage> {
    match found {
        Err(reason) => {
            Some(Damage { subject: format!("thread `{thread}`"), reason: reason.clone() })
        }
        Ok(IntactThread { index: Some(reason), .. }) => {
            Some(Damage { subject: format!("index of thread `{thread}`"), reason: reason.clone() })
        }
        Ok(_) => None,
    }
}

fn to_report(threads: usize, mut damaged: Vec<Damage>, tables: &Tables) -> DamageReport {
    damaged.extend(tables.aside.iter().map(|(thread, reason)| Damage {
        subject: format!("thread `{thread}`"),
        reason: format!("it was already set aside: {reason}"),
    }));
    damaged.extend(tables.damaged.iter().cloned());
    DamageReport { threads: threads as u64, damaged }
}

/// Reads the whole file. The result contains the data that a rebuild needs.
///
/// # Errors
///
/// [`StoreError::Backend`] if the file cannot be read.
pub(crate) fn survey(snapshot: &Snapshot) -> Result<SurveyResult, StoreError> {
    let mut threads = BTreeMap::new();
    let tables = read_all(snapshot, |thread, found| drop(threads.insert(thread, found)))?;
    Ok(SurveyResult { threads, tables })
}

/// Reads the whole file. Returns only the damage.
///
/// # Errors
///
/// The errors of [`survey`].
pub(crate) fn name_damage(snapshot: &Snapshot) -> Result<DamageReport, StoreError> {
    let (mut threads, mut damaged) = (0, Vec::new());
    let tables = read_all(snapshot, |thread, found| {
        threads += 1;
        damaged.extend(damage_of(&thread, &found));
    })?;
    Ok(to_report(threads, damaged, &tables))
}

/// Reads all tables, and then each thread.
fn read_all(
    snapshot: &Snapshot,
    mut visit: impl FnMut(ThreadId, Result<IntactThread, String>),
) -> Result<Tables, StoreError> {
    let mut tables = Tables::read(snapshot)?;
    for thread in std::mem::take(&mut tables.names) {
        let found = separate_damage(guarded(OP_READ, || check::check(snapshot, &thread)))?;
        if let Ok(sound) = &found {
            tables.report_missing_pending(sound);
        }
        visit(thread, found);
    }
    Ok(tables)
}

impl Tables {
    fn read(snapshot: &Snapshot) -> Result<Self, StoreError> {
        let format = guarded(OP_READ, || snapshot.meta_value(META_FORMAT)).ok().flatten();
        let has_checksums = format.is_none_or(|format| format > UNCHECKED_FORMAT);
        let (mut names, mut damaged) = (BTreeSet::new(), Vec::new());
        let (mut heads, mut records) =
            (NamedThreads::new(has_checksums), NamedThreads::new(has_checksums));
        let heads_damage = visit_table(snapshot, HEADS, |key, stored| {
            names.extend(heads.visit(HEADS_NAME, key, stored));
        })?;
        let records_damage = visit_table(snapshot, RECORDS, |key, stored| {
            names.extend(records.visit(RECORDS_NAME, key, stored));
        })?;
        let runs_damage = visit_table(snapshot, RUNS, |key, stored| {
            match read::<RunRecord>("run record", (RUNS_NAME, key), stored) {
                Ok(run) => drop(names.insert(run.thread)),
                Err(error) => {
                    damaged.push(Damage { subject: "a run".to_owned(), reason: error.to_string() });
                }
            }
        })?;
        let mut positions = BTreeMap::new();
        let pending_damage = visit_table(snapshot, PENDING, |key, position| {
            positions.extend(run_of(key).map(|run| (run, position)));
        })?;
        let is_complete = (heads_damage.is_none() && heads.are_intact)
            || (records_damage.is_none() && records.are_intact);
        for (name, damage) in [
            ("heads", heads_damage),
            ("records", records_damage),
            ("runs", runs_damage),
            ("log", visit_table(snapshot, LOG, |_, _| ())?),
            ("pending", pending_damage),
            ("thread_runs", visit_table(snapshot, THREAD_RUNS, |_, _| ())?),
            ("marks", visit_table(snapshot, MARKS, |_, _| ())?),
            ("mentions", visit_table(snapshot, MENTIONS, |_, ()| ())?),
            ("remains", visit_table(snapshot, ORPHANS, |_, _| ())?),
            ("wattle", visit_table(snapshot, META, |_, _| ())?),
        ] {
            if let Some(reason) = damage {
                damaged.push(Damage { subject: format!("table `{name}`"), reason });
            }
        }
        let aside = guarded(OP_READ, || snapshot.all_aside())?;
        names.retain(|name| !aside.iter().any(|(aside, _)| aside == name));
        Ok(Self { aside, damaged, positions, is_complete, names })
    }

    /// Reports the pending runs of a thread that are missing in the table of pending runs. Such
    /// runs would never start.
    fn report_missing_pending(&mut self, sound: &IntactThread) {
        let lost = sound.pending.iter().filter(|(_, run)| !self.positions.contains_key(run));
        self.damaged.extend(lost.map(|(_, run)| Damage {
            subject: format!("run `{run}`"),
            reason: "it is pending, but missing in the table of pending runs".to_owned(),
        }));
    }
}

/// Returns damage of what was read as the inner error, as a text, so that a survey can report the
/// damage and continue.
///
/// # Errors
///
/// [`StoreError::Backend`] if the file could not be read.
fn separate_damage<T>(read: Result<T, StoreError>) -> Result<Result<T, String>, StoreError> {
    match read {
        Err(error @ StoreError::Backend { .. }) => Err(error),
        read => Ok(read.map_err(|error| error.to_string())),
    }
}

/// The threads that the keys of a table name.
struct NamedThreads {
    /// Whether the format of the file has checksums.
    has_checksums: bool,
    /// Whether the checksums of all visited entries match. An entry whose checksum does not match
    /// may have a damaged key, which names the wrong thread.
    are_intact: bool,
}

impl NamedThreads {
    fn new(has_checksums: bool) -> Self {
        Self { has_checksums, are_intact: true }
    }

    /// Checks an entry of the table, and returns the thread that its key names.
    fn visit(&mut self, table: &str, key: &[u8], stored: &[u8]) -> Option<ThreadId> {
        let is_checked = has_checksum(stored) || !self.has_checksums;
        self.are_intact &= is_checked && packed("record", (table, key), stored).is_ok();
        thread_of(key)
    }
}

/// Visits a table from its beginning, and if a page is damaged also from its end. If the visit may
/// have missed entries, returns the reason.
///
/// # Errors
///
/// [`StoreError::Backend`] if the file cannot be read.
fn visit_table<K, V>(
    snapshot: &Snapshot,
    table: TableDefinition<'_, K, V>,
    mut visit: impl FnMut(K::SelfType<'_>, V::SelfType<'_>),
) -> Result<Option<String>, StoreError>
where
    K: Key + 'static,
    V: Value + 'static,
{
    let opened = guarded(OP_READ, || match snapshot.transaction.open_table(table) {
        Ok(table) => Ok(Some(table)),
        // Older files get this table when a thread is first deleted.
        Err(TableError::TableDoesNotExist(name)) if name == "remains" => Ok(None),
        // Files of older formats get this table when they are opened.
        Err(TableError::TableDoesNotExist(name))
            if name == "pending" && snapshot.meta_value(META_FORMAT)? != Some(FORMAT) =>
        {
            Ok(None)
        }
        Err(error) => Err(redb_error(OP_READ)(error)),
    });
    let table = match separate_damage(opened)? {
        Ok(Some(table)) => table,
        Ok(None) => return Ok(None),
        Err(damage) => return Ok(Some(damage)),
    };
    let scan = scan_table(OP_READ, &table, |key, value| {
        visit(key, value.value());
        Ok(())
    })?;
    let miscount = scan.miscount().map(|claimed| {
        corrupt("table", format!("it has {} entries, not {claimed} as counted", scan.visited))
    });
    let damage = scan.gap.map(|gap| gap.damage).or(miscount);
    Ok(damage.map(|damage| damage.to_string()))
}
