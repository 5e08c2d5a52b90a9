//! Lists that grow at their end: a version that begins like an earlier one is stored as what
//! follows, with a link to the earlier one.

use wattle_graph::id::CheckpointId;
use wattle_run::ports::store::StoreError;

use crate::disk::frame::Reader;
use crate::tail::is_whole_due;

/// A link as it stands in a frame.
pub(crate) const LINK_BYTES: usize = 44;

/// Where the beginning of a list stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// The version that it begins like.
    pub(crate) base: CheckpointId,
    /// The frame that holds that version.
    pub(crate) place: u64,
    /// How many items it begins with that are those of that version.
    pub(crate) keep: u32,
    /// What the list takes, this end included.
    pub(crate) extent: Extent,
}

/// What a list takes in the file, from its last whole value on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    /// How many items it has.
    pub(crate) items: u32,
    /// Packed bytes of the last whole value.
    pub(crate) whole_bytes: u64,
    /// Ends that were written since.
    pub(crate) tails: u32,
    /// Their packed bytes.
    pub(crate) tail_bytes: u64,
}

impl Extent {
    /// Of a list that is written whole.
    pub(crate) fn whole(items: usize, bytes: usize) -> Self {
        Self { items: items as u32, whole_bytes: bytes as u64, tails: 0, tail_bytes: 0 }
    }

    /// With one more end.
    pub(crate) fn grown(self, items: usize, bytes: usize) -> Self {
        Self {
            items: items as u32,
            whole_bytes: self.whole_bytes,
            tails: self.tails.saturating_add(1),
            tail_bytes: self.tail_bytes.saturating_add(bytes as u64),
        }
    }

    /// Whether the next version had better be whole again.
    pub(crate) fn is_whole_due(&self) -> bool {
        is_whole_due(u64::from(self.tails), self.tail_bytes, self.whole_bytes)
    }
}

impl Link {
    /// Appends it to a frame.
    pub(crate) fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.base.0.to_le_bytes());
        bytes.extend(self.place.to_le_bytes());
        bytes.extend(self.keep.to_le_bytes());
        bytes.extend(self.extent.items.to_le_bytes());
        bytes.extend(self.extent.tails.to_le_bytes());
        bytes.extend(self.extent.tail_bytes.to_le_bytes());
        bytes.extend(self.extent.whole_bytes.to_le_bytes());
    }

    /// Reads one from a frame.
    pub(crate) fn read(rest: &mut Reader<'_>) -> Result<Self, StoreError> {
        let (base, place, keep) = (CheckpointId(rest.u64()?), rest.u64()?, rest.u32()?);
        let (items, tails) = (rest.u32()?, rest.u32()?);
        let (tail_bytes, whole_bytes) = (rest.u64()?, rest.u64()?);
        Ok(Self { base, place, keep, extent: Extent { items, whole_bytes, tails, tail_bytes } })
    }
}
