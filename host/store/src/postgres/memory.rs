//! Long-term memory in the database, for hosts that share threads.
//!
//! The database only returns the documents under a prefix. They are filtered and ranked here, as in
//! the other adapters, so that no text of a search becomes part of a statement.

use std::ops::Range;

use async_trait::async_trait;
use serde_json::Value;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use wattle_graph::failure::Failure;
use wattle_run::limit::MEMORY_ROW_BYTES;
use wattle_run::ports::Memory;
use wattle_run::ports::memory::{Item, ListNamespaces, MemoryScope, MemorySearch, PutItem};

use crate::memory::document::{CompareOutcome, DocumentKey, StoredDocument};
use crate::memory::namespaces::{NamespaceCollector, ScanStep};
use crate::memory::path;
use crate::memory::scan::PageCollector;
use crate::memory::search::SearchCollector;
use crate::postgres::database::Database;
use crate::postgres::retry::sqlx_error;

/// Number of documents that one statement reads. Even this number of large documents is far below
/// the limits of a search.
const PAGE: i64 = 100;

/// Number of namespaces that one statement reads.
const NAMESPACE_PAGE: i64 = 1_000;

/// Maximum number of documents that one statement deletes. The limit bounds how long other
/// statements wait.
const MAX_DELETES: i64 = 1_000;

/// Maximum TTL of a sliding expiry in milliseconds. The sum of a time and a TTL must not overflow.
const MAX_REFRESH_MS: u64 = 1 << 62;

const GET: &str = "
    SELECT path, key, created_ms, updated_ms, expires_ms, refresh_ms, document FROM memory
    WHERE path = $1 AND key = $2 AND (expires_ms IS NULL OR expires_ms > $3)";

const PUT: &str = "
    INSERT INTO memory AS old
        (path, key, created_ms, updated_ms, expires_ms, refresh_ms, document)
    VALUES ($1, $2, $3, $3, $4, $5, $6)
    ON CONFLICT (path, key) DO UPDATE SET
        created_ms = CASE WHEN old.expires_ms <= $3 THEN $3 ELSE old.created_ms END,
        updated_ms = $3, expires_ms = $4, refresh_ms = $5, document = $6";

/// Inserts a document, or replaces an expired document.
const PUT_NEW: &str = "
    INSERT INTO memory AS old
        (path, key, created_ms, updated_ms, expires_ms, refresh_ms, document)
    VALUES ($1, $2, $3, $3, $4, $5, $6)
    ON CONFLICT (path, key) DO UPDATE SET
        created_ms = $3, updated_ms = $3, expires_ms = $4, refresh_ms = $5, document = $6
        WHERE old.expires_ms <= $3
    RETURNING 1";

/// Replaces a document that has not expired, if it still equals the document that the caller has
/// read.
const PUT_OVER: &str = "
    UPDATE memory SET updated_ms = $3, expires_ms = $4, refresh_ms = $5, document = $6
    WHERE path = $1 AND key = $2 AND document = $7 AND (expires_ms IS NULL OR expires_ms > $3)
    RETURNING 1";

const DELETE: &str = "DELETE FROM memory WHERE path = $1 AND key = $2";

const DELETE_IF: &str = "
    DELETE FROM memory WHERE path = $1 AND key = $2 AND document = $3 RETURNING 1";

const PAGE_OF_DOCUMENTS: &str = "
    SELECT path, key, created_ms, updated_ms, expires_ms, refresh_ms, document FROM memory
    WHERE path >= $1 AND path < $2 AND (path, key) > ($1, $3)
        AND (expires_ms IS NULL OR expires_ms > $4)
    ORDER BY path, key LIMIT $5";

const LIST: &str = "
    SELECT path, key, created_ms, updated_ms, expires_ms, refresh_ms, document FROM memory
    WHERE path = $1 AND key > $2 AND (expires_ms IS NULL OR expires_ms > $3)
    ORDER BY key LIMIT $4";

const PAGE_OF_NAMESPACES: &str = "
    SELECT DISTINCT path FROM memory
    WHERE path >= $1 AND path < $2 AND (expires_ms IS NULL OR expires_ms > $3)
    ORDER BY path LIMIT $4";

