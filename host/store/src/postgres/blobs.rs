//! Blobs in chunks, for hosts that share threads.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use sqlx::Row as _;
use tokio::task::spawn_blocking;
use wattle_graph::failure::Failure;
use wattle_graph::id::Digest;
use wattle_run::ports::blob::{BlobInfo, BlobRef, BlobStore};
use wattle_run::ports::store::StoreError;

use crate::blob::check::{VerifiedBlobs, VerifiedFiles, damaged_failure};
use crate::blob::{not_found, resolve_range};
use crate::error::backend;
use crate::postgres::config::PostgresConfig;
use crate::postgres::database::{Database, PgTransaction};
use crate::postgres::retry::{RetryState, TxError, sqlx_error};
use crate::postgres::schema;
use crate::sweep::Sweepable;

/// Size of a chunk in bytes. Larger chunks need fewer round trips, and smaller chunks make reads of
/// small ranges cheaper.
const CHUNK_BYTES: usize = 1 << 20;

/// Number of chunks that one statement reads.
const READ_CHUNKS: i64 = 16;

/// Number of bytes that one statement reads.
const PAGE_BYTES: u64 = READ_CHUNKS.cast_unsigned() * CHUNK_BYTES as u64;

/// Number of blobs that one statement deletes or looks up.
const BLOBS_PER_STATEMENT: usize = 1000;

const PUT: &str = "put a blob";

/// Inserts the row of a blob, or updates the time of an existing row. The statement locks the row,
/// so a concurrent sweep waits and checks the time again.
const TOUCH: &str = "
    INSERT INTO blobs AS blob (blob, size, media_type, put) VALUES ($1, $2, $3, clock_timestamp())
    ON CONFLICT (blob) DO UPDATE SET size = excluded.size, put = clock_timestamp()
    RETURNING (xmax = 0) AS is_new";

/// Writes a chunk unless the stored chunk is equal.
const PUT_CHUNK: &str = "
    INSERT INTO blob_chunks AS old (blob, chunk, bytes) VALUES ($1, $2, $3)
    ON CONFLICT (blob, chunk) DO UPDATE SET bytes = excluded.bytes
    WHERE old.bytes IS DISTINCT FROM excluded.bytes";

const DELETE_CHUNKS: &str = "DELETE FROM blob_chunks WHERE blob = $1 AND chunk >= $2";

const SIZES: &str = "SELECT blob, size FROM blobs WHERE blob = ANY($1)";

/// Selects a blob with a stamp that changes whenever a chunk is written: the sum of the ids of the
/// transactions that wrote the chunks.
const STAT: &str = "
    SELECT size, media_type, (
        SELECT coalesce(sum(xmin::text::bigint), 0)::bigint FROM blob_chunks WHERE blob = $1
    ) AS stamp FROM blobs WHERE blob = $1";

const READ: &str = "
    SELECT bytes FROM blob_chunks WHERE blob = $1 AND chunk BETWEEN $2 AND $3 ORDER BY chunk";

const SELECT_OLD: &str = "
    SELECT blob FROM blobs WHERE put <= clock_timestamp() - $1 * interval '1 millisecond'";

const DELETE: &str = "
    WITH gone AS (
        DELETE FROM blobs WHERE blob = ANY($1)
        AND put <= clock_timestamp() - $2 * interval '1 millisecond' RETURNING blob),
    chunks AS (DELETE FROM blob_chunks WHERE blob IN (SELECT blob FROM gone))
    SELECT count(*) FROM gone";

/// Blobs in the database of a [`PostgresStore`](crate::PostgresStore). Clones share it.
#[derive(Clone, Debug)]
pub struct PostgresBlobs {
    database: Database,
    verified: Arc<VerifiedBlobs<Stamp>>,
}

/// The size of a blob, and the stamp of its chunks by [`STAT`].
type Stamp = (u64, i64);

/// A blob whose bytes have not been checked.
#[derive(Debug, PartialEq)]
struct StoredBlob {
    info: BlobInfo,
    stamp: Stamp,
}

impl PostgresBlobs {
    pub(super) fn new(database: Database) -> Self {
        Self { database, verified: Arc::default() }
    }

    /// Opens the blobs of a store that this process does not open. Creates no tables and starts no
    /// tasks.
    ///
    /// # Errors
    ///
    /// The errors of [`PostgresStore::open`](crate::PostgresStore::open), and
    /// [`StoreError::Backend`] if the tables do not exist.
    pub async fn connect(config: &PostgresConfig) -> Result<Self, StoreError> {
        let database = Database::new(config, 1)?;
        if schema::exists(&database).await? {
            return Ok(Self::new(database));
        }
        let message = format!(
            "{} has no tables of a store (schema `{}`)",
            database.display_url, database.schema
        );
        Err(backend("read its blobs", message))
    }

