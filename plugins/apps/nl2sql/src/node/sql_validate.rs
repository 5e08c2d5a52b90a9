//! `sql_validate`: executes the statement with read-only access, and checks the rows.

use wattle_plugin::prelude::{
    Context, Deserialize, Failure, JsonSchema, Serialize, code, node, params, sql,
};

use crate::state::{SqlGenerationResult, SqlValidateResult};
use crate::step::{self, Done};
use crate::{BUSINESS, rows, setting, statement};

/// Error of a result without a statement.
const MISSING: &str = "sql_validate_missing_sql";

/// Error of a statement that does more than read.
const READONLY: &str = "sql_validate_readonly_violation";

#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Input {
    sql_result: Option<SqlGenerationResult>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Update {
    sql_validate_result: SqlValidateResult,
}

/// Executes the statement.
#[node]
pub(crate) fn sql_validate(context: &Context, input: Input) -> Result<Update, Failure> {
    let sql_validate_result = step::run(context, "sql_validate", &input, |_| {
        // A failed statement is a result of this step, not a failure.
        validate(input.sql_result.as_ref()).map(Done::Success)
    })?;
    Ok(Update { sql_validate_result })
}

fn validate(generated: Option<&SqlGenerationResult>) -> Result<SqlValidateResult, Failure> {
    let sql = match generated {
        Some(SqlGenerationResult::Success(success)) => success.sql.trim(),
        _ => "",
    };
    if sql.is_empty() {
        return Ok(SqlValidateResult::refused(MISSING));
    }
    let database = sql::database(BUSINESS);
    let dialect = database.dialect()?;
    if !statement::is_read_only(sql, &dialect) {
        return Ok(SqlValidateResult::refused(READONLY));
    }
    let most = setting::result_rows()?;
    let executed_sql = statement::limited(sql, &dialect, most);
    match database.query(&executed_sql, params![]) {
        Ok(found) => {
            let mut found = rows::objects(&found);
            found.truncate(most);
            Ok(judged(found, executed_sql))
        }
        Err(failure) => {
            let refused = SqlValidateResult::refused(&told(&failure));
            // The host refuses a statement before it reaches the database.
            let is_executed = failure.code != code::DENIED;
            let executed_sql = if is_executed { executed_sql } else { String::new() };
            Ok(SqlValidateResult { executed_sql, ..refused })
        }
    }
}

fn judged(result: Vec<crate::state::Row>, executed_sql: String) -> SqlValidateResult {
    let empty_result = rows::is_empty(&result);
    SqlValidateResult {
        is_valid: true,
        error: None,
        rows: if empty_result { 0 } else { result.len() },
        empty_result,
        zero_metric_result: !empty_result && rows::has_zero_metric(&result),
        result,
        executed_sql,
    }
}

/// Returns the message of a failure, followed by PostgreSQL's SQLSTATE, because its messages may be
/// in any language, or by the rule of the host.
fn told(failure: &Failure) -> String {
    let detail = |name: &str| failure.details.as_deref()?.get(name)?.as_str();
    match (detail("sqlstate"), detail("rule")) {
        (Some(state), _) => format!("{} (SQLSTATE {state})", failure.message),
        (None, Some(rule)) => format!("{} (rule {rule})", failure.message),
        (None, None) => failure.message.clone(),
    }
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Context, Failure, Value, json, params, sql};
    use wattle_plugin::testing::{FakeHost, run_node};

    use super::sql_validate;
    use crate::testing::{business, host};

    const COUNT: &str = "WITH x AS (SELECT id FROM orders) SELECT COUNT(id) AS n_count FROM x";

    fn run(host: &FakeHost, sql: &str) -> Value {
        let input = json!({"sql_result": {"sql": sql, "entity_mappings": [], "sql_fields": [],
                                          "applied_field_replacements": []}});
        let decision = host.run(|| run_node::<sql_validate>(&Context::default(), &input)).unwrap();
        decision.update("sql_validate_result").cloned().unwrap()
    }

    fn finding(rows: sql::Rows) -> FakeHost {
        business(move |_| Ok(rows.clone().into()))
    }

    #[test]
    fn rows_determine_the_flags() {
        let count = |values: Vec<Vec<sql::Value>>| finding(sql::Rows::new(["n_count"], values));
        for (host, rows, empty, zero) in [
            (count(vec![params![7]]), 1, false, false),
            (count(vec![params![0]]), 1, false, true),
            (count(vec![]), 0, true, false),
            (count(vec![params![None::<i64>]]), 0, true, false),
        ] {
            let result = run(&host, COUNT);
            assert_eq!(result["is_valid"], true);
            assert_eq!(result["rows"], rows);
            assert_eq!(result["empty_result"], empty);
            assert_eq!(result["zero_metric_result"], zero);
            assert_eq!(result["executed_sql"], format!("{COUNT}\nLIMIT 1000"));
        }
    }

    #[test]
    fn statement_that_does_more_than_read_is_not_executed() {
        let host = host();
        for (sql, error) in [
            ("", "sql_validate_missing_sql"),
            ("DELETE FROM orders", "sql_validate_readonly_violation"),
            (
                "WITH x AS (DELETE FROM orders RETURNING *) SELECT * FROM x",
                "sql_validate_readonly_violation",
            ),
            ("WITH x AS (SELECT 1) SELECT 1; SELECT 2", "sql_validate_readonly_violation"),
        ] {
            let result = run(&host, sql);
            assert_eq!(
                result,
                json!({"is_valid": false, "error": error, "rows": 0, "result": [],
                       "executed_sql": "", "empty_result": false, "zero_metric_result": false}),
                "{sql}"
            );
        }
        assert!(host.statements().is_empty());
        let input = json!({"sql_result": null});
        let decision = host.run(|| run_node::<sql_validate>(&Context::default(), &input)).unwrap();
        let result = decision.update("sql_validate_result").unwrap();
        assert_eq!(result["error"], "sql_validate_missing_sql");
    }

    #[test]
    fn errors_of_the_database_are_reported() {
        let host = business(|_| {
            Err(Failure::invalid("column \"x\" does not exist")
                .with_details(json!({"dialect": "postgres", "sqlstate": "42703"})))
        });
        let result = run(&host, COUNT);
        assert_eq!(result["is_valid"], false);
        assert_eq!(result["error"], "column \"x\" does not exist (SQLSTATE 42703)");
        assert_eq!(result["executed_sql"], format!("{COUNT}\nLIMIT 1000"));
        assert_eq!(host.emitted()[0].1["status"], "success");
        let host = business(|_| {
            Err(Failure::new("denied", "the function `f` is refused")
                .with_details(json!({"rule": "function", "subject": "f"})))
        });
        let result = run(&host, COUNT);
        assert_eq!(result["error"], "the function `f` is refused (rule function)");
        assert_eq!(result["executed_sql"], "");
    }
}
