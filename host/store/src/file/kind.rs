//! The common parts of the two redb files of a data folder: the opening, the format number, and the
//! error for a file that neither kind accepts.

use std::fmt::Display;
use std::path::Path;

use redb::{
    Builder, Database, DatabaseError, ReadTransaction, ReadableDatabase, TableDefinition,
    TableError,
};
use wattle_run::ports::store::StoreError;

use crate::error::{backend, corrupt, redb_error};
use crate::file::marker;
use crate::file::view::is_damage;

const OP_OPEN: &str = "open its file";

/// Key of the format number in the table of properties.
pub(crate) const META_FORMAT: &str = "format";

/// A kind of redb file: the checkpoint store or the long-term memory.
#[derive(Clone, Copy)]
pub(crate) struct FileKind {
    /// Name of the kind in messages.
    pub(crate) name: &'static str,
    /// What the host does after the operator has moved a damaged file away, as a verb phrase for
    /// messages.
    pub(crate) without_file: &'static str,
    /// Size of redb's page cache in bytes.
    pub(crate) cache_bytes: usize,
    /// Properties of the file, such as its format number.
    pub(crate) meta_table: TableDefinition<'static, &'static str, u64>,
}

impl FileKind {
    /// Opens a file, and creates it if it does not exist.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] if redb did not write the file or if the file is damaged;
    /// [`StoreError::Backend`] if the file is in use or cannot be opened.
    pub(crate) fn open(&self, path: &Path) -> Result<Database, StoreError> {
        let mut builder = Builder::new();
        builder.set_cache_size(self.cache_bytes);
        builder.create(path).map_err(|error| self.open_error(path, error))
    }

    /// Reopens a file that this process had open and that failed.
    ///
    /// # Errors
    ///
    /// The errors of [`open`](Self::open), and [`StoreError::Corrupt`] if the file is missing.
    pub(crate) fn reopen(&self, path: &Path) -> Result<Database, StoreError> {
        marker::ensure_not_lost(path)?;
        self.open(path)
    }

    /// Converts an error of redb at the opening of a file.
    pub(crate) fn open_error(&self, path: &Path, error: DatabaseError) -> StoreError {
        match error {
            DatabaseError::DatabaseAlreadyOpen => marker::in_use_error(path),
            error if is_damage(&error) => self.unusable_error(path, error),
            DatabaseError::UpgradeRequired(version) => {
                let message = format!("the file format of redb {version} is too old to be read");
                self.unusable_error(path, message)
            }
            error => backend(OP_OPEN, format!("`{}`: {error}", path.display())),
        }
    }

    /// Returns the format number of a file; `None` for a new file.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] if the file has tables but no format number.
    pub(crate) fn format(
        &self,
        path: &Path,
        database: &impl ReadableDatabase,
    ) -> Result<Option<u64>, StoreError> {
        let transaction = database.begin_read().map_err(redb_error(OP_OPEN))?;
        match transaction.open_table(self.meta_table) {
            Ok(meta) => {
                let format = meta.get(META_FORMAT).map_err(redb_error(OP_OPEN))?;
                let format = format.map(|format| format.value());
                format.map(Some).ok_or_else(|| self.unusable_error(path, "it has no format number"))
            }
            Err(TableError::TableDoesNotExist(_)) if is_new(&transaction)? => Ok(None),
            Err(TableError::TableDoesNotExist(_)) => {
                Err(self.unusable_error(path, "it has tables of another program"))
            }
            Err(error @ TableError::Storage(_)) => Err(redb_error(OP_OPEN)(error)),
            Err(error) => Err(self.unusable_error(path, error)),
        }
    }

    /// Returns the error for a file that is damaged or that another program wrote, with advice for
    /// the operator.
    pub(crate) fn unusable_error(&self, path: &Path, message: impl Display) -> StoreError {
        corrupt(
            format!("{} `{}`", self.name, path.display()),
            format!(
                "{message}; restore it from a backup, or move it away to {}",
                self.without_file
            ),
        )
    }

    /// Builds the error for a damaged file that cannot be rebuilt: the damage, the reason, and
    /// advice for the operator.
    pub(crate) fn not_rebuilt_error(
        &self,
        path: &Path,
        damage: &str,
        error: StoreError,
    ) -> StoreError {
        match error {
            StoreError::Corrupt { message, .. } if message == damage => {
                self.unusable_error(path, damage)
            }
            StoreError::Corrupt { message, .. } => {
                self.unusable_error(path, format!("{damage}; {message}"))
            }
            error => error,
        }
    }
}

/// Returns whether a file has no tables yet, as after a crash during its first opening.
pub(crate) fn is_new(transaction: &ReadTransaction) -> Result<bool, StoreError> {
    let mut tables = transaction.list_tables().map_err(redb_error(OP_OPEN))?;
    Ok(tables.next().is_none())
}