    async fn put_once(
        &self,
        blob: BlobRef,
        bytes: &Bytes,
        media_type: &str,
    ) -> Result<(), TxError> {
        let mut transaction = self.database.transaction(PUT).await?;
        let (digest, size) = (blob.0.as_bytes().as_slice(), bytes.len() as u64);
        let is_new: bool = sqlx::query_scalar(TOUCH)
            .bind(digest)
            .bind(size.cast_signed())
            .bind(media_type.replace('\0', ""))
            .fetch_one(&mut *transaction)
            .await?;
        if !is_new && self.verified.contains(blob, &(size, stamp(&mut transaction, blob).await?)) {
            return Ok(transaction.commit().await?);
        }
        let mut changed = 0;
        for (chunk, bytes) in (0_i64..).zip(bytes.chunks(CHUNK_BYTES)) {
            let put = sqlx::query(PUT_CHUNK).bind(digest).bind(chunk).bind(bytes);
            changed += put.execute(&mut *transaction).await?.rows_affected();
        }
        let chunks = size.div_ceil(CHUNK_BYTES as u64);
        let delete = sqlx::query(DELETE_CHUNKS).bind(digest).bind(chunks.cast_signed());
        changed += delete.execute(&mut *transaction).await?.rows_affected();
        let stamp = stamp(&mut transaction, blob).await?;
        transaction.commit().await?;
        if !is_new && changed > 0 {
            tracing::error!(%blob, "stored blob was damaged and has been written again");
        }
        self.verified.insert(blob, (size, stamp));
        Ok(())
    }

    async fn find(&self, blob: BlobRef) -> Result<StoredBlob, Failure> {
        let digest = blob.0.as_bytes().as_slice();
        let row = self.database.row("read a blob", || sqlx::query(STAT).bind(digest)).await;
        let row = row?.ok_or_else(|| not_found(blob))?;
        let size: i64 = row.try_get("size").map_err(decode_failure)?;
        let size = size.cast_unsigned();
        let media_type = row.try_get("media_type").map_err(decode_failure)?;
        let stamp = (size, row.try_get("stamp").map_err(decode_failure)?);
        Ok(StoredBlob { info: BlobInfo { blob, size, media_type }, stamp })
    }

    /// Finds a blob again after its bytes did not match its digest. A concurrent sweep or put may
    /// have changed the blob since it was found.
    ///
    /// # Errors
    ///
    /// `not-found` if the blob no longer exists; `broken` if the blob has not changed, which shows
    /// that its bytes are damaged.
    async fn find_changed(&self, found: &StoredBlob) -> Result<StoredBlob, Failure> {
        let now = self.find(found.info.blob).await?;
        if now == *found {
            return Err(damaged_failure(now.info.blob, "its bytes do not match its digest"));
        }
        Ok(now)
    }

    /// Returns true if the chunks match the digest of the blob. Reads all chunks unless the chunks
    /// have been checked recently.
    async fn verify(&self, found: &StoredBlob) -> Result<bool, Failure> {
        let BlobInfo { blob, size, .. } = found.info;
        if self.verified.contains(blob, &found.stamp) {
            return Ok(true);
        }
        let (mut hasher, mut at) = (blake3::Hasher::new(), 0);
        while at < size {
            let end = size.min(at + PAGE_BYTES);
            let Some(page) = self.bytes(blob, at..end).await? else { return Ok(false) };
            hasher = blocking(move || {
                hasher.update(&page);
                hasher
            })
            .await?;
            at = end;
        }
        let matches = hasher.finalize().as_bytes() == blob.0.as_bytes();
        if matches {
            self.verified.insert(blob, found.stamp);
        }
        Ok(matches)
    }

    /// Returns the bytes of a range; `None` if the stored bytes do not match the digest.
    async fn read(
        &self,
        found: &StoredBlob,
        offset: u64,
        length: Option<u64>,
    ) -> Result<Option<Bytes>, Failure> {
        let BlobInfo { blob, size, .. } = found.info;
        let wanted = match resolve_range(blob, size, offset, length) {
            Ok(wanted) => wanted,
            // The stored size may be damaged, and the range valid.
            Err(outside) => return if self.verify(found).await? { Err(outside) } else { Ok(None) },
        };
        let is_whole = wanted == (0..size);
        if !is_whole && !self.verify(found).await? {
            return Ok(None);
        }
        let Some(bytes) = self.bytes(blob, wanted).await? else { return Ok(None) };
        if is_whole {
            let whole = bytes.clone();
            if !blocking(move || VerifiedFiles::matches_digest(blob, &whole)).await? {
                return Ok(None);
            }
            self.verified.insert(blob, found.stamp);
        }
        Ok(Some(bytes))
    }

    /// Returns stored bytes without a check; `None` if chunks are missing.
    async fn bytes(&self, blob: BlobRef, range: Range<u64>) -> Result<Option<Bytes>, Failure> {
        if range.is_empty() {
            return Ok(Some(Bytes::new()));
        }
        let chunk = CHUNK_BYTES as u64;
        let (first, last) = (range.start / chunk, (range.end - 1) / chunk);
        let bytes = self.chunks(blob, first.cast_signed(), last.cast_signed()).await?.freeze();
        let (start, end) = (range.start - first * chunk, range.end - first * chunk);
        let are_complete = bytes.len() as u64 >= end;
        Ok(are_complete.then(|| bytes.slice(start as usize..end as usize)))
    }

