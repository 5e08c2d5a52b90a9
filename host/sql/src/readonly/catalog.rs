//! Distinguishes tables of the application from the catalog of the database.

use crate::statement::Dialect;

/// What a relation name refers to.
pub(crate) enum RelationKind {
    /// A table or view of the application, with its schema unless that is the default schema.
    Table(String),
    /// Catalog relations that describe tables.
    SchemaInfo,
    /// Other catalog relations, or the tables of the host.
    Catalog,
    /// A relation of another database.
    OtherDatabase,
}

/// Relations of SQLite that describe tables without their contents.
const SQLITE_SCHEMA_TABLES: &[&str] = &["sqlite_master", "sqlite_schema"];

/// Table-valued functions of SQLite that describe tables.
const SQLITE_SCHEMA_FUNCTIONS: &[&str] = &[
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
pub(crate) fn classify_relation(dialect: Dialect, names: &[String]) -> RelationKind {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    match (dialect, names.as_slice()) {
        (Dialect::Sqlite, [table] | ["main", table]) => sqlite_relation(table),
        (Dialect::Postgres, [table]) if table.starts_with("pg_") => {
            schema_relation(table, PG_CATALOG)
        }
        (Dialect::Postgres, [table] | ["public", table]) => {
            app_relation(table, (*table).to_owned())
        }
        (Dialect::Postgres, ["pg_catalog", table]) => schema_relation(table, PG_CATALOG),
        (Dialect::Postgres, ["information_schema", table]) => {
            schema_relation(table, INFORMATION_SCHEMA)
        }
        (Dialect::Postgres, [schema, _]) if schema.starts_with("pg_") => RelationKind::Catalog,
        (Dialect::Postgres, [schema, table]) => app_relation(table, format!("{schema}.{table}")),
        _ => RelationKind::OtherDatabase,
    }
}

fn sqlite_relation(table: &str) -> RelationKind {
    let is_built_in = table.starts_with("sqlite_")
        || table.starts_with("pragma_")
        || SQLITE_BUILT_IN.contains(&table);
    match table {
        _ if SQLITE_SCHEMA_TABLES.contains(&table) => RelationKind::SchemaInfo,
        // SQLite accepts a table-valued function without arguments as a table.
        _ if SQLITE_SCHEMA_FUNCTIONS.contains(&table) => RelationKind::SchemaInfo,
        _ if is_built_in => RelationKind::Catalog,
        _ => app_relation(table, table.to_owned()),
    }
}

fn app_relation(table: &str, name: String) -> RelationKind {
    if table.starts_with("_wattle_") { RelationKind::Catalog } else { RelationKind::Table(name) }
}

fn schema_relation(table: &str, known: &[&str]) -> RelationKind {
    if known.contains(&table) { RelationKind::SchemaInfo } else { RelationKind::Catalog }
}

/// Returns true for table-valued functions that describe tables.
pub(crate) fn is_schema_function(dialect: Dialect, function: &str) -> bool {
    dialect == Dialect::Sqlite && SQLITE_SCHEMA_FUNCTIONS.contains(&function)
}
