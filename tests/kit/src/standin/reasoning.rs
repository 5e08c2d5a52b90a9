//! The model for the application `reasoning`. Its decisions are derived from the words of the
//! question and the facts in the request.

mod condition;
mod intent;
mod plan;
mod words;

use serde_json::{Value, json};

use super::question::Question;
use words::{STATISTICS, alike, place};

/// Returns the response to a request of the application, with the name of the rule, or `None` for
/// other applications.
///
/// The schema identifies the request; the user message contains the facts.
pub(super) fn answer(question: &Question, schema: &Value) -> Option<(Value, &'static str)> {
    let wants = |name: &str| schema.pointer(&format!("/properties/{name}")).is_some();
    let rule = if wants("business_elements") && wants("intent_summary") {
        "reasoning_intent"
    } else if wants("input_ontology_codes") {
        "reasoning_anchor"
    } else if wants("capability_code") && wants("object_property_code") {
        "reasoning_inspect"
    } else if wants("target_ontology_code") {
        "reasoning_target_plan"
    } else if wants("mode") && wants("filters") && wants("group_by") {
        "reasoning_plan"
    } else if wants("summary") {
        "reasoning_summary"
    } else {
        return None;
    };
    let facts: Value = serde_json::from_str(&question.data_turn()?.text).ok()?;
    let query = facts["query"].as_str()?;
    let document = match rule {
        "reasoning_intent" => intent::understand(query),
        "reasoning_anchor" => anchors(query, &facts),
        "reasoning_inspect" => inspect(query, &facts),
        "reasoning_target_plan" => target_plan(query, &facts),
        "reasoning_plan" => plan::plan(query, &facts["attributes"], today(&facts)),
        _ => json!({ "summary": summary(&facts) }),
    };
    Some((document, rule))
}

/// Selects the ontologies: the first object in the question is the anchor, later ones are targets.
fn anchors(query: &str, facts: &Value) -> Value {
    let candidates = facts["candidates"].as_array().cloned().unwrap_or_default();
    let mut named: Vec<(usize, &Value)> = candidates
        .iter()
        .filter_map(|known| Some((place(query, known["name"].as_str()?)?, &known["code"])))
        .collect();
    named.sort_by_key(|(place, _)| *place);
    let best = candidates.first().map(|known| &known["code"]);
    let anchor = named.first().map(|(_, code)| *code).or(best);
    let targets: Vec<&Value> = named.iter().skip(1).map(|(_, code)| *code).collect();
    let reason = if named.is_empty() {
        "取分数最高的候选"
    } else {
        "问题中最先提到的业务对象"
    };
    json!({ "input_ontology_codes": anchor.into_iter().collect::<Vec<_>>(),
            "target_ontology_codes": targets, "selection_reason": reason })
}

