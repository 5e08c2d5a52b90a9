//! Deletes blobs that no thread mentions.
//!
//! A blob is put before a thread mentions it, so a sweep does not delete a young blob: its writer
//! has a grace period to write the mention into a thread. Putting the same bytes again restarts the
//! grace period.

use std::time::Duration;

use async_trait::async_trait;
use wattle_graph::failure::Failure;
use wattle_run::ports::blob::BlobRef;
use wattle_run::ports::store::StoreError;

/// How long a blob that no thread mentions is kept. This period is far longer than the time from
/// the put of a node to the end of its task.
pub const GRACE_PERIOD: Duration = Duration::from_hours(1);

/// A store that can find the blobs that its threads mention.
#[async_trait]
pub trait Mentions: Send + Sync {
    /// Returns the blobs among `blobs` that no thread mentions. Returns no blob if the mentions of
    /// some threads cannot be read.
    async fn unmentioned(&self, blobs: &[BlobRef]) -> Result<Vec<BlobRef>, StoreError>;
}

/// A blob store that can be swept.
#[async_trait]
pub trait Sweepable: Send + Sync {
    /// Returns the blobs that were last put at least `age` ago.
    async fn older_than(&self, age: Duration) -> Result<Vec<BlobRef>, Failure>;

    /// Deletes the blobs among `blobs` that were last put at least `age` ago, and returns their
    /// number.
    async fn remove_older(&self, blobs: &[BlobRef], age: Duration) -> Result<usize, Failure>;
}

/// Why a sweep did not finish. The blobs that it deleted stay deleted, and the next sweep deletes
/// the rest.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SweepError {
    /// The store could not read the mentions.
    #[error("blobs cannot be swept: their mentions are unknown")]
    Mentions(#[source] StoreError),
    /// The blob store failed.
    #[error("blobs cannot be swept")]
    Blobs(#[source] Failure),
}

/// Deletes blobs older than `age` (use [`GRACE_PERIOD`]) that no thread mentions, and returns their
/// number.
///
/// Call this function regularly, for example once an hour. Each call lists all blobs and may read
/// all mentions.
///
/// # Errors
///
/// [`SweepError`] with the part that failed.
pub async fn sweep_blobs(
    mentions: &dyn Mentions,
    blobs: &dyn Sweepable,
    age: Duration,
) -> Result<usize, SweepError> {
    let old = blobs.older_than(age).await.map_err(SweepError::Blobs)?;
    if old.is_empty() {
        return Ok(0);
    }
    let unmentioned = mentions.unmentioned(&old).await.map_err(SweepError::Mentions)?;
    blobs.remove_older(&unmentioned, age).await.map_err(SweepError::Blobs)
}
