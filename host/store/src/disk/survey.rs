//! A survey: reads everything that is stored and names the damage.
//!
//! Threads are found by all tables that name them, so that one of the tables may be damaged. Each
//! thread is then read completely: its records, its frames with their seals, and the indexes of its
//! frames and blobs. An error or a panic of redb at a damaged page counts as damage of the thread
//! or table that was read. An unreadable file ends the survey, since redb then reads nothing more
//! and the rest of the file may be intact.

mod check;

use std::collections::{BTreeMap, BTreeSet};

use redb::{Key, TableDefinition, TableError, Value};
use wattle_graph::id::{RunId, ThreadId};
use wattle_run::ports::store::{Damage, DamageReport, RunRecord, StoreError};

use crate::codec::{has_checksum, packed, read};
use crate::disk::migrate::UNCHECKED_FORMAT;
use crate::disk::snapshot::{Snapshot, run_of, thread_of};
use crate::disk::table::{
    FORMAT, HEADS, IN_HEADS, IN_RECORDS, IN_RUNS, LOG, MARKS, MENTIONS, META, PENDING, RECORDS,
    REMAINS, RUNS, THREAD_RUNS,
};
use crate::error::{corrupt, redb_error};
use crate::file::guarded;
use crate::file::kind::META_FORMAT;
use crate::file::scan::scan_table;

pub(crate) use check::Sound;

pub(super) const LOOK: &str = "read its tables";

/// The content of the tables, apart from that of the threads.
pub(crate) struct Tables {
    /// Threads that were set aside before.
    pub(crate) aside: Vec<(ThreadId, String)>,
    /// Damage that belongs to no single thread.
    pub(crate) damaged: Vec<Damage>,
    /// Positions of pending runs, if their table can be read. A damaged page may have any position,
    /// so they order only runs that were requested at the same time.
    pub(crate) places: BTreeMap<RunId, u64>,
    /// Whether some table names all threads.
    pub(crate) is_complete: bool,
    /// All threads that a table names and that were not set aside.
    names: BTreeSet<ThreadId>,
}

/// The result of a survey.
pub(crate) struct Found {
    /// The intact threads, and why the others are damaged.
    pub(crate) threads: BTreeMap<ThreadId, Result<Sound, String>>,
    pub(crate) tables: Tables,
}

impl Found {
    /// Converts the result to the type of the port.
    pub(crate) fn survey(&self) -> DamageReport {
        let damaged = self.threads.iter().filter_map(|(thread, found)| damage_of(thread, found));
        in_words(self.threads.len(), damaged.collect(), &self.tables)
    }
}

fn damage_of(thread: &ThreadId, found: &Result<Sound, String>) -> Option<Damage> {
    match found {
        Err(reason) => {
            Some(Damage { subject: format!("thread `{thread}`"), reason: reason.clone() })
        }
        Ok(Sound { index: Some(reason), .. }) => {
            Some(Damage { subject: format!("index of thread `{thread}`"), reason: reason.clone() })
        }
        Ok(_) => None,
    }
}

fn in_words(threads: usize, mut damaged: Vec<Damage>, tables: &Tables) -> DamageReport {
    damaged.extend(tables.aside.iter().map(|(thread, reason)| Damage {
        subject: format!("thread `{thread}`"),
        reason: format!("it was set aside before: {reason}"),
    }));
    damaged.extend(tables.damaged.iter().cloned());
    DamageReport { threads: threads as u64, damaged }
}

/// Reads everything, and keeps what a rebuild needs.
///
/// # Errors
///
/// [`StoreError::Backend`] if the file cannot be read.
pub(crate) fn survey(snapshot: &Snapshot) -> Result<Found, StoreError> {
    let mut threads = BTreeMap::new();
    let tables = look(snapshot, |thread, found| drop(threads.insert(thread, found)))?;
    Ok(Found { threads, tables })
}

/// Reads everything, and keeps only the damage.
///
/// # Errors
///
/// The errors of [`survey`].
pub(crate) fn name_damage(snapshot: &Snapshot) -> Result<DamageReport, StoreError> {
    let (mut threads, mut damaged) = (0, Vec::new());
    let tables = look(snapshot, |thread, found| {
        threads += 1;
        damaged.extend(damage_of(&thread, &found));
    })?;
    Ok(in_words(threads, damaged, &tables))
}

/// Reads all tables, and then each thread.
fn look(
    snapshot: &Snapshot,
    mut see: impl FnMut(ThreadId, Result<Sound, String>),
) -> Result<Tables, StoreError> {
    let mut tables = Tables::read(snapshot)?;
    for thread in std::mem::take(&mut tables.names) {
        let found = or_damage(guarded(LOOK, || check::check(snapshot, &thread)))?;
        if let Ok(sound) = &found {
            tables.note_lost_turns(sound);
        }
        see(thread, found);
    }
    Ok(tables)
}

