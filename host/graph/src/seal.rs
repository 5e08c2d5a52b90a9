//! Seals: a hash chain over the stored batches of a thread, which makes changes evident.
//!
//! A seal is the digest of a batch and of the previous seal. Changing an old batch invalidates
//! every later seal, so a copy of a later seal in another place reveals the change.

use crate::checkpoint::ListDelta;
use crate::id::{CheckpointId, Digest};

/// Computes the seal of one batch from its parts, each of which is the JSON that the store holds.
///
/// Each part is hashed with its length, so that different lists of parts have different seals. The
/// order of the parts is: the base, the events, then for a batch with a checkpoint its
/// [`CheckpointMeta`](crate::checkpoint::CheckpointMeta) and each channel in the order of their
/// names.
#[derive(Debug)]
pub struct Sealer(blake3::Hasher);

impl Sealer {
    /// Starts the seal of a batch that follows the seal `previous`.
    pub fn new(previous: Option<Digest>, base: Option<CheckpointId>) -> Self {
        let mut sealer = Self(blake3::Hasher::new());
        sealer.part(previous.as_ref().map_or(&[], |digest| digest.as_bytes().as_slice()));
        sealer.part(&base.map_or([0; 8], |base| base.0.to_le_bytes()));
        sealer
    }

    /// Adds the events, or the [`CheckpointMeta`](crate::checkpoint::CheckpointMeta).
    pub fn part(&mut self, json: &[u8]) {
        self.0.update(&(json.len() as u64).to_le_bytes());
        self.0.update(json);
    }

    /// Adds the written value of a channel: the whole value, or the items after the prefix that
    /// `tail` names.
    pub fn value(&mut self, channel: &str, tail: Option<ListDelta>, json: &[u8]) {
        self.part(channel.as_bytes());
        let place =
            tail.map(|tail| [tail.base.0.to_le_bytes(), u64::from(tail.prefix_len).to_le_bytes()]);
        self.part(place.map(|place| place.concat()).unwrap_or_default().as_slice());
        self.part(json);
    }

    /// Returns the seal.
    pub fn finish(&self) -> Digest {
        Digest::from_bytes(*self.0.finalize().as_bytes())
    }
}
