//! Enforces, by SQLite's authorizer, the same rules that the parser checks. While SQLite compiles a
//! statement, it reports each table and column that the statement reads, whatever the SQL text
//! looks like.
//!
//! SQLite passes the callback a number instead of a pointer, and the callback looks up the rule of
//! that number. A number without a rule permits nothing. A connection whose query was cancelled
//! therefore does not refer to freed memory.

#![expect(unsafe_code, reason = "the library has no safe way to set an authorizer or a limit")]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use libsqlite3_sys as sqlite;
use sqlx::SqliteConnection;
use wattle_run::grant::SqlRule;
use wattle_run::limit::SqlLimits;

use crate::readonly::{RelationKind, classify_relation, is_forbidden, is_schema_function};
use crate::readwrite::HOST_TABLE_PREFIX;
use crate::sqlite::limits::MAX_VALUE_BYTES;
use crate::statement::Dialect;

/// Pragmas that the modules for full-text search and spatial indexes execute.
const MODULE_PRAGMAS: &[&str] = &["data_version", "page_size"];

/// Built-in tables that give write access to the pages of the file.
const PAGE_TABLES: &[&str] = &["sqlite_dbpage"];

/// Table-valued functions that only return their arguments as rows.
const TABLE_FUNCTIONS: &[&str] =
    &["generate_series", "json_each", "json_tree", "jsonb_each", "jsonb_tree"];

/// The rules of connections, by number.
static RULES: Mutex<BTreeMap<usize, Arc<ReadRule>>> = Mutex::new(BTreeMap::new());

/// Number of the rule for transactions. This number stays valid for the lifetime of the process,
/// since a dropped transaction is rolled back later.
const WRITER_RULE: usize = 1;

/// Number of the rule for migrations.
const MIGRATION_RULE: usize = 2;

/// The next number of a rule; 0 means no rule.
static NEXT_RULE: AtomicUsize = AtomicUsize::new(3);

/// Table of the temporary schema. SQLite reads it, and updates it without a change, while it
/// renames a table or a column of the file.
const TEMP_SCHEMA: &str = "sqlite_temp_master";

/// Pragmas that a migration can set. They affect only the database file and the transaction.
const MIGRATION_PRAGMAS: &[&str] =
    &["application_id", "defer_foreign_keys", "foreign_key_check", "user_version"];

/// The lock protects single map operations, so a poisoned map is consistent.
fn rules() -> MutexGuard<'static, BTreeMap<usize, Arc<ReadRule>>> {
    RULES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a read-only statement is allowed to read.
struct ReadRule {
    /// Tables and views in lower case; `None` permits all.
    tables: Option<BTreeSet<String>>,
    /// The granted views, which can read any table.
    views: BTreeSet<String>,
    schema: bool,
}

/// Guard of a rule that is installed on a connection. After the guard is dropped, the connection
/// permits nothing until the authorizer is removed.
pub(super) struct AuthorizerGuard {
    number: usize,
}

impl AuthorizerGuard {
    /// Installs a rule for read-only statements.
    pub(super) async fn install(
        connection: &mut SqliteConnection,
        rule: &SqlRule,
        limits: &SqlLimits,
    ) -> Result<Self, sqlx::Error> {
        let tables = rule.tables.as_ref();
        let tables: Option<BTreeSet<String>> =
            tables.map(|tables| tables.iter().map(|table| table.to_ascii_lowercase()).collect());
        let mut views = BTreeSet::new();
        if let Some(tables) = &tables {
            let query = "SELECT lower(name) FROM sqlite_schema WHERE type = 'view'";
            let all: Vec<String> = sqlx::query_scalar(query).fetch_all(&mut *connection).await?;
            views.extend(all.into_iter().filter(|view| tables.contains(view)));
        }
        let number = NEXT_RULE.fetch_add(1, Ordering::Relaxed);
        rules().insert(number, Arc::new(ReadRule { tables, views, schema: rule.schema }));
        let authorized = Self { number };
        // With this limit, SQLite reports an error for a value that is longer than a whole result
        // can be.
        let longest = limits.bytes.saturating_add(limits.statement_bytes);
        let longest = c_int::try_from(longest).unwrap_or(MAX_VALUE_BYTES);
        set_authorizer(connection, Some(number), longest).await?;
        Ok(authorized)
    }
}

impl Drop for AuthorizerGuard {
    fn drop(&mut self) {
        rules().remove(&self.number);
    }
}

/// Installs the rule for transactions. This rule permits every statement that does not access the
/// host's own tables, leave the database, change the session or create a temporary object.
pub(super) async fn install_writer_rule(
    connection: &mut SqliteConnection,
) -> Result<(), sqlx::Error> {
    set_authorizer(connection, Some(WRITER_RULE), MAX_VALUE_BYTES).await
}

