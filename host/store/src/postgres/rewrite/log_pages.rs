//! Reads the log of a thread page by page, on the blocking pool, so that a rewrite of a log of any
//! size has one page in memory and delays no other task.

use std::ops::ControlFlow;

use wattle_graph::checkpoint::CheckpointMeta;
use wattle_graph::event::Event;
use wattle_run::ports::store::StoreError;

use crate::error::corrupt;
use crate::postgres::batch_scan::{self, BatchRows, ScannedBatch};
use crate::postgres::database::PgTransaction;
use crate::postgres::decode::decode_on_blocking_pool;
use crate::retention_plan::{BatchSummary, checkpoints_made_by};

const OPERATION: &str = "read the log of a thread";

/// The pages of a log that have not been read yet.
pub(super) struct LogPages {
    number: i64,
    /// Position from which the next page is read.
    next: i64,
    has_values: bool,
}

/// A batch with the `CheckpointMeta` of its checkpoint.
pub(super) struct LogBatch {
    pub(super) scanned: ScannedBatch,
    pub(super) meta: Option<CheckpointMeta>,
}

impl LogPages {
    /// Returns all pages of a thread number.
    pub(super) fn new(number: i64) -> Self {
        Self { number, next: 0, has_values: true }
    }

    /// Leaves out the values of the batches.
    pub(super) fn without_values(self) -> Self {
        Self { has_values: false, ..self }
    }

    /// Leaves out the batches before a position.
    pub(super) fn starting_at(self, position: i64) -> Self {
        Self { next: position, ..self }
    }

    /// Reads the next page, which is not decoded. Returns `None` after the last page.
    pub(super) async fn read_next(
        &mut self,
        transaction: &mut PgTransaction,
    ) -> Result<Option<BatchRows>, StoreError> {
        let rows = if self.has_values {
            batch_scan::read_rows(transaction, self.number, self.next).await?
        } else {
            batch_scan::read_rows_without_values(transaction, self.number, self.next).await?
        };
        let Some(last) = rows.last_position else { return Ok(None) };
        self.next = last + 1;
        Ok(Some(rows))
    }

    /// Reads all pages. Passes their batches to `add`, oldest first, until `add` breaks. Returns
    /// the state after the last batch.
    pub(super) async fn fold<T: Send + 'static>(
        mut self,
        transaction: &mut PgTransaction,
        mut state: T,
        add: fn(&mut T, &LogBatch) -> Result<ControlFlow<()>, StoreError>,
    ) -> Result<T, StoreError> {
        while let Some(rows) = self.read_next(transaction).await? {
            let add_page = move || {
                for scanned in rows.decode()? {
                    if add(&mut state, &LogBatch::new(scanned)?)?.is_break() {
                        return Ok((state, true));
                    }
                }
                Ok((state, false))
            };
            let (after, is_over) = decode_on_blocking_pool(OPERATION, None, add_page).await?;
            if is_over {
                return Ok(after);
            }
            state = after;
        }
        Ok(state)
    }
}

impl LogBatch {
    fn new(scanned: ScannedBatch) -> Result<Self, StoreError> {
        let meta = scanned.body.meta.as_deref().map(serde_json::from_slice).transpose();
        let meta = meta.map_err(|error| corrupt("checkpoint", error))?;
        Ok(Self { scanned, meta })
    }

    /// Decodes a page.
    pub(super) fn decode(rows: &BatchRows) -> Result<Vec<Self>, StoreError> {
        rows.decode()?.into_iter().map(Self::new).collect()
    }

    /// Parses the events of the batch.
    pub(super) fn events(&self) -> Result<Vec<Event>, StoreError> {
        let events = self.scanned.body.events.as_deref().map(serde_json::from_slice);
        Ok(events.transpose().map_err(|error| corrupt("events", error))?.unwrap_or_default())
    }

    /// Returns what a retention plan reads of the batch.
    pub(super) fn summary(&self) -> Result<BatchSummary, StoreError> {
        Ok(BatchSummary {
            base: self.scanned.base,
            after_seq: self.scanned.after_seq,
            last_seq: self.scanned.last_seq,
            checkpoints_made: checkpoints_made_by(&self.events()?),
            checkpoint: self.meta.as_ref().map(Into::into),
        })
    }
}
