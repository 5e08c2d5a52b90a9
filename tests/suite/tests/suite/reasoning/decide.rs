//! Tests from the question to the decision: the searches, the prompts of the model, and the stored
//! decision.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use wattle_kit::standin::{Fault, FaultRule};
use wattle_suite::reasoning::{SESSIONS, data, deciding, rows_of};
use wattle_suite::server::{Setup, TestServer};

const QUESTION: &str = "查询手机号13800138000的客户";

/// Returns the prompt of a decision as it was sent: the instructions and the facts.
fn prompt(server: &TestServer, purpose: &str) -> (String, Value) {
    let mut calls = server.reasoning_calls().into_iter().filter_map(|call| call.body);
    let name = "/response_format/json_schema/name";
    let body = calls.rfind(|body| body.pointer(name) == Some(&json!(purpose))).unwrap();
    let text = |index: usize| body["messages"][index]["content"].as_str().unwrap().to_owned();
    (text(0), serde_json::from_str(&text(1)).unwrap())
}

#[tokio::test]
async fn s1_18_s1_20_every_node_but_the_last_can_end_the_run() {
    let server = Setup::reasoning().await.start().await;
    let graph = server.get("/api/v1/apps/reasoning/graphs/reasoning").await.expect(200);
    let definition = &graph["definition"];
    let nodes: BTreeSet<&str> =
        definition["nodes"].as_object().unwrap().keys().map(String::as_str).collect();
    let order = [
        "understand_intent",
        "discover_candidates",
        "select_anchor_ontologies",
        "inspect_ontology",
        "execute",
        "finalize",
    ];
    assert_eq!(nodes, BTreeSet::from(order));
    let branches = definition["branches"].as_array().unwrap();
    assert_eq!(branches.len(), 5);
    for (pair, branch) in order.windows(2).zip(branches) {
        assert_eq!(branch["from"], json!([pair[0]]), "{branch}");
        let to: Vec<&Value> =
            branch["cases"].as_array().unwrap().iter().map(|case| &case["to"]).collect();
        assert_eq!(to, [&json!(["END"]), &json!([pair[1]])], "{branch}");
    }
    insta::assert_snapshot!("reasoning_graph", graph["mermaid"].as_str().unwrap());
}

#[tokio::test]
async fn s1_21_s1_24_s1_25_s1_28_the_words_of_the_question_are_searched() {
    let server = Setup::reasoning().await.start().await;
    let ran = server.reasoning().answer(QUESTION).await;
    let intent = &ran["result"]["planning"]["intent"];
    assert_eq!(intent["keywords"], json!(["手机号", "客户"]));
    assert_eq!(intent["goal_actions"], json!(["查询"]));
    assert!(intent["intent_summary"].is_string());
    let searches = server.mcp_calls("graph.list_data_attributes");
    let mut words: Vec<&str> = searches.iter().filter_map(|call| call["query"].as_str()).collect();
    words.sort_unstable();
    let mut expected = [QUESTION, "手机号", "客户", "13800138000"];
    expected.sort_unstable();
    assert_eq!(words, expected);
    for call in &searches {
        assert_eq!((&call["top_n"], &call["w_dense"]), (&json!(20), &json!(0.55)), "{call}");
        assert_eq!((&call["score_gap"], &call["w_sparse"]), (&json!(0), &json!(0.45)), "{call}");
    }
    let related = server.mcp_calls("graph.get_data_attribute_related_ontologies");
    assert_eq!(related.len(), 1);
    assert!(related[0]["attributeCodes"].as_array().unwrap().len() <= 8);
    assert_eq!(server.mcp_calls("graph.list_ontologies").len(), 2);
    let attributes = ran["result"]["candidate_attributes"].as_array().unwrap();
    assert!(attributes.len() <= 20);
    let scores: Vec<f64> = attributes.iter().filter_map(|it| it["score"].as_f64()).collect();
    assert!(scores.is_sorted_by(|one, two| one >= two), "{scores:?}");
}

