//! List deltas. If a new version of a list begins with the items of an earlier version, only the
//! items after them are stored, with a link to the earlier version.

use wattle_graph::id::CheckpointId;
use wattle_run::ports::store::StoreError;

use crate::delta_chain::needs_full_value;
use crate::disk::byte_reader::ByteReader;

/// Size of an encoded link in bytes.
pub(crate) const LINK_BYTES: usize = 44;

/// The link of a list delta to its base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeltaLink {
    /// The base version.
    pub(crate) base: CheckpointId,
    /// Number of the frame with the base version.
    pub(crate) frame_no: u64,
    /// Number of leading items of the base version that the list keeps.
    pub(crate) keep: u32,
    /// Sizes of the delta chain, this delta included.
    pub(crate) chain: ChainStats,
}

/// Sizes of a delta chain: the last full value and the deltas after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChainStats {
    /// Number of items in the list that the chain builds.
    pub(crate) items: u32,
    /// Packed bytes of the last full value.
    pub(crate) full_bytes: u64,
    /// Number of deltas after the full value.
    pub(crate) deltas: u32,
    /// Packed bytes of the deltas.
    pub(crate) delta_bytes: u64,
}

impl ChainStats {
    /// Returns the sizes of a chain that is a full value.
    pub(crate) fn full(items: usize, bytes: usize) -> Self {
        Self { items: items as u32, full_bytes: bytes as u64, deltas: 0, delta_bytes: 0 }
    }

    /// Returns the sizes of a chain with one more delta.
    pub(crate) fn with_delta(self, items: usize, bytes: usize) -> Self {
        Self {
            items: items as u32,
            full_bytes: self.full_bytes,
            deltas: self.deltas.saturating_add(1),
            delta_bytes: self.delta_bytes.saturating_add(bytes as u64),
        }
    }

    /// Returns whether the next version is stored as a full value.
    pub(crate) fn needs_full_value(&self) -> bool {
        needs_full_value(u64::from(self.deltas), self.delta_bytes, self.full_bytes)
    }
}

impl DeltaLink {
    /// Appends the encoded link to the bytes of a frame.
    pub(crate) fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.base.0.to_le_bytes());
        bytes.extend(self.frame_no.to_le_bytes());
        bytes.extend(self.keep.to_le_bytes());
        bytes.extend(self.chain.items.to_le_bytes());
        bytes.extend(self.chain.deltas.to_le_bytes());
        bytes.extend(self.chain.delta_bytes.to_le_bytes());
        bytes.extend(self.chain.full_bytes.to_le_bytes());
    }

    /// Decodes a link of a frame.
    pub(crate) fn read(rest: &mut ByteReader<'_>) -> Result<Self, StoreError> {
        let (base, frame_no, keep) = (CheckpointId(rest.u64()?), rest.u64()?, rest.u32()?);
        let (items, deltas) = (rest.u32()?, rest.u32()?);
        let (delta_bytes, full_bytes) = (rest.u64()?, rest.u64()?);
        Ok(Self {
            base,
            frame_no,
            keep,
            chain: ChainStats { items, full_bytes, deltas, delta_bytes },
        })
    }
}