const REFRESH_EXPIRY: &str = "
    UPDATE memory SET expires_ms = greatest(expires_ms, $3 + refresh_ms)
    WHERE (path, key) IN (SELECT * FROM unnest($1::bytea[], $2::bytea[]))
        AND expires_ms > $3 AND refresh_ms IS NOT NULL";

const USAGE: &str = "
    SELECT coalesce(
        sum($3::bigint + octet_length(path) + octet_length(key) + octet_length(document)), 0)::bigint
    FROM memory WHERE path >= $1 AND path < $2";

const CLEAR: &str = "
    WITH gone AS (
        DELETE FROM memory WHERE (path, key) IN (
            SELECT path, key FROM memory WHERE path >= $1 AND path < $2 LIMIT $3)
        RETURNING 1)
    SELECT count(*) FROM gone";

/// Compares the expiry twice, because a document may be put again between the `SELECT` and the
/// `DELETE`.
const SWEEP: &str = "
    WITH gone AS (
        DELETE FROM memory WHERE expires_ms <= $1 AND (path, key) IN (
            SELECT path, key FROM memory WHERE expires_ms <= $1 LIMIT $2)
        RETURNING 1)
    SELECT count(*) FROM gone";

/// Long-term memory in the database of a [`PostgresStore`](crate::PostgresStore). Clones share it.
#[derive(Clone, Debug)]
pub struct PostgresMemory(Database);

impl PostgresMemory {
    pub(super) fn new(database: Database) -> Self {
        Self(database)
    }

    /// Returns a document that has not expired.
    async fn read(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        key: &str,
        now_ms: i64,
    ) -> Result<Option<(DocumentKey, StoredDocument)>, Failure> {
        let path = path::encode(scope, namespace);
        let get = || sqlx::query(GET).bind(&path).bind(key.as_bytes()).bind(now_ms);
        let row = self.0.row("read a document", get).await?;
        row.as_ref().map(document).transpose()
    }

    /// Extends the sliding expiry of documents that a read returns. The read waits for the
    /// extension, so that no later read finds the documents expired.
    async fn refresh_expiry(&self, doc_keys: &[DocumentKey], now_ms: i64) -> Result<(), Failure> {
        if doc_keys.is_empty() {
            return Ok(());
        }
        let paths: Vec<&[u8]> = doc_keys.iter().map(|(path, _)| path.as_slice()).collect();
        let keys: Vec<&[u8]> = doc_keys.iter().map(|(_, key)| key.as_bytes()).collect();
        let refresh_expiry = || sqlx::query(REFRESH_EXPIRY).bind(&paths).bind(&keys).bind(now_ms);
        self.0
            .rows("extend the expiry of documents", refresh_expiry)
            .await
            .map(drop)
            .map_err(Failure::from)
    }

    /// Scans all documents in a range of paths.
    async fn scan(
        &self,
        collector: &mut SearchCollector<'_>,
        mut paths: Range<Vec<u8>>,
        now_ms: i64,
    ) -> Result<(), Failure> {
        let mut key = Vec::new();
        loop {
            let page = || {
                let page = sqlx::query(PAGE_OF_DOCUMENTS).bind(&paths.start).bind(&paths.end);
                page.bind(&key).bind(now_ms).bind(PAGE)
            };
            let rows = self.0.rows("search documents", page).await?;
            let is_last = rows.len() < PAGE as usize;
            let mut end = None;
            for row in &rows {
                let (doc_key, stored) = document(row)?;
                end = Some(doc_key.clone());
                collector.collect(doc_key, stored)?;
            }
            match end {
                Some((path, last)) if !is_last => {
                    (paths.start, key) = (path, last.into_bytes());
                }
                _ => return Ok(()),
            }
        }
    }
}

#[async_trait]
impl Memory for PostgresMemory {
    async fn get(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        key: &str,
        now_ms: i64,
    ) -> Result<Option<Item>, Failure> {
        let found = self.read(scope, namespace, key, now_ms).await?;
        let Some((doc_key, stored)) = found else { return Ok(None) };
        if stored.refreshed_expiry(now_ms).is_some() {
            self.refresh_expiry(std::slice::from_ref(&doc_key), now_ms).await?;
        }
        stored.item(&doc_key.0, key).map(Some)
    }

    async fn peek(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        key: &str,
        now_ms: i64,
    ) -> Result<Option<Item>, Failure> {
        let found = self.read(scope, namespace, key, now_ms).await?;
        found.map(|(doc_key, stored)| stored.item(&doc_key.0, key)).transpose()
    }

