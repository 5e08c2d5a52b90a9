//! The model for the application `nl2sql`: intent, task, SQL and summary, derived by rules from the
//! question and the vocabulary of the sample database.

mod intent;
mod period;
mod sql;
mod summary;
mod task;
mod vocabulary;

use serde_json::Value;

use super::{
    dates,
    question::{Question, Speaker},
};

/// Separator between the questions of a conversation that were merged into one.
const BETWEEN: char = '；';

/// The text before the database's dialect in the system prompt.
const DIALECT: &str = "数据库方言：";

/// Fields of a result that the model summarizes. Other applications summarize other fields.
const RESULT_FACTS: [&str; 3] = ["final_status", "reason_code", "row_count"];

/// Returns the response for the role that the schema identifies, with the name of the rule, or
/// `None` for other applications.
pub(super) fn answer(question: &Question, schema: &Value) -> Option<(Value, &'static str)> {
    let asks_for = |names: &[&str]| {
        names.iter().all(|name| schema.pointer(&format!("/properties/{name}")).is_some())
    };
    let input = input(question)?;
    let text = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or_default();
    if asks_for(&["is_followup", "merged_query"]) {
        return Some((intent::answer(&input), "nl2sql_intent"));
    }
    if asks_for(&["time_range", "operation", "metrics"]) {
        let today = dates::today_in(&question.system)?;
        return Some((task::answer(text("rewritten_query"), today), "nl2sql_task"));
    }
    if asks_for(&["sql", "entity_mappings"]) {
        return Some((sql::answer(&input, dialect(&question.system)), "nl2sql_sql"));
    }
    if asks_for(&["summary"]) && RESULT_FACTS.iter().all(|name| input.get(name).is_some()) {
        return Some((summary::answer(&input), "nl2sql_summary"));
    }
    None
}

/// Parses the first user message as JSON. Later messages request repairs.
fn input(question: &Question) -> Option<Value> {
    let turn = question.turns.iter().find(|turn| turn.speaker == Speaker::User)?;
    serde_json::from_str(&turn.text).ok().filter(Value::is_object)
}

fn dialect(system: &str) -> &str {
    let rest = system.split_once(DIALECT).map_or("", |(_, rest)| rest);
    rest.lines().next().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::answer;
    use crate::standin::question::{Question, Speaker, Turn};

    fn ask(system: &str, input: &Value, properties: &[&str]) -> Value {
        let turn = Turn::new(Speaker::User, input.to_string(), Vec::new());
        let question =
            Question { system: system.to_owned(), turns: vec![turn], ..Question::default() };
        let properties: serde_json::Map<String, Value> =
            properties.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
        answer(&question, &json!({ "properties": properties })).unwrap().0
    }

    /// Runs a question through all roles and returns the SQL statement.
    fn sql(question: &str, dialect: &str, hidden: &Value) -> String {
        let today = format!("今天是 2025-01-15。\n数据库方言：{dialect}\n");
        let task = ask(
            &today,
            &json!({ "rewritten_query": question }),
            &["time_range", "operation", "metrics"],
        );
        let input = json!({ "rewritten_query": question, "parse_result": task,
                            "hidden_context_result": hidden });
        let answer = ask(&today, &input, &["sql", "entity_mappings"]);
        answer["sql"].as_str().unwrap().to_owned()
    }

    #[test]
    fn counts_become_statements() {
        assert_eq!(
            sql("2024年北京有多少已完成的订单", "sqlite", &json!(null)),
            "WITH base AS (\n  SELECT orders.id AS order_id\n  FROM orders\n  \
             JOIN customers ON customers.id = orders.customer_id\n  \
             WHERE orders.is_deleted = 0 AND customers.is_deleted = 0 \
             AND customers.city = '北京' AND orders.status = 'completed' \
             AND orders.ordered_at >= '2024-01-01' AND orders.ordered_at < '2025-01-01'\n)\n\
             SELECT COUNT(DISTINCT order_id) AS order_count\nFROM base"
        );
    }

    #[test]
    fn trends_and_rankings_become_statements() {
        let trend = sql("去年每月的销售额", "postgres", &json!(null));
        assert!(trend.contains("to_char(orders.ordered_at, 'YYYY-MM') AS month"), "{trend}");
        assert!(trend.contains("SUM(amount) AS total_sales"), "{trend}");
        assert!(trend.ends_with("GROUP BY month\nORDER BY month"), "{trend}");
        let top = sql("销售额最高的3个品类", "sqlite", &json!(null));
        assert!(top.contains("order_items.amount AS amount"), "{top}");
        assert!(top.contains("products.category AS category"), "{top}");
        assert!(top.ends_with("ORDER BY total_sales DESC\nLIMIT 3"), "{top}");
        let english = sql("top 5 customers by revenue in 2024", "sqlite", &json!(null));
        assert!(english.contains("customers.name AS customer_name"), "{english}");
        assert!(english.ends_with("LIMIT 5"), "{english}");
    }

    #[test]
    fn details_become_statements() {
        let orders = sql("列出上海金额大于5000的订单", "sqlite", &json!(null));
        assert!(orders.contains("orders.order_no AS order_no"), "{orders}");
        assert!(orders.contains("orders.total_amount > 5000"), "{orders}");
        assert!(orders.ends_with("LIMIT 100"), "{orders}");
        assert!(
            sql("有哪些手机商品", "sqlite", &json!(null)).contains("products.category = '手机'")
        );
    }

    #[test]
    fn sampled_values_replace_those_of_the_question() {
        let wrong = sql("北京市有多少订单", "sqlite", &json!(null));
        assert!(wrong.contains("customers.city = '北京市'"), "{wrong}");
        let hidden = json!({"probe_samples": [
            {"field": "customers.city", "values": ["上海", "北京"]}]});
        let right = sql("北京市有多少订单", "sqlite", &hidden);
        assert!(right.contains("customers.city = '北京'"), "{right}");
    }

    #[test]
    fn requests_are_recognized_by_schema_and_input() {
        let facts = json!({"message": "有多少订单", "final_status": "success",
                           "reason_code": null, "row_count": 1, "rows": [{"order_count": 7}]});
        let summary = ask("Another prompt.", &facts, &["summary"]);
        assert_eq!(summary["summary"], "共查询到 1 行数据，其中order_count 为 7。");
        let message = json!({"message": "你好", "history_user_messages": []});
        let intent = ask("", &message, &["is_followup", "merged_query"]);
        assert_eq!(intent["intent"], "chat");
        let turn = Turn::new(Speaker::User, json!({"text": "x"}).to_string(), Vec::new());
        let other = Question { turns: vec![turn], ..Question::default() };
        let schema = json!({"properties": {"summary": {}}});
        assert!(answer(&other, &schema).is_none(), "a summary of something else");
    }

    #[test]
    fn a_misleading_phrase_yields_a_wrong_column() {
        assert!(sql("2024年的下单金额", "sqlite", &json!(null)).contains("orders.order_amount"));
    }
}
