//! Deletes blobs that no thread mentions.
//!
//! A blob is put before anything mentions it, so a young one is left alone: its writer has a
//! grace period to write the reference into a thread. Putting the same bytes again restarts the
//! period.

use std::time::Duration;

use async_trait::async_trait;
use wattle_graph::failure::Failure;
use wattle_run::ports::blob::BlobRef;
use wattle_run::ports::store::StoreError;

/// How long a blob lives that no thread mentions: far longer than any node may take from its put
/// to the end of its task.
pub const GRACE: Duration = Duration::from_hours(1);

/// A store that knows which blobs its threads mention.
#[async_trait]
pub trait Mentions: Send + Sync {
    /// Those of `blobs` that no thread mentions; none while nobody knows what some threads mention.
    async fn unmentioned(&self, blobs: &[BlobRef]) -> Result<Vec<BlobRef>, StoreError>;
}

/// A blob store that can be swept.
#[async_trait]
pub trait Sweepable: Send + Sync {
    /// Blobs that were last put at least `age` ago.
    async fn older_than(&self, age: Duration) -> Result<Vec<BlobRef>, Failure>;

    /// Deletes those of `blobs` that were still not put again for `age`; answers with how many.
    async fn remove_older(&self, blobs: &[BlobRef], age: Duration) -> Result<usize, Failure>;
}

/// Why a sweep did not finish. What it deleted before is gone; the next sweep does the rest.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SweepError {
    /// The store could not tell which blobs are mentioned.
    #[error("blobs cannot be swept: their mentions are unknown")]
    Mentions(#[source] StoreError),
    /// The blob store failed.
    #[error("blobs cannot be swept")]
    Blobs(#[source] Failure),
}

/// Deletes blobs older than `age` (use [`GRACE`]) that no thread mentions; answers with how many.
///
/// Call it now and then, such as once an hour: it looks at every blob and every mention.
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
    let free = mentions.unmentioned(&old).await.map_err(SweepError::Mentions)?;
    blobs.remove_older(&free, age).await.map_err(SweepError::Blobs)
}
