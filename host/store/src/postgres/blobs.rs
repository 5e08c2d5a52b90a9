//! Blobs in chunks, for hosts that share threads.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use sqlx::Row as _;
use wattle_graph::failure::Failure;
use wattle_graph::id::Digest;
use wattle_run::ports::blob::{BlobInfo, BlobRef, BlobStore};
use wattle_run::ports::store::StoreError;

use crate::blob::{not_found, range};
use crate::error::backend;
use crate::postgres::link::{Attempt, Fault, Link, PostgresConfig, while_trying};
use crate::postgres::schema;
use crate::sweep::Sweepable;

/// Bytes of a chunk: enough for few round trips, few enough to read a small range cheaply.
const CHUNK_BYTES: usize = 1 << 20;

/// Chunks that are read at once.
const READ_CHUNKS: i64 = 16;

/// Blobs that are deleted at once.
const PAGE: usize = 1000;

const PUT: &str = "put a blob";

/// A blob that is there becomes young again; its row is locked, so a sweep waits and looks anew.
const RENEW: &str = "
    INSERT INTO blobs AS blob (blob, size, media_type, put) VALUES ($1, $2, $3, clock_timestamp())
    ON CONFLICT (blob) DO UPDATE SET put = clock_timestamp()
    RETURNING (xmax = 0) AS is_new";

const ADD_CHUNK: &str = "INSERT INTO blob_chunks (blob, chunk, bytes) VALUES ($1, $2, $3)";

const SIZES: &str = "SELECT blob, size FROM blobs WHERE blob = ANY($1)";

const STAT: &str = "SELECT size, media_type FROM blobs WHERE blob = $1";

const READ: &str = "
    SELECT bytes FROM blob_chunks WHERE blob = $1 AND chunk BETWEEN $2 AND $3 ORDER BY chunk";

const OLD: &str = "
    SELECT blob FROM blobs WHERE put <= clock_timestamp() - $1 * interval '1 millisecond'";

const REMOVE: &str = "
    WITH gone AS (
        DELETE FROM blobs WHERE blob = ANY($1)
        AND put <= clock_timestamp() - $2 * interval '1 millisecond' RETURNING blob),
    chunks AS (DELETE FROM blob_chunks WHERE blob IN (SELECT blob FROM gone))
    SELECT count(*) FROM gone";

/// Blobs in the database of a [`PostgresStore`](crate::PostgresStore). Clones share it.
#[derive(Clone, Debug)]
pub struct PostgresBlobs(Link);

impl PostgresBlobs {
    pub(super) fn new(link: Link) -> Self {
        Self(link)
    }

    /// Blobs of a store that this process does not open: makes no tables and begins nothing.
    ///
    /// # Errors
    ///
    /// As [`PostgresStore::open`](crate::PostgresStore::open), and [`StoreError::Backend`] if the
    /// tables are not there.
    pub async fn connect(config: &PostgresConfig) -> Result<Self, StoreError> {
        let link = Link::new(config, 1)?;
        if schema::are_there(&link).await? {
            return Ok(Self(link));
        }
        let message = format!("{} has no tables of it (schema `{}`)", link.place, link.schema);
        Err(backend("read its blobs", message))
    }

    async fn put_once(&self, blob: BlobRef, bytes: &Bytes, media_type: &str) -> Result<(), Fault> {
        let mut transaction = self.0.transaction(PUT).await?;
        let digest = blob.0.as_bytes().as_slice();
        let is_new: bool = sqlx::query_scalar(RENEW)
            .bind(digest)
            .bind((bytes.len() as u64).cast_signed())
            .bind(media_type.replace('\0', ""))
            .fetch_one(&mut *transaction)
            .await?;
        if is_new {
            for (chunk, bytes) in (0_i64..).zip(bytes.chunks(CHUNK_BYTES)) {
                let add = sqlx::query(ADD_CHUNK).bind(digest).bind(chunk).bind(bytes);
                add.execute(&mut *transaction).await?;
            }
        }
        Ok(transaction.commit().await?)
    }

    async fn info(&self, blob: BlobRef) -> Result<BlobInfo, Failure> {
        let digest = blob.0.as_bytes().as_slice();
        let row = self.0.row("read a blob", || sqlx::query(STAT).bind(digest)).await;
        let row = row?.ok_or_else(|| not_found(blob))?;
        let size: i64 = row.try_get("size").map_err(unreadable)?;
        let media_type = row.try_get("media_type").map_err(unreadable)?;
        Ok(BlobInfo { blob, size: size.cast_unsigned(), media_type })
    }

