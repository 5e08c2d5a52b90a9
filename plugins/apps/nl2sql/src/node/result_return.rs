//! `result_return`: determines the outcome of a question, writes the answer, and stores it.

use wattle_plugin::prelude::{
    BlobRef, Context, Deserialize, Failure, JsonSchema, Serialize, Value, blob, json, log, node,
    random, sql,
};
use wattle_plugin::prompt::fill;
use wattle_plugin::redact;

use crate::reply::SHOWN_ROWS;
use crate::running_step::Step;
use crate::state::{
    FinalStatus, HiddenContextResult, Intent, IntentResult, Operation, ParseResult, ReasonCode,
    ResultReturnResult, Row, SqlGenerationResult, SqlValidateResult, name,
};
use crate::step::{self, Done};
use crate::store::downloads::Download;
use crate::store::{downloads, history, sessions, workflow_log};
use crate::{DATABASE, ask, csv, reply, setting};

/// Instructions for the model.
const PROMPT: &str = include_str!("../../prompts/result_return.md");

/// Path of downloads, before the file name.
const DOWNLOADS: &str = "/api/chat/downloads/";

#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Input {
    message: String,
    intent_result: Option<IntentResult>,
    parse_result: Option<ParseResult>,
    sql_result: Option<SqlGenerationResult>,
    sql_validate_result: Option<SqlValidateResult>,
    hidden_context_result: Option<HiddenContextResult>,
    hidden_context_retry_count: u32,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Update {
    result_return_result: ResultReturnResult,
}

/// The answer's shape.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Summary {
    summary: String,
}

/// Writes the answer and stores it.
#[node]
pub(crate) fn result_return(context: &Context, input: Input) -> Result<Update, Failure> {
    let result_return_result = step::run(context, "result_return", &input, |step| {
        finish(step, &input).map(Done::Success)
    })?;
    Ok(Update { result_return_result })
}

fn finish(step: &Step<'_>, input: &Input) -> Result<ResultReturnResult, Failure> {
    let intent = input.intent_result.clone().ok_or_else(|| {
        Failure::invalid("没有意图识别结果，无法返回答案；请从 intent_recognition 开始运行")
    })?;
    let (final_status, reason_code) = verdict(intent.intent, input);
    let rows = rows(input);
    let download = if rows.len() > SHOWN_ROWS { Some(file(step, &rows)?) } else { None };
    let download_url = download.as_ref().map(|it| format!("{DOWNLOADS}{}", it.file));
    let summary = summary(&input.message, final_status, reason_code, &rows);
    let result = ResultReturnResult {
        session_id: step.context.thread_id.clone(),
        intent: intent.intent,
        is_followup: intent.is_followup,
        merged_query: intent.merged_query,
        rewritten_query: intent.rewritten_query,
        skipped: input.parse_result.is_none(),
        reason: reason_code.map(name).transpose()?,
        final_status,
        reason_code,
        assistant_reply: reply::assistant(&summary, &rows, download_url.as_deref()),
        summary,
        download_url,
        task: input.parse_result.clone(),
        sql_result: input.sql_result.clone(),
        sql_validate_result: input.sql_validate_result.clone(),
        hidden_context_result: input.hidden_context_result.clone(),
        hidden_context_retry_count: input.hidden_context_retry_count,
    };
    keep(step, &input.message, &result, download.as_ref())?;
    Ok(result)
}

/// Returns the status and reason of the first condition that is true.
fn verdict(intent: Intent, input: &Input) -> (FinalStatus, Option<ReasonCode>) {
    if intent == Intent::Chat {
        return (FinalStatus::Success, Some(ReasonCode::IntentIsChat));
    }
    if input.parse_result.is_none() {
        return (FinalStatus::Failed, Some(ReasonCode::TaskParseMissing));
    }
    match &input.sql_validate_result {
        None => (FinalStatus::Failed, Some(ReasonCode::SqlValidateMissing)),
        Some(it) if it.is_valid && it.empty_result => {
            (FinalStatus::PartialSuccess, Some(ReasonCode::EmptyResultAfterRetry))
        }
        Some(it) if it.is_valid && it.zero_metric_result => {
            (FinalStatus::PartialSuccess, Some(ReasonCode::ZeroMetricAfterRetry))
        }
        Some(it) if it.is_valid => (FinalStatus::Success, None),
        Some(_) => (FinalStatus::Failed, Some(ReasonCode::SqlInvalidAfterRetry)),
    }
}

