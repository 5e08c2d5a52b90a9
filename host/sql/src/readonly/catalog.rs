//! Distinguishes tables of the application from the catalog of the database.

use crate::statement::Dialect;

/// What a relation name refers to.
pub(crate) enum Wanted {
    /// A table or view of the application, with its schema unless that is the default one.
    Table(String),
    /// Catalog relations that describe tables.
    Description,
    /// Other catalog relations, or the tables of the host.
    Catalog,
    /// A relation of another database.
    Elsewhere,
}

/// Relations of SQLite that describe tables without their contents.
const SQLITE_DESCRIPTIONS: &[&str] = &["sqlite_master", "sqlite_schema"];

/// Table-valued functions of SQLite that describe tables.
const SQLITE_DESCRIBING: &[&str] = &[
    "pragma_foreign_key_list",
    "pragma_index_info",
    "pragma_index_list",
    "pragma_table_info",
    "pragma_table_list",
    "pragma_table_xinfo",
];

/// Built-in virtual tables of SQLite.
const SQLITE_BUILT_IN: &[&str] =
    &["bytecode", "dbstat", "sqlite_dbpage", "sqlite_stmt", "tables_used"];

/// Relations of `information_schema` that describe tables.
const INFORMATION_SCHEMA: &[&str] = &[
    "columns",
    "constraint_column_usage",
    "key_column_usage",
    "referential_constraints",
    "table_constraints",
    "tables",
    "views",
];

/// Relations of `pg_catalog` that describe tables. Relations with settings, sessions, users or
/// sample values are left out.
const PG_CATALOG: &[&str] = &[
    "pg_attrdef",
    "pg_attribute",
    "pg_class",
    "pg_constraint",
    "pg_description",
    "pg_enum",
    "pg_index",
    "pg_namespace",
    "pg_tables",
    "pg_type",
    "pg_views",
];

/// Classifies a relation name. The parts of the name must be folded as the database folds them.
pub(crate) fn wanted(dialect: Dialect, names: &[String]) -> Wanted {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    match (dialect, names.as_slice()) {
        (Dialect::Sqlite, [table] | ["main", table]) => sqlite(table),
        (Dialect::Postgres, [table]) if table.starts_with("pg_") => described(table, PG_CATALOG),
        (Dialect::Postgres, [table] | ["public", table]) => own(table, (*table).to_owned()),
        (Dialect::Postgres, ["pg_catalog", table]) => described(table, PG_CATALOG),
        (Dialect::Postgres, ["information_schema", table]) => described(table, INFORMATION_SCHEMA),
        (Dialect::Postgres, [schema, _]) if schema.starts_with("pg_") => Wanted::Catalog,
        (Dialect::Postgres, [schema, table]) => own(table, format!("{schema}.{table}")),
        _ => Wanted::Elsewhere,
    }
}

fn sqlite(table: &str) -> Wanted {
    let is_built_in = table.starts_with("sqlite_")
        || table.starts_with("pragma_")
        || SQLITE_BUILT_IN.contains(&table);
    match table {
        _ if SQLITE_DESCRIPTIONS.contains(&table) => Wanted::Description,
        // SQLite accepts a table-valued function without arguments as a table.
        _ if SQLITE_DESCRIBING.contains(&table) => Wanted::Description,
        _ if is_built_in => Wanted::Catalog,
        _ => own(table, table.to_owned()),
    }
}

fn own(table: &str, name: String) -> Wanted {
    if table.starts_with("_wattle_") { Wanted::Catalog } else { Wanted::Table(name) }
}

fn described(table: &str, known: &[&str]) -> Wanted {
    if known.contains(&table) { Wanted::Description } else { Wanted::Catalog }
}

/// Returns true for table-valued functions that describe tables.
pub(crate) fn is_described_by(dialect: Dialect, function: &str) -> bool {
    dialect == Dialect::Sqlite && SQLITE_DESCRIBING.contains(&function)
}
