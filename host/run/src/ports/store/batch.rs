//! Batches: what is written to a thread at once.

use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::id::CheckpointId;

use super::{EncodedEvents, LeaseEpoch, QueueCondition, RunRecord, ThreadRecord};

/// One atomic write to a thread.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The lease under which the batch is written. A batch without a lease is accepted only if the
    /// thread has no lease.
    pub epoch: Option<LeaseEpoch>,
    /// New record of the thread. The first batch of a thread must contain a record of the thread.
    pub record: Option<ThreadRecord>,
    /// New record of a run.
    pub run: Option<RunRecord>,
    /// Base checkpoint of `events`: an earlier checkpoint, or the checkpoint of this batch if the
    /// events belong to it from its start. `None` before the first checkpoint.
    pub base: Option<CheckpointId>,
    /// Events whose sequence numbers continue from the newest event of the thread without a gap.
    pub events: EncodedEvents,
    /// Sequence number of the newest event before the batch. The store rejects a batch without
    /// events if it has rejected earlier events of the same writer. `None` for a batch that
    /// continues from any event.
    pub after_seq: Option<u64>,
    /// A new checkpoint, which becomes the current one if it belongs to the root graph. The store
    /// writes only channels whose version is the id of this checkpoint, and only the new items of
    /// channels with a [`ListDelta`](wattle_graph::checkpoint::ListDelta). All other values are
    /// stored with earlier checkpoints.
    pub checkpoint: Option<Checkpoint>,
    /// Makes an earlier checkpoint the current one.
    pub current: Option<CheckpointId>,
    /// Condition on the pending runs of the thread. A batch that violates it fails with
    /// [`StoreError::OutOfTurn`](super::StoreError::OutOfTurn).
    pub queue_condition: QueueCondition,
    /// Releases the lease of the batch when the batch becomes durable. A batch that is not written
    /// keeps the lease. The batch must have events, by which a store recognizes the batch after a
    /// lost response. The batch is the last one under the lease: a store may reject later batches.
    pub releases_lease: bool,
}
