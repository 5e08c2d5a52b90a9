//! Commits the batches of a group one by one after the commit of the group failed, since the cause
//! may be a damaged page that only one thread needs.

use wattle_graph::id::ThreadId;
use wattle_run::ports::store::StoreError;

use crate::disk::intake::Group;
use crate::disk::snapshot::Snapshot;
use crate::disk::stage::Stage;
use crate::disk::writer::{Failed, Handed, Taken, Writer, commit};
use crate::file::guarded;
use crate::file::handle::SharedFile;

impl Writer {
    /// Stages and commits each batch of a group alone. Once the file cannot be written, the
    /// remaining batches fail.
    pub(super) fn commit_apart(&mut self, taken: Vec<Taken>) {
        let mut rest = taken.into_iter();
        let mut failure = self.heal().err();
        while failure.is_none()
            && let Some(taken) = rest.next()
        {
            // The file may have failed at a read that only this batch needs.
            failure = self.commit_alone(taken.handed).and_then(|()| self.heal()).err();
        }
        let rest: Vec<Taken> = rest.collect();
        if let Some(error) = failure.filter(|_| !rest.is_empty()) {
            self.lose(rest, &error);
        }
    }

    /// Stages and commits one batch.
    ///
    /// # Errors
    ///
    /// The error of the file, if the other batches of the group would fail with the same error. The
    /// caller then stops, because each further attempt opens the file again and reads all of it.
    fn commit_alone(&mut self, handed: Handed) -> Result<(), StoreError> {
        let handle = self.file.handle();
        let mut group = Group::new(handle.clone());
        let taken = vec![self.take(&mut group, handed)];
        let committed = commit(&handle, &group);
        drop((handle, group));
        match committed {
            Ok(is_written) => {
                self.answer_committed(taken, is_written);
                Ok(())
            }
            Err(Failed { error, .. }) => {
                self.start_over(&error);
                self.lose(taken, &error);
                let is_of_the_page = matches!(error, StoreError::Corrupt { .. });
                if is_of_the_page && self.trouble.is_none() { Ok(()) } else { Err(error) }
            }
        }
    }

    /// Sets a thread aside if it cannot be read, so that nothing is deleted that it may need.
    pub(super) fn put_aside(&mut self, thread: &ThreadId) {
        let noted = match guarded("read", || damage(&self.file, thread)) {
            Ok(Some(reason)) => {
                tracing::error!(%thread, reason, "set aside as damaged");
                self.commit(&Stage { aside: vec![(thread.clone(), reason)], ..Stage::default() })
            }
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = noted {
            tracing::error!(%error, %thread, "damaged thread cannot be set aside");
        }
    }
}

/// Returns why a thread cannot be read; `None` if it can, or is set aside already.
fn damage(file: &SharedFile, thread: &ThreadId) -> Result<Option<String>, StoreError> {
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
