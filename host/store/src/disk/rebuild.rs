//! Rebuilding of a damaged file from all intact threads. The damaged threads are set aside, each
//! with the reason, and the damaged file is kept under another name.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::{Database, Durability, Error};
use wattle_graph::id::{RunId, ThreadId};
use wattle_run::ports::store::{DamageReport, StoreError};

use crate::disk::chain::LogReader as _;
use crate::disk::create::{FILE, create};
use crate::disk::snapshot::Snapshot;
use crate::disk::survey::{IntactThread, SurveyResult, name_damage, survey};
use crate::disk::table::{ASIDE, META, META_OPENINGS, META_THREADS};
use crate::disk::write_set::{StagedRun, WriteSet, stored_record};
use crate::error::{backend, corrupt, redb_error};
use crate::file::create::create_filled_once;
use crate::file::guarded;
use crate::file::handle::Handle;
use crate::file::marker::with_suffix;
use crate::file::replace::{replace, unused_name};
use crate::file::{kind, view};

const OP_REBUILD: &str = "rebuild its file";

/// Bytes of log entries at which a commit is made.
const MAX_PART_BYTES: usize = 16 * 1024 * 1024;

/// Maximum number of threads that one message names.
const MAX_NAMED: usize = 20;

/// Number of openings of a rebuilt file, if the number cannot be read from the damaged file. This
/// number is far above any real number, so that no lease epoch is assigned twice.
const OPENINGS_UNKNOWN: u64 = 1 << 31;

/// Reads a whole file that no process has open for writing, and returns the damage.
///
/// # Errors
///
/// [`StoreError::Corrupt`] if the header of the file cannot be read.
pub(crate) fn survey_file(path: &Path) -> Result<DamageReport, StoreError> {
    name_damage(&open(path)?)
}

/// Returns whether a file has no tables yet, as after a crash during its first opening.
pub(crate) fn is_new(path: &Path) -> Result<bool, StoreError> {
    let view = view::open_view(path).map_err(|error| FILE.unusable_error(path, error))?;
    guarded(OP_REBUILD, || kind::is_new(&view.begin_read().map_err(redb_error(OP_REBUILD))?))
}

fn open(path: &Path) -> Result<Snapshot, StoreError> {
    let handle = Arc::new(Handle::ReadOnly(view::open_view(path)?));
    guarded(OP_REBUILD, || Snapshot::open(handle))
}

/// Rebuilds a file whose pages do not match their checksums, if every thread that may be damaged
/// can be named.
///
/// # Errors
///
/// [`StoreError::Corrupt`] if the file cannot be read, or if it may have lost threads whose names
/// no table contains. The message does not repeat the damage. The file is then unchanged.
pub(crate) fn at_start(path: &Path, damage: &str) -> Result<(), StoreError> {
    tracing::error!(file = %path.display(), damage, "checkpoint store is damaged");
    let snapshot = open(path)?;
    let found = survey(&snapshot)?;
    if !found.tables.is_complete {
        let message = format!(
            "{}; `wattle store repair` writes the readable data into a new file and loses the rest",
            describe(&found)
        );
        return Err(corrupt(format!("checkpoint store `{}`", path.display()), message));
    }
    replace_file(path, &snapshot, &found).map(drop)
}

/// Rebuilds a file from its readable parts.
///
/// # Errors
///
/// The errors of [`at_start`], except that threads may be lost whose names no table contains.
pub(crate) fn repair(path: &Path) -> Result<(DamageReport, PathBuf), StoreError> {
    let snapshot = open(path).map_err(|error| FILE.unusable_error(path, error))?;
    let found = survey(&snapshot)?;
    let aside = replace_file(path, &snapshot, &found)?;
    Ok((found.to_damage_report(), aside))
}

/// Describes the damage in a sentence.
fn describe(found: &SurveyResult) -> String {
    let damaged: Vec<String> =
        found.to_damage_report().damaged.iter().map(ToString::to_string).collect();
    let more = damaged.len().saturating_sub(MAX_NAMED);
    let mut words = damaged.into_iter().take(MAX_NAMED).collect::<Vec<_>>().join("; ");
    if more > 0 {
        words.push_str(&format!("; and {more} more"));
    }
    words
}

/// Replaces a damaged file by a rebuilt file. Returns the new path of the damaged file.
fn replace_file(
    path: &Path,
    snapshot: &Snapshot,
    found: &SurveyResult,
) -> Result<PathBuf, StoreError> {
    let new = with_suffix(path, "rebuilt");
    let failed =
        |error: std::io::Error| backend(OP_REBUILD, format!("`{}`: {error}", new.display()));
    if new.exists() {
        fs::remove_file(&new).map_err(failed)?;
    }
    // The write is guarded too, since it reads pages that the survey did not read.
    guarded(OP_REBUILD, || write(&new, snapshot, found))?;
    let aside = unused_name(path);
    replace(path, &new, &aside).map_err(failed)?;
    for damage in found.to_damage_report().damaged {
        tracing::error!(subject = damage.subject, reason = damage.reason, "set aside as damaged");
    }
    tracing::warn!(
        file = %path.display(), damaged = %aside.display(),
        "checkpoint store was rebuilt; the damaged file is kept"
    );
    Ok(aside)
}

