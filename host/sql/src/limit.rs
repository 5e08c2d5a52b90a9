//! Limits of migrations, and of the memory of JSON from databases. A plugin's statements have the
//! limits of the plugin and of its grant.

use std::time::Duration;

use wattle_run::limit::TASK_JOURNAL_BYTES;

/// Factor of the bytes of a result. The values and keys of all JSON documents in a result take at
/// most this many times as many bytes in memory, without their texts, or
/// [`JSON_VALUES_BYTES`](wattle_run::limit::JSON_VALUES_BYTES) if that is more. A field with a text
/// of 20 characters takes 4 times the memory of its JSON, one with a number of one digit 13 times,
/// and a list of such numbers 36 times.
pub const RESULT_VALUES_FACTOR: u64 = 8;

/// Maximum bytes in memory of the values and keys of a commit marker, without their texts. A marker
/// has the statements of one task and their results, which count towards [`TASK_JOURNAL_BYTES`].
/// The records of as many statements as a task may execute take less than the same memory again.
pub const MARKER_VALUES_BYTES: u64 = 2 * TASK_JOURNAL_BYTES;

/// Default timeout of one migration. A migration occupies the only writer of a SQLite database, or
/// locks tables of PostgreSQL, so other writers wait for its end. Within this time a migration can
/// create tables and insert some hundred thousand rows.
pub const MIGRATION_TIMEOUT: Duration = Duration::from_mins(1);

/// Maximum bytes of a statement in a migration of PostgreSQL. The host checks the tokens of the
/// statement, which take up to 200 times as much memory.
pub const MIGRATION_STATEMENT_BYTES: u64 = 1 << 20;
