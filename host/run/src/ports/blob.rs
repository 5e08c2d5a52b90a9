//! Port: content-addressed bytes.

use std::collections::HashMap;
use std::path::Path;

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use wattle_graph::failure::{Failure, code};
pub use wattle_graph::id::BlobRef;

use crate::ports::store::Damage;

/// Description of a blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobInfo {
    /// Reference to the blob.
    pub blob: BlobRef,
    /// Size in bytes.
    pub size: u64,
    /// Media type that was given when the blob was first stored.
    pub media_type: String,
}

/// Content-addressed bytes. A blob exists as long as the log of a thread mentions it. A blob
/// without a mention is swept after a grace period.
#[async_trait]
pub trait BlobStore: Send + Sync {
    /// Stores bytes and returns their reference, which is the same for the same bytes. The blob is
    /// durable when this method returns.
    async fn put(&self, bytes: Bytes, media_type: &str) -> Result<BlobRef, Failure>;

    /// Reads `length` bytes from `offset` on; without `length`, all bytes from `offset` on. Fails
    /// with `not-found` if the blob is missing, `invalid` if the range is outside of the blob, and
    /// `broken` if the bytes do not match the reference.
    async fn get(&self, blob: BlobRef, offset: u64, length: Option<u64>) -> Result<Bytes, Failure>;

    /// Describes a blob. Fails with `not-found` if the blob is missing, and `broken` if it is
    /// damaged.
    async fn stat(&self, blob: BlobRef) -> Result<BlobInfo, Failure>;

    /// Returns the sizes of the blobs that exist. Called for many blobs at once, so an adapter
    /// should not look up the blobs one by one.
    async fn sizes(&self, blobs: &[BlobRef]) -> Result<HashMap<BlobRef, u64>, Failure> {
        let mut sizes = HashMap::new();
        for blob in blobs {
            match self.stat(*blob).await {
                Ok(info) => drop(sizes.insert(*blob, info.size)),
                Err(failure) if failure.code == code::NOT_FOUND => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(sizes)
    }

    /// Reads all blobs and returns the damaged ones. A store without files of its own leaves this
    /// check to the system that stores its bytes.
    async fn find_damage(&self) -> Result<Vec<Damage>, Failure> {
        Ok(Vec::new())
    }

    /// Copies all blobs to an existing folder. Skips damaged blobs and returns them. A further call
    /// with the same folder copies new blobs only.
    async fn backup(&self, folder: &Path) -> Result<Vec<Damage>, Failure> {
        let _ = folder;
        let message = "only blobs in files are backed up; use `pg_dump` for a database";
        Err(Failure::new(code::UNSUPPORTED, message))
    }
}