    async fn put(&self, scope: &MemoryScope, item: PutItem, now_ms: i64) -> Result<(), Failure> {
        let path = path::encode(scope, &item.namespace);
        let stored = StoredDocument::after_put(None, &item, now_ms);
        let refresh_ms = stored.refresh_ms.map(|it| it.min(MAX_REFRESH_MS).cast_signed());
        let put = || {
            let put = sqlx::query(PUT).bind(&path).bind(item.key.as_bytes()).bind(now_ms);
            put.bind(stored.expires_ms).bind(refresh_ms).bind(&stored.document)
        };
        self.0.rows("write a document", put).await.map(drop).map_err(Failure::from)
    }

    async fn compare_and_set(
        &self,
        scope: &MemoryScope,
        known: Option<&Value>,
        item: PutItem,
        now_ms: i64,
    ) -> Result<bool, Failure> {
        let old = self.read(scope, &item.namespace, &item.key, now_ms).await?;
        let old = old.map(|(_, stored)| stored);
        match StoredDocument::compare_for_put(old.as_ref(), known, &item, now_ms) {
            CompareOutcome::AlreadyDone => return Ok(true),
            CompareOutcome::Conflict => return Ok(false),
            CompareOutcome::Write => {}
        }
        let path = path::encode(scope, &item.namespace);
        let new = StoredDocument::after_put(old.as_ref(), &item, now_ms);
        let refresh_ms = new.refresh_ms.map(|it| it.min(MAX_REFRESH_MS).cast_signed());
        let put = || {
            let put = sqlx::query(if old.is_some() { PUT_OVER } else { PUT_NEW });
            let put = put.bind(&path).bind(item.key.as_bytes()).bind(now_ms).bind(new.expires_ms);
            let put = put.bind(refresh_ms).bind(&new.document);
            match &old {
                Some(old) => put.bind(&old.document),
                None => put,
            }
        };
        if self.0.row("write a document", put).await?.is_some() {
            return Ok(true);
        }
        // Another caller wrote first, or the reply to a first attempt was lost.
        let now = self.read(scope, &item.namespace, &item.key, now_ms).await?;
        Ok(now.is_some_and(|(_, stored)| stored.document == new.document))
    }

    async fn delete(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        key: &str,
    ) -> Result<(), Failure> {
        let path = path::encode(scope, namespace);
        let delete = || sqlx::query(DELETE).bind(&path).bind(key.as_bytes());
        self.0.rows("delete a document", delete).await.map(drop).map_err(Failure::from)
    }

    async fn compare_and_delete(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        key: &str,
        known: &Value,
        now_ms: i64,
    ) -> Result<bool, Failure> {
        let Some((_, old)) = self.read(scope, namespace, key, now_ms).await? else {
            return Ok(true);
        };
        if StoredDocument::compare_for_delete(Some(&old), known, now_ms) == CompareOutcome::Conflict
        {
            return Ok(false);
        }
        let path = path::encode(scope, namespace);
        let delete = || sqlx::query(DELETE_IF).bind(&path).bind(key.as_bytes()).bind(&old.document);
        if self.0.row("delete a document", delete).await?.is_some() {
            return Ok(true);
        }
        // Another caller wrote first, or the reply to a first attempt was lost.
        Ok(self.read(scope, namespace, key, now_ms).await?.is_none())
    }

    async fn search(
        &self,
        scope: &MemoryScope,
        search: &MemorySearch,
        now_ms: i64,
    ) -> Result<Vec<Item>, Failure> {
        let mut collector = SearchCollector::new(search, now_ms);
        let paths = path::prefix_range(&path::encode(scope, &search.prefix));
        self.scan(&mut collector, paths, now_ms).await?;
        let page = collector.finish()?;
        self.refresh_expiry(&page.refreshed, now_ms).await?;
        Ok(page.items)
    }

    async fn list(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        after: &str,
        limit: usize,
        now_ms: i64,
    ) -> Result<Vec<Item>, Failure> {
        let path = path::encode(scope, namespace);
        let limit = PAGE.min(i64::try_from(limit).unwrap_or(PAGE));
        let list = || sqlx::query(LIST).bind(&path).bind(after.as_bytes()).bind(now_ms).bind(limit);
        let rows = self.0.rows("list documents", list).await?;
        let mut collector = PageCollector::new(path.clone(), rows.len(), now_ms);
        for row in &rows {
            let ((path, key), stored) = document(row)?;
            if matches!(collector.push(&path, &key, &stored)?, ScanStep::Stop) {
                break;
            }
        }
        Ok(collector.finish())
    }