#[tokio::test]
async fn s1_26_s1_27_s1_29_ontologies_are_scored_by_hits_or_by_name() {
    let server = Setup::reasoning().await.start().await;
    let app = server.reasoning();
    let session = app.ask(QUESTION).await;
    app.run(&session).await;
    let trace = app.trace(&session).await;
    let located = rows_of(&trace, "ontologies_located")[0]["payload"]["data"]["ontologies"].clone();
    let codes: Vec<&str> =
        located.as_array().unwrap().iter().filter_map(|it| it["code"].as_str()).collect();
    assert_eq!(codes.iter().collect::<BTreeSet<_>>().len(), codes.len(), "all differ: {codes:?}");
    // The results of the services: hits by attribute, and scores by name.
    let calls = rows_of(&trace, "mcp_call_completed");
    let results = |method: &str| -> Vec<Value> {
        let own = calls.iter().filter(|row| row["payload"]["method"] == method);
        own.flat_map(|row| row["payload"]["result"]["items"].as_array().cloned().unwrap()).collect()
    };
    let related = results("graph.get_data_attribute_related_ontologies");
    let named = results("graph.list_ontologies");
    for ontology in located.as_array().unwrap() {
        let has = |item: &&Value| {
            item["ontologies"].as_array().unwrap().iter().any(|it| it["code"] == ontology["code"])
        };
        let hits = related.iter().filter(has).count() as f64 * 0.1;
        let own = named.iter().filter(|it| it["code"] == ontology["code"]);
        let best = own.filter_map(|it| it["score"].as_f64()).fold(hits, f64::max);
        let score = ontology["score"].as_f64().unwrap();
        assert!((score - best).abs() < 1e-9, "{ontology}: {best}");
    }
}

#[tokio::test]
async fn s1_31_s1_32_the_choice_and_its_reason_are_stored() {
    let server = Setup::reasoning().await.start().await;
    let ran = server.reasoning().answer("客户张伟的订单").await;
    let plan = &ran["result"]["planning"]["plan_state"];
    assert!(plan["selection_reason"].as_str().is_some_and(|reason| !reason.is_empty()));
    let (_, facts) = prompt(&server, "reasoning_anchor");
    let offered: Vec<&Value> =
        facts["candidates"].as_array().unwrap().iter().map(|it| &it["code"]).collect();
    assert!(offered.contains(&&json!("customer")) && offered.contains(&&json!("order")));
}

#[tokio::test]
async fn s1_33_the_preference_of_the_caller_precedes_the_best_score() {
    let server = Setup::reasoning().await.start().await;
    let app = server.reasoning();
    let poor = Fault::Content { text: json!({ "input_ontology_codes": [] }).to_string() };
    server.standin().fault(FaultRule::new(deciding("reasoning_anchor"), poor));
    let body = json!({ "user_input": "客户电话",
                       "metadata": { "preferred_ontology_codes": ["ticket"] } });
    let made = data(app.send("POST", SESSIONS, Some(&body)).await);
    let ran = app.run(made["session_id"].as_str().unwrap()).await;
    assert_eq!(ran["result"]["selected_ontology"]["code"], "ticket");
}

#[tokio::test]
async fn s1_34_s1_35_the_inspection_receives_only_code_name_and_description() {
    let server = Setup::reasoning().await.start().await;
    server.reasoning().answer(QUESTION).await;
    let (instructions, facts) = prompt(&server, "reasoning_inspect");
    let fields: BTreeSet<&str> = facts.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        fields,
        BTreeSet::from([
            "query",
            "intent",
            "target_ontology_codes",
            "ontology",
            "capabilities",
            "object_properties"
        ])
    );
    for list in ["capabilities", "object_properties"] {
        let items = facts[list].as_array().unwrap();
        assert!(!items.is_empty(), "{list}");
        for item in items {
            let keys: Vec<&str> = item.as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(keys, ["code", "name", "description"], "{list}");
        }
    }
    // Details are added for the plan, and only those of the chosen resource.
    let (_, planned) = prompt(&server, "reasoning_plan");
    assert_eq!(planned["detail"]["code"], "customer_query");
    assert!(planned["detail"]["guide"].is_string());
    let whole = format!("{instructions}{facts}");
    for secret in ["guide", "domain", "join", "field_name", "按条件过滤"] {
        assert!(!whole.contains(secret), "{secret} is in the prompt of the inspection");
    }
}

