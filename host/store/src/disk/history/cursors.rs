//! Cursors of readers of a long history.
//!
//! A reader names the last checkpoint that it has, and gets the page before it. The frames have no
//! index of checkpoints, and the events since a checkpoint may be anywhere in the newer frames, so
//! without a cursor, a walk from the newest frame must find the page. A cursor stores the frame at
//! which the walk of a page ended, and which of the frames that it passed have events of older
//! checkpoints. The next page passes only the frames that were written since then, and continues
//! from the stored frame.

use std::collections::VecDeque;
use std::sync::Mutex;

use wattle_graph::id::{CheckpointId, Namespace};
use wattle_run::ports::store::CheckpointQuery;

use crate::lock::lock;

/// Maximum number of cursors. A reader of a history has one cursor at a time. At the limit, the
/// least recently used cursor is dropped, and the next page of its reader walks from the newest
/// frame.
const MAX_CURSORS: usize = 256;

/// Maximum number of passed frames in a cursor, so that all cursors take at most 4 MiB. A thread
/// that has returned to earlier checkpoints more often gets no cursor.
const MAX_CURSOR_FRAMES: usize = 1024;

/// The position in the chain of frames at which the walk for one page of checkpoints ended.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    /// Number of the newest frame that the thread had when this page was read.
    pub(crate) newest: u64,
    /// Number of the frame from which the walk for the next page continues.
    pub(crate) next: u64,
    /// Frames that the walk has passed and whose events belong to checkpoints of later pages, as
    /// pairs of checkpoint and frame number. The frames of one checkpoint are in the order of the
    /// walk.
    pub(crate) passed: Vec<(CheckpointId, u64)>,
}

/// Identifies the page after which a cursor continues. A cursor never becomes invalid: a rewrite
/// gives the thread another number, and a thread that keeps its number only gets newer frames.
#[derive(Debug, PartialEq)]
struct CursorKey {
    /// Number of the thread.
    thread: u64,
    /// The last checkpoint of the page.
    before: CheckpointId,
    namespace: Option<Namespace>,
    has_events: bool,
}

impl CursorKey {
    /// Returns the key of the pages before a checkpoint; `None` for a query with a filter, which
    /// may be too large to store.
    fn new(thread: u64, query: &CheckpointQuery, before: CheckpointId) -> Option<Self> {
        let (namespace, has_events) = (query.namespace.clone(), query.parts.has_events());
        query.filter.is_empty().then_some(Self { thread, before, namespace, has_events })
    }
}

/// The cursors of a store, ordered by their last use.
#[derive(Debug, Default)]
pub(crate) struct Cursors(Mutex<VecDeque<(CursorKey, Cursor)>>);

impl Cursors {
    /// Returns the cursor with which a query continues, in a snapshot whose newest frame of the
    /// thread is `newest`. Ignores the cursors of newer snapshots, which may name frames that this
    /// snapshot lacks.
    pub(crate) fn find(&self, thread: u64, newest: u64, query: &CheckpointQuery) -> Option<Cursor> {
        let key = CursorKey::new(thread, query, query.before?)?;
        let mut cursors = lock(&self.0);
        let is_usable =
            |(known, cursor): &(CursorKey, Cursor)| *known == key && cursor.newest <= newest;
        let index = cursors.iter().rposition(is_usable)?;
        // A client may request the same page again.
        let used = cursors.remove(index)?;
        let cursor = used.1.clone();
        cursors.push_back(used);
        Some(cursor)
    }

    /// Stores the end of a page whose last checkpoint is `last`.
    pub(crate) fn insert(
        &self,
        thread: u64,
        query: &CheckpointQuery,
        last: CheckpointId,
        cursor: Cursor,
    ) {
        let Some(key) = CursorKey::new(thread, query, last) else { return };
        if cursor.passed.len() > MAX_CURSOR_FRAMES {
            return;
        }
        let mut cursors = lock(&self.0);
        cursors.retain(|(known, _)| *known != key);
        if cursors.len() == MAX_CURSORS {
            cursors.pop_front();
        }
        cursors.push_back((key, cursor));
    }
}
