//! Test support that several modules share: a small business database, and a host that serves it.

use std::collections::BTreeMap;

use wattle_plugin::prelude::{Failure, Value, json, params, sql};
use wattle_plugin::testing::{FakeHost, SqlAnswer, Statement};

use crate::BUSINESS;
use crate::knowledge::{Column, Description, Knowledge, Link, Table};

/// 2025-01-15 10:30:45 in Shanghai.
pub(crate) const NOW_MS: i64 = 1_736_908_245_000;

const COLUMNS: [(&str, &str, &str); 13] = [
    ("customers", "id", "INTEGER"),
    ("customers", "name", "TEXT"),
    ("customers", "city", "TEXT"),
    ("customers", "is_deleted", "INTEGER"),
    ("orders", "id", "INTEGER"),
    ("orders", "order_no", "TEXT"),
    ("orders", "customer_id", "INTEGER"),
    ("orders", "status", "TEXT"),
    ("orders", "total_amount", "NUMERIC(12,2)"),
    ("orders", "ordered_at", "TIMESTAMP"),
    ("order_items", "order_id", "INTEGER"),
    ("order_items", "quantity", "INTEGER"),
    ("order_items", "amount", "NUMERIC(12,2)"),
];

/// Returns a host whose clock is at [`NOW_MS`] in Shanghai. Its databases return nothing, except
/// for the schema of the business database.
pub(crate) fn host() -> FakeHost {
    business(|_| Ok(sql::Rows::default().into()))
}

/// Returns such a host with a script for all other statements.
pub(crate) fn business(
    mut script: impl FnMut(&Statement) -> Result<SqlAnswer, Failure> + 'static,
) -> FakeHost {
    FakeHost::new().now_ms(NOW_MS).zone("Asia/Shanghai", 28_800).sql(move |statement| {
        let is_schema = statement.database == BUSINESS && statement.text.contains("pragma_");
        match is_schema {
            true if statement.text.contains("pragma_table_info") => Ok(columns().into()),
            true => Ok(sql::Rows::new(
                ["table_name", "column_name", "target_table", "target_column"],
                vec![params!["orders", "customer_id", "customers", "id"]],
            )
            .into()),
            false => script(statement),
        }
    })
}

fn columns() -> sql::Rows {
    let rows = COLUMNS.iter().map(|(table, column, kind)| params![*table, *column, *kind]);
    sql::Rows::new(["table_name", "column_name", "data_type"], rows.collect())
}

/// Returns the knowledge base of that database, without querying it.
pub(crate) fn knowledge() -> Knowledge {
    let mut tables: Vec<Table> = Vec::new();
    for (table, column, kind) in COLUMNS {
        if tables.last().is_none_or(|last| last.name != table) {
            tables.push(Table { name: table.to_owned(), ..Table::default() });
        }
        let column = Column {
            name: column.to_owned(),
            kind: kind.to_owned(),
            description: Description::default(),
        };
        tables.last_mut().unwrap().columns.push(column);
    }
    let link = Link { from: "orders.customer_id".to_owned(), to: "customers.id".to_owned() };
    Knowledge { tables, links: vec![link], metrics: BTreeMap::new() }
}

/// Returns a parsed task that counts orders.
pub(crate) fn task() -> Value {
    json!({
        "intent": "business_query", "entities": [], "dimensions": [], "metrics": ["order_count"],
        "filters": [], "time_range": {"start": null, "end": null}, "operation": "aggregate",
        "confidence": 0.9,
    })
}

/// Returns the intent of a business question.
pub(crate) fn intent() -> Value {
    json!({
        "intent": "business_query", "is_followup": false, "confidence": 0.9,
        "merged_query": "有多少订单", "rewritten_query": "有多少订单", "threshold": 0.7,
    })
}
