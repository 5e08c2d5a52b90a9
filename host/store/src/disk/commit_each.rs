//! Commits the batches of a commit group one by one after the commit of the whole group failed. The
//! cause may be a damaged page that only one thread needs.

use wattle_graph::id::ThreadId;
use wattle_run::ports::store::StoreError;

use crate::disk::commit_group::CommitGroup;
use crate::disk::snapshot::Snapshot;
use crate::disk::write_set::WriteSet;
use crate::disk::writer::{CommitError, GroupedWrite, QueuedWrite, Writer, commit};
use crate::file::guarded;
use crate::file::handle::SharedFile;

impl Writer {
    /// Stages and commits each batch of a group separately. As soon as the file cannot be written,
    /// all remaining batches fail.
    pub(super) fn commit_each(&mut self, grouped: Vec<GroupedWrite>) {
        let mut rest = grouped.into_iter();
        let mut failure = self.reopen_if_failed().err();
        while failure.is_none()
            && let Some(grouped) = rest.next()
        {
            // The file may have failed at a read that only this batch needs.
            failure =
                self.commit_one(grouped.queued_write).and_then(|()| self.reopen_if_failed()).err();
        }
        let rest: Vec<GroupedWrite> = rest.collect();
        if let Some(error) = failure.filter(|_| !rest.is_empty()) {
            self.fail_group(rest, &error);
        }
    }

    /// Stages and commits one batch.
    ///
    /// # Errors
    ///
    /// Returns the error if it concerns the whole file, so that the other batches of the group
    /// would fail with the same error. The caller then stops, because each further attempt would
    /// reopen and read the whole file. An error that concerns only this batch completes its ticket,
    /// and the function returns `Ok`.
    fn commit_one(&mut self, queued_write: QueuedWrite) -> Result<(), StoreError> {
        let handle = self.file.handle();
        let mut group = CommitGroup::new(handle.clone());
        let grouped = vec![self.add_to_group(&mut group, queued_write)];
        let committed = commit(&handle, &group, &self.changed_keys);
        drop((handle, group));
        match committed {
            Ok(is_written) => {
                self.complete_committed(grouped, is_written);
                Ok(())
            }
            Err(CommitError { error, .. }) => {
                self.reset_after_failure(&error);
                self.fail_group(grouped, &error);
                let is_damaged_page = matches!(error, StoreError::Corrupt { .. });
                if is_damaged_page && self.file_failure.is_none() { Ok(()) } else { Err(error) }
            }
        }
    }

    /// Sets a thread aside if it cannot be read. The host then refuses all work on the thread, and
    /// deletes nothing that the thread may need.
    pub(super) fn set_aside_if_damaged(&mut self, thread: &ThreadId) {
        let committed_aside = match guarded("read", || find_damage(&self.file, thread)) {
            Ok(Some(reason)) => {
                tracing::error!(%thread, reason, "set aside as damaged");
                self.commit(&WriteSet {
                    aside: vec![(thread.clone(), reason)],
                    ..WriteSet::default()
                })
            }
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = committed_aside {
            tracing::error!(%error, %thread, "damaged thread cannot be set aside");
        }
    }
}

/// Returns the reason why a thread cannot be read. Returns `None` if the thread can be read, or if
/// it is already set aside.
fn find_damage(file: &SharedFile, thread: &ThreadId) -> Result<Option<String>, StoreError> {
    let snapshot = Snapshot::newest(file)?;
    if snapshot.aside(thread)?.is_some() {
        return Ok(None);
    }
    match guarded("read", || snapshot.thread(thread)) {
        Ok(_) => Ok(None),
        Err(StoreError::Corrupt { what, message }) => Ok(Some(format!("{what}: {message}"))),
        Err(error) => Err(error),
    }
}
