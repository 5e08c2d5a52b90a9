//! Reads and checks all stored data of a thread.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use wattle_graph::checkpoint::CheckpointMeta;
use wattle_graph::event::{Event, RunStatus};
use wattle_graph::id::{Digest, RunId, ThreadId};
use wattle_run::ports::store::StoreError;

use crate::codec::{unpack, unpack_json};
use crate::disk::chain::{load_frame, walk_frames};
use crate::disk::frame::Frame;
use crate::disk::head::Head;
use crate::disk::snapshot::Snapshot;
use crate::disk::survey::{OP_READ, separate_damage};
use crate::disk::table::FRAMES_PER_MARK;
use crate::disk::verify::verify;
use crate::error::corrupt;
use crate::file::guarded;
use crate::json_scan::scan_json;

/// An intact thread.
pub(crate) struct IntactThread {
    pub(crate) head: Head,
    /// Frames of the thread, oldest first: log entry, number of entries, newest sequence number.
    pub(crate) frames: Vec<(u64, u32, u64)>,
    /// Runs of the thread, oldest first.
    pub(crate) runs: Vec<RunId>,
    /// Pending runs of the thread, each with the time of the request for the run.
    pub(crate) pending: Vec<(i64, RunId)>,
    /// Blobs that the thread mentions.
    pub(crate) mentions: BTreeSet<Digest>,
    /// Damage of the indexes of frames and blobs, which can be rebuilt from the frames and blobs of
    /// the thread.
    pub(crate) index: Option<String>,
}

impl IntactThread {
    /// Returns the marks of the thread's frames.
    pub(crate) fn marks(&self) -> BTreeMap<u64, u64> {
        let every = FRAMES_PER_MARK as usize;
        let marked = self.frames.iter().skip(every - 1).step_by(every);
        marked.map(|(frame, _, last_seq)| (*last_seq, *frame)).collect()
    }
}

/// Reads a thread completely.
///
/// # Errors
///
/// The first damage, and [`StoreError::Backend`] if the file cannot be read.
pub(super) fn check(snapshot: &Snapshot, thread: &ThreadId) -> Result<IntactThread, StoreError> {
    let head =
        snapshot.head(thread)?.ok_or_else(|| damaged_thread(thread, "its head is missing"))?;
    let mut mentions = BTreeSet::new();
    records(snapshot, thread, &mut mentions)?;
    let (runs, pending) = runs(snapshot, thread, &head, &mut mentions)?;
    verify(snapshot, thread)?;
    let mut frames = Vec::new();
    for step in walk_frames(snapshot, head.frame) {
        let (number, header) = step?;
        let (chunks, last_seq) = (header.chunks, header.last_seq);
        frame(&load_frame(snapshot, number, header)?, &mut mentions)?;
        frames.push((number, chunks, last_seq));
    }
    frames.reverse();
    let mut sound = IntactThread { head, frames, runs, pending, mentions, index: None };
    let checked = guarded(OP_READ, || indexes(snapshot, thread, &sound));
    sound.index = separate_damage(checked)?.err();
    Ok(sound)
}

fn records(
    snapshot: &Snapshot,
    thread: &ThreadId,
    mentions: &mut BTreeSet<Digest>,
) -> Result<(), StoreError> {
    let (record, _) = snapshot.record(thread)?;
    if record.id != *thread {
        return Err(damaged_thread(thread, "its record names another thread"));
    }
    add_mentions(mentions, &unpack_json("thread record", &snapshot.packed_record(thread)?)?);
    Ok(())
}

/// Runs of a thread, and its pending runs with the times of their requests.
type Runs = (Vec<RunId>, Vec<(i64, RunId)>);

fn runs(
    snapshot: &Snapshot,
    thread: &ThreadId,
    head: &Head,
    mentions: &mut BTreeSet<Digest>,
) -> Result<Runs, StoreError> {
    let (mut runs, mut pending) = (Vec::new(), Vec::new());
    snapshot.for_each_run(thread, |run| {
        add_mentions(mentions, &unpack_json("run record", &snapshot.packed_run(&run.id)?)?);
        if run.status == RunStatus::Pending {
            pending.push((run.created_ms(), run.id.clone()));
        }
        runs.push(run.id);
        Ok(())
    })?;
    if runs.len() as u64 + head.runs_taken == head.runs {
        Ok((runs, pending))
    } else {
        Err(damaged_thread(
            thread,
            &format!(
                "it has {} runs, but its head counts {}",
                runs.len(),
                head.runs.saturating_sub(head.runs_taken)
            ),
        ))
    }
}

/// Decodes a frame, with or without a seal.
fn frame(frame: &Frame, mentions: &mut BTreeSet<Digest>) -> Result<(), StoreError> {
    if let Some(events) = frame.packed_events()? {
        add_mentions(mentions, &unpack_json("events", events)?);
        frame.events::<Event>()?;
    }
    if frame.header().checkpoint.is_none() {
        return Ok(());
    }
    add_mentions(mentions, &unpack_json("checkpoint", frame.packed_meta()?)?);
    frame.meta::<CheckpointMeta>()?;
    for part in frame.parts()? {
        let part = part?;
        add_mentions(mentions, &unpack_json("channel value", part.packed)?);
        unpack::<Value>("channel value", part.packed)?;
    }
    Ok(())
}

fn add_mentions(mentions: &mut BTreeSet<Digest>, json: &[u8]) {
    mentions.extend(scan_json(json).blobs.into_iter().map(|blob| blob.0));
}

/// Compares the indexes of frames and blobs with the frames and blobs of the thread.
fn indexes(snapshot: &Snapshot, thread: &ThreadId, sound: &IntactThread) -> Result<(), StoreError> {
    if snapshot.marks(sound.head.number)? != sound.marks() {
        return Err(damaged_thread(thread, "the index of its events does not match its frames"));
    }
    for digest in &sound.mentions {
        if !snapshot.mentions(thread, *digest)? {
            let message = format!("it mentions blob `{digest}`, which its index lacks");
            return Err(damaged_thread(thread, &message));
        }
    }
    Ok(())
}

fn damaged_thread(thread: &ThreadId, message: &str) -> StoreError {
    corrupt(format!("thread `{thread}`"), message)
}
