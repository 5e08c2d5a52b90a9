//! Charges blobs that guests store to the caps.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::Mutex;
use wattle_graph::failure::Failure;
use wattle_graph::id::{Digest, ThreadId};

use super::{Quotas, UsageMeter};
use crate::caps;
use crate::limit;
use crate::ports::blob::{BlobInfo, BlobRef, BlobStore};
use crate::ports::store::Owner;
use crate::ports::{Caller, Ports};

/// The blobs of a thread, counted during a run. The blobs are read from the store when the run
/// stores its first blob.
#[derive(Default)]
pub(crate) struct ThreadBlobs(Mutex<Option<CountedBlobs>>);

struct CountedBlobs {
    known: HashSet<BlobRef>,
    bytes: u64,
}

impl CountedBlobs {
    async fn of(ports: &Ports, thread: &ThreadId) -> Result<Self, Failure> {
        let owner = Owner::Thread(thread.clone());
        let mut counted = Self { known: HashSet::new(), bytes: 0 };
        let mut from: Option<String> = None;
        loop {
            let page = ports
                .store
                .mentioned_blobs(&owner, from.as_deref())
                .await
                .map_err(Failure::from)?;
            // A thread may also mention a blob whose put was refused. Such a blob has no size and
            // does not count.
            let sizes = ports.blobs.sizes(&page.blobs).await?;
            counted.bytes += sizes.values().map(|size| charged_bytes(*size)).sum::<u64>();
            counted.known.extend(sizes.into_keys());
            from = page.next;
            if from.is_none() {
                return Ok(counted);
            }
        }
    }
}

impl ThreadBlobs {
    /// Counts a blob for the thread. Returns false if the thread has the blob already.
    async fn charge(
        &self,
        store: &ChargedBlobStore<'_>,
        thread: &ThreadId,
        blob: BlobRef,
        bytes: u64,
    ) -> Result<bool, Failure> {
        let mut state = self.0.lock().await;
        let counted = match &mut *state {
            Some(counted) => counted,
            none => none.insert(CountedBlobs::of(store.ports, thread).await?),
        };
        if counted.known.contains(&blob) {
            return Ok(false);
        }
        let caps = store.quotas.caps();
        let (blobs, taken) = (counted.known.len() as u64, counted.bytes);
        if blobs >= caps.thread_blobs {
            return Err(caps::thread_blobs_full(thread, blobs, caps.thread_blobs));
        }
        if taken.saturating_add(bytes) > caps.thread_blob_bytes {
            return Err(caps::thread_blob_bytes_full(thread, taken, caps.thread_blob_bytes));
        }
        counted.known.insert(blob);
        counted.bytes += bytes;
        Ok(true)
    }

    /// Reverts the count of a blob that was not stored.
    async fn refund(&self, blob: BlobRef, bytes: u64) {
        if let Some(counted) = &mut *self.0.lock().await
            && counted.known.remove(&blob)
        {
            counted.bytes = counted.bytes.saturating_sub(bytes);
        }
    }
}

/// The blob store as a guest uses it. Each put is charged to the caps first.
pub(crate) struct ChargedBlobStore<'a> {
    pub(crate) quotas: &'a Quotas,
    pub(crate) ports: &'a Ports,
    pub(crate) caller: &'a Caller,
    /// The thread of a task; `None` in a web handler.
    pub(crate) thread: Option<(&'a ThreadId, Arc<ThreadBlobs>)>,
}

impl ChargedBlobStore<'_> {
    /// Charges a blob.
    async fn charge(&self, blob: BlobRef, bytes: u64) -> Result<BlobCharge, Failure> {
        if let Some((thread, tally)) = &self.thread
            && !tally.charge(self, thread, blob, bytes).await?
        {
            return Ok(BlobCharge::default());
        }
        let Caller { app, tenant, .. } = self.caller;
        let is_mentioned = self.thread.is_some();
        let taken = self
            .quotas
            .charge_blob(self.ports, (app, tenant.as_deref()), bytes, is_mentioned)
            .await;
        let of_thread = is_mentioned.then_some(blob);
        match taken {
            Ok(meters) => Ok(BlobCharge { of_thread, bytes, meters }),
            Err(failure) => {
                self.refund(BlobCharge { of_thread, bytes, meters: Vec::new() }).await;
                Err(failure)
            }
        }
    }

    /// Reverts the charge of a blob that was not stored.
    async fn refund(&self, counts: BlobCharge) {
        if let (Some((_, tally)), Some(blob)) = (&self.thread, counts.of_thread) {
            tally.refund(blob, counts.bytes).await;
        }
        for meter in counts.meters {
            meter.refund(counts.bytes, self.thread.is_some()).await;
        }
    }
}

/// The charge of one blob.
#[derive(Default)]
struct BlobCharge {
    of_thread: Option<BlobRef>,
    bytes: u64,
    meters: Vec<Arc<UsageMeter>>,
}

/// Returns the number of bytes for which a blob or a file of a given size counts. Even a small file
/// occupies a block of the disk.
pub fn charged_bytes(size: u64) -> u64 {
    size.max(limit::BLOB_MIN_BYTES)
}

#[async_trait]
impl BlobStore for ChargedBlobStore<'_> {
    async fn put(&self, bytes: Bytes, media_type: &str) -> Result<BlobRef, Failure> {
        let blob = BlobRef(Digest::of(&bytes));
        let counts = self.charge(blob, charged_bytes(bytes.len() as u64)).await?;
        let put = self.ports.blobs.put(bytes, media_type).await;
        if put.is_err() {
            self.refund(counts).await;
        }
        put
    }

    async fn get(&self, blob: BlobRef, offset: u64, length: Option<u64>) -> Result<Bytes, Failure> {
        self.ports.blobs.get(blob, offset, length).await
    }

    async fn stat(&self, blob: BlobRef) -> Result<BlobInfo, Failure> {
        self.ports.blobs.stat(blob).await
    }

    async fn sizes(&self, blobs: &[BlobRef]) -> Result<HashMap<BlobRef, u64>, Failure> {
        self.ports.blobs.sizes(blobs).await
    }
}