fn write(path: &Path, snapshot: &Snapshot, found: &SurveyResult) -> Result<(), StoreError> {
    let database = create_filled_once(path).map_err(redb_error(OP_REBUILD))?;
    create(&database).map_err(redb_error(OP_REBUILD))?;
    let mut write_set = WriteSet { has_later_entries: true, ..WriteSet::default() };
    let mut highest = 0;
    for (thread, sound) in &found.threads {
        let Ok(sound) = sound else { continue };
        highest = highest.max(sound.head.number);
        add(&mut write_set, snapshot, thread, sound)?;
        if write_set.log_bytes >= MAX_PART_BYTES {
            commit(&database, &write_set, Durability::None)?;
            write_set = WriteSet { has_later_entries: true, ..WriteSet::default() };
        }
    }
    write_set.pending = pending_positions(found);
    commit(&database, &write_set, Durability::None)?;
    finish(&database, snapshot, found, highest).map_err(redb_error(OP_REBUILD))?;
    database.close().map_err(redb_error(OP_REBUILD))
}

/// Returns the pending runs of all intact threads in the order of the requests for them, each with
/// a position.
fn pending_positions(found: &SurveyResult) -> BTreeMap<RunId, Option<u64>> {
    let sound = found.threads.values().flatten();
    let mut runs: Vec<_> = sound
        .flat_map(|sound| &sound.pending)
        .map(|(requested_ms, run)| {
            (requested_ms, found.tables.positions.get(run).unwrap_or(&u64::MAX), run)
        })
        .collect();
    runs.sort();
    let positions = (1..).map(Some);
    runs.into_iter().map(|(_, _, run)| run.clone()).zip(positions).collect()
}

/// Stages an intact thread.
fn add(
    write_set: &mut WriteSet,
    snapshot: &Snapshot,
    thread: &ThreadId,
    sound: &IntactThread,
) -> Result<(), StoreError> {
    for (first, chunks, _) in &sound.frames {
        for number in *first..first + u64::from(*chunks) {
            let chunk = snapshot.entry(number, |chunk| Ok(chunk.to_vec()))?;
            write_set.log_bytes += chunk.len();
            write_set.log.insert(number, chunk);
        }
    }
    let number = sound.head.number;
    write_set.heads.insert(thread.clone(), sound.head.clone());
    let record = stored_record(thread, &snapshot.packed_record(thread)?);
    write_set.records.insert(thread.clone(), record);
    for (position, run) in (0..).zip(&sound.runs) {
        let staged = StagedRun::new(thread.clone(), run, &snapshot.packed_run(run)?);
        write_set.thread_runs.insert((number, position), run.clone());
        write_set.runs.insert(run.clone(), staged);
    }
    write_set.marks.extend(sound.marks().into_iter().map(|(seq, frame)| ((number, seq), frame)));
    write_set.mentions.extend(sound.mentions.iter().map(|blob| (number, *blob)));
    Ok(())
}

fn commit(
    database: &Database,
    write_set: &WriteSet,
    durability: Durability,
) -> Result<(), StoreError> {
    let mut transaction = database.begin_write().map_err(redb_error(OP_REBUILD))?;
    transaction.set_durability(durability).map_err(redb_error(OP_REBUILD))?;
    write_set.write(&transaction)?;
    transaction.commit().map_err(redb_error(OP_REBUILD))
}

/// Writes the data that belongs to no single thread, and makes the whole file durable.
fn finish(
    database: &Database,
    snapshot: &Snapshot,
    found: &SurveyResult,
    highest: u64,
) -> Result<(), Error> {
    let mut transaction = database.begin_write()?;
    transaction.set_durability(Durability::Immediate)?;
    let mut aside = transaction.open_table(ASIDE)?;
    for (thread, sound) in &found.threads {
        if let Err(reason) = sound {
            aside.insert(thread.as_str().as_bytes(), reason.as_str())?;
        }
    }
    for (thread, reason) in &found.tables.aside {
        aside.insert(thread.as_str().as_bytes(), reason.as_str())?;
    }
    drop(aside);
    let mut meta = transaction.open_table(META)?;
    let value = |name| guarded(OP_REBUILD, || snapshot.meta_value(name)).ok().flatten();
    meta.insert(META_THREADS, value(META_THREADS).unwrap_or_default().max(highest))?;
    meta.insert(META_OPENINGS, value(META_OPENINGS).unwrap_or(OPENINGS_UNKNOWN))?;
    drop(meta);
    transaction.commit()?;
    Ok(())
}
