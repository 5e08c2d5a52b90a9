//! `sql_generation`: has a model write the statement, and checks it. A failure does not end the
//! workflow, because the next step learns from it.

use wattle_plugin::prelude::{
    Context, Deserialize, Failure, JsonSchema, Serialize, json, node, sql,
};
use wattle_plugin::prompt::fill;
use wattle_plugin::sql::Dialect;

use crate::knowledge::{self, Knowledge};
use crate::node::task_parse::or_empty;
use crate::state::{
    EntityMapping, HiddenContextResult, IntentResult, ParseResult, SqlGenerationFailed,
    SqlGenerationResult, SqlGenerationSuccess, SqlValidateResult,
};
use crate::step::{self, Done};
use crate::{BUSINESS, ask, mapping, setting, statement};

/// Instructions for the model.
const PROMPT: &str = include_str!("../../prompts/sql_generation.md");

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Input {
    intent_result: Option<IntentResult>,
    parse_result: Option<ParseResult>,
    hidden_context_result: Option<HiddenContextResult>,
    model_name: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Update {
    sql_result: SqlGenerationResult,
    #[serde(skip_serializing_if = "Option::is_none")]
    sql_validate_result: Option<SqlValidateResult>,
}

/// The answer's shape.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Answer {
    sql: String,
    entity_mappings: Vec<EntityMapping>,
}

/// Writes the statement that answers the question.
#[node]
pub(crate) fn sql_generation(context: &Context, input: Input) -> Result<Update, Failure> {
    let query = input.intent_result.as_ref().map_or("", |it| &it.rewritten_query);
    let model_name = setting::sql_model(&input.model_name)?;
    let recorded = json!({
        "rewritten_query": query,
        "parse_result": or_empty(input.parse_result.as_ref())?,
        "hidden_context_result": input.hidden_context_result,
        "model_name": model_name,
    });
    let sql_result = step::run(context, "sql_generation", &recorded, |_| {
        Ok(match generate(query, &model_name, &input) {
            Ok(success) => Done::Success(SqlGenerationResult::Success(success)),
            Err(error) => {
                let failed = SqlGenerationFailed::new(&error);
                Done::Degraded(SqlGenerationResult::Failed(failed), error)
            }
        })
    })?;
    let sql_validate_result = match &sql_result {
        SqlGenerationResult::Failed(failed) => {
            Some(SqlValidateResult::refused(&failed.generation_error))
        }
        SqlGenerationResult::Success(_) => None,
    };
    Ok(Update { sql_result, sql_validate_result })
}

/// Returns the checked statement, or the reason why there is none. The reason is a text, because
/// the state holds nothing else.
fn generate(query: &str, model: &str, input: &Input) -> Result<SqlGenerationSuccess, String> {
    let failed = |failure: Failure| format!("sql_generation_{}: {}", failure.code, failure.message);
    let knowledge = knowledge::read().map_err(failed)?;
    let dialect = sql::database(BUSINESS).dialect().map_err(failed)?;
    let answer = ask(query, model, input, &knowledge, &dialect).map_err(failed)?;
    let candidates = input.hidden_context_result.as_ref().map(|it| it.field_candidates.as_slice());
    let checked =
        statement::check(&answer.sql, &dialect, &knowledge, candidates.unwrap_or_default())
            .map_err(|refusal| refusal.to_string())?;
    let entities = input.parse_result.as_ref().map_or(&[][..], |task| &task.entities);
    let entity_mappings = mapping::correct(answer.entity_mappings, entities, &checked, &knowledge)?;
    Ok(SqlGenerationSuccess {
        sql: checked.sql,
        entity_mappings,
        sql_fields: checked.fields,
        applied_field_replacements: checked.replacements,
    })
}

