//! SQL of a plugin that may read some tables only. For any statement the result has no data of
//! another table, and nothing is written. In the dialect of PostgreSQL, a statement is checked and
//! not executed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use wattle_graph::failure::code;
use wattle_graph::id::Digest;
use wattle_run::caller_id::CallerId;
use wattle_run::grant::{SqlAccess, SqlRule};
use wattle_run::hostcall::sql::{Rows, SqlValue};
use wattle_run::limit::SqlLimits;
use wattle_run::ports::Sql as _;
use wattle_sql::{DatabaseConfig, Databases};

/// Statements that create the content of the database.
const TABLES: [&str; 6] = [
    "CREATE TABLE open (id INTEGER PRIMARY KEY, name TEXT, size REAL, raw BLOB)",
    "INSERT INTO open (name, size, raw) VALUES ('ada', 1.5, x'00'), ('bob', 2, NULL)",
    "CREATE TABLE hidden (id INTEGER PRIMARY KEY, word TEXT)",
    "INSERT INTO hidden (word) VALUES ('')",
    "CREATE VIEW open_view AS SELECT name FROM open",
    "CREATE VIEW hidden_view AS SELECT word FROM hidden",
];

/// The database, and the grant and limits of the plugin.
struct World {
    databases: Databases,
    /// A database of PostgreSQL that is closed.
    postgres: Databases,
    rule: SqlRule,
    limits: SqlLimits,
    /// Number of statements so far.
    count: AtomicU64,
}

/// Executes a statement.
pub fn run(bytes: &[u8]) {
    static WORLD: OnceLock<World> = OnceLock::new();
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let world = WORLD.get_or_init(|| crate::wait(make()));
    checked(world, text);
    let word = crate::wait(hide(world));
    let before = crate::wait(all(world));
    let World { databases, rule, limits, .. } = world;
    let read = crate::wait(databases.query(CallerId::default(), "main", rule, limits, text, &[]));
    let Ok(rows) = read else { return };
    assert!(rows.rows.len() as u64 <= limits.rows);
    for value in rows.rows.iter().flatten() {
        let shown = format!("{value:?}");
        assert!(!shows(value, &shown, &word), "{text} shows {shown}");
    }
    assert_eq!(before, crate::wait(all(world)), "{text}");
}

/// Checks a statement in the dialect of PostgreSQL. The pool of connections is closed, so a
/// statement that is allowed fails as well.
fn checked(World { postgres, rule, limits, .. }: &World, text: &str) {
    let query = postgres.query(CallerId::default(), "main", rule, limits, text, &[]);
    let failure = crate::wait(query).expect_err("the pool is closed");
    let expected = [code::DENIED, code::INVALID, code::LIMIT, code::UNAVAILABLE];
    assert!(expected.contains(&failure.code.as_str()), "{text}: {failure}");
}

/// Returns limits for the statements of this target, which must succeed on a slow machine, too.
fn patient() -> SqlLimits {
    SqlLimits { timeout_ms: 60_000, ..SqlLimits::default() }
}

/// Writes a word that no input contains into the table that the plugin may not read. libFuzzer
/// copies compared values into its inputs, so each statement gets a new word.
async fn hide(world: &World) -> String {
    let count = world.count.fetch_add(1, Ordering::Relaxed);
    let word = Digest::of(&count.to_le_bytes()).to_string();
    let mut writing = world
        .databases
        .begin(CallerId::default(), "main", &patient())
        .await
        .expect("it can be written");
    let written = SqlValue::Text(word.clone());
    writing.execute("UPDATE hidden SET word = $1", &[written]).await.expect("it can be written");
    writing.commit(None).await.expect("it can be written");
    word
}

/// Returns true if a value contains the hidden word, as text or as bytes.
fn shows(value: &SqlValue, shown: &str, word: &str) -> bool {
    let bytes = match value {
        SqlValue::Bytes(bytes) => String::from_utf8_lossy(bytes).contains(word),
        _ => false,
    };
    bytes || shown.contains(word)
}

/// Opens a database with the name `main`.
async fn open(url: &str) -> Databases {
    let configs = BTreeMap::from([("main".to_owned(), DatabaseConfig::new(url))]);
    Databases::open(configs, Path::new("")).await.expect("it can be opened")
}

async fn make() -> World {
    let databases = open("sqlite::memory:").await;
    let postgres = open("postgres://reader@127.0.0.1:1/none").await;
    postgres.close().await;
    // A short timeout leaves more time for other statements.
    let limits = SqlLimits { timeout_ms: 200, rows: 100, ..SqlLimits::default() };
    let mut writing =
        databases.begin(CallerId::default(), "main", &patient()).await.expect("it can be written");
    for statement in TABLES {
        writing.execute(statement, &[]).await.expect("the statement is valid");
    }
    writing.commit(None).await.expect("it can be written");
    let rule = SqlRule {
        tables: Some(BTreeSet::from(["open".to_owned(), "open_view".to_owned()])),
        schema: true,
        ..SqlRule::from(SqlAccess::ReadOnly)
    };
    World { databases, postgres, rule, limits, count: AtomicU64::new(0) }
}

/// Returns the content of the whole database.
async fn all(World { databases, .. }: &World) -> Vec<Rows> {
    let rule = SqlRule::from(SqlAccess::ReadWrite);
    let mut all = Vec::new();
    for query in ["SELECT * FROM open", "SELECT * FROM hidden", "SELECT sql FROM sqlite_schema"] {
        all.push(
            databases
                .query(CallerId::default(), "main", &rule, &patient(), query, &[])
                .await
                .expect("it can be read"),
        );
    }
    all
}
