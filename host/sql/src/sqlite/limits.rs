//! Resource limits and the defensive mode of SQLite connections.
//!
//! A statement can generate large values (`zeroblob`, `printf`, `group_concat`), and its program
//! can be much larger than its text. A statement that exceeds one of these limits fails.

#![expect(unsafe_code, reason = "the library has no safe way to set a limit or its defensive mode")]

use std::ffi::c_int;
use std::ptr;

use libsqlite3_sys as sqlite;
use sqlx::{Executor as _, SqliteConnection};

/// Maximum bytes of a value and of a row. A result has at most 8 MiB, so a longer value cannot be
/// returned.
pub(super) const MAX_VALUE_BYTES: c_int = 16 << 20;

/// Default maximum size of the file of a database, in bytes. Plugins with write access can fill the
/// file, and the host's store is usually on the same disk.
pub(crate) const FILE_BYTES: u64 = 16 << 30;

/// Bytes that the write-ahead log of a database keeps. A transaction can make the log larger, and
/// without this limit the file never becomes smaller. SQLite writes the log back to the database
/// from 1,000 pages on, which are 4 MiB, so small transactions need less.
const WAL_BYTES: u64 = 16 << 20;

/// Part of the memory of all SQLite databases above which SQLite releases cached pages before it
/// allocates more: three quarters.
const SOFT_FRACTION: (i64, i64) = (3, 4);

/// Maximum pages of a file that SQLite supports.
const MAX_PAGES: u64 = 4_294_967_294;

/// Limits in addition to the length of a value.
const LIMITS: &[(c_int, c_int)] = &[
    // A migration is sent as one text. Statements of guests have a separate, lower limit.
    (sqlite::SQLITE_LIMIT_SQL_LENGTH, 16 << 20),
    // SQLite recurses over expressions.
    (sqlite::SQLITE_LIMIT_EXPR_DEPTH, 256),
    (sqlite::SQLITE_LIMIT_COMPOUND_SELECT, 500),
    // Maximum instructions of a compiled statement. A migration needs about ten for each value that
    // it inserts.
    (sqlite::SQLITE_LIMIT_VDBE_OP, 5_000_000),
    // The time to match a `LIKE` pattern is quadratic in the length of the pattern.
    (sqlite::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000),
    (sqlite::SQLITE_LIMIT_TRIGGER_DEPTH, 100),
    // A statement must not attach another database.
    (sqlite::SQLITE_LIMIT_ATTACHED, 0),
    (sqlite::SQLITE_LIMIT_WORKER_THREADS, 0),
];

/// Settings for files with contents of others. Views, triggers and definitions of tables call only
/// functions without effects, and the sizes of the cells of a page are checked when the page is
/// read.
const UNTRUSTED_FILE: &str = "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON";

/// Setting that keeps sorts and intermediate tables in memory, where they count. SQLite does not
/// limit the size of temporary files, which are usually on the disk of the host's store.
const TEMPORARY_DATA: &str = "PRAGMA temp_store = MEMORY";

/// Sets the maximum memory of all SQLite databases of the process, in bytes: page caches, sorts,
/// intermediate tables and other working memory of statements. Statements that need more memory
/// fail with `limit`.
pub(crate) fn set_memory(memory_bytes: u64) {
    let (numerator, denominator) = SOFT_FRACTION;
    let hard_bytes = i64::try_from(memory_bytes).unwrap_or(i64::MAX);
    let soft_bytes = hard_bytes / denominator * numerator;
    // The limits are not set if SQLite cannot be initialized. No database can be opened then.
    // SAFETY: both functions can be called at any time and from any thread.
    unsafe {
        sqlite::sqlite3_hard_heap_limit64(hard_bytes);
        sqlite::sqlite3_soft_heap_limit64(soft_bytes);
    }
}

/// Sets the limits of a new connection, and its defensive mode.
pub(super) async fn set(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    connection.execute(TEMPORARY_DATA).await?;
    connection.execute(UNTRUSTED_FILE).await?;
    let mut handle = connection.lock_handle().await?;
    let database = handle.as_raw_handle().as_ptr();
    let all = LIMITS.iter().chain(&[(sqlite::SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)]);
    for (limit, value) in all {
        // SAFETY: the handle is open and locked.
        unsafe { sqlite::sqlite3_limit(database, *limit, *value) };
    }
    // In the defensive mode, only a module changes the tables in which it stores a virtual table.
    // The modules for full-text search and spatial indexes parse these tables in the process of the
    // host, for queries of any app.
    let (on, no_result): (c_int, *mut c_int) = (1, ptr::null_mut());
    // SAFETY: the handle is open and locked, and the arguments have the types of this option.
    let status = unsafe {
        sqlite::sqlite3_db_config(database, sqlite::SQLITE_DBCONFIG_DEFENSIVE, on, no_result)
    };
    if status == sqlite::SQLITE_OK {
        Ok(())
    } else {
        Err(sqlx::Error::Configuration("SQLite has no defensive mode".into()))
    }
}

/// Limits the size of the file of a new connection that writes. A file that is already larger does
/// not grow, and deleted rows make room for new rows. SQLite reports a file at its limit in the
/// same way as a full disk. Also limits what the write-ahead log keeps after a large transaction.
pub(super) async fn limit_file(
    connection: &mut SqliteConnection,
    max_bytes: u64,
) -> Result<(), sqlx::Error> {
    let page_bytes: i64 =
        sqlx::query_scalar("PRAGMA page_size").fetch_one(&mut *connection).await?;
    let pages = max_bytes / page_bytes.unsigned_abs().max(1);
    let pages = pages.clamp(1, MAX_PAGES);
    let limit = format!("PRAGMA max_page_count = {pages}; PRAGMA journal_size_limit = {WAL_BYTES}");
    connection.execute(sqlx::AssertSqlSafe(limit)).await.map(drop)
}
