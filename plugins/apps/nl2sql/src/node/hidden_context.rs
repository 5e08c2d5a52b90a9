//! `hidden_context`: collects what a failed or empty statement teaches the next attempt.

use wattle_plugin::prelude::{
    Context, Deserialize, Failure, JsonSchema, Serialize, json, node, sql,
};

use crate::knowledge::{self, Knowledge};
use crate::state::{
    ErrorType, FieldCandidate, HiddenContextResult, IntentResult, KbSummary, ParseResult,
    ProbeSample, SqlGenerationResult, SqlValidateResult,
};
use crate::step::{self, Done};
use crate::{BUSINESS, candidate, fault, mapping, probe, statement};

/// Error of a statement that found nothing.
const EMPTY: &str = "empty_result";

/// Error of a statement whose metric is 0.
const ZERO: &str = "zero_metric_result";

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Input {
    intent_result: Option<IntentResult>,
    parse_result: Option<ParseResult>,
    sql_result: Option<SqlGenerationResult>,
    sql_validate_result: Option<SqlValidateResult>,
    hidden_context_retry_count: u32,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Update {
    hidden_context_result: HiddenContextResult,
    hidden_context_retry_count: u32,
}

/// The result, before the node counts the attempt.
struct Insight {
    error_type: ErrorType,
    error: String,
    failed_sql: String,
    rewritten_query: String,
    field_candidates: Vec<FieldCandidate>,
    probe_samples: Vec<ProbeSample>,
    hints: Vec<String>,
    kb_summary: KbSummary,
}

impl Insight {
    fn with_retry_count(self, retry_count: u32) -> HiddenContextResult {
        HiddenContextResult {
            error_type: self.error_type,
            error: self.error,
            failed_sql: self.failed_sql,
            rewritten_query: self.rewritten_query,
            field_candidates: self.field_candidates,
            probe_samples: self.probe_samples,
            hints: self.hints,
            kb_summary: self.kb_summary,
            retry_count,
        }
    }
}

/// Collects information that helps the next generation.
#[node]
pub(crate) fn hidden_context(context: &Context, input: Input) -> Result<Update, Failure> {
    let next = input.hidden_context_retry_count + 1;
    let recorded = json!({
        "rewritten_query": query(&input),
        "parse_result": input.parse_result,
        "sql_result": input.sql_result,
        "sql_validate_result": input.sql_validate_result,
        "hidden_context_retry_count": input.hidden_context_retry_count,
    });
    let hidden_context_result = step::run(context, "hidden_context", &recorded, |_| {
        Ok(Done::Success(inspect(&input)?.with_retry_count(next)))
    })?;
    Ok(Update { hidden_context_result, hidden_context_retry_count: next })
}

fn query(input: &Input) -> &str {
    input.intent_result.as_ref().map_or("", |it| &it.rewritten_query)
}

fn inspect(input: &Input) -> Result<Insight, Failure> {
    let knowledge = knowledge::read()?;
    let error = error(input);
    let error_type = fault::classify(&error);
    let failed_sql = failed_sql(input);
    let quoted = quoted(error_type, &error, &failed_sql)?;
    let mut field_candidates = candidates(error_type, &error, &failed_sql, &quoted, &knowledge)?;
    for again in candidate::for_fields(&replaced(input), &knowledge) {
        if !field_candidates.iter().any(|it| it.missing == again.missing) {
            field_candidates.push(again);
        }
    }
    let meant: Vec<Vec<String>> = field_candidates.iter().map(|it| it.candidates.clone()).collect();
    let task = input.parse_result.as_ref();
    let fields = probe::fields(task, input.sql_result.as_ref(), &meant, &knowledge);
    let probe_samples: Vec<ProbeSample> =
        fields.iter().filter_map(|field| probe::sample(field, &knowledge)).collect();
    Ok(Insight {
        hints: hints(error_type, &error, &quoted, &field_candidates, &probe_samples),
        kb_summary: knowledge.summary(),
        rewritten_query: query(input).to_owned(),
        error_type,
        error,
        failed_sql,
        field_candidates,
        probe_samples,
    })
}

fn error(input: &Input) -> String {
    let Some(validated) = &input.sql_validate_result else { return String::new() };
    match &validated.error {
        Some(error) => mapping::split_refusal(error).0.to_owned(),
        None if validated.empty_result => EMPTY.to_owned(),
        None if validated.zero_metric_result => ZERO.to_owned(),
        None => String::new(),
    }
}

/// Returns the refused statement, or else the executed one, or else the generated one.
fn failed_sql(input: &Input) -> String {
    let validated = input.sql_validate_result.as_ref();
    let refused = validated.and_then(|it| mapping::split_refusal(it.error.as_deref()?).1);
    if let Some(sql) = refused {
        return sql.to_owned();
    }
    let executed = validated.map(|it| it.executed_sql.as_str());
    let written = match &input.sql_result {
        Some(SqlGenerationResult::Success(success)) => success.sql.as_str(),
        _ => "",
    };
    executed.filter(|sql| !sql.is_empty()).unwrap_or(written).to_owned()
}

/// Returns the names that were replaced in the statement. The next statement may contain them
/// again.
fn replaced(input: &Input) -> Vec<String> {
    match &input.sql_result {
        Some(SqlGenerationResult::Success(success)) => {
            success.applied_field_replacements.iter().map(|it| it.from.clone()).collect()
        }
        _ => Vec::new(),
    }
}

/// Names in double quotes that are not fields. Fields with similar names would mislead the model.
#[derive(Default)]
struct Quoted {
    /// Aliases of a projection, used where the database does not know them yet.
    early: Vec<String>,
    /// Names that are most likely texts.
    texts: Vec<String>,
}

fn quoted(kind: ErrorType, error: &str, failed_sql: &str) -> Result<Quoted, Failure> {
    if kind != ErrorType::UnknownColumn {
        return Ok(Quoted::default());
    }
    let dialect = sql::database(BUSINESS).dialect()?;
    let quoted = statement::quoted(failed_sql, &dialect);
    let given = statement::given(failed_sql, &dialect);
    let names = fault::missing_names(error).into_iter().filter(|name| quoted.contains(name));
    let (early, texts) = names.partition(|name| given.contains(&name.to_ascii_lowercase()));
    Ok(Quoted { early, texts })
}

fn candidates(
    kind: ErrorType,
    error: &str,
    failed_sql: &str,
    quoted: &Quoted,
    knowledge: &Knowledge,
) -> Result<Vec<FieldCandidate>, Failure> {
    let missing = fault::missing_names(error);
    match kind {
        ErrorType::UnknownColumn => {
            let dialect = sql::database(BUSINESS).dialect()?;
            let full = |name: String| match name.split_once('.') {
                Some((alias, field)) if knowledge.table(alias).is_none() => {
                    statement::table_of_alias(failed_sql, &dialect, knowledge, alias)
                        .map_or(name.clone(), |table| format!("{table}.{field}"))
                }
                _ => name,
            };
            let is_quoted =
                |name: &String| quoted.early.contains(name) || quoted.texts.contains(name);
            let fields = missing.into_iter().filter(|name| !is_quoted(name)).map(full);
            Ok(candidate::for_fields(&fields.collect::<Vec<_>>(), knowledge))
        }
        ErrorType::UnknownTable => Ok(candidate::for_tables(&missing, knowledge)),
        _ => Ok(Vec::new()),
    }
}

fn hints(
    kind: ErrorType,
    error: &str,
    quoted: &Quoted,
    candidates: &[FieldCandidate],
    samples: &[ProbeSample],
) -> Vec<String> {
    let mut hints = vec![hint_about(kind, error, quoted).to_owned()];
    for name in &quoted.early {
        let text = statement::literal(name);
        hints.push(format!("{name} 是 SELECT 的别名：写出它的表达式；如果是文本，写成 {text}"));
    }
    for text in &quoted.texts {
        hints.push(format!("{text} 如果是文本，写成 {}", statement::literal(text)));
    }
    for found in candidates.iter().filter(|it| !it.candidates.is_empty()) {
        hints.push(format!("{} 可能是：{}", found.missing, found.candidates.join("、")));
    }
    for sample in samples.iter().filter(|it| !it.values.is_empty()) {
        hints.push(format!("{} 的实际取值：{}", sample.field, sample.values.join("、")));
    }
    hints
}

/// Returns the hint about the kind of an error.
fn hint_about(kind: ErrorType, error: &str, quoted: &Quoted) -> &'static str {
    let is_misquoted = !quoted.texts.is_empty() || error.starts_with(statement::QUOTED_TEXT);
    let is_early = !quoted.early.is_empty() || error.starts_with(statement::EARLY_NAME);
    match (kind, error) {
        (_, EMPTY) => "上一条 SQL 没有查到数据：核对筛选值的写法和时间范围，必要时放宽条件。",
        (_, ZERO) => "上一条 SQL 的指标为 0：核对筛选值的写法、时间范围和关联条件。",
        (ErrorType::UnknownColumn, _) if is_misquoted => {
            "上一条 SQL 把文本写在双引号里：双引号里的是字段名，文本要用单引号。"
        }
        (ErrorType::UnknownColumn, _) if is_early => {
            "上一条 SQL 在还不能用别名的地方用了别名：写出它的表达式，或者在外层查询里用。"
        }
        (ErrorType::UnknownColumn, _) => "上一条 SQL 用了不存在的字段：只用白名单里的字段。",
        (ErrorType::UnknownTable, _) => "上一条 SQL 用了不存在的表：只用白名单里的表。",
        (ErrorType::SyntaxError, _) => "上一条 SQL 有语法错误：写一条以 WITH 开头的完整查询。",
        (ErrorType::ObjectNotFound, _) => {
            "上一条 SQL 用了数据库没有的函数或对象：换成该方言支持的写法。"
        }
        (ErrorType::ExecutionError, _) => "上一条 SQL 没有通过：按错误信息改正。",
    }
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Context, Failure, Value, json, params, sql};
    use wattle_plugin::testing::{FakeHost, run_node};

    use super::hidden_context;
    use crate::testing::{business, intent, task};

    fn run(host: &FakeHost, validated: Value, sql: &str) -> (Value, Value) {
        let mut task = task();
        task["filters"] = json!([{"field": "customers.city", "op": "=", "value": "北京市"}]);
        let input = json!({
            "intent_result": intent(), "parse_result": task,
            "sql_result": {"sql": sql, "entity_mappings": [], "sql_fields": [],
                           "applied_field_replacements": []},
            "sql_validate_result": validated, "hidden_context_retry_count": 1,
        });
        let decision =
            host.run(|| run_node::<hidden_context>(&Context::default(), &input)).unwrap();
        let update = |name| decision.update(name).cloned().unwrap();
        (update("hidden_context_result"), update("hidden_context_retry_count"))
    }

    fn invalid(error: &str) -> Value {
        json!({"is_valid": false, "error": error, "rows": 0, "result": [], "executed_sql": "",
               "empty_result": false, "zero_metric_result": false})
    }

    fn cities() -> FakeHost {
        business(|_| Ok(sql::Rows::new(["value"], vec![params!["北京"]]).into()))
    }

    #[test]
    fn missing_field_gets_candidates() {
        let sql = "WITH x AS (SELECT o.order_amount FROM orders AS o) SELECT * FROM x";
        let (result, count) = run(&cities(), invalid("no such column: o.order_amount"), sql);
        assert_eq!(count, 2);
        assert_eq!(result["retry_count"], 2);
        assert_eq!(result["error_type"], "unknown_column");
        assert_eq!(result["failed_sql"], sql);
        let candidates = &result["field_candidates"][0];
        assert_eq!(candidates["missing"], "orders.order_amount", "the alias is resolved");
        assert_eq!(candidates["candidates"][0], "orders.total_amount");
        assert_eq!(result["kb_summary"], json!({"table_count": 3, "field_count": 13}));
    }

    #[test]
    fn text_in_double_quotes_gets_no_candidates() {
        let sql = "WITH x AS (SELECT status FROM orders) \
                   SELECT COUNT(*) AS n FROM x WHERE status = \"completed\"";
        let told = "column \"completed\" does not exist (SQLSTATE 42703)";
        let refused = "sql_generation_quoted_text: \"completed\": 'completed'";
        for (error, sql, hint) in [
            (told, sql, "completed 如果是文本，写成 'completed'"),
            (refused, "", "customers.city 的实际取值：北京"),
        ] {
            let (result, _) = run(&cities(), invalid(error), sql);
            assert_eq!(result["error_type"], "unknown_column");
            assert_eq!(result["field_candidates"], json!([]), "{error}");
            assert!(result["hints"][0].as_str().unwrap().contains("单引号"), "{error}");
            assert_eq!(result["hints"][1], hint);
        }
    }

    // `HAVING '本月' <> '上月'` would be true for every row.
    #[test]
    fn alias_of_a_projection_is_not_a_text() {
        let sql = "WITH x AS (SELECT status, COUNT(*) AS \"本月\" FROM orders GROUP BY status \
                   HAVING \"本月\" > 5) SELECT * FROM x";
        let told = "column \"本月\" does not exist (SQLSTATE 42703)";
        let (result, _) = run(&cities(), invalid(told), sql);
        assert_eq!(result["field_candidates"], json!([]));
        assert!(result["hints"][0].as_str().unwrap().contains("别名"), "{}", result["hints"]);
        assert!(result["hints"][1].as_str().unwrap().starts_with("本月 是 SELECT 的别名"));
        let refused = "sql_generation_early_name: \"本月\"";
        let (result, _) = run(&cities(), invalid(refused), "");
        assert_eq!(result["error_type"], "unknown_column");
        assert!(result["hints"][0].as_str().unwrap().contains("别名"), "{}", result["hints"]);
    }

    #[test]
    fn replaced_field_keeps_its_candidates() {
        let input = json!({
            "intent_result": intent(), "parse_result": task(),
            "sql_result": {"sql": "WITH x", "entity_mappings": [], "sql_fields": [],
                           "applied_field_replacements": [{"from": "orders.order_amount",
                                                           "to": "orders.total_amount"}]},
            "sql_validate_result": invalid("no such column: n"), "hidden_context_retry_count": 1,
        });
        let decision =
            cities().run(|| run_node::<hidden_context>(&Context::default(), &input)).unwrap();
        let result = decision.update("hidden_context_result").unwrap();
        let candidates = &result["field_candidates"];
        assert_eq!((&candidates[0]["missing"], &candidates[2]), (&json!("n"), &json!(null)));
        assert_eq!(candidates[1]["missing"], "orders.order_amount");
        assert_eq!(candidates[1]["candidates"][0], "orders.total_amount");
    }

    #[test]
    fn empty_result_gets_existing_values() {
        let empty = json!({"is_valid": true, "error": null, "rows": 0, "result": [],
                           "executed_sql": "WITH y", "empty_result": true,
                           "zero_metric_result": false});
        let (result, _) = run(&cities(), empty, "WITH x");
        assert_eq!(result["error_type"], "execution_error");
        assert_eq!(result["error"], "empty_result");
        assert_eq!(result["failed_sql"], "WITH y");
        let sample = &result["probe_samples"][0];
        assert_eq!(sample["field"], "customers.city");
        assert_eq!(sample["values"], json!(["北京"]));
        assert!(result["hints"][1].as_str().unwrap().contains("北京"), "{}", result["hints"]);
    }

    #[test]
    fn failed_probe_does_not_fail_the_step() {
        let host = business(|_| Err(Failure::timeout("too slow")));
        let (result, _) = run(&host, invalid("no such table: refunds"), "");
        assert_eq!(result["error_type"], "unknown_table");
        assert_eq!(result["probe_samples"][0]["error"], "too slow");
    }
}