#[tokio::test]
async fn s1_37_s1_38_s1_39_details_are_loaded_after_the_choice() {
    let server = Setup::reasoning().await.start().await;
    let app = server.reasoning();
    let session = app.ask(QUESTION).await;
    app.run(&session).await;
    let state = server.get(&format!("/api/v1/threads/{session}/state")).await.expect(200);
    assert_eq!(state["selected_capability"]["code"], "customer_query");
    assert_eq!(state["selected_capability_detail"]["mode"], "query");
    assert_eq!(state["selected_object_property"], Value::Null);
    let decision = &state["plan_state"]["execution_decision"];
    assert_eq!(
        (&decision["action"], &decision["code"]),
        (&json!("execute_capability"), &json!("customer_query"))
    );
    assert!(decision["reason"].is_string());
    assert_eq!(
        server.mcp_calls("graph.get_capability_details"),
        [json!({ "capabilityCodes": ["customer_query"] })]
    );
    assert_eq!(
        server.mcp_calls("graph.get_ontology_details"),
        [json!({ "ontologyCodes": ["customer"] })]
    );
    let trace = app.trace(&session).await;
    let planned = rows_of(&trace, "task_planned");
    assert_eq!(planned.len(), 1);
    assert_eq!(planned[0]["payload"]["data"]["execution_decision"]["code"], "customer_query");
}

#[tokio::test]
async fn s1_19_s1_40_an_unknown_code_leads_to_a_question() {
    let server = Setup::reasoning().await.start().await;
    let odd = json!({ "action": "execute_capability", "capability_code": "fly", "reason": "" });
    let fault = Fault::Content { text: odd.to_string() };
    server.standin().fault(FaultRule::new(deciding("reasoning_inspect"), fault));
    let app = server.reasoning();
    let session = app.ask(QUESTION).await;
    let waiting = app.run(&session).await;
    assert_eq!(waiting["status"], "waiting_clarification", "{waiting}");
    let asked = &waiting["clarification"];
    assert_eq!(asked["reason"], "execution_target_missing");
    assert!(asked["question"].as_str().unwrap().contains("查询客户、统计客户"), "{asked}");
    assert!(server.mcp_calls("mcp.data.query").is_empty());
    server.standin().clear_faults();
    let answer = json!({ "answer": { "type": "clarification", "text": "查询客户" } });
    data(app.on(&session, "clarify", &answer).await);
    assert_eq!(app.run(&session).await["status"], "completed");
}

#[tokio::test]
async fn s1_41_the_first_anchor_with_an_executable_resource_is_selected() {
    let server = Setup::reasoning().await.start().await;
    let both = json!({ "input_ontology_codes": ["supplier", "device"], "selection_reason": "" });
    let fault = Fault::Content { text: both.to_string() };
    server.standin().fault(FaultRule::new(deciding("reasoning_anchor"), fault));
    let ran = server.reasoning().answer("供应商的设备状态分布").await;
    assert_eq!(ran["result"]["selected_ontology"]["code"], "device", "{ran}");
    let asked: Vec<Value> = server.mcp_calls("graph.get_ontology_details");
    assert_eq!(asked[0], json!({ "ontologyCodes": ["supplier"] }));
}

#[tokio::test]
async fn s1_23_missing_lists_are_empty_and_unusable_completions_are_repaired_once() {
    let server = Setup::reasoning().await.start().await;
    let short = Fault::Content { text: json!({ "keywords": ["客户区域"] }).to_string() };
    server.standin().fault(FaultRule::new(deciding("reasoning_intent"), short).times(1));
    let ran = server.reasoning().answer("统计各区域的客户数量").await;
    let intent = &ran["result"]["planning"]["intent"];
    assert_eq!((&intent["business_elements"], &intent["intent_summary"]), (&json!([]), &json!("")));

    let garbage = Fault::Content { text: "我不知道".to_owned() };
    server.standin().fault(FaultRule::new(deciding("reasoning_intent"), garbage.clone()).times(1));
    let ran = server.reasoning().answer("统计各区域的客户数量").await;
    assert_eq!(ran["status"], "completed", "the model is asked for a correction");

    server.standin().clear_requests();
    server.standin().fault(FaultRule::new(deciding("reasoning_intent"), garbage));
    let app = server.reasoning();
    let session = app.ask("统计各区域的客户数量").await;
    let failed = app.on(&session, "run", &json!({})).await;
    assert_eq!((failed.status, &failed.body["code"]), (400, &json!(9000)));
    assert_eq!(server.reasoning_calls().len(), 2, "one attempt and one repair");
}
