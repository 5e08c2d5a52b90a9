//! Port: content-addressed bytes.

use std::collections::HashMap;
use std::path::Path;

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use wattle_graph::failure::{Failure, code};
pub use wattle_graph::id::BlobRef;

use crate::ports::store::Damage;

/// What is known of a blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobInfo {
    /// Its reference.
    pub blob: BlobRef,
    /// Bytes.
    pub size: u64,
    /// As given when it was first stored.
    pub media_type: String,
}

/// Content-addressed bytes. A blob lives as long as a thread's log mentions its reference;
/// one that no thread mentions is swept after a grace period.
#[async_trait]
pub trait BlobStore: Send + Sync {
    /// Stores bytes durably; the same bytes give the same reference. When it returns, the blob
    /// survives a crash.
    async fn put(&self, bytes: Bytes, media_type: &str) -> Result<BlobRef, Failure>;

    /// Reads `length` bytes from `offset`, to the end without a length. `not-found` if missing,
    /// `invalid` if the range lies outside, `broken` if the bytes are not those that were put.
    async fn get(&self, blob: BlobRef, offset: u64, length: Option<u64>) -> Result<Bytes, Failure>;

    /// What is known of a blob; `not-found` if missing, `broken` if it is damaged.
    async fn stat(&self, blob: BlobRef) -> Result<BlobInfo, Failure>;

    /// Bytes of those of some blobs that are there. Asked for many at once, so a store does better
    /// than to look at one after the other.
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

    /// Reads all blobs and names those that are damaged. A store that keeps no files of its own
    /// leaves that to whatever keeps its bytes.
    async fn survey(&self) -> Result<Vec<Damage>, Failure> {
        Ok(Vec::new())
    }

    /// Puts all blobs into a folder that is there, but for damaged ones, which it names. Asked again,
    /// it adds those that are new.
    async fn backup(&self, folder: &Path) -> Result<Vec<Damage>, Failure> {
        let _ = folder;
        let message = "only blobs in files are backed up; use `pg_dump` for a database";
        Err(Failure::new(code::UNSUPPORTED, message))
    }
}
