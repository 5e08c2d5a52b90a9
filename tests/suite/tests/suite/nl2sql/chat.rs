//! Tests from the message to the answer: the graph, its state, the intent, follow-up questions and
//! models.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use wattle_suite::nl2sql::{CHAT, STEPS, says};
use wattle_suite::server::Setup;

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect()
}

#[tokio::test]
async fn s4_03_s4_23_to_s4_28_the_graph_has_the_expected_nodes_and_edges() {
    let server = Setup::nl2sql().await.start().await;
    let graph = server.get("/api/v1/apps/nl2sql/graphs/UnifiedChatGraph").await.expect(200);
    let definition = &graph["definition"];
    let nodes: BTreeSet<&str> = keys(&definition["nodes"]).into_iter().collect();
    assert_eq!(nodes, BTreeSet::from(STEPS));
    let channels: BTreeSet<&str> = keys(&definition["channels"]).into_iter().collect();
    let expected = [
        "message",
        "history_user_messages",
        "threshold",
        "model_name",
        "intent_result",
        "parse_result",
        "sql_result",
        "sql_validate_result",
        "hidden_context_result",
        "hidden_context_retry_count",
        "result_return_result",
    ];
    assert_eq!(channels, BTreeSet::from(expected));
    let mut ways = BTreeSet::new();
    for branch in definition["branches"].as_array().unwrap() {
        for case in branch["cases"].as_array().unwrap() {
            ways.insert(format!("{} {}", one(&branch["from"]), one(&case["to"])));
        }
    }
    for edge in definition["edges"].as_array().unwrap() {
        ways.insert(format!("{} {}", one(&edge["from"]), one(&edge["to"])));
    }
    let expected = [
        "intent_recognition task_parse",
        "intent_recognition result_return",
        "task_parse sql_generation",
        "sql_generation sql_validate",
        "sql_generation hidden_context",
        "sql_generation result_return",
        "sql_validate hidden_context",
        "sql_validate result_return",
        "hidden_context sql_generation",
        "hidden_context result_return",
        "result_return END",
    ];
    assert_eq!(ways, expected.iter().map(|it| (*it).to_owned()).collect());
}

/// Returns the name that `value` is, or the first name of a list.
fn one(value: &Value) -> &str {
    value.as_str().or_else(|| value[0].as_str()).unwrap()
}

#[tokio::test]
async fn b1_s4_15_chat_uses_two_models_and_no_database() {
    let server = Setup::nl2sql().await.start().await;
    let result = server.ask("你好").await;
    assert_eq!(result["intent"], "chat");
    assert_eq!(result["final_status"], "success");
    assert_eq!(result["reason_code"], "intent_is_chat");
    assert_eq!(result["reason"], "intent_is_chat");
    assert_eq!((&result["skipped"], &result["task"]), (&json!(true), &json!(null)));
    assert_eq!(server.model_calls(), ["intent", "summary"]);
    let session = result["session_id"].as_str().unwrap();
    assert!(session.len() == 16 && session.bytes().all(|it| it.is_ascii_hexdigit()), "{session}");
    let steps = server.steps(session).await;
    let ran: Vec<&str> =
        steps.iter().filter(|(_, count)| *count > 0).map(|(name, _)| name.as_str()).collect();
    assert_eq!(ran, ["intent_recognition", "result_return"]);
}

#[tokio::test]
async fn b2_s4_05_to_s4_13_a_detail_question_is_answered_at_the_first_attempt() {
    let server = Setup::nl2sql().await.start().await;
    let result = server.ask("列出2024年北京金额最高的5个订单").await;
    assert_eq!(
        keys(&result),
        [
            "session_id",
            "intent",
            "is_followup",
            "merged_query",
            "rewritten_query",
            "skipped",
            "reason",
            "final_status",
            "reason_code",
            "summary",
            "assistant_reply",
            "download_url",
            "task",
            "sql_result",
            "sql_validate_result",
            "hidden_context_result",
            "hidden_context_retry_count",
        ]
    );
    assert_eq!(
        (&result["final_status"], &result["reason_code"]),
        (&json!("success"), &json!(null))
    );
    assert_eq!(result["hidden_context_retry_count"], 0);
    let task = &result["task"];
    assert_eq!(
        keys(task),
        [
            "intent",
            "entities",
            "dimensions",
            "metrics",
            "filters",
            "time_range",
            "operation",
            "confidence"
        ]
    );
    assert_eq!((&task["intent"], &task["operation"]), (&json!("business_query"), &json!("detail")));
    assert_eq!(task["filters"], json!([{"field": "customers.city", "op": "=", "value": "北京"}]));
    assert_eq!(task["time_range"], json!({"start": "2024-01-01", "end": "2024-12-31"}));
    let sql = &result["sql_result"];
    assert_eq!(keys(sql), ["sql", "entity_mappings", "sql_fields", "applied_field_replacements"]);
    let mapping = &sql["entity_mappings"][0];
    assert_eq!(keys(mapping), ["type", "value", "field", "reason"]);
    assert_eq!(mapping["field"], "customers.city");
    assert!(sql["sql_fields"].as_array().unwrap().contains(&json!("customers.city")));
    let validated = &result["sql_validate_result"];
    assert_eq!(
        keys(validated),
        [
            "is_valid",
            "error",
            "rows",
            "result",
            "executed_sql",
            "empty_result",
            "zero_metric_result"
        ]
    );
    assert_eq!((&validated["is_valid"], &validated["rows"]), (&json!(true), &json!(5)));
    let row = &validated["result"][0];
    assert_eq!(row["city"], "北京");
    assert!(row["ordered_at"].as_str().unwrap().starts_with("2024-"), "{row}");
    assert_eq!(server.model_calls(), ["intent", "parse", "sql", "summary"]);
}

