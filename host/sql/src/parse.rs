//! Splits migrations without a database, for the tests and the fuzzer.

use crate::postgres::script;

/// Returns the statements of a migration of PostgreSQL, each with the number of the line on which it
/// begins. Semicolons, and comments before a statement, are left out.
pub fn postgres_statements(migration: &str) -> Vec<(usize, &str)> {
    script::statements(migration).iter().map(|it| (it.line, it.text)).collect()
}