impl Tables {
    fn read(snapshot: &Snapshot) -> Result<Self, StoreError> {
        let format = guarded(LOOK, || snapshot.meta_value(META_FORMAT)).ok().flatten();
        let has_checksums = format.is_none_or(|format| format > UNCHECKED_FORMAT);
        let (mut names, mut damaged) = (BTreeSet::new(), Vec::new());
        let (mut heads, mut records) = (Named::new(has_checksums), Named::new(has_checksums));
        let broken_heads = walk_table(snapshot, HEADS, |key, stored| {
            names.extend(heads.see(IN_HEADS, key, stored));
        })?;
        let broken_records = walk_table(snapshot, RECORDS, |key, stored| {
            names.extend(records.see(IN_RECORDS, key, stored));
        })?;
        let broken_runs = walk_table(snapshot, RUNS, |key, stored| {
            match read::<RunRecord>("run record", (IN_RUNS, key), stored) {
                Ok(run) => drop(names.insert(run.thread)),
                Err(error) => {
                    damaged.push(Damage { subject: "a run".to_owned(), reason: error.to_string() });
                }
            }
        })?;
        let mut places = BTreeMap::new();
        let broken_pending = walk_table(snapshot, PENDING, |key, place| {
            places.extend(run_of(key).map(|run| (run, place)));
        })?;
        let is_complete = (broken_heads.is_none() && heads.are_sound)
            || (broken_records.is_none() && records.are_sound);
        for (name, broken) in [
            ("heads", broken_heads),
            ("records", broken_records),
            ("runs", broken_runs),
            ("log", walk_table(snapshot, LOG, |_, _| ())?),
            ("pending", broken_pending),
            ("thread_runs", walk_table(snapshot, THREAD_RUNS, |_, _| ())?),
            ("marks", walk_table(snapshot, MARKS, |_, _| ())?),
            ("mentions", walk_table(snapshot, MENTIONS, |_, ()| ())?),
            ("remains", walk_table(snapshot, REMAINS, |_, _| ())?),
            ("wattle", walk_table(snapshot, META, |_, _| ())?),
        ] {
            if let Some(reason) = broken {
                damaged.push(Damage { subject: format!("table `{name}`"), reason });
            }
        }
        let aside = guarded(LOOK, || snapshot.all_aside())?;
        names.retain(|name| !aside.iter().any(|(aside, _)| aside == name));
        Ok(Self { aside, damaged, places, is_complete, names })
    }

    /// Reports the pending runs of a thread that are missing in the table of pending runs: they
    /// would never start.
    fn note_lost_turns(&mut self, sound: &Sound) {
        let lost = sound.pending.iter().filter(|(_, run)| !self.places.contains_key(run));
        self.damaged.extend(lost.map(|(_, run)| Damage {
            subject: format!("run `{run}`"),
            reason: "it is pending, but missing in the table of pending runs".to_owned(),
        }));
    }
}

/// Separates damage from errors of the file.
///
/// # Errors
///
/// [`StoreError::Backend`], which is no damage.
fn or_damage<T>(read: Result<T, StoreError>) -> Result<Result<T, String>, StoreError> {
    match read {
        Err(error @ StoreError::Backend { .. }) => Err(error),
        read => Ok(read.map_err(|error| error.to_string())),
    }
}

/// The threads that the keys of a table name.
struct Named {
    has_checksums: bool,
    /// Whether all checksums match. Otherwise a key itself may be damaged, and name another thread.
    are_sound: bool,
}

impl Named {
    fn new(has_checksums: bool) -> Self {
        Self { has_checksums, are_sound: true }
    }

    /// Returns the thread of a key.
    fn see(&mut self, table: &str, key: &[u8], stored: &[u8]) -> Option<ThreadId> {
        let is_checked = has_checksum(stored) || !self.has_checksums;
        self.are_sound &= is_checked && packed("record", (table, key), stored).is_ok();
        thread_of(key)
    }
}

/// Visits a table from its beginning, and if a page is damaged also from its end. Returns why
/// entries may be missing, if they may.
///
/// # Errors
///
/// [`StoreError::Backend`] if the file cannot be read.
fn walk_table<K, V>(
    snapshot: &Snapshot,
    table: TableDefinition<'_, K, V>,
    mut see: impl FnMut(K::SelfType<'_>, V::SelfType<'_>),
) -> Result<Option<String>, StoreError>
where
    K: Key + 'static,
    V: Value + 'static,
{
    let opened = guarded(LOOK, || match snapshot.transaction.open_table(table) {
        Ok(table) => Ok(Some(table)),
        // Older files get this table when a thread is first deleted.
        Err(TableError::TableDoesNotExist(name)) if name == "remains" => Ok(None),
        // Files of older formats get this table when they are opened.
        Err(TableError::TableDoesNotExist(name))
            if name == "pending" && snapshot.meta_value(META_FORMAT)? != Some(FORMAT) =>
        {
            Ok(None)
        }
        Err(error) => Err(redb_error(LOOK)(error)),
    });
    let table = match or_damage(opened)? {
        Ok(Some(table)) => table,
        Ok(None) => return Ok(None),
        Err(damage) => return Ok(Some(damage)),
    };
    let scan = scan_table(LOOK, &table, |key, value| {
        see(key, value.value());
        Ok(())
    })?;
    let miscount = scan.miscount().map(|claimed| {
        corrupt("table", format!("it claims {claimed} entries and has {}", scan.visited))
    });
    let damage = scan.gap.map(|gap| gap.damage).or(miscount);
    Ok(damage.map(|damage| damage.to_string()))
}