    async fn namespaces(
        &self,
        scope: &MemoryScope,
        list: &ListNamespaces,
        now_ms: i64,
    ) -> Result<Vec<Vec<String>>, Failure> {
        let mut collector = NamespaceCollector::new(scope, list);
        let mut paths =
            path::prefix_range(&path::encode(scope, path::literal_prefix(&list.prefix)));
        loop {
            let page = || {
                let page = sqlx::query(PAGE_OF_NAMESPACES).bind(&paths.start).bind(&paths.end);
                page.bind(now_ms).bind(NAMESPACE_PAGE)
            };
            let rows = self.0.rows("list namespaces", page).await?;
            let is_last = rows.len() < NAMESPACE_PAGE as usize;
            for row in &rows {
                let path: &[u8] = row.try_get("path").map_err(unreadable)?;
                if path < paths.start.as_slice() {
                    continue;
                }
                match collector.visit(path, true)? {
                    ScanStep::Next => paths.start = path::successor(path),
                    ScanStep::SeekTo(next) => paths.start = next,
                    ScanStep::Stop => return Ok(collector.finish()),
                }
            }
            if is_last {
                return Ok(collector.finish());
            }
        }
    }

    async fn usage(&self, scope: &MemoryScope, prefix: &[String]) -> Result<u64, Failure> {
        let paths = path::prefix_range(&path::encode(scope, prefix));
        let row_bytes = MEMORY_ROW_BYTES.cast_signed();
        let usage = || sqlx::query(USAGE).bind(&paths.start).bind(&paths.end).bind(row_bytes);
        let bytes = count(self.0.row("read the sizes of documents", usage).await?)?;
        Ok(u64::try_from(bytes).unwrap_or_default())
    }

    async fn clear(&self, scope: &MemoryScope, prefix: &[String]) -> Result<usize, Failure> {
        let paths = path::prefix_range(&path::encode(scope, prefix));
        let clear = || sqlx::query(CLEAR).bind(&paths.start).bind(&paths.end).bind(MAX_DELETES);
        let mut removed = 0;
        loop {
            let row = self.0.row("delete documents", clear).await?;
            let part = count(row)?;
            removed += part;
            if part < MAX_DELETES {
                return Ok(usize::try_from(removed).unwrap_or(usize::MAX));
            }
        }
    }

    async fn sweep(&self, now_ms: i64) -> Result<usize, Failure> {
        let sweep = || sqlx::query(SWEEP).bind(now_ms).bind(MAX_DELETES);
        let mut removed = 0;
        loop {
            let part = count(self.0.row("delete expired documents", sweep).await?)?;
            removed += part;
            if part < MAX_DELETES {
                return Ok(usize::try_from(removed).unwrap_or(usize::MAX));
            }
        }
    }
}

fn document(row: &PgRow) -> Result<(DocumentKey, StoredDocument), Failure> {
    let read = || -> Result<(Vec<u8>, Vec<u8>, StoredDocument), sqlx::Error> {
        let refresh_ms: Option<i64> = row.try_get("refresh_ms")?;
        let stored = StoredDocument {
            created_ms: row.try_get("created_ms")?,
            updated_ms: row.try_get("updated_ms")?,
            expires_ms: row.try_get("expires_ms")?,
            refresh_ms: refresh_ms.map(i64::cast_unsigned),
            document: row.try_get("document")?,
        };
        Ok((row.try_get("path")?, row.try_get("key")?, stored))
    };
    let (path, key, stored) = read().map_err(unreadable)?;
    let key = String::from_utf8(key)
        .map_err(|_| Failure::internal("a key of the long-term memory cannot be read"))?;
    Ok(((path, key), stored))
}

fn count(row: Option<PgRow>) -> Result<i64, Failure> {
    row.map_or(Ok(0), |row| row.try_get(0)).map_err(unreadable)
}

/// Returns the failure for a malformed row. A retry would fail in the same way.
fn unreadable(error: sqlx::Error) -> Failure {
    Failure::internal(sqlx_error("read a document")(error).to_string())
}