    /// Returns the bytes of the chunks `first` to `last`. Stops after a page with missing chunks.
    async fn chunks(&self, blob: BlobRef, first: i64, last: i64) -> Result<BytesMut, Failure> {
        let digest = blob.0.as_bytes().as_slice();
        let mut bytes = BytesMut::new();
        let mut next = first;
        while next <= last {
            let end = last.min(next + READ_CHUNKS - 1);
            let read = || sqlx::query(READ).bind(digest).bind(next).bind(end);
            let rows = self.database.rows("read a blob", read).await?;
            for row in &rows {
                bytes.extend_from_slice(row.try_get("bytes").map_err(decode_failure)?);
            }
            if (rows.len() as u64) <= (end - next).cast_unsigned() {
                break;
            }
            next = end + 1;
        }
        Ok(bytes)
    }
}

/// Returns the stamp of the chunks of a blob that exists.
async fn stamp(transaction: &mut PgTransaction, blob: BlobRef) -> Result<i64, sqlx::Error> {
    let stat = sqlx::query(STAT).bind(blob.0.as_bytes().as_slice());
    stat.fetch_one(&mut **transaction).await?.try_get("stamp")
}

/// Runs work on many bytes on the blocking pool.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let done = spawn_blocking(work).await;
    done.map_err(|error| Failure::internal(format!("blob store panicked: {error}")))
}

#[async_trait]
impl BlobStore for PostgresBlobs {
    async fn put(&self, bytes: Bytes, media_type: &str) -> Result<BlobRef, Failure> {
        let blob = BlobRef(Digest::of(&bytes));
        let mut retry = RetryState::default();
        loop {
            match self.put_once(blob, &bytes, media_type).await {
                Ok(()) => return Ok(blob),
                Err(TxError::Database(error)) => retry.wait_or_fail(PUT, error).await?,
                Err(TxError::Store(error)) => return Err(error.into()),
            }
        }
    }

    async fn get(&self, blob: BlobRef, offset: u64, length: Option<u64>) -> Result<Bytes, Failure> {
        let mut found = self.find(blob).await?;
        loop {
            if let Some(bytes) = self.read(&found, offset, length).await? {
                return Ok(bytes);
            }
            found = self.find_changed(&found).await?;
        }
    }

    async fn stat(&self, blob: BlobRef) -> Result<BlobInfo, Failure> {
        let mut found = self.find(blob).await?;
        while !self.verify(&found).await? {
            found = self.find_changed(&found).await?;
        }
        Ok(found.info)
    }

    async fn sizes(&self, blobs: &[BlobRef]) -> Result<HashMap<BlobRef, u64>, Failure> {
        let mut sizes = HashMap::new();
        for page in blobs.chunks(BLOBS_PER_STATEMENT) {
            let digests: Vec<&[u8]> =
                page.iter().map(|blob| blob.0.as_bytes().as_slice()).collect();
            let read = || sqlx::query(SIZES).bind(&digests);
            for row in self.database.rows("read sizes of blobs", read).await? {
                let size: i64 = row.try_get("size").map_err(decode_failure)?;
                sizes.insert(reference(&row)?, size.cast_unsigned());
            }
        }
        Ok(sizes)
    }
}

#[async_trait]
impl Sweepable for PostgresBlobs {
    async fn older_than(&self, age: Duration) -> Result<Vec<BlobRef>, Failure> {
        let old = || sqlx::query(SELECT_OLD).bind(milliseconds(age));
        let rows = self.database.rows("list blobs", old).await?;
        rows.iter().map(reference).collect()
    }

    async fn remove_older(&self, blobs: &[BlobRef], age: Duration) -> Result<usize, Failure> {
        let mut removed = 0;
        for page in blobs.chunks(BLOBS_PER_STATEMENT) {
            let digests: Vec<&[u8]> =
                page.iter().map(|blob| blob.0.as_bytes().as_slice()).collect();
            let remove = || sqlx::query(DELETE).bind(&digests).bind(milliseconds(age));
            let row = self.database.row("delete blobs", remove).await?;
            let count: i64 = row.map_or(Ok(0), |row| row.try_get(0)).map_err(decode_failure)?;
            removed += usize::try_from(count).unwrap_or_default();
        }
        Ok(removed)
    }
}

fn reference(row: &sqlx::postgres::PgRow) -> Result<BlobRef, Failure> {
    let bytes: &[u8] = row.try_get("blob").map_err(decode_failure)?;
    let bytes = bytes
        .try_into()
        .map_err(|_| Failure::internal("the stored digest of a blob does not have 32 bytes"))?;
    Ok(BlobRef(Digest::from_bytes(bytes)))
}

fn milliseconds(age: Duration) -> i64 {
    i64::try_from(age.as_millis()).unwrap_or(i64::MAX)
}

/// Returns the failure for a malformed row. A retry would fail in the same way.
fn decode_failure(error: sqlx::Error) -> Failure {
    Failure::internal(sqlx_error("read a blob")(error).to_string())
}
