//! Limits of migrations. A plugin's statements have the limits of the plugin and of its grant.

use std::time::Duration;

/// Time of one migration, if its database has no other limit. A migration takes the one writer of
/// a SQLite database, or locks tables of PostgreSQL, so that others wait for it. Within this time a
/// database creates its tables and fills some hundred thousand rows.
pub const MIGRATION_TIMEOUT: Duration = Duration::from_mins(1);

/// Maximum bytes of a statement of a migration of PostgreSQL. Its tokens, which the host checks,
/// take up to 200 times as much memory.
pub const MIGRATION_STATEMENT_BYTES: u64 = 1 << 20;
