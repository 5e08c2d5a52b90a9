//! Reclaims the space of orphaned thread numbers on the writer thread.

use wattle_run::ports::store::{CompactionReport, StoreError};

use crate::disk::writer::Writer;

impl Writer {
    /// Returns whether an orphaned thread number can be reclaimed now.
    pub(crate) fn has_due_orphans(&self) -> bool {
        self.file_failure.is_none() && self.orphans.is_due()
    }

    /// Reclaims a part of an orphaned thread number.
    pub(crate) fn reclaim_some(&mut self) -> Result<(), StoreError> {
        let reclaimed = self.orphans.reclaim_some(&self.file);
        reclaimed.inspect_err(|error| self.reset_after_failure(error))
    }

    /// Reclaims all orphaned thread numbers that are not damaged, and compacts the file. Returns
    /// `None` if reads are still active.
    pub(crate) fn compact(&mut self) -> Result<Option<CompactionReport>, StoreError> {
        self.reopen_if_failed()?;
        while !self.orphans.is_empty() {
            match self.reclaim_some() {
                Ok(()) | Err(StoreError::Corrupt { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.file.compact().inspect_err(|error| self.reset_after_failure(error))
    }
}
