//! Databases through the port of the host, on SQLite and on PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod apps;
mod databases;
mod hostile;
mod support;
mod writers;
