//! What a connection of SQLite may use, whether it reads or writes.
//!
//! A statement can make a value out of nothing (`zeroblob`, `printf`, `group_concat`) and a program
//! that is much larger than its text. These limits end that with an error of the statement.

#![expect(unsafe_code, reason = "the library has no safe way to set a limit")]

use std::ffi::c_int;

use libsqlite3_sys as sqlite;
use sqlx::{Executor as _, SqliteConnection};

/// Longest value and longest row. An answer has 8 MiB, so nothing longer can be read as a whole.
pub(super) const VALUE_BYTES: c_int = 16 << 20;

/// Memory of all SQLite databases of the process together: their caches, and what statements work
/// with. What goes beyond it fails with `limit`.
const MEMORY_BYTES: u64 = 512 << 20;

/// From here on SQLite gives back cached pages before it takes more memory.
const MEMORY_SOFT_BYTES: u64 = 384 << 20;

/// Limits beside the length of a value.
const LIMITS: &[(c_int, c_int)] = &[
    // A migration is sent as one text; statements of guests are shorter by their own limit.
    (sqlite::SQLITE_LIMIT_SQL_LENGTH, 16 << 20),
    // SQLite recurses over expressions.
    (sqlite::SQLITE_LIMIT_EXPR_DEPTH, 256),
    (sqlite::SQLITE_LIMIT_COMPOUND_SELECT, 500),
    // Instructions of a compiled statement: some ten for each value that a migration inserts.
    (sqlite::SQLITE_LIMIT_VDBE_OP, 5_000_000),
    // Matching takes time by the square of the pattern.
    (sqlite::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000),
    (sqlite::SQLITE_LIMIT_TRIGGER_DEPTH, 100),
    // A database of its own is what a statement must not leave.
    (sqlite::SQLITE_LIMIT_ATTACHED, 0),
    (sqlite::SQLITE_LIMIT_WORKER_THREADS, 0),
];

/// Sets the limits of a new connection.
pub(super) async fn set(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    // These two hold for the process; setting them again changes nothing.
    let memory = format!(
        "PRAGMA hard_heap_limit = {MEMORY_BYTES}; PRAGMA soft_heap_limit = {MEMORY_SOFT_BYTES}"
    );
    connection.execute(sqlx::AssertSqlSafe(memory)).await?;
    let mut handle = connection.lock_handle().await?;
    let database = handle.as_raw_handle().as_ptr();
    let all = LIMITS.iter().chain(&[(sqlite::SQLITE_LIMIT_LENGTH, VALUE_BYTES)]);
    for (limit, value) in all {
        // SAFETY: the handle is open and locked for us.
        unsafe { sqlite::sqlite3_limit(database, *limit, *value) };
    }
    Ok(())
}