/// Returns the rows to show. Equal rows of a list or ranking are shown once.
fn rows(input: &Input) -> Vec<Row> {
    let Some(validated) = input.sql_validate_result.as_ref().filter(|it| it.is_valid) else {
        return Vec::new();
    };
    if validated.empty_result {
        return Vec::new();
    }
    let operation = input.parse_result.as_ref().map(|it| it.operation);
    if !matches!(operation, Some(Operation::Detail | Operation::Ranking)) {
        return validated.result.clone();
    }
    let mut seen = std::collections::BTreeSet::new();
    let is_new = |row: &&Row| seen.insert(Value::Object((*row).clone()).to_string());
    validated.result.iter().filter(is_new).cloned().collect()
}

/// Stores the rows as CSV under a name that cannot be guessed. A download checks the owner
/// nevertheless.
fn file(step: &Step<'_>, rows: &[Row]) -> Result<Download, Failure> {
    let text = csv::write(rows, setting::formula_guard()?);
    let blob = blob::put(text.as_bytes(), "text/csv; charset=utf-8")?;
    let session: String =
        step.context.thread_id.chars().filter(char::is_ascii_alphanumeric).take(16).collect();
    let time = setting::now()?.civil.digits();
    let file = format!("{session}-{time}-{:016x}.csv", random::u64());
    Ok(Download { file, blob, rows: rows.len() })
}

/// Returns the summary of the model, or a predefined text if the model has none, so that the result
/// is not lost.
fn summary(message: &str, status: FinalStatus, reason: Option<ReasonCode>, rows: &[Row]) -> String {
    match ask(message, status, reason, rows) {
        Ok(text) if !text.trim().is_empty() => text.trim().to_owned(),
        Ok(_) => reply::canned(status, reason, rows.len()),
        Err(failure) => {
            log::warn!("no summary from the model: {}", failure.message);
            reply::canned(status, reason, rows.len())
        }
    }
}

fn ask(
    message: &str,
    status: FinalStatus,
    reason: Option<ReasonCode>,
    rows: &[Row],
) -> Result<String, Failure> {
    let facts = json!({
        "message": message,
        "final_status": status,
        "reason_code": reason,
        "row_count": rows.len(),
        "rows": rows.iter().take(SHOWN_ROWS).collect::<Vec<_>>(),
    });
    let summary: Summary = ask::request("summary", &setting::default_model()?)?
        .system(fill(PROMPT, &[])?)
        .user(facts.to_string())
        .schema::<Summary>("SummarySchema")
        .complete()?
        .structured()?;
    Ok(summary.summary)
}

fn keep(
    step: &Step<'_>,
    message: &str,
    result: &ResultReturnResult,
    download: Option<&Download>,
) -> Result<(), Failure> {
    let rows = all_rows(result)?;
    let transaction = sql::database(DATABASE).begin()?;
    let session = &step.context.thread_id;
    sessions::touch(&transaction, session, &step.owner, message)?;
    let document = serde_json::to_value(stored(result))?;
    let answer = history::Answer {
        content: &result.assistant_reply,
        result: &document,
        rows: rows.as_ref(),
    };
    history::add_answer(&transaction, session, &answer)?;
    workflow_log::add(&transaction, step, message, result)?;
    if let Some(download) = download {
        downloads::add(&transaction, session, download)?;
    }
    transaction.commit()
}

/// Stores all rows as a blob if the history shows only some. Lists of messages stay small.
fn all_rows(result: &ResultReturnResult) -> Result<Option<BlobRef>, Failure> {
    match &result.sql_validate_result {
        Some(validated) if validated.result.len() > SHOWN_ROWS => {
            let text = serde_json::to_vec(&validated.result)?;
            Ok(Some(blob::put(&text, "application/json")?))
        }
        _ => Ok(None),
    }
}

