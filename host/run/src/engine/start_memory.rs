//! The memory of a run that starts: its first memory, and that of the state with which it starts.

use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::EventKind;
use wattle_graph::failure::Failure;

use super::{Engine, ThreadClaim, shutting_down};
use crate::caller_id::CallerId;
use crate::log::event_memory_bytes;
use crate::ports::store::QueueCondition;
use crate::run_memory::{MemoryCharge, state_bytes};

impl Engine {
    /// Takes the first memory of a run of a caller, before the state of its thread is read. A
    /// pending run does not wait, since it would keep the dispatcher from the runs of other
    /// callers.
    ///
    /// # Errors
    ///
    /// `limit` if the caller does not have enough memory; `unavailable` during a shutdown.
    pub(super) async fn take_memory(
        &self,
        slot: &mut ThreadClaim,
        caller: CallerId,
    ) -> Result<(), Failure> {
        let pool = &self.0.run_memory;
        slot.memory = if slot.request.queue_condition == QueueCondition::Pending {
            pool.try_start(caller)?
        } else {
            tokio::select! {
                biased;
                started = pool.start(caller) => started?,
                () = slot.handover.wait() => return Err(shutting_down()),
            }
        };
        Ok(())
    }

    /// Takes the first memory of a run that was cut. The recovery does not wait for memory, since
    /// it would keep the runs of other callers from their recovery.
    ///
    /// # Errors
    ///
    /// `limit` if the caller does not have enough memory.
    pub(super) fn take_memory_to_recover(
        &self,
        slot: &mut ThreadClaim,
        caller: CallerId,
    ) -> Result<(), Failure> {
        slot.memory = self.0.run_memory.recover(caller)?;
        Ok(())
    }
}

impl ThreadClaim {
    /// Counts the state with which a run starts, and the events since this state.
    ///
    /// # Errors
    ///
    /// `limit` if they do not fit into the memory of the run.
    pub(super) fn count_state<'e>(
        &mut self,
        checkpoint: &Checkpoint,
        events: impl IntoIterator<Item = &'e EventKind>,
    ) -> Result<(), Failure> {
        let events = events.into_iter().map(event_memory_bytes);
        let memory = MemoryCharge::new(self.memory.clone());
        memory.raise_to(state_bytes(checkpoint) + events.sum::<u64>())?;
        self.state_memory = memory;
        Ok(())
    }
}
