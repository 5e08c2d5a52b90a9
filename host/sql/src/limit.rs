//! Limits of migrations. A plugin's statements have the limits of the plugin and of its grant.

use std::time::Duration;

/// Default timeout of one migration. A migration occupies the only writer of a SQLite database, or
/// locks tables of PostgreSQL, so other writers wait for its end. Within this time a migration can
/// create tables and insert some hundred thousand rows.
pub const MIGRATION_TIMEOUT: Duration = Duration::from_mins(1);

/// Maximum bytes of a statement in a migration of PostgreSQL. The host checks the tokens of the
/// statement, which take up to 200 times as much memory.
pub const MIGRATION_STATEMENT_BYTES: u64 = 1 << 20;
