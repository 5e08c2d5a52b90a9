//! Rebuilds a damaged file from all documents that can be read. The new file lists the losses, and
//! the damaged file stays in the same folder.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use redb::{Database, Durability, Error, ReadTransaction};
use wattle_run::ports::memory::MemoryScope;
use wattle_run::ports::store::{Damage, StoreError};

use crate::error::{backend, corrupt, redb_error};
use crate::file::create::create_filled_once;
use crate::file::guarded;
use crate::file::kind::{self, META_FORMAT};
use crate::file::marker::with_suffix;
use crate::file::replace::{replace, unused_name};
use crate::file::view::{self, ReadOnlyView};
use crate::memory::disk::survey::{SurveyResult, earlier_losses, survey_documents};
use crate::memory::disk::table::{
    DOCUMENTS, EXPIRIES, FORMAT, LOST, META, create, newer_format_error, to_row,
};
use crate::memory::document::{DocumentKey, StoredDocument};
use crate::memory::path;

const OP_REBUILD: &str = "rebuild its file";

/// A rebuild commits after this number of bytes of documents.
const MAX_PART_BYTES: usize = 16 * 1024 * 1024;

/// Documents that a host must not lose without a decision of the operator.
#[derive(Clone, Debug)]
pub struct EssentialDocuments {
    /// Scope of the documents.
    pub scope: MemoryScope,
    /// Namespace of the documents.
    pub namespace: Vec<String>,
    /// The consequence of the loss of all essential documents, as a sentence for the operator.
    pub meaning: &'static str,
}

impl EssentialDocuments {
    fn paths(&self) -> Range<Vec<u8>> {
        path::prefix_range(&path::encode(&self.scope, &self.namespace))
    }
}

/// A file that may be damaged, opened for reading only.
pub(super) struct DamagedFile {
    pub(super) transaction: ReadTransaction,
    _view: ReadOnlyView,
}

impl DamagedFile {
    /// Opens a file, which may have damaged pages.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] if the header of the file cannot be read, and
    /// [`StoreError::Backend`] if a newer Wattle wrote it.
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let view = view::open_view(path)?;
        let transaction =
            guarded(OP_REBUILD, || view.begin_read().map_err(redb_error(OP_REBUILD)))?;
        // A damaged page may hide the format number. The names of the tables also show the format.
        match guarded(OP_REBUILD, || read_format(&transaction)) {
            Ok(Some(found)) if found > FORMAT => Err(newer_format_error(path, found)),
            _ => Ok(Self { transaction, _view: view }),
        }
    }

    /// Returns true if the file has no tables yet, as after a crash during its first opening.
    pub(super) fn is_new(&self) -> Result<bool, StoreError> {
        guarded(OP_REBUILD, || kind::is_new(&self.transaction))
    }
}

fn read_format(transaction: &ReadTransaction) -> Result<Option<u64>, StoreError> {
    let meta = transaction.open_table(META).map_err(redb_error(OP_REBUILD))?;
    let format = meta.get(META_FORMAT).map_err(redb_error(OP_REBUILD))?;
    Ok(format.map(|format| format.value()))
}

/// Rebuilds a file whose pages do not match their checksums.
///
/// # Errors
///
/// [`StoreError::Corrupt`] if none of its documents can be read, or if all essential documents may
/// be lost. The file is unchanged then.
pub(super) fn at_start(
    path: &Path,
    damage: &str,
    essential: Option<&EssentialDocuments>,
) -> Result<(), StoreError> {
    tracing::error!(file = %path.display(), damage, "long-term memory is damaged");
    let file = DamagedFile::open(path)?;
    let essential_paths = essential.map(|essential| (essential, essential.paths()));
    let mut has_essential = false;
    let found = survey_documents(&file.transaction, &mut |(path, _), _| {
        has_essential |= essential_paths.as_ref().is_some_and(|(_, paths)| paths.contains(path));
        Ok(())
    })?;
    ensure_not_empty(&found)?;
    if let Some((essential, paths)) = essential_paths
        && !has_essential
        && found.may_lack(&paths)
    {
        let message = format!(
            "{}. `wattle store repair` writes the readable documents into a new file",
            essential.meaning
        );
        return Err(corrupt("long-term memory", message));
    }
    replace_file(path, &file.transaction).map(drop)
}

