//! Seals: a chain of digests over what a thread has stored, so that a change shows.
//!
//! The seal of a batch covers the seal before it. So a change of the past changes every seal after
//! it, and a copy of one of these, kept elsewhere, shows the change.

use crate::checkpoint::Tail;
use crate::id::{CheckpointId, Digest};

/// Makes the seal of one batch from its parts, each as the JSON that is stored of it.
///
/// Parts go in with their lengths, so that no two lists of parts have one seal. Their order is:
/// the base, the events, then for a batch with a checkpoint its facts and each channel in the order
/// of their names.
#[derive(Debug)]
pub struct Sealer(blake3::Hasher);

impl Sealer {
    /// Begins the seal of a batch that follows `previous`.
    pub fn new(previous: Option<Digest>, base: Option<CheckpointId>) -> Self {
        let mut sealer = Self(blake3::Hasher::new());
        sealer.part(previous.as_ref().map_or(&[], |digest| digest.as_bytes().as_slice()));
        sealer.part(&base.map_or([0; 8], |base| base.0.to_le_bytes()));
        sealer
    }

    /// Adds the events, or the facts of the checkpoint.
    pub fn part(&mut self, json: &[u8]) {
        self.0.update(&(json.len() as u64).to_le_bytes());
        self.0.update(json);
    }

    /// Adds what was written of a channel: all of its value, or the items of its end.
    pub fn value(&mut self, channel: &str, tail: Option<Tail>, json: &[u8]) {
        self.part(channel.as_bytes());
        let place =
            tail.map(|tail| [tail.base.0.to_le_bytes(), u64::from(tail.keep).to_le_bytes()]);
        self.part(place.map(|place| place.concat()).unwrap_or_default().as_slice());
        self.part(json);
    }

    /// The seal.
    pub fn finish(&self) -> Digest {
        Digest::from_bytes(*self.0.finalize().as_bytes())
    }
}