/// Installs the rule for migrations. This rule permits the statements that [`install_writer_rule`]
/// permits and pragmas of the database, but not to begin or commit a transaction.
pub(super) async fn install_migration_rule(
    connection: &mut SqliteConnection,
) -> Result<(), sqlx::Error> {
    set_authorizer(connection, Some(MIGRATION_RULE), MAX_VALUE_BYTES).await
}

/// Removes the authorizer.
pub(super) async fn uninstall(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    set_authorizer(connection, None, MAX_VALUE_BYTES).await
}

async fn set_authorizer(
    connection: &mut SqliteConnection,
    number: Option<usize>,
    longest: c_int,
) -> Result<(), sqlx::Error> {
    let mut handle = connection.lock_handle().await?;
    let database = handle.as_raw_handle().as_ptr();
    let callback = number.map(|_| authorize as Callback);
    let data = ptr::without_provenance_mut::<c_void>(number.unwrap_or_default());
    // SAFETY: the handle is open and locked; `data` is a number that is never dereferenced.
    unsafe {
        sqlite::sqlite3_set_authorizer(database, callback, data);
        sqlite::sqlite3_limit(database, sqlite::SQLITE_LIMIT_LENGTH, longest.min(MAX_VALUE_BYTES));
    }
    Ok(())
}

type Callback = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    *const c_char,
    *const c_char,
    *const c_char,
    *const c_char,
) -> c_int;

/// The authorizer callback, which SQLite calls for every access of a statement that it compiles.
unsafe extern "C" fn authorize(
    data: *mut c_void,
    action: c_int,
    first: *const c_char,
    second: *const c_char,
    database: *const c_char,
    inside: *const c_char,
) -> c_int {
    // SAFETY: SQLite passes NUL-terminated strings that are valid for this call, or null.
    let [first, second, database, inside] = unsafe {
        [lower_text(first), lower_text(second), lower_text(database), lower_text(inside)]
    };
    let number = data.addr();
    if matches!(number, WRITER_RULE | MIGRATION_RULE) {
        let touched = Access { action, first: &first, second: &second, database: &database };
        let is_allowed = touched.may_write(number == MIGRATION_RULE);
        return if is_allowed { sqlite::SQLITE_OK } else { sqlite::SQLITE_DENY };
    }
    let rule = rules().get(&number).cloned();
    let is_allowed = rule.is_some_and(|rule| match action {
        sqlite::SQLITE_SELECT | sqlite::SQLITE_RECURSIVE => true,
        sqlite::SQLITE_READ => rule.may_read(&first, &second, &database, &inside),
        sqlite::SQLITE_FUNCTION => !is_forbidden(&second),
        sqlite::SQLITE_PRAGMA => {
            rule.schema && is_schema_function(Dialect::Sqlite, &format!("pragma_{first}"))
        }
        _ => false,
    });
    if is_allowed { sqlite::SQLITE_OK } else { sqlite::SQLITE_DENY }
}

/// Returns a name in lower case; empty for null.
///
/// # Safety
///
/// The pointer must be null or point to a NUL-terminated string.
unsafe fn lower_text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: guaranteed by the caller.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().to_ascii_lowercase()
}

/// An access by a statement of a transaction or a migration.
struct Access<'a> {
    action: c_int,
    first: &'a str,
    second: &'a str,
    database: &'a str,
}

impl Access<'_> {
    fn may_write(&self, is_migration: bool) -> bool {
        let own = |name: &str| name.starts_with(HOST_TABLE_PREFIX);
        let is_elsewhere = match self.database {
            "" | "main" => false,
            "temp" => !self.renames_in_temp_schema(),
            _ => true,
        };
        match self.action {
            sqlite::SQLITE_ATTACH | sqlite::SQLITE_DETACH => false,
            // A migration and its record are one transaction, which the host commits. The host also
            // rolls this transaction back, possibly while this rule is installed.
            sqlite::SQLITE_TRANSACTION => !is_migration || self.first == "rollback",
            sqlite::SQLITE_FUNCTION => !is_external(self.second),
            sqlite::SQLITE_PRAGMA => {
                is_schema_function(Dialect::Sqlite, &format!("pragma_{}", self.first))
                    || MODULE_PRAGMAS.contains(&self.first)
                    || is_migration && MIGRATION_PRAGMAS.contains(&self.first)
            }
            // The second argument has the name of the table.
            sqlite::SQLITE_ALTER_TABLE
            | sqlite::SQLITE_CREATE_INDEX
            | sqlite::SQLITE_CREATE_TEMP_INDEX
            | sqlite::SQLITE_CREATE_TRIGGER
            | sqlite::SQLITE_CREATE_TEMP_TRIGGER
            | sqlite::SQLITE_DROP_INDEX
            | sqlite::SQLITE_DROP_TEMP_INDEX
            | sqlite::SQLITE_DROP_TRIGGER
            | sqlite::SQLITE_DROP_TEMP_TRIGGER => {
                !own(self.first) && !own(self.second) && !is_elsewhere
            }
            // The pages of the file and the host's own tables are forbidden.
            _ => !own(self.first) && !PAGE_TABLES.contains(&self.first) && !is_elsewhere,
        }
    }

    /// Returns true for an access to the temporary schema by which SQLite renames a table or a
    /// column of the file.
    ///
    /// All apps use one connection that writes, and a temporary object lasts as long as its
    /// connection. Until then, unqualified names in statements of other apps refer to a temporary
    /// table before a table of the file, and temporary triggers run on their writes. SQLite
    /// inserts a row into the temporary schema for every temporary object, whatever form the
    /// definition has.
    fn renames_in_temp_schema(&self) -> bool {
        let is_of_rename = matches!(self.action, sqlite::SQLITE_READ | sqlite::SQLITE_UPDATE);
        is_of_rename && self.first == TEMP_SCHEMA
    }
}

