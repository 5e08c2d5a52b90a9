//! Tables, fields and foreign keys, from the catalog of the business database.

use wattle_plugin::prelude::{Failure, params, sql};
use wattle_plugin::sql::{Dialect, Rows};

use crate::knowledge::{Column, Description, Knowledge, Link, Table};
use crate::{BUSINESS, setting};

/// Prefix of the tables that the host creates in databases with migrations or transactions.
const HOST_TABLES: &str = "_wattle_";

const SQLITE_COLUMNS: &str =
    "SELECT m.name AS table_name, p.name AS column_name, p.type AS data_type
    FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS p
    WHERE m.type IN ('table', 'view') ORDER BY m.rowid, p.cid";

const SQLITE_LINKS: &str = r#"SELECT m.name AS table_name, f."from" AS column_name,
    f."table" AS target_table, f."to" AS target_column
    FROM sqlite_master AS m JOIN pragma_foreign_key_list(m.name) AS f
    WHERE m.type = 'table' ORDER BY m.rowid, f.id"#;

const POSTGRES_COLUMNS: &str = "SELECT c.table_name AS table_name, c.column_name AS column_name,
    c.data_type AS data_type FROM information_schema.columns AS c
    WHERE c.table_schema = $1 ORDER BY c.table_name, c.ordinal_position";

const POSTGRES_LINKS: &str = "SELECT k.table_name AS table_name, k.column_name AS column_name,
    u.table_name AS target_table, u.column_name AS target_column
    FROM information_schema.table_constraints AS t
    JOIN information_schema.key_column_usage AS k
        ON k.constraint_name = t.constraint_name AND k.table_schema = t.table_schema
    JOIN information_schema.constraint_column_usage AS u
        ON u.constraint_name = t.constraint_name AND u.constraint_schema = t.table_schema
    WHERE t.constraint_type = 'FOREIGN KEY' AND t.table_schema = $1
    ORDER BY k.table_name, k.column_name";

pub(super) fn from_database() -> Result<Knowledge, Failure> {
    let database = sql::database(BUSINESS);
    let (columns, links) = match database.dialect()? {
        Dialect::Postgres => {
            let schema = setting::business_schema()?;
            (
                database.query(POSTGRES_COLUMNS, params![&schema])?,
                database.query(POSTGRES_LINKS, params![&schema]),
            )
        }
        _ => (database.query(SQLITE_COLUMNS, params![])?, database.query(SQLITE_LINKS, params![])),
    };
    let tables = tables(&columns, &setting::business_tables()?)?;
    let mut knowledge = Knowledge { tables, ..Knowledge::default() };
    // Foreign keys only help the model, and a role with read access often cannot see constraints.
    knowledge.links = links.and_then(|rows| read_links(&rows)).unwrap_or_default();
    let known = knowledge.clone();
    knowledge.links.retain(|it| known.field(&it.from).is_some() && known.field(&it.to).is_some());
    Ok(knowledge)
}

fn tables(rows: &Rows, allowed: &[String]) -> Result<Vec<Table>, Failure> {
    let mut tables: Vec<Table> = Vec::new();
    for row in rows {
        let name: String = row.get("table_name")?;
        let is_wanted =
            allowed.is_empty() || allowed.iter().any(|it| it.eq_ignore_ascii_case(&name));
        if !is_wanted || name.starts_with(HOST_TABLES) || name.starts_with("sqlite_") {
            continue;
        }
        if tables.last().is_none_or(|last| last.name != name) {
            tables.push(Table { name, ..Table::default() });
        }
        let column = Column {
            name: row.get("column_name")?,
            kind: row.get("data_type")?,
            description: Description::default(),
        };
        tables.last_mut().into_iter().for_each(|table| table.columns.push(column.clone()));
    }
    Ok(tables)
}

fn read_links(rows: &Rows) -> Result<Vec<Link>, Failure> {
    rows.iter()
        .map(|row| {
            let get = |name: &str| row.get::<Option<String>>(name).map(Option::unwrap_or_default);
            let from = format!("{}.{}", get("table_name")?, get("column_name")?);
            Ok(Link { from, to: format!("{}.{}", get("target_table")?, get("target_column")?) })
        })
        .collect()
}