/// Rebuilds a file from the documents that can be read, if the caller found damage of the file
/// (`damage`) or if documents are lost. Returns all damage, and the path to which the damaged file
/// was moved; `None` if the file needs no rebuild.
///
/// # Errors
///
/// [`StoreError::Corrupt`] if none of the documents can be read. The file is unchanged then.
pub(super) fn repair(
    path: &Path,
    damage: Option<Damage>,
) -> Result<Option<(Vec<Damage>, PathBuf)>, StoreError> {
    let file = DamagedFile::open(path)?;
    if damage.is_none() && file.is_new()? {
        return Ok(None);
    }
    let found = survey_documents(&file.transaction, &mut |_, _| Ok(()))?;
    if damage.is_none() && found.is_intact() {
        return Ok(None);
    }
    ensure_not_empty(&found)?;
    let aside = replace_file(path, &file.transaction)?;
    Ok(Some((damage.into_iter().chain(found.damage()).collect(), aside)))
}

/// Fails if a rebuild would replace a damaged memory by an empty memory.
fn ensure_not_empty(found: &SurveyResult) -> Result<(), StoreError> {
    if found.intact > 0 || found.is_intact() {
        return Ok(());
    }
    Err(corrupt("long-term memory", "none of its documents can be read"))
}

/// Writes a new file and replaces the damaged file. Returns the new path of the damaged file.
fn replace_file(path: &Path, transaction: &ReadTransaction) -> Result<PathBuf, StoreError> {
    let (new, aside) = (with_suffix(path, "rebuilt"), unused_name(path));
    let failed =
        |error: std::io::Error| backend(OP_REBUILD, format!("`{}`: {error}", new.display()));
    if new.exists() {
        fs::remove_file(&new).map_err(failed)?;
    }
    let found = guarded(OP_REBUILD, || write(&new, transaction, &aside))?;
    replace(path, &new, &aside).map_err(failed)?;
    for damage in found.damage() {
        tracing::error!(subject = damage.subject, reason = damage.reason, "lost in the rebuild");
    }
    tracing::warn!(
        file = %path.display(), damaged = %aside.display(), documents = found.intact,
        "long-term memory was rebuilt; the damaged file is kept"
    );
    Ok(aside)
}

fn write(
    new: &Path,
    transaction: &ReadTransaction,
    aside: &Path,
) -> Result<SurveyResult, StoreError> {
    let database = create_filled_once(new).map_err(redb_error(OP_REBUILD))?;
    create(&database).map_err(redb_error(OP_REBUILD))?;
    let (mut part, mut bytes) = (Vec::new(), 0);
    let found = survey_documents(transaction, &mut |doc_key, stored| {
        bytes += stored.document.len();
        part.push((doc_key.clone(), stored));
        if bytes < MAX_PART_BYTES {
            return Ok(());
        }
        bytes = 0;
        commit(&database, &std::mem::take(&mut part)).map_err(redb_error(OP_REBUILD))
    })?;
    commit(&database, &part).map_err(redb_error(OP_REBUILD))?;
    finish(&database, transaction, &found, aside).map_err(redb_error(OP_REBUILD))?;
    database.close().map_err(redb_error(OP_REBUILD))?;
    Ok(found)
}

fn commit(database: &Database, part: &[(DocumentKey, StoredDocument)]) -> Result<(), Error> {
    let mut transaction = database.begin_write()?;
    transaction.set_durability(Durability::None)?;
    let mut documents = transaction.open_table(DOCUMENTS)?;
    let mut expiries = transaction.open_table(EXPIRIES)?;
    for ((path, key), stored) in part {
        let doc_key = (path.as_slice(), key.as_str());
        documents.insert(doc_key, to_row(doc_key, stored))?;
        if let Some(expires_ms) = stored.expires_ms {
            expiries.insert((expires_ms, doc_key.0, doc_key.1), ())?;
        }
    }
    drop((documents, expiries));
    transaction.commit()?;
    Ok(())
}

/// Writes the losses of this and of earlier rebuilds, and makes the whole file durable.
fn finish(
    database: &Database,
    transaction: &ReadTransaction,
    found: &SurveyResult,
    aside: &Path,
) -> Result<(), Error> {
    let name = aside.file_name().unwrap_or_default().to_string_lossy();
    // The table with the losses of earlier rebuilds may be damaged itself.
    let earlier = earlier_losses(transaction).unwrap_or_default();
    let mut transaction = database.begin_write()?;
    transaction.set_durability(Durability::Immediate)?;
    let mut table = transaction.open_table(LOST)?;
    for (number, lost) in (0_u64..).zip(&earlier) {
        let lost_then = (lost.subject.as_str(), lost.reason.as_str());
        table.insert((lost.file.as_str(), number), lost_then)?;
    }
    for (number, damage) in (0_u64..).zip(found.damage()) {
        let lost_now = (damage.subject.as_str(), damage.reason.as_str());
        table.insert((&*name, number), lost_now)?;
    }
    drop(table);
    transaction.commit()?;
    Ok(())
}
