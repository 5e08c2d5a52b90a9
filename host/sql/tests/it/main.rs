//! Databases through the `Sql` port, on SQLite and PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod apps;
mod callers;
mod databases;
mod hostile;
mod support;
mod writers;
