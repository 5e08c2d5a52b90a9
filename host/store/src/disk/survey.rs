//! Looks at everything that is stored and names what is damaged.
//!
//! Threads are found by all tables that name them, so that one of them may be damaged. Each thread
//! is then read in whole: its records, its frames with their seals, and the indexes that lead to
//! them. What redb does with a damaged page, an error or a panic, counts as damage of what was
//! looked for. A file that cannot be read ends the look: redb then reads nothing more, which says
//! nothing about the rest.

mod check;

use std::collections::{BTreeMap, BTreeSet};

use redb::{Key, ReadOnlyTable, ReadableTable, ReadableTableMetadata, TableDefinition, Value};
use wattle_graph::id::{RunId, ThreadId};
use wattle_run::ports::store::{Damage, RunRecord, StoreError, Survey};

use crate::codec::{has_check, packed, read};
use crate::disk::migrate::UNCHECKED_FORMAT;
use crate::disk::snapshot::{Snapshot, run_of, thread_of};
use crate::disk::table::{
    FACT_FORMAT, FACTS, FORMAT, HEADS, IN_HEADS, IN_RECORDS, IN_RUNS, LOG, MARKS, MENTIONS,
    PENDING, RECORDS, REMAINS, RUNS, THREAD_RUNS,
};
use crate::error::while_trying;
use crate::file::guarded;

pub(crate) use check::Sound;

pub(super) const LOOK: &str = "look at its tables";

/// What was found.
pub(crate) struct Found {
    /// All threads that anything names: what stands of them, or why one is damaged.
    pub(crate) threads: BTreeMap<ThreadId, Result<Sound, String>>,
    /// Threads that were set aside before.
    pub(crate) aside: Vec<(ThreadId, String)>,
    /// Damage of what belongs to no thread in particular.
    pub(crate) tables: Vec<Damage>,
    /// Places of pending runs, as far as their table can be read. A damaged page may say any place, so
    /// they order only runs that were asked for at the same time.
    pub(crate) places: BTreeMap<RunId, u64>,
    /// Whether no thread can be missing from `threads`.
    pub(crate) is_complete: bool,
}

impl Found {
    /// In the words of the port.
    pub(crate) fn survey(&self) -> Survey {
        let damage = |(thread, found): (&ThreadId, &Result<Sound, String>)| match found {
            Err(reason) => {
                Some(Damage { subject: format!("thread `{thread}`"), reason: reason.clone() })
            }
            Ok(Sound { index: Some(reason), .. }) => Some(Damage {
                subject: format!("index of thread `{thread}`"),
                reason: reason.clone(),
            }),
            Ok(_) => None,
        };
        let aside = self.aside.iter().map(|(thread, reason)| Damage {
            subject: format!("thread `{thread}`"),
            reason: format!("it was set aside before: {reason}"),
        });
        let damaged = self.threads.iter().filter_map(damage).chain(aside);
        let threads = self.threads.len() as u64;
        Survey { threads, damaged: damaged.chain(self.tables.iter().cloned()).collect() }
    }
}

/// Looks at everything.
///
/// # Errors
///
/// [`StoreError::Backend`] if the file cannot be read.
pub(crate) fn survey(snapshot: &Snapshot) -> Result<Found, StoreError> {
    let mut tables = Vec::new();
    let format = guarded(LOOK, || snapshot.fact(FACT_FORMAT)).ok().flatten();
    let has_checks = format.is_none_or(|format| format > UNCHECKED_FORMAT);
    let see = |table| move |key: &[u8], stored: &[u8]| Named::see(table, key, stored, has_checks);
    let heads = walk_table(snapshot, HEADS, see(IN_HEADS))?;
    let records = walk_table(snapshot, RECORDS, see(IN_RECORDS))?;
    let mut names: BTreeSet<ThreadId> = BTreeSet::new();
    let named = heads.entries.iter().chain(&records.entries);
    names.extend(named.filter_map(|named| thread_of(&named.key)));
    let runs = walk_table(snapshot, RUNS, |key, stored| {
        read::<RunRecord>("run record", (IN_RUNS, key), stored)
    })?;
    for run in &runs.entries {
        match run {
            Ok(run) => drop(names.insert(run.thread.clone())),
            Err(error) => {
                tables.push(Damage { subject: "a run".to_owned(), reason: error.to_string() });
            }
        }
    }
    let names_all = |walked: &&Walked<Named>| {
        walked.broken.is_none() && walked.entries.iter().all(|named| named.is_sound)
    };
    let is_complete = [&heads, &records].iter().any(names_all);
    let pending = walk_table(snapshot, PENDING, |key, place| (run_of(key), place))?;
    for (name, broken) in [
        ("heads", heads.broken),
        ("records", records.broken),
        ("runs", runs.broken),
        ("log", walk_table(snapshot, LOG, |_, _| ())?.broken),
        ("pending", pending.broken),
        ("thread_runs", walk_table(snapshot, THREAD_RUNS, |_, _| ())?.broken),
        ("marks", walk_table(snapshot, MARKS, |_, _| ())?.broken),
        ("mentions", walk_table(snapshot, MENTIONS, |_, ()| ())?.broken),
        ("remains", walk_table(snapshot, REMAINS, |_, _| ())?.broken),
        ("wattle", walk_table(snapshot, FACTS, |_, _| ())?.broken),
    ] {
        if let Some(reason) = broken {
            tables.push(Damage { subject: format!("table `{name}`"), reason });
        }
    }
    let places = pending.entries.into_iter();
    let places = places.filter_map(|(run, place)| Some((run?, place))).collect();
    let aside = guarded(LOOK, || snapshot.all_aside())?;
    names.retain(|name| !aside.iter().any(|(aside, _)| aside == name));
    let mut threads = BTreeMap::new();
    for name in names {
        let found = or_damage(guarded(LOOK, || check::check(snapshot, &name)))?;
        threads.insert(name, found);
    }
    tables.extend(lost_turns(&threads, &places));
    Ok(Found { threads, aside, tables, places, is_complete })
}

