//! Blobs in memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use wattle_graph::failure::Failure;
use wattle_graph::id::Digest;
use wattle_run::ports::blob::{BlobInfo, BlobRef, BlobStore};

use crate::blob::{not_found, resolve_range};
use crate::lock::lock;
use crate::sweep::Sweepable;

/// Blobs in memory. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct InMemoryBlobs(Arc<Mutex<HashMap<BlobRef, StoredBlob>>>);

#[derive(Clone, Debug)]
struct StoredBlob {
    bytes: Bytes,
    media_type: String,
    put: Instant,
}

impl InMemoryBlobs {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn find(&self, blob: BlobRef) -> Result<StoredBlob, Failure> {
        lock(&self.0).get(&blob).cloned().ok_or_else(|| not_found(blob))
    }
}

#[async_trait]
impl BlobStore for InMemoryBlobs {
    async fn put(&self, bytes: Bytes, media_type: &str) -> Result<BlobRef, Failure> {
        let blob = BlobRef(Digest::of(&bytes));
        let put = Instant::now();
        let mut blobs = lock(&self.0);
        let stored = blobs.entry(blob);
        let media_type = media_type.to_owned();
        stored.or_insert(StoredBlob { bytes, media_type, put }).put = put;
        Ok(blob)
    }

    async fn get(&self, blob: BlobRef, offset: u64, length: Option<u64>) -> Result<Bytes, Failure> {
        let stored = self.find(blob)?;
        let range = resolve_range(blob, stored.bytes.len() as u64, offset, length)?;
        Ok(stored.bytes.slice(range.start as usize..range.end as usize))
    }

    async fn stat(&self, blob: BlobRef) -> Result<BlobInfo, Failure> {
        let stored = self.find(blob)?;
        Ok(BlobInfo { blob, size: stored.bytes.len() as u64, media_type: stored.media_type })
    }

    async fn sizes(&self, blobs: &[BlobRef]) -> Result<HashMap<BlobRef, u64>, Failure> {
        let stored = lock(&self.0);
        let size = |blob: &BlobRef| Some((*blob, stored.get(blob)?.bytes.len() as u64));
        Ok(blobs.iter().filter_map(size).collect())
    }
}

#[async_trait]
impl Sweepable for InMemoryBlobs {
    async fn older_than(&self, age: Duration) -> Result<Vec<BlobRef>, Failure> {
        let blobs = lock(&self.0);
        let old = blobs.iter().filter(|(_, stored)| stored.put.elapsed() >= age);
        Ok(old.map(|(blob, _)| *blob).collect())
    }

    async fn remove_older(&self, blobs: &[BlobRef], age: Duration) -> Result<usize, Failure> {
        let mut stored = lock(&self.0);
        let before = stored.len();
        for blob in blobs {
            if stored.get(blob).is_some_and(|stored| stored.put.elapsed() >= age) {
                stored.remove(blob);
            }
        }
        Ok(before - stored.len())
    }
}