/// Selects a relation to a target, if there is one, or the capability that matches the words best.
fn inspect(query: &str, facts: &Value) -> Value {
    let targets: Vec<&str> = facts["target_ontology_codes"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let leads_there = |property: &&Value| {
        let code = property["code"].as_str().unwrap_or_default();
        targets.iter().any(|target| code.contains(target))
    };
    let property = facts["object_properties"].as_array().into_iter().flatten().find(leads_there);
    if let Some(property) = property {
        return json!({ "action": "execute_object_property", "capability_code": null,
                       "object_property_code": property["code"], "reason": "需要到达另一个对象" });
    }
    let wants_numbers = STATISTICS.iter().any(|word| query.contains(word));
    let fit = |known: &Value| {
        let name = known["name"].as_str().unwrap_or_default();
        let is_statistics = name.contains("统计") || name.contains("分析");
        alike(query, name) + if is_statistics == wants_numbers { 1.0 } else { 0.0 }
    };
    let capabilities = facts["capabilities"].as_array().into_iter().flatten();
    let best = capabilities.max_by(|one, two| fit(one).total_cmp(&fit(two)));
    json!({ "action": "execute_capability", "capability_code": best.map(|known| &known["code"]),
            "object_property_code": null, "reason": "数据就在当前对象上" })
}

/// Returns the current date, or an empty string if the request has none.
fn today(facts: &Value) -> &str {
    facts["today"]["date"].as_str().unwrap_or_default()
}

/// Returns a plan for the target that the question names, or for the first target if it names none.
fn target_plan(query: &str, facts: &Value) -> Value {
    let targets = facts["targets"].as_array().cloned().unwrap_or_default();
    let is_named = |known: &&Value| known["name"].as_str().is_some_and(|name| query.contains(name));
    let target = targets.iter().find(is_named).or(targets.first());
    let attributes = target.map_or(Value::Null, |target| target["attributes"].clone());
    let mut document = plan::plan(query, &attributes, today(facts));
    document["target_ontology_code"] = target.map_or(json!(""), |target| target["code"].clone());
    document
}

fn summary(facts: &Value) -> String {
    let name = facts["ontology"]["name"].as_str().unwrap_or("数据");
    let total = facts["total"].as_u64().unwrap_or(0);
    let items = facts["items"].as_array().cloned().unwrap_or_default();
    if total == 0 || items.is_empty() {
        return format!("没有查到符合条件的{name}。");
    }
    let shown: Vec<String> = items.iter().take(3).map(values).collect();
    let kind = if facts["mode"] == "group-analysis" { "组" } else { "条" };
    format!("共查到 {total} {kind}{name}数据：{}。", shown.join("；"))
}

/// Lists the values of a row.
fn values(row: &Value) -> String {
    let values = row.as_object().into_iter().flat_map(serde_json::Map::values);
    let texts = values.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    texts.collect::<Vec<_>>().join("，")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::answer;
    use crate::standin::question::{Question, Speaker, Turn};

    fn ask(facts: &Value, properties: &[&str]) -> Value {
        let fields = properties.iter().map(|name| ((*name).to_owned(), json!({})));
        let schema = json!({ "properties": fields.collect::<serde_json::Map<_, _>>() });
        let turn = Turn::new(Speaker::User, facts.to_string(), Vec::new());
        let question = Question { turns: vec![turn], ..Question::default() };
        answer(&question, &schema).unwrap().0
    }

    fn candidates() -> Value {
        json!([{"code": "order", "name": "订单"}, {"code": "customer", "name": "客户"}])
    }

    #[test]
    fn objects_are_selected_in_the_order_of_the_question() {
        let check = |query: &str, anchors: Value, targets: Value| {
            let facts = json!({"query": query, "candidates": candidates()});
            let answer = ask(&facts, &["input_ontology_codes"]);
            assert_eq!(answer["input_ontology_codes"], anchors, "{query}");
            assert_eq!(answer["target_ontology_codes"], targets, "{query}");
        };
        check("客户张伟的订单", json!(["customer"]), json!(["order"]));
        check("各区域客户数量", json!(["customer"]), json!([]));
        check("看看情况", json!(["order"]), json!([]));
    }

    #[test]
    fn targets_select_relations_and_numbers_select_statistics() {
        let facts = |query: &str, targets: Value| {
            json!({"query": query, "target_ontology_codes": targets,
                "capabilities": [{"code": "q", "name": "查询客户"}, {"code": "s", "name": "统计客户"}],
                "object_properties": [{"code": "customer_places_order", "name": "客户下单"}]})
        };
        let decide = |query: &str, targets: Value| {
            ask(&facts(query, targets), &["capability_code", "object_property_code"])
        };
        assert_eq!(decide("客户的订单", json!(["order"]))["action"], "execute_object_property");
        assert_eq!(decide("各区域客户数量", json!([]))["capability_code"], "s");
        assert_eq!(decide("客户电话", json!([]))["capability_code"], "q");
    }

    #[test]
    fn summaries_contain_the_data() {
        let facts = json!({"query": "查", "ontology": {"name": "客户"}, "mode": "query", "total": 2,
                           "items": [{"name": "张伟", "level": "金牌"}]});
        assert_eq!(ask(&facts, &["summary"])["summary"], "共查到 2 条客户数据：张伟，金牌。");
        let none = json!({"query": "查", "ontology": {"name": "客户"}, "total": 0, "items": []});
        assert_eq!(ask(&none, &["summary"])["summary"], "没有查到符合条件的客户。");
    }
}