fn ask(
    query: &str,
    model: &str,
    input: &Input,
    knowledge: &Knowledge,
    dialect: &Dialect,
) -> Result<Answer, Failure> {
    let dialect = match dialect {
        Dialect::Postgres => "postgres",
        Dialect::Sqlite => "sqlite",
        Dialect::Other(name) => name,
    };
    let today = setting::now()?.civil.date();
    let schema = knowledge.prompt();
    let facts = [("today", today.as_str()), ("dialect", dialect), ("schema", &schema)];
    let question = json!({
        "rewritten_query": query,
        "parse_result": input.parse_result,
        "hidden_context_result": input.hidden_context_result,
    });
    ask::request("sql", model)?
        .system(fill(PROMPT, &facts)?)
        .user(question.to_string())
        .schema::<Answer>("SqlSchema")
        .complete()?
        .structured()
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Completion, Context, Failure, Value, json};
    use wattle_plugin::testing::{FakeHost, assert_contains, run_node};

    use super::{PROMPT, sql_generation};
    use crate::testing::{host, intent, task};

    const GOOD: &str = "WITH x AS (SELECT orders.id AS id FROM orders) SELECT COUNT(id) FROM x";

    fn input() -> Value {
        json!({
            "intent_result": intent(), "parse_result": task(), "hidden_context_result": null,
            "model_name": "qwen-plus",
        })
    }

    fn run(host: &FakeHost, input: &Value) -> (Value, Option<Value>) {
        let decision = host.run(|| run_node::<sql_generation>(&Context::default(), input)).unwrap();
        let update = |name| decision.update(name).cloned();
        (update("sql_result").unwrap(), update("sql_validate_result"))
    }

    fn writes(sql: &'static str, mappings: Value) -> FakeHost {
        host().llm(move |request| {
            assert_eq!(request.route, "sql");
            Ok(Completion::of_json(json!({"sql": sql, "entity_mappings": mappings})))
        })
    }

    #[test]
    fn checked_statement_has_its_fields() {
        let (result, validated) = run(&writes(GOOD, json!([])), &input());
        assert_eq!(
            result,
            json!({"sql": GOOD, "entity_mappings": [], "sql_fields": ["orders.id"],
                   "applied_field_replacements": []})
        );
        assert_eq!(validated, None);
    }

    #[test]
    fn every_error_degrades_the_step() {
        let down = host().llm(|_| Err(Failure::unavailable("model down")));
        let garbage = host().llm(|_| Ok(Completion::of_json(json!({"x": 1}))));
        let mapped = json!([{"type": "city", "value": "北京", "field": "customers.city",
                             "reason": ""}]);
        for (host, error) in [
            (down, "sql_generation_unavailable: model down"),
            (garbage, "sql_generation_invalid: "),
            (writes("SELECT 1", json!([])), "sql_generation_not_cte: "),
            (
                writes("WITH x AS (SELECT secret FROM orders) SELECT * FROM x", json!([])),
                "sql_generation_unknown_field: orders.secret",
            ),
            (
                writes("WITH x AS (SELECT id FROM orders WHERE id = \"x\") SELECT 1", json!([])),
                "sql_generation_quoted_text: ",
            ),
            (
                writes("WITH x AS (SELECT 1 FROM users) SELECT * FROM x", json!([])),
                "sql_generation_unknown_table: users",
            ),
            (writes(GOOD, mapped), "sql_generation_entity_mapping: "),
        ] {
            let mut input = input();
            input["parse_result"]["entities"] = json!([{"type": "city", "value": "北京"}]);
            let (result, validated) = run(&host, &input);
            let told = result["generation_error"].as_str().unwrap();
            assert!(told.starts_with(error), "{told}");
            assert_eq!(
                result,
                json!({"sql": "", "entity_mappings": [], "sql_fields": [],
                       "generation_failed": true, "generation_error": told})
            );
            assert_eq!(
                validated,
                Some(json!({"is_valid": false, "error": told, "rows": 0, "result": [],
                            "executed_sql": "", "empty_result": false,
                            "zero_metric_result": false}))
            );
            let record = &host.emitted()[0].1;
            assert_eq!((&record["status"], &record["output"]), (&json!("failed"), &result));
        }
    }

    #[test]
    fn entities_need_a_mapping() {
        let mut input = input();
        input["parse_result"]["entities"] = json!([{"type": "city", "value": "北京"}]);
        let (result, _) = run(&writes(GOOD, json!([])), &input);
        assert!(result["generation_error"].as_str().unwrap().contains("entity_mapping"));
    }

    #[test]
    fn candidates_of_the_last_failure_are_used() {
        let mut input = input();
        input["hidden_context_result"] = json!({
            "error_type": "unknown_column", "error": "", "failed_sql": "", "rewritten_query": "",
            "field_candidates": [{"missing": "orders.order_amount",
                                  "candidates": ["orders.total_amount"]}],
            "probe_samples": [], "hints": [], "retry_count": 1,
            "kb_summary": {"table_count": 3, "field_count": 13},
        });
        let host = writes(
            "WITH x AS (SELECT o.order_amount AS t FROM orders AS o) SELECT SUM(t) FROM x",
            json!([{"type": "金额", "value": "金额", "field": "orders.order_amount",
                    "reason": ""}]),
        );
        let (result, _) = run(&host, &input);
        let expected = json!([{"from": "orders.order_amount", "to": "orders.total_amount"}]);
        assert_eq!(result["applied_field_replacements"], expected);
        assert_eq!(result["sql_fields"], json!(["orders.total_amount"]));
        assert_eq!(result["entity_mappings"][0]["field"], "orders.total_amount");
    }

    #[test]
    fn s4_08_s4_31_the_sql_prompt_has_the_rules_that_the_checks_enforce() {
        assert_contains(PROMPT, &["只读", "以 WITH 开头", "只用白名单里的表和字段"]);
        assert_contains(PROMPT, &["只写一条语句", "is_deleted = 0", "半开区间", "LIMIT"]);
        assert_contains(PROMPT, &["entity_mappings：parse_result.entities 里的每个实体一条"]);
        assert_contains(PROMPT, &["真的出现在 SQL 里", "hidden_context_result", "failed_sql"]);
        assert_contains(PROMPT, &["field_candidates", "probe_samples", "hints"]);
        assert_contains(PROMPT, &["今天是 {{today}}", "数据库方言：{{dialect}}"]);
        assert_contains(PROMPT, &["白名单：\n{{schema}}"]);
        // Words by which a metric of 0 is detected (S4-33).
        assert_contains(PROMPT, &["count、total、avg"]);
    }
}