/// Returns a result as the history stores it: with the rows that the history shows, and without the
/// secrets that services and databases repeat in their errors.
fn stored(result: &ResultReturnResult) -> ResultReturnResult {
    let mut result = result.clone();
    if let Some(SqlGenerationResult::Failed(failed)) = &mut result.sql_result {
        failed.generation_error = redact::text(&failed.generation_error);
    }
    if let Some(validated) = &mut result.sql_validate_result {
        validated.result.truncate(SHOWN_ROWS);
        validated.error = validated.error.as_deref().map(redact::text);
    }
    if let Some(hidden) = &mut result.hidden_context_result {
        hidden.error = redact::text(&hidden.error);
        for sample in &mut hidden.probe_samples {
            sample.error = sample.error.as_deref().map(redact::text);
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Completion, Context, Failure, Value, json, sql};
    use wattle_plugin::testing::{FakeHost, assert_contains, run_node};

    use super::{PROMPT, result_return};
    use crate::testing::{host, intent, task};

    fn input(validated: Value) -> Value {
        json!({
            "message": "有多少订单", "intent_result": intent(), "parse_result": task(),
            "sql_result": null, "sql_validate_result": validated,
            "hidden_context_result": null, "hidden_context_retry_count": 0,
        })
    }

    fn validated(rows: Value, empty: bool, zero: bool) -> Value {
        json!({"is_valid": true, "error": null, "rows": rows.as_array().map_or(0, Vec::len),
               "result": rows, "executed_sql": "WITH x", "empty_result": empty,
               "zero_metric_result": zero})
    }

    fn worded() -> FakeHost {
        host().llm(|request| {
            assert_eq!(request.route, "summary");
            Ok(Completion::of_json(json!({"summary": "共有 7 个订单。"})))
        })
    }

    fn run(host: &FakeHost, input: &Value) -> Result<Value, Failure> {
        let context = Context { thread_id: "s1".to_owned(), ..Context::default() };
        let decision = host.run(|| run_node::<result_return>(&context, input))?;
        Ok(decision.update("result_return_result").cloned().unwrap())
    }

    #[test]
    fn first_matching_condition_decides() {
        let mut chat = input(json!(null));
        chat["intent_result"]["intent"] = json!("chat");
        let mut unparsed = input(json!(null));
        unparsed["parse_result"] = json!(null);
        let invalid = json!({"is_valid": false, "error": "x", "rows": 0, "result": [],
                             "executed_sql": "", "empty_result": false,
                             "zero_metric_result": false});
        let rows = json!([{"n": 7}]);
        for (input, status, reason) in [
            (chat, "success", json!("intent_is_chat")),
            (unparsed, "failed", json!("task_parse_missing")),
            (input(json!(null)), "failed", json!("sql_validate_missing")),
            (input(validated(rows.clone(), false, false)), "success", json!(null)),
            (
                input(validated(json!([]), true, false)),
                "partial_success",
                json!("empty_result_after_retry"),
            ),
            (
                input(validated(rows, false, true)),
                "partial_success",
                json!("zero_metric_after_retry"),
            ),
            (input(invalid), "failed", json!("sql_invalid_after_retry")),
        ] {
            let result = run(&worded(), &input).unwrap();
            assert_eq!(result["final_status"], status, "{input}");
            assert_eq!(result["reason_code"], reason);
            assert_eq!(result["reason"], reason);
            assert_eq!(result["skipped"], input["parse_result"].is_null());
        }
    }

    #[test]
    fn predefined_text_replaces_a_missing_summary() {
        let host = host().llm(|_| Err(Failure::unavailable("model down")));
        let result = run(&host, &input(validated(json!([{"n": 7}]), false, false))).unwrap();
        assert_eq!(result["summary"], "查询执行成功，已返回结果，共1行。");
        assert!(result["assistant_reply"].as_str().unwrap().contains("| 7 |"));
    }

    #[test]
    fn long_result_becomes_a_file() {
        let host = worded();
        let rows: Vec<Value> = (0..11).map(|n| json!({"n": n, "name": "=1"})).collect();
        let result = run(&host, &input(validated(json!(rows), false, false))).unwrap();
        let url = result["download_url"].as_str().unwrap();
        assert!(url.starts_with("/api/chat/downloads/s1-20250115103045-"), "{url}");
        let insert =
            host.statements().into_iter().find(|it| it.text.contains("INTO chat_download"));
        let insert = insert.unwrap();
        assert!(insert.in_transaction);
        assert_eq!(result["sql_validate_result"]["result"].as_array().unwrap().len(), 11);
    }

    #[test]
    fn equal_rows_of_a_list_are_shown_once() {
        let rows: Vec<Value> = (0..12).map(|n| json!({"n": n % 3})).collect();
        let mut detail = input(validated(json!(rows), false, false));
        detail["parse_result"]["operation"] = json!("detail");
        let result = run(&worded(), &detail).unwrap();
        assert_eq!(result["download_url"], json!(null), "three rows are left");
        assert_eq!(result["sql_validate_result"]["rows"], 12, "the result stays as it was");
    }

    #[test]
    fn answer_and_log_are_written_in_one_transaction() {
        let host = worded();
        run(&host, &input(validated(json!([{"n": 7}]), false, false))).unwrap();
        let texts: Vec<String> = host.statements().into_iter().map(|it| it.text).collect();
        assert_eq!((texts[0].as_str(), texts.last().unwrap().as_str()), ("BEGIN", "COMMIT"));
        assert!(texts.iter().any(|text| text.contains("INTO chat_history")));
        assert!(texts.iter().any(|text| text.contains("INTO workflow_log")));
    }

    #[test]
    fn logged_error_of_a_statement_has_no_secrets() {
        let mut invalid = validated(json!([]), false, false);
        invalid["is_valid"] = json!(false);
        invalid["error"] = json!("password=abc is wrong");
        let host = worded();
        run(&host, &input(invalid)).unwrap();
        let log = host.statements().into_iter().find(|it| it.text.contains("INTO workflow_log"));
        let error = sql::Value::from("password=[redacted] is wrong");
        assert_eq!(log.unwrap().parameters[9], error);
    }

    #[test]
    fn stored_errors_of_an_answer_have_no_secrets() {
        let error = "password=abc is wrong";
        let mut invalid = validated(json!([]), false, false);
        invalid["is_valid"] = json!(false);
        invalid["error"] = json!(error);
        let mut input = input(invalid);
        input["sql_result"] = json!({"sql": "", "entity_mappings": [], "sql_fields": [],
                                     "generation_failed": true, "generation_error": error});
        let sample = json!({"field": "a.b", "probe_sql": "", "values": [], "error": error});
        input["hidden_context_result"] = json!({
            "error_type": "execution_error", "error": error, "failed_sql": "",
            "rewritten_query": "", "field_candidates": [], "probe_samples": [sample], "hints": [],
            "kb_summary": {"table_count": 0, "field_count": 0}, "retry_count": 1,
        });
        let host = worded();
        run(&host, &input).unwrap();
        let answer = host.statements().into_iter().find(|it| it.text.contains("INTO chat_history"));
        let document = answer.unwrap().parameters[3].to_json();
        let stored: Value = serde_json::from_str(document.as_str().unwrap()).unwrap();
        for place in [
            "/sql_result/generation_error",
            "/sql_validate_result/error",
            "/hidden_context_result/error",
            "/hidden_context_result/probe_samples/0/error",
        ] {
            let shown = json!("password=[redacted] is wrong");
            assert_eq!(stored.pointer(place), Some(&shown), "{place}");
        }
    }

    #[test]
    fn missing_intent_is_an_error() {
        let mut input = input(json!(null));
        input["intent_result"] = json!(null);
        assert!(run(&host(), &input).is_err());
    }

    #[test]
    fn s4_42_the_summary_prompt_asks_for_exact_figures() {
        assert_contains(PROMPT, &["message", "final_status", "reason_code", "row_count", "rows"]);
        assert_contains(PROMPT, &["summary", "数字照抄，不推测", "不提 SQL", "闲聊"]);
    }
}