    /// Bytes of whole chunks, from one to another.
    async fn chunks(&self, blob: BlobRef, first: i64, last: i64) -> Result<BytesMut, Failure> {
        let digest = blob.0.as_bytes().as_slice();
        let mut bytes = BytesMut::new();
        let mut next = first;
        while next <= last {
            let end = last.min(next + READ_CHUNKS - 1);
            let read = || sqlx::query(READ).bind(digest).bind(next).bind(end);
            for row in self.0.rows("read a blob", read).await? {
                bytes.extend_from_slice(row.try_get("bytes").map_err(unreadable)?);
            }
            next = end + 1;
        }
        Ok(bytes)
    }
}

#[async_trait]
impl BlobStore for PostgresBlobs {
    async fn put(&self, bytes: Bytes, media_type: &str) -> Result<BlobRef, Failure> {
        let blob = BlobRef(Digest::of(&bytes));
        let mut attempt = Attempt::default();
        loop {
            match self.put_once(blob, &bytes, media_type).await {
                Ok(()) => return Ok(blob),
                Err(Fault::Server(error)) => attempt.again(PUT, error).await?,
                Err(Fault::Store(error)) => return Err(error.into()),
            }
        }
    }

    async fn get(&self, blob: BlobRef, offset: u64, length: Option<u64>) -> Result<Bytes, Failure> {
        let info = self.info(blob).await?;
        let range = range(blob, info.size, offset, length)?;
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let chunk = CHUNK_BYTES as u64;
        let (first, last) = (range.start / chunk, (range.end - 1) / chunk);
        let bytes = self.chunks(blob, first.cast_signed(), last.cast_signed()).await?.freeze();
        let (start, end) = (range.start - first * chunk, range.end - first * chunk);
        // Swept between the two reads.
        if (bytes.len() as u64) < end {
            return Err(not_found(blob));
        }
        Ok(bytes.slice(start as usize..end as usize))
    }

    async fn stat(&self, blob: BlobRef) -> Result<BlobInfo, Failure> {
        self.info(blob).await
    }

    async fn sizes(&self, blobs: &[BlobRef]) -> Result<HashMap<BlobRef, u64>, Failure> {
        let mut sizes = HashMap::new();
        for page in blobs.chunks(PAGE) {
            let digests: Vec<&[u8]> =
                page.iter().map(|blob| blob.0.as_bytes().as_slice()).collect();
            let read = || sqlx::query(SIZES).bind(&digests);
            for row in self.0.rows("read sizes of blobs", read).await? {
                let size: i64 = row.try_get("size").map_err(unreadable)?;
                sizes.insert(reference(&row)?, size.cast_unsigned());
            }
        }
        Ok(sizes)
    }
}

#[async_trait]
impl Sweepable for PostgresBlobs {
    async fn older_than(&self, age: Duration) -> Result<Vec<BlobRef>, Failure> {
        let old = || sqlx::query(OLD).bind(milliseconds(age));
        let rows = self.0.rows("list blobs", old).await?;
        rows.iter().map(reference).collect()
    }

    async fn remove_older(&self, blobs: &[BlobRef], age: Duration) -> Result<usize, Failure> {
        let mut removed = 0;
        for page in blobs.chunks(PAGE) {
            let digests: Vec<&[u8]> =
                page.iter().map(|blob| blob.0.as_bytes().as_slice()).collect();
            let remove = || sqlx::query(REMOVE).bind(&digests).bind(milliseconds(age));
            let row = self.0.row("delete blobs", remove).await?;
            let count: i64 = row.map_or(Ok(0), |row| row.try_get(0)).map_err(unreadable)?;
            removed += usize::try_from(count).unwrap_or_default();
        }
        Ok(removed)
    }
}

fn reference(row: &sqlx::postgres::PgRow) -> Result<BlobRef, Failure> {
    let bytes: &[u8] = row.try_get("blob").map_err(unreadable)?;
    let bytes = bytes.try_into().map_err(|_| Failure::internal("a blob has no digest"))?;
    Ok(BlobRef(Digest::from_bytes(bytes)))
}

fn milliseconds(age: Duration) -> i64 {
    i64::try_from(age.as_millis()).unwrap_or(i64::MAX)
}

/// What the server answered makes no sense, and would make none the next time.
fn unreadable(error: sqlx::Error) -> Failure {
    Failure::internal(while_trying("read a blob")(error).to_string())
}
