//! `task_parse`: parses a question into a task, with fields of the allowlist only.

use wattle_plugin::prelude::{
    Context, Deserialize, Failure, JsonSchema, Serialize, Value, json, llm, node,
};
use wattle_plugin::prompt::fill;

use crate::knowledge::{self, Knowledge};
use crate::state::{IntentResult, ParseResult};
use crate::step::{self, Done};
use crate::{ask, setting};

/// Instructions for the model.
const PROMPT: &str = include_str!("../../prompts/task_parse.md");

/// Message that names the fields of a task that are not in the allowlist.
const REPAIR: &str = include_str!("../../prompts/task_parse_repair.md");

#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Input {
    intent_result: Option<IntentResult>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Update {
    parse_result: ParseResult,
}

/// Parses a question into a task.
#[node]
pub(crate) fn task_parse(context: &Context, input: Input) -> Result<Update, Failure> {
    let recorded = json!({ "intent_result": or_empty(input.intent_result.as_ref())? });
    let parse_result = step::run(context, "task_parse", &recorded, |_| {
        let knowledge = knowledge::read()?;
        let query = input.intent_result.as_ref().map_or("", |it| &it.rewritten_query);
        parse(query, &knowledge).map(Done::Success)
    })?;
    Ok(Update { parse_result })
}

/// Returns the value, or `{}` if there is none.
pub(super) fn or_empty(value: Option<&impl Serialize>) -> Result<Value, Failure> {
    Ok(value.map_or(Ok(json!({})), serde_json::to_value)?)
}

/// Parses a question. A task with a field outside of the allowlist is sent back to the model once.
fn parse(query: &str, knowledge: &Knowledge) -> Result<ParseResult, Failure> {
    let request = request(query, knowledge)?;
    let (mut task, document) = ask(&request)?;
    let unknown = resolve(&mut task, knowledge);
    if unknown.is_empty() {
        return Ok(task);
    }
    let fields = unknown.join("、");
    let complaint = fill(REPAIR, &[("fields", &fields)])?;
    let (mut task, _) = ask(&request.assistant(document).user(complaint))?;
    let unknown = resolve(&mut task, knowledge);
    if unknown.is_empty() {
        return Ok(task);
    }
    Err(Failure::invalid(format!("任务解析使用了不在白名单中的字段：{}", unknown.join("、"))))
}

fn request(query: &str, knowledge: &Knowledge) -> Result<llm::Request, Failure> {
    // The state has no model for this role, so its route alone decides.
    let request = ask::request("parse", &setting::default_model()?)?;
    let today = setting::now()?.civil.date();
    let facts = [("today", today.as_str()), ("schema", &knowledge.prompt())];
    Ok(request
        .system(fill(PROMPT, &facts)?)
        .user(json!({ "rewritten_query": query }).to_string())
        .schema::<ParseResult>("ParseSchema"))
}

fn ask(request: &llm::Request) -> Result<(ParseResult, String), Failure> {
    let (mut task, completion): (ParseResult, _) = ask::document(request)?;
    task.confidence = task.confidence.clamp(0.0, 1.0);
    Ok((task, completion.text()))
}

/// Resolves the fields of filters to those of the allowlist. Returns the fields that are not in it.
fn resolve(task: &mut ParseResult, knowledge: &Knowledge) -> Vec<String> {
    let mut unknown = Vec::new();
    for filter in &mut task.filters {
        match knowledge.resolve(&filter.field) {
            Some(field) => filter.field = field,
            None => unknown.push(filter.field.clone()),
        }
    }
    unknown
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Completion, Context, Failure, Value, json};
    use wattle_plugin::testing::{FakeHost, assert_contains, run_node};

    use super::{PROMPT, REPAIR, task_parse};
    use crate::testing::{host, intent, task};

    fn run(host: &FakeHost) -> Result<Value, Failure> {
        let input = json!({ "intent_result": intent() });
        let decision = host.run(|| run_node::<task_parse>(&Context::default(), &input))?;
        Ok(decision.update("parse_result").cloned().unwrap())
    }

    /// Returns a host whose model filters by these fields, one per call.
    fn filtering(fields: &'static [&'static str]) -> FakeHost {
        let mut fields = fields.iter();
        host().llm(move |request| {
            assert_eq!(request.route, "parse");
            let mut task = task();
            let field = fields.next().expect("another answer");
            task["filters"] = json!([{"field": field, "op": "=", "value": "北京"}]);
            Ok(Completion::of_json(task))
        })
    }

    #[test]
    fn fields_are_normalized() {
        let host = filtering(&["city"]);
        assert_eq!(run(&host).unwrap()["filters"][0]["field"], "customers.city");
        assert_eq!(host.llm_requests().len(), 1);
        assert!(host.llm_requests()[0].text().contains("customers.city TEXT"), "the white-list");
    }

    #[test]
    fn field_outside_of_the_allowlist_is_requested_again() {
        let host = filtering(&["customers.town", "customers.city"]);
        assert_eq!(run(&host).unwrap()["filters"][0]["field"], "customers.city");
        assert!(host.llm_requests()[1].text().contains("customers.town"));
    }

    #[test]
    fn second_unknown_field_is_a_failure() {
        let host = filtering(&["customers.town", "customers.place"]);
        assert!(run(&host).unwrap_err().message.contains("customers.place"));
        assert_eq!(host.emitted()[0].1["output"], Value::Null);
    }

    #[test]
    fn s4_06_s4_07_the_task_prompt_names_fields_operators_and_the_white_list() {
        assert_contains(PROMPT, &["entities", "dimensions", "metrics", "filters", "time_range"]);
        assert_contains(PROMPT, &["YYYY-MM-DD", "confidence"]);
        assert_contains(PROMPT, &["= != > < >= <= like in not in between"]);
        assert_contains(PROMPT, &["detail 明细，aggregate 汇总，ranking 排名，trend 按时间的趋势"]);
        assert_contains(PROMPT, &["field 必须是下面白名单里的“表.字段”", "今天是 {{today}}"]);
        assert_contains(PROMPT, &["白名单：\n{{schema}}"]);
        assert_contains(REPAIR, &["{{fields}}", "白名单", "完整的任务"]);
    }
}
