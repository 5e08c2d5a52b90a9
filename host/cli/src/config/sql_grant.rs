//! Requested or granted databases of a plugin.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use wattle_graph::definition::HumanDuration;
use wattle_run::grant::{SqlAccess, SqlRule};

use crate::config::ByteSize;

/// A database with its rule.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "SqlTable")]
pub struct SqlGrant {
    /// Name of the database, as in `[sql.<name>]`.
    pub database: String,
    /// Access that the plugin requests or is granted.
    pub rule: SqlRule,
}

/// The entry as it is written in TOML.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as `{ database = \"notes\" }`")]
struct SqlTable {
    database: String,
    #[serde(default = "read_only")]
    access: SqlAccess,
    tables: Option<BTreeSet<String>>,
    #[serde(default)]
    schema: bool,
    #[serde(default)]
    functions: BTreeSet<String>,
    timeout: Option<HumanDuration>,
    rows: Option<u64>,
    bytes: Option<ByteSize>,
}

fn read_only() -> SqlAccess {
    SqlAccess::ReadOnly
}

impl TryFrom<SqlTable> for SqlGrant {
    type Error = String;

    fn try_from(table: SqlTable) -> Result<Self, String> {
        let SqlTable { database, access, tables, schema, functions, timeout, rows, bytes } = table;
        let rule = SqlRule {
            access,
            tables,
            schema,
            functions,
            timeout_ms: timeout.map(HumanDuration::as_ms),
            rows,
            bytes: bytes.map(|size| size.0),
        };
        if access == SqlAccess::ReadWrite && rule != SqlRule::from(access) {
            return Err(format!(
                "`tables`, `schema`, `functions`, `timeout`, `rows` and `bytes` of the database \
                 `{database}` are for `access = \"read-only\"`"
            ));
        }
        Ok(Self { database, rule })
    }
}

/// Returns the rules by database. If a database has two entries, their rules are intersected.
pub(super) fn rules_by_database(grants: &[SqlGrant]) -> BTreeMap<String, SqlRule> {
    let mut databases: BTreeMap<String, SqlRule> = BTreeMap::new();
    for grant in grants {
        let rule = databases.entry(grant.database.clone()).or_insert_with(|| grant.rule.clone());
        *rule = intersect_sql_rules(rule, &grant.rule);
    }
    databases
}

/// Returns the intersection of both rules. The functions of the result are those of `granted`,
/// because the author of an app does not know which functions the operator's database has.
pub fn intersect_sql_rules(requested: &SqlRule, granted: &SqlRule) -> SqlRule {
    let tables = match (&requested.tables, &granted.tables) {
        (Some(requested), Some(granted)) => {
            Some(requested.intersection(granted).cloned().collect())
        }
        (one, other) => one.clone().or_else(|| other.clone()),
    };
    let min_of = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
    SqlRule {
        access: requested.access.min(granted.access),
        tables,
        schema: requested.schema && granted.schema,
        functions: granted.functions.clone(),
        timeout_ms: min_of(requested.timeout_ms, granted.timeout_ms),
        rows: min_of(requested.rows, granted.rows),
        bytes: min_of(requested.bytes, granted.bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Table {
        sql: Vec<SqlGrant>,
    }

    fn parse(text: &str) -> Result<Vec<SqlGrant>, String> {
        toml::from_str::<Table>(text).map(|it| it.sql).map_err(|error| error.to_string())
    }

    #[test]
    fn rules_are_intersected() {
        let grants = parse(
            r#"sql = [
                { database = "a", tables = ["x", "y"], schema = true, rows = 10, timeout = "5s" },
                { database = "a", tables = ["y", "z"], rows = 20, bytes = "1KiB", functions = ["f"] },
                { database = "b", access = "read-write" },
            ]"#,
        );
        let all = rules_by_database(&grants.unwrap());
        let a = &all["a"];
        assert_eq!(a.tables, Some(["y".to_owned()].into()));
        assert!(!a.schema && a.functions.contains("f"));
        assert_eq!((a.rows, a.bytes, a.timeout_ms), (Some(10), Some(1024), Some(5_000)));
        assert_eq!(all["b"], SqlAccess::ReadWrite.into());
        assert_eq!(
            intersect_sql_rules(&all["b"], a),
            SqlRule { functions: a.functions.clone(), ..a.clone() }
        );
    }

    #[test]
    fn limits_of_readers_are_refused_for_writers() {
        let text = r#"sql = [{ database = "a", access = "read-write", tables = ["x"] }]"#;
        assert!(parse(text).unwrap_err().contains("read-only"));
    }
}