#[tokio::test]
async fn s4_06_each_kind_of_question_returns_the_data_of_the_tables() {
    let server = Setup::nl2sql().await.start().await;
    let count = server.ask("有多少客户").await;
    // Every fiftieth of the 400 customers is deleted.
    assert_eq!(count["sql_validate_result"]["result"], json!([{"customer_count": 392}]));
    let trend = server.ask("2024年每月的销售额").await;
    let months = trend["sql_validate_result"]["result"].as_array().unwrap();
    assert_eq!(months.len(), 12, "{months:?}");
    assert_eq!((&months[0]["month"], &months[11]["month"]), (&json!("2024-01"), &json!("2024-12")));
    assert_eq!(trend["task"]["operation"], "trend");
    let top = server.ask("top 3 categories by revenue in 2024").await;
    let rows = top["sql_validate_result"]["result"].as_array().unwrap();
    let sales: Vec<f64> = rows.iter().map(|row| row["total_sales"].as_f64().unwrap()).collect();
    assert!(sales.len() == 3 && sales.is_sorted_by(|one, two| one >= two), "{rows:?}");
    assert_eq!(top["task"]["operation"], "ranking");
    let best = server.ask("销售额最高的5个商品").await;
    assert_eq!(best["sql_validate_result"]["rows"], 5, "{best}");
    let average = server.ask("2024年各渠道的客单价").await;
    let rows = average["sql_validate_result"]["result"].as_array().unwrap();
    assert_eq!(rows.len(), 4, "{rows:?}");
    let list = server.ask("有哪些手机商品").await;
    let rows = list["sql_validate_result"]["result"].as_array().unwrap();
    assert!(!rows.is_empty() && rows.iter().all(|row| row["category"] == "手机"), "{rows:?}");
    for result in [&count, &trend, &top, &best, &average, &list] {
        assert_eq!(result["final_status"], "success", "{result}");
        let sql = result["sql_result"]["sql"].as_str().unwrap();
        assert!(sql.starts_with("WITH "), "{sql}");
    }
}

#[tokio::test]
async fn s4_15_an_intent_below_the_threshold_is_chat() {
    let server = Setup::nl2sql().await.start().await;
    assert_eq!(server.ask("看看数据").await["intent"], "chat");
    let sure = |confidence: f64| {
        json!({"intent": "business_query", "is_followup": false, "confidence": confidence,
               "merged_query": "有多少订单", "rewritten_query": "有多少订单"})
    };
    says(&server, "intent", &sure(0.7), 1);
    assert_eq!(server.ask("有多少订单").await["intent"], "business_query", "0.7 is high enough");
    says(&server, "intent", &sure(0.69), 1);
    assert_eq!(server.ask("有多少订单").await["intent"], "chat");
}

#[tokio::test]
async fn s4_04_s4_14_a_follow_up_is_understood_from_the_last_four_messages() {
    let server = Setup::nl2sql().await.start().await;
    let first = server.ask_in("talk-1", "2024年北京有多少订单").await;
    let second = server.ask_in("talk-1", "那上海呢").await;
    assert_eq!((&first["is_followup"], &second["is_followup"]), (&json!(false), &json!(true)));
    assert_eq!(second["merged_query"], "2024年北京有多少订单，那上海呢");
    assert_eq!(second["task"]["filters"][0]["value"], "上海");
    assert_eq!(second["session_id"], "talk-1");
    for message in ["谢谢", "你好"] {
        server.ask_in("talk-1", message).await;
    }
    let fourth = server.ask_in("talk-1", "那广州呢").await;
    assert_eq!(fourth["is_followup"], true, "the question is four messages back");
    let fifth = server.ask_in("talk-1", "那深圳呢").await;
    assert_eq!(fifth["is_followup"], false, "older messages do not count");
}

#[tokio::test]
async fn s4_03_every_question_starts_with_a_clean_state() {
    let server = Setup::nl2sql().await.start().await;
    let first = server.ask_in("clean", "2024年的下单金额").await;
    assert_eq!(first["hidden_context_retry_count"], 1);
    let second = server.ask_in("clean", "你好").await;
    assert_eq!(second["hidden_context_retry_count"], 0);
    for field in ["task", "sql_result", "sql_validate_result", "hidden_context_result"] {
        assert_eq!(second[field], json!(null), "{field}");
    }
}

#[tokio::test]
async fn s4_17_s4_51_models_are_chosen_by_role_setting_and_caller() {
    let other = "[model.routes.other]\nprovider = \"standin\"\nmodel = \"other\"\n";
    let setup = Setup::nl2sql().await.with(other);
    let setup = setup
        .with("[grants.nl2sql]\nllm = [\"intent\", \"parse\", \"sql\", \"summary\", \"other\"]\n")
        .with(concat!(
            "sql = [{ database = \"nl2sql\", access = \"read-write\" }, ",
            "{ database = \"business\", access = \"read-only\", schema = true }]\n"
        ))
        .replace(
            "[model.routes.intent]",
            "settings = { models = { deepseek-chat = \"intent\", big = \"sql\" } }\n\
             [model.routes.intent]",
        );
    let server = setup.start().await;
    let body = json!({"message": "有多少订单", "model_name": "big"});
    let result = server.answered(&body).await;
    assert_eq!(result["final_status"], "success", "{result}");
    assert_eq!(server.model_calls(), ["sql", "parse", "sql", "summary"]);
    let unknown = json!({"message": "有多少订单", "model_name": "gpt-4o"});
    let refused = server.post(CHAT, &unknown).await;
    assert_eq!((refused.status, &refused.body["code"]), (400, &json!(400)), "{}", refused.body);
    let body = server.model_requests("parse").remove(0).body.unwrap_or_default();
    assert_eq!(body["temperature"], 0.1);
}
