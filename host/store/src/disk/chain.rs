//! The chain of a thread's frames, newest first.

use std::collections::BTreeSet;

use wattle_graph::id::CheckpointId;
use wattle_run::ports::store::StoreError;

use crate::disk::frame::{Frame, FrameIndex, Header};
use crate::error::corrupt;

/// A source of log entries.
pub(crate) trait LogReader {
    /// Passes an entry to `read`. A missing entry is [`StoreError::Corrupt`].
    fn entry<T>(
        &self,
        number: u64,
        read: impl FnOnce(&[u8]) -> Result<T, StoreError>,
    ) -> Result<T, StoreError>;

    /// Announces that a read needs at least this many further entries and bytes. Fails if they
    /// exceed the budget of the reader, before any of them is read.
    fn ensure_budget(&self, entries: u64, bytes: u64) -> Result<(), StoreError> {
        let _ = (entries, bytes);
        Ok(())
    }

    /// Announces that this many bytes of JSON are decoded. Fails if they exceed the budget of the
    /// reader.
    fn consume_json(&self, bytes: u64) -> Result<(), StoreError> {
        let _ = bytes;
        Ok(())
    }
}

/// Builds the error for a missing entry.
pub(crate) fn missing_entry(number: u64) -> StoreError {
    corrupt("frame", format!("log entry {number} is missing"))
}

/// Iterates over the frames from `newest` back to the first one of the thread, each with its
/// number.
pub(crate) fn walk_frames<L: LogReader>(log: &L, newest: u64) -> FrameWalk<'_, L> {
    FrameWalk { log, next: newest }
}

/// The iterator of [`walk_frames`].
pub(crate) struct FrameWalk<'a, L> {
    log: &'a L,
    next: u64,
}

impl<L> FrameWalk<'_, L> {
    /// Returns the number of the next frame; 0 after the first one of the thread.
    pub(crate) fn position(&self) -> u64 {
        self.next
    }
}

impl<L: LogReader> Iterator for FrameWalk<'_, L> {
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
pub(crate) fn load_frame(
    log: &impl LogReader,
    number: u64,
    header: Header,
) -> Result<Frame, StoreError> {
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
pub(crate) fn load_frame_at(log: &impl LogReader, number: u64) -> Result<Frame, StoreError> {
    let header = log.entry(number, |chunk| Header::read(number, chunk))?;
    load_frame(log, number, header)
}

/// Finds the frames of checkpoints by a walk back from the frame `newest`. The frame index of
/// `parent` names most of these frames, so the walk seldom goes past `parent`. The result lacks
/// checkpoints that do not exist.
pub(crate) fn find_frames(
    log: &impl LogReader,
    newest: u64,
    parent: Option<CheckpointId>,
    mut wanted: BTreeSet<CheckpointId>,
) -> Result<FrameIndex, StoreError> {
    let mut found = FrameIndex::new();
    for step in walk_frames(log, newest) {
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
            for (version, frame_no) in load_frame(log, number, header)?.frame_index()? {
                if wanted.remove(&version) {
                    found.insert(version, frame_no);
                }
            }
        }
    }
    Ok(found)
}
