//! The chain of a thread's frames, newest first.

use std::collections::BTreeSet;

use wattle_graph::id::CheckpointId;
use wattle_run::ports::store::StoreError;

use crate::disk::frame::{Frame, Header, Places};
use crate::error::corrupt;

/// A source of log entries.
pub(crate) trait Log {
    /// Passes an entry to `read`. A missing entry is [`StoreError::Corrupt`].
    fn entry<T>(
        &self,
        number: u64,
        read: impl FnOnce(&[u8]) -> Result<T, StoreError>,
    ) -> Result<T, StoreError>;

    /// Announces that a read needs at least this many further entries and bytes. Fails if they
    /// exceed the budget of the reader, before any of them is read.
    fn foresee(&self, entries: u64, bytes: u64) -> Result<(), StoreError> {
        let _ = (entries, bytes);
        Ok(())
    }
}

/// Builds the error for a missing entry.
pub(crate) fn missing(number: u64) -> StoreError {
    corrupt("frame", format!("log entry {number} is missing"))
}

/// Iterates over the frames from `newest` back to the first one of the thread, each with its
/// number.
pub(crate) fn walk<L: Log>(log: &L, newest: u64) -> Walk<'_, L> {
    Walk { log, next: newest }
}

/// The iterator of [`walk`].
pub(crate) struct Walk<'a, L> {
    log: &'a L,
    next: u64,
}

impl<L> Walk<'_, L> {
    /// Returns the number of the next frame; 0 after the first one of the thread.
    pub(crate) fn position(&self) -> u64 {
        self.next
    }
}

impl<L: Log> Iterator for Walk<'_, L> {
    type Item = Result<(u64, Header), StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next == 0 {
            return None;
        }
        let number = std::mem::take(&mut self.next);
        let header =
            self.log.entry(number, |chunk| Header::read(number, chunk)).and_then(|header| {
                // Each frame must be newer than its predecessor. Otherwise a walk over damaged
                // bytes could be endless.
                if header.previous < number {
                    Ok(header)
                } else {
                    let message = format!("frame {number} follows frame {}", header.previous);
                    Err(corrupt("frame", message))
                }
            });
        if let Ok(header) = &header {
            self.next = header.previous;
        }
        Some(header.map(|header| (number, header)))
    }
}

/// Loads the frame at log entry `number`: the entries of all its chunks, as `header` counts them.
pub(crate) fn load(log: &impl Log, number: u64, header: Header) -> Result<Frame, StoreError> {
    let mut bytes = Vec::new();
    for entry in number..number + u64::from(header.chunks) {
        log.entry(entry, |chunk| {
            bytes.extend_from_slice(chunk);
            Ok(())
        })?;
    }
    Frame::new(header, bytes)
}

/// Loads the header of the frame at log entry `number`, and the complete frame.
pub(crate) fn load_at(log: &impl Log, number: u64) -> Result<Frame, StoreError> {
    let header = log.entry(number, |chunk| Header::read(number, chunk))?;
    load(log, number, header)
}

/// Finds the frames of checkpoints by a walk back from `newest`. The frame of `parent` has most of
/// them in its frame index, so the walk seldom goes further. Checkpoints that do not exist are left
/// out.
pub(crate) fn find(
    log: &impl Log,
    newest: u64,
    parent: Option<CheckpointId>,
    mut wanted: BTreeSet<CheckpointId>,
) -> Result<Places, StoreError> {
    let mut found = Places::new();
    for step in walk(log, newest) {
        if wanted.is_empty() {
            break;
        }
        let (number, header) = step?;
        let Some(id) = header.checkpoint else {
            continue;
        };
        if wanted.remove(&id) {
            found.insert(id, number);
        }
        if parent == Some(id) {
            for (version, place) in load(log, number, header)?.places()? {
                if wanted.remove(&version) {
                    found.insert(version, place);
                }
            }
        }
    }
    Ok(found)
}
