//! Operations on a file that no process has open: checks, surveys and repairs.

use std::path::{Path, PathBuf};

use wattle_run::ports::store::{DamageReport, StoreError};

use crate::disk::{RedbStore, open};
use crate::file::marker;

impl RedbStore {
    /// Checks that the file can be opened, without changing it. A file that does not exist passes.
    ///
    /// # Errors
    ///
    /// The errors of [`RedbStore::open`].
    pub fn check(path: impl AsRef<Path>) -> Result<(), StoreError> {
        open::check(path.as_ref())
    }

    /// Reads a whole file that no process has open, without changing the file: compares all pages
    /// with their checksums, and verifies every thread.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] if the header of the file cannot be read, or if the file is missing
    /// although its marker exists. [`StoreError::Backend`] if a process has the file open.
    pub fn survey_file(path: impl AsRef<Path>) -> Result<DamageReport, StoreError> {
        open::survey(path.as_ref())
    }

    /// Rebuilds a damaged file from its readable parts. No process may have the file open. The host
    /// refuses all work on damaged threads, which the new file lists as set aside. The damaged file
    /// is kept under another name. Returns the damage and the new path of the damaged file.
    ///
    /// # Errors
    ///
    /// The errors of [`RedbStore::survey_file`].
    pub fn repair_file(path: impl AsRef<Path>) -> Result<(DamageReport, PathBuf), StoreError> {
        open::repair(path.as_ref())
    }

    /// Returns the path of the marker that exists from the beginning of a restore to its end. While
    /// the marker exists, no new store is created in place of the file.
    pub fn restore_marker(path: impl AsRef<Path>) -> PathBuf {
        marker::restore_marker_path(path.as_ref())
    }
}
