//! Verification of a thread: compares all stored data of the thread, from the oldest sealed frame
//! on, with its seals.

use std::collections::HashMap;

use serde_json::Value;
use wattle_graph::checkpoint::{CheckpointMeta, ListDelta};
use wattle_graph::event::Event;
use wattle_graph::id::{ChannelName, CheckpointId, Digest, ThreadId};
use wattle_graph::seal::Sealer;
use wattle_run::ports::store::{SealReport, StoreError};

use crate::codec::{unpack, unpack_json};
use crate::disk::chain::{load_frame, walk_frames};
use crate::disk::delta::ChainStats;
use crate::disk::frame::{Frame, Header};
use crate::disk::head::Head;
use crate::disk::snapshot::Snapshot;
use crate::error::corrupt;

/// Verifies a thread; `None` if it does not exist.
pub(crate) fn verify(
    snapshot: &Snapshot,
    thread: &ThreadId,
) -> Result<Option<SealReport>, StoreError> {
    let Some(head) = snapshot.head(thread)? else { return Ok(None) };
    let mut frames: Vec<(u64, Header)> = Vec::new();
    for step in walk_frames(snapshot, head.frame) {
        let after = frames.last().map_or(head.last_seq, |(_, newer)| newer.after_seq);
        frames.push(step.map_err(|error| broken_seal(thread, after, error))?);
    }
    frames.reverse();
    let headers: HashMap<u64, &Header> =
        frames.iter().map(|(number, header)| (*number, header)).collect();
    let mut chains = HashMap::new();
    let mut seal = head.seal_before;
    let mut sealed_after = None;
    for (number, header) in &frames {
        if header.seal.is_none() && sealed_after.is_none() {
            continue;
        }
        sealed_after.get_or_insert(header.after_seq);
        let frame = load_frame(snapshot, *number, header.clone());
        let found = frame.and_then(|frame| {
            check_frame(&headers, *number, &frame)?;
            check_chains(&mut chains, *number, &frame)?;
            compute_seal(seal, &frame)
        });
        seal = Some(found.map_err(|error| broken_seal(thread, header.after_seq + 1, error))?);
        if seal != header.seal {
            let error = corrupt("batch", "its seal does not match");
            return Err(broken_seal(thread, header.after_seq + 1, error));
        }
    }
    check_head(thread, &head, frames.last().map(|(_, header)| header), seal)?;
    let sealed_after = sealed_after.unwrap_or(head.last_seq);
    Ok(Some(SealReport { sealed_after, last_seq: head.last_seq, seal }))
}

/// Computes the seal of a frame that follows the frame with the seal `previous`.
fn compute_seal(previous: Option<Digest>, frame: &Frame) -> Result<Digest, StoreError> {
    let mut sealer = Sealer::new(previous, frame.header().base);
    match frame.packed_events()? {
        Some(packed) => sealer.part(&unpack_json("events", packed)?),
        None => sealer.part(&[]),
    }
    if frame.header().checkpoint.is_some() {
        sealer.part(&unpack_json("checkpoint", frame.packed_meta()?)?);
        for part in frame.parts()? {
            let part = part?;
            let tail = part.link.map(|link| ListDelta { base: link.base, prefix_len: link.keep });
            sealer.value(part.name()?.as_str(), tail, &unpack_json("channel value", part.packed)?);
        }
    }
    Ok(sealer.finish())
}

/// Checks the parts of a frame that seals do not cover. The header must agree with the records of
/// the frame, and every frame to which the frame index or a link refers must be able to contain
/// the values of the named checkpoint.
fn check_frame(
    headers: &HashMap<u64, &Header>,
    number: u64,
    frame: &Frame,
) -> Result<(), StoreError> {
    let header = frame.header();
    let events: Vec<Event> = frame.events()?;
    let bounds = (events.first(), events.last());
    if let (Some(first), Some(last)) = bounds
        && (first.seq <= header.after_seq || last.seq != header.last_seq)
    {
        return Err(mismatch("its header does not match its events"));
    }
    let Some(id) = header.checkpoint else { return Ok(()) };
    let meta: CheckpointMeta = frame.meta()?;
    if meta.id != id || meta.namespace.as_str() != header.namespace {
        return Err(mismatch("its header does not match its checkpoint"));
    }
    let holds = |version: CheckpointId, frame_no: u64| {
        frame_no <= number && headers.get(&frame_no).is_some_and(|header| header.may_hold(version))
    };
    for (version, frame_no) in frame.frame_index()? {
        if !holds(version, frame_no) {
            return Err(mismatch(
                "the frame index names a frame without the values of a checkpoint",
            ));
        }
    }
    for part in frame.parts()? {
        if part?.link.is_some_and(|link| !holds(link.base, link.frame_no)) {
            return Err(mismatch("a list delta refers to a frame without its base"));
        }
    }
    Ok(())
}

/// Checks the chain sizes in the links of a frame.
fn check_chains(
    chains: &mut HashMap<(u64, ChannelName), ChainStats>,
    number: u64,
    frame: &Frame,
) -> Result<(), StoreError> {
    for part in frame.parts()? {
        let part = part?;
        let channel = part.name()?;
        let value: Value = unpack("channel value", part.packed)?;
        let items = value.as_array().map_or(0, Vec::len);
        let chain = match part.link {
            None => ChainStats::full(items, part.packed.len()),
            Some(link) => {
                let items = link.keep as usize + items;
                let base = chains.get(&(link.frame_no, channel.clone()));
                let chain = base.map(|base| base.with_delta(items, part.packed.len()));
                // The base may be in a frame without a seal, whose sizes are not known here.
                if chain.is_some_and(|chain| chain != link.chain) {
                    return Err(mismatch("the sizes in a list delta do not match its list"));
                }
                link.chain
            }
        };
        chains.insert((number, channel), chain);
    }
    Ok(())
}

/// Checks that the head matches the newest frame.
fn check_head(
    thread: &ThreadId,
    head: &Head,
    newest: Option<&Header>,
    seal: Option<Digest>,
) -> Result<(), StoreError> {
    let last_seq = newest.map_or(head.pruned_seq, |newest| newest.last_seq);
    if head.last_seq < last_seq || head.seal != seal {
        let error = mismatch("the head does not match the newest frame");
        return Err(broken_seal(thread, last_seq, error));
    }
    Ok(())
}

fn mismatch(message: &'static str) -> StoreError {
    corrupt("batch", message)
}

/// Converts damage into [`StoreError::Broken`]. An I/O error of the file is not damage.
fn broken_seal(thread: &ThreadId, seq: u64, error: StoreError) -> StoreError {
    match error {
        StoreError::Corrupt { .. } => {
            StoreError::Broken { thread: thread.clone(), seq, message: error.to_string() }
        }
        error => error,
    }
}
