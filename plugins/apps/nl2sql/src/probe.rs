//! Samples values of fields, so that the next statement compares with values that exist.

use sqlparser::keywords::{ALL_KEYWORDS, ALL_KEYWORDS_INDEX, Keyword, RESERVED_FOR_TABLE_ALIAS};
use wattle_plugin::prelude::{Failure, params, sql};

use crate::BUSINESS;
use crate::knowledge::{Column, Knowledge, Table};
use crate::rows::{cut, objects, shown};
use crate::state::{ParseResult, ProbeSample, SqlGenerationResult};

/// Maximum number of probes of one step.
const PROBES: usize = 24;

/// Maximum number of values of one field.
const VALUES: usize = 20;

/// Maximum number of characters of a value. The values are part of the state and of a prompt, and a
/// longer value is not one that a filter names.
const VALUE_CHARACTERS: usize = 100;

/// Maximum number of candidates of one missing name that are probed.
const CANDIDATES: usize = 3;

/// Column that marks rows as deleted, in tables that have it.
const DELETED: &str = "is_deleted";

/// Parts of the names of types whose values are not worth a sample.
const NUMBERS_AND_TIMES: [&str; 10] =
    ["int", "num", "dec", "real", "double", "float", "date", "time", "serial", "blob"];

/// Returns the text fields to probe: fields of filters, fields of entity mappings, and candidates.
pub(crate) fn fields(
    task: Option<&ParseResult>,
    generated: Option<&SqlGenerationResult>,
    candidates: &[Vec<String>],
    knowledge: &Knowledge,
) -> Vec<String> {
    let mut fields: Vec<String> = Vec::new();
    let filters = task.into_iter().flat_map(|task| &task.filters).map(|filter| &filter.field);
    let mapped = match generated {
        Some(SqlGenerationResult::Success(success)) => success.entity_mappings.as_slice(),
        _ => &[],
    };
    let mapped = mapped.iter().map(|mapping| &mapping.field);
    let meant = candidates.iter().flat_map(|it| it.iter().take(CANDIDATES));
    for field in filters.chain(mapped).chain(meant) {
        let Some((table, column)) = knowledge.field(field) else { continue };
        let name = format!("{}.{}", table.name, column.name);
        if is_text(column) && !fields.contains(&name) {
            fields.push(name);
        }
    }
    fields.truncate(PROBES);
    fields
}

/// Queries values of a field. An error becomes part of the sample.
pub(crate) fn sample(field: &str, knowledge: &Knowledge) -> Option<ProbeSample> {
    let (table, column) = knowledge.field(field)?;
    let probe_sql = statement(table, column);
    let (values, error) = match values(&probe_sql) {
        Ok(values) => (values, None),
        Err(failure) => (Vec::new(), Some(failure.message)),
    };
    Some(ProbeSample { field: field.to_owned(), probe_sql, values, error })
}

fn values(probe: &str) -> Result<Vec<String>, Failure> {
    let rows = sql::database(BUSINESS).query(probe, params![])?;
    let rows = objects(&rows);
    let values = rows.iter().filter_map(|row| row.values().next());
    Ok(values.map(|it| cut(&shown(it), VALUE_CHARACTERS)).collect())
}

fn statement(table: &Table, column: &Column) -> String {
    let (table_name, field) = (quoted(&table.name), quoted(&column.name));
    let alive = match table.column(DELETED) {
        Some(column) if column.kind.to_lowercase().contains("bool") => {
            format!(" AND {table_name}.{DELETED} = FALSE")
        }
        Some(_) => format!(" AND {table_name}.{DELETED} = 0"),
        None => String::new(),
    };
    format!(
        "SELECT DISTINCT {table_name}.{field} AS value FROM {table_name} \
         WHERE {table_name}.{field} IS NOT NULL{alive} LIMIT {VALUES}"
    )
}

fn is_text(column: &Column) -> bool {
    let kind = column.kind.to_lowercase();
    !NUMBERS_AND_TIMES.iter().any(|word| kind.contains(word))
}

/// Quotes a name unless it is plain and no reserved word.
fn quoted(name: &str) -> String {
    let is_plain =
        name.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'_');
    if is_plain && !is_reserved(name) {
        return name.to_owned();
    }
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Returns true if a name cannot stand without quotes in all places of a statement.
fn is_reserved(name: &str) -> bool {
    let Ok(index) = ALL_KEYWORDS.binary_search(&name.to_uppercase().as_str()) else { return false };
    let keyword = ALL_KEYWORDS_INDEX[index];
    keyword == Keyword::USER || RESERVED_FOR_TABLE_ALIAS.contains(&keyword)
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Failure, json, params, sql};

    use super::{fields, sample};
    use crate::testing::{business, host, knowledge, task};

    #[test]
    fn text_fields_of_the_question_are_probed() {
        let mut task = task();
        task["filters"] = json!([
            {"field": "customers.city", "op": "=", "value": "北京市"},
            {"field": "orders.total_amount", "op": ">", "value": 5},
        ]);
        let task = serde_json::from_value(task).unwrap();
        let generated = serde_json::from_value(json!({
            "sql": "WITH", "sql_fields": [], "applied_field_replacements": [],
            "entity_mappings": [
                {"type": "city", "value": "北京市", "field": "customers.city", "reason": ""},
                {"type": "状态", "value": "完成", "field": "orders.status", "reason": ""},
            ],
        }))
        .unwrap();
        let candidates = [vec!["orders.id".to_owned(), "customers.name".to_owned()]];
        let expected = ["customers.city", "orders.status", "customers.name"];
        assert_eq!(fields(Some(&task), Some(&generated), &candidates, &knowledge()), expected);
    }

    #[test]
    fn deleted_rows_are_excluded_if_marked() {
        let host = business(|_| {
            Ok(sql::Rows::new(["value"], vec![params!["北京"], params!["上海"]]).into())
        });
        let found = host.run(|| sample("customers.city", &knowledge())).unwrap();
        assert_eq!(
            found.probe_sql,
            "SELECT DISTINCT customers.city AS value FROM customers \
             WHERE customers.city IS NOT NULL AND customers.is_deleted = 0 LIMIT 20"
        );
        assert_eq!(found.values, ["北京", "上海"]);
        let found = host.run(|| sample("orders.status", &knowledge())).unwrap();
        assert!(!found.probe_sql.contains("is_deleted"));
        assert_eq!(host.run(|| sample("orders.none", &knowledge())), None);
    }

    #[test]
    fn reserved_words_are_quoted() {
        let mut knowledge = knowledge();
        knowledge.tables[0].name = "order".to_owned();
        knowledge.tables[0].columns[2].name = "group".to_owned();
        let found = host().run(|| sample("order.group", &knowledge)).unwrap();
        assert!(found.probe_sql.starts_with(r#"SELECT DISTINCT "order"."group" AS value"#));
    }

    #[test]
    fn long_values_are_cut() {
        let host = business(|_| {
            let values = [100, 101].map(|length| params!["东".repeat(length)]);
            Ok(sql::Rows::new(["value"], values.to_vec()).into())
        });
        let found = host.run(|| sample("customers.city", &knowledge())).unwrap();
        assert_eq!(found.values, ["东".repeat(100), format!("{}…", "东".repeat(100))]);
    }

    #[test]
    fn error_is_part_of_the_sample() {
        let host = business(|_| Err(Failure::timeout("too slow")));
        let found = host.run(|| sample("customers.city", &knowledge())).unwrap();
        assert_eq!(found.error.as_deref(), Some("too slow"));
        assert!(found.values.is_empty());
    }
}