/// What was read, or what is damaged of it.
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

/// Pending runs that their table does not have: they would never begin.
fn lost_turns(
    threads: &BTreeMap<ThreadId, Result<Sound, String>>,
    places: &BTreeMap<RunId, u64>,
) -> Vec<Damage> {
    let pending = threads.values().flatten().flat_map(|sound| &sound.pending);
    let lost = pending.filter(|(_, run)| !places.contains_key(run));
    let reason = "it is pending, and the table of pending runs does not have it";
    let damage = |(_, run): &(i64, RunId)| Damage {
        subject: format!("run `{run}`"),
        reason: reason.to_owned(),
    };
    lost.map(damage).collect()
}

/// A key that names a thread.
struct Named {
    key: Vec<u8>,
    /// Whether its checksum fits: otherwise the key itself may be damaged, and name another thread.
    is_sound: bool,
}

impl Named {
    fn see(table: &str, key: &[u8], stored: &[u8], has_checks: bool) -> Self {
        let is_checked = has_check(stored) || !has_checks;
        let is_sound = is_checked && packed("record", (table, key), stored).is_ok();
        Self { key: key.to_vec(), is_sound }
    }
}

/// What was seen of a table.
struct Walked<T> {
    entries: Vec<T>,
    /// Why entries may be missing.
    broken: Option<String>,
}

/// Walks a table from its beginning; where a page is damaged, also from its end.
///
/// # Errors
///
/// [`StoreError::Backend`] if the file cannot be read.
fn walk_table<K, V, T>(
    snapshot: &Snapshot,
    table: TableDefinition<'_, K, V>,
    see: impl Fn(K::SelfType<'_>, V::SelfType<'_>) -> T,
) -> Result<Walked<T>, StoreError>
where
    K: Key + 'static,
    V: Value + 'static,
{
    let mut entries = BTreeMap::new();
    let walked = guarded(LOOK, || {
        let table = match snapshot.transaction.open_table(table) {
            Ok(table) => table,
            // Files have this table since a thread was deleted.
            Err(redb::TableError::TableDoesNotExist(name)) if name == "remains" => return Ok(()),
            // Files of older formats get this one when they are opened.
            Err(redb::TableError::TableDoesNotExist(name))
                if name == "pending" && snapshot.fact(FACT_FORMAT)? != Some(FORMAT) =>
            {
                return Ok(());
            }
            Err(error) => return Err(while_trying(LOOK)(error)),
        };
        let forwards = guarded(LOOK, || pass(&table, &see, &mut entries, false));
        if let Err(error) = forwards {
            // What is seen from the other side is seen as well; why it ends is known.
            let _ = guarded(LOOK, || pass(&table, &see, &mut entries, true));
            return Err(error);
        }
        let (says, has) = (table.len().map_err(while_trying(LOOK))?, entries.len() as u64);
        if says == has {
            return Ok(());
        }
        Err(crate::error::corrupt("table", format!("it says it has {says} entries and has {has}")))
    });
    let broken = or_damage(walked)?.err();
    Ok(Walked { entries: entries.into_values().collect(), broken })
}

/// One pass over a table, up to an entry that was seen before.
fn pass<K, V, T>(
    table: &ReadOnlyTable<K, V>,
    see: &impl Fn(K::SelfType<'_>, V::SelfType<'_>) -> T,
    seen: &mut BTreeMap<Vec<u8>, T>,
    is_backwards: bool,
) -> Result<(), StoreError>
where
    K: Key + 'static,
    V: Value + 'static,
{
    let mut entries = table.iter().map_err(while_trying(LOOK))?;
    let mut before: Option<Vec<u8>> = None;
    loop {
        let entry = if is_backwards { entries.next_back() } else { entries.next() };
        let Some(entry) = entry else { return Ok(()) };
        let (key, value) = entry.map_err(while_trying(LOOK))?;
        let bytes = K::as_bytes(&key.value()).as_ref().to_vec();
        let order = before.as_ref().map(|before| K::compare(before, &bytes));
        let wrong =
            if is_backwards { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater };
        if order == Some(wrong) || order == Some(std::cmp::Ordering::Equal) {
            return Err(crate::error::corrupt("table", "its keys are not in order"));
        }
        if is_backwards && seen.contains_key(&bytes) {
            return Ok(());
        }
        seen.insert(bytes.clone(), see(key.value(), value.value()));
        before = Some(bytes);
    }
}
