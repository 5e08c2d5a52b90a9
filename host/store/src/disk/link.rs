//! List deltas: a version of a list that begins like an earlier one is stored as the items that
//! follow, with a link to the earlier one.

use wattle_graph::id::CheckpointId;
use wattle_run::ports::store::StoreError;

use crate::delta_chain::needs_full_value;
use crate::disk::frame::Reader;

/// Size of an encoded link in bytes.
pub(crate) const LINK_BYTES: usize = 44;

/// The link of a list delta to its base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// The base version.
    pub(crate) base: CheckpointId,
    /// Number of the frame with the base version.
    pub(crate) place: u64,
    /// Number of leading items of the base version that the list keeps.
    pub(crate) keep: u32,
    /// Sizes of the delta chain, this delta included.
    pub(crate) extent: Extent,
}

/// Sizes of a delta chain: the last full value and the deltas after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Number of items of the list.
    pub(crate) items: u32,
    /// Packed bytes of the last full value.
    pub(crate) whole_bytes: u64,
    /// Number of deltas after the full value.
    pub(crate) tails: u32,
    /// Packed bytes of the deltas.
    pub(crate) tail_bytes: u64,
}

impl Extent {
    /// Returns the sizes of a chain that is a full value.
    pub(crate) fn whole(items: usize, bytes: usize) -> Self {
        Self { items: items as u32, whole_bytes: bytes as u64, tails: 0, tail_bytes: 0 }
    }

    /// Returns the sizes of a chain with one more delta.
    pub(crate) fn grown(self, items: usize, bytes: usize) -> Self {
        Self {
            items: items as u32,
            whole_bytes: self.whole_bytes,
            tails: self.tails.saturating_add(1),
            tail_bytes: self.tail_bytes.saturating_add(bytes as u64),
        }
    }

    /// Returns whether the next version is stored as a full value.
    pub(crate) fn needs_full_value(&self) -> bool {
        needs_full_value(u64::from(self.tails), self.tail_bytes, self.whole_bytes)
    }
}

impl Link {
    /// Appends the encoded link to the bytes of a frame.
    pub(crate) fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.base.0.to_le_bytes());
        bytes.extend(self.place.to_le_bytes());
        bytes.extend(self.keep.to_le_bytes());
        bytes.extend(self.extent.items.to_le_bytes());
        bytes.extend(self.extent.tails.to_le_bytes());
        bytes.extend(self.extent.tail_bytes.to_le_bytes());
        bytes.extend(self.extent.whole_bytes.to_le_bytes());
    }

    /// Decodes a link of a frame.
    pub(crate) fn read(rest: &mut Reader<'_>) -> Result<Self, StoreError> {
        let (base, place, keep) = (CheckpointId(rest.u64()?), rest.u64()?, rest.u32()?);
        let (items, tails) = (rest.u32()?, rest.u32()?);
        let (tail_bytes, whole_bytes) = (rest.u64()?, rest.u64()?);
        Ok(Self { base, place, keep, extent: Extent { items, whole_bytes, tails, tail_bytes } })
    }
}