/// Returns true for functions of SQLite that reach outside of the database.
fn is_external(function: &str) -> bool {
    matches!(function, "edit" | "fts3_tokenizer" | "load_extension" | "readfile" | "writefile")
}

impl ReadRule {
    fn may_read(&self, table: &str, column: &str, database: &str, inside: &str) -> bool {
        if !matches!(database, "" | "main") {
            return false;
        }
        match classify_relation(Dialect::Sqlite, &[table.to_owned()]) {
            // SQLite reports an empty column for a CTE whose rows are counted.
            RelationKind::Table(table) => {
                column.is_empty()
                    || TABLE_FUNCTIONS.contains(&table.as_str())
                    || self.views.contains(inside)
                    || self.tables.as_ref().is_none_or(|tables| tables.contains(&table))
            }
            RelationKind::SchemaInfo => self.schema,
            RelationKind::Catalog | RelationKind::OtherDatabase => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use sqlx::{Connection as _, Executor as _};
    use wattle_run::grant::SqlAccess;

    use super::*;

    #[tokio::test]
    async fn authorizer_enforces_the_rule_without_the_parser() {
        let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
        for text in [
            "CREATE TABLE orders (id INTEGER, note TEXT)",
            "CREATE TABLE secrets (value TEXT)",
            "CREATE VIEW v_secrets AS SELECT value FROM secrets",
            "INSERT INTO orders VALUES (1, 'a')",
        ] {
            connection.execute(text).await.unwrap();
        }
        let tables = Some(["orders".to_owned()].into());
        let rule = SqlRule { tables, ..SqlAccess::ReadOnly.into() };
        let limits = SqlLimits { bytes: 1_000, statement_bytes: 1_000, ..SqlLimits::default() };
        let authorized = AuthorizerGuard::install(&mut connection, &rule, &limits).await.unwrap();
        for text in [
            "SELECT note FROM ORDERS WHERE id = 1",
            "WITH secrets AS (SELECT id FROM orders) SELECT count(*) FROM secrets",
            "SELECT value FROM json_each('[1]')",
            "SELECT value FROM json_tree('[1]')",
            "SELECT key FROM jsonb_each('{\"a\": 1}')",
            "SELECT type FROM jsonb_tree('[1]')",
            "WITH a AS (SELECT id FROM secrets), secrets AS (SELECT id FROM orders)
             SELECT count(*) FROM a",
        ] {
            connection.fetch_all(text).await.unwrap_or_else(|error| panic!("{text}: {error}"));
        }
        for text in [
            "SELECT value FROM secrets",
            "SELECT value FROM v_secrets",
            "SELECT (SELECT max(value) FROM secrets)",
            "WITH orders AS (SELECT value FROM secrets) SELECT value FROM orders",
            "WITH secrets AS (SELECT value FROM secrets) SELECT value FROM secrets",
            "SELECT name FROM sqlite_master",
            "SELECT name FROM pragma_table_info('secrets')",
            "SELECT load_extension('x')",
            "SELECT zeroblob(9)",
            "WITH RECURSIVE s (x) AS (SELECT 'ab' UNION ALL SELECT x || x FROM s) SELECT * FROM s",
            "INSERT INTO orders VALUES (2, '')",
            "DELETE FROM orders",
            "DROP TABLE orders",
            "CREATE TABLE loot (a)",
            "ATTACH DATABASE ':memory:' AS other",
            "PRAGMA query_only = 0",
            "BEGIN",
        ] {
            assert!(connection.fetch_all(text).await.is_err(), "{text}");
        }
        // After the guard is dropped, nothing is permitted until the authorizer is removed.
        drop(authorized);
        assert!(connection.fetch_all("SELECT note FROM orders").await.is_err());
        uninstall(&mut connection).await.unwrap();
        let all = connection.fetch_all("SELECT note FROM orders UNION SELECT value FROM secrets");
        assert_eq!(all.await.unwrap().len(), 1);
    }
}
