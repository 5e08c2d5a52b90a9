//! The flows with which the service that this application replaces is tested, under the same names.
//! The module of each test is named after the requirements that it covers.

#![expect(clippy::redundant_test_prefix, reason = "the names are part of the requirement")]

use serde_json::{Value, json};
use wattle_kit::standin::{Fault, FaultRule, Pattern, redact};
use wattle_suite::reasoning::{SESSIONS, TENANT_LLM, data, deciding, pairs, rows_of, types};
use wattle_suite::server::Setup;

/// The phone number of the first customer in the data.
const PHONE: &str = "13800138000";

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

mod s1_01_s1_02_s1_05_s1_07_s1_09_s1_19_s1_42_s1_44_to_s1_48_s1_54_to_s1_56_s1_72 {
    use super::{PHONE, SESSIONS, Setup, data, json, keys, pairs, types};

    #[tokio::test]
    async fn test_reasoning_run_completed_flow() {
        let server = Setup::reasoning().await.start().await;
        let app = server.reasoning();
        let text = format!("查询手机号{PHONE}的客户");
        let made = data(app.send("POST", SESSIONS, Some(&json!({ "user_input": text }))).await);
        assert_eq!(keys(&made), ["session_id", "status", "turn"]);
        assert_eq!(made["status"], "created");
        let turn = &made["turn"];
        assert_eq!((&turn["turn_no"], &turn["status"]), (&json!(1), &json!("created")));
        assert_eq!(turn["user_input"], text);
        let session = made["session_id"].as_str().unwrap();

        let ran = app.run(session).await;
        assert_eq!(keys(&ran), ["session_id", "status", "turn", "result", "tasks"]);
        assert_eq!(ran["status"], "completed");
        assert_eq!(ran["turn"]["turn_id"], turn["turn_id"]);
        let result = &ran["result"];
        assert_eq!(result["data_execution_mode"], "query");
        let execution = &result["data_execution"];
        assert_eq!(
            execution["plan"]["filters"],
            json!([{ "field": "phone", "op": "eq", "value": PHONE }])
        );
        assert_eq!(
            (&execution["total"], &execution["items"][0]["name"]),
            (&json!(1), &json!("张伟"))
        );
        assert!(result["summary"].as_str().unwrap().contains("张伟"), "{result}");
        assert_eq!(
            result["llm_route"],
            json!({ "provider": "standin", "model": "reasoning", "has_fallback": false })
        );
        assert_eq!(result["selected_ontology"]["code"], "customer");
        assert_eq!(result["planning"]["plan_state"]["executor"], "LLMCapabilityExecutor");
        assert!(result["candidate_attributes"].as_array().is_some_and(|list| !list.is_empty()));
        for name in ["orchestration_framework", "llm_framework"] {
            assert!(result[name].is_string(), "{name}: {result}");
        }
        let tasks = ran["tasks"].as_array().unwrap();
        assert_eq!(tasks.len(), 1);
        assert_eq!(
            (&tasks[0]["task_type"], &tasks[0]["status"]),
            (&json!("capability"), &json!("completed"))
        );
        assert_eq!(tasks[0]["task_id"], result["selected_task"]["task_id"]);
        assert_eq!(server.reasoning_calls().len(), 5, "one call for each node that decides");

        let trace = app.trace(session).await;
        assert_eq!(pairs(&trace).0, 5);
        let last = types(&trace).last().copied();
        assert_eq!(last, Some("session_completed"));
    }
}

mod s1_03_s1_10_to_s1_13_s1_20_s1_30_s1_70_s1_73 {
    use super::{Setup, data, json};

    #[tokio::test]
    async fn test_reasoning_clarification_flow() {
        let server = Setup::reasoning().await.start().await;
        let app = server.reasoning();
        let session = app.ask("火星天气").await;
        let waiting = app.run(&session).await;
        assert_eq!(waiting["status"], "waiting_clarification");
        let asked = &waiting["clarification"];
        assert_eq!(asked["question"], "未定位到关键数据属性，请补充更具体的业务要素或字段。");
        assert_eq!(asked["reason"], "no_attribute_match");
        let calls = server.reasoning_calls().len();
        assert_eq!(app.run(&session).await, waiting, "it still waits for the same answer");
        assert_eq!(server.reasoning_calls().len(), calls, "no model is called");

        let answer =
            json!({ "answer": { "type": "clarification", "text": "统计各区域的客户数量" } });
        let answered = data(app.on(&session, "clarify", &answer).await);
        assert_eq!(
            answered,
            json!({ "session_id": session, "status": "created",
                "clarification": { "clarification_id": asked["clarification_id"],
                                   "status": "answered" } })
        );
        let ran = app.run(&session).await;
        assert_eq!(ran["status"], "completed");
        assert_eq!(ran["turn"]["turn_no"], 1, "the turn continues");
        assert_eq!(ran["turn"]["user_input"], "火星天气\n[clarification] 统计各区域的客户数量");
        let result = &ran["result"];
        assert_eq!(result["data_execution_mode"], "group-analysis");
        let groups = result["data_execution"]["items"].as_array().unwrap();
        let total: u64 = groups.iter().filter_map(|group| group["count"].as_u64()).sum();
        assert_eq!((groups.len(), total), (4, 40), "{groups:?}");
    }
}

mod s1_36_s1_37_s1_49_s1_51_s1_74 {
    use super::{Setup, json};

    #[tokio::test]
    async fn test_reasoning_object_property_execute_flow() {
        let server = Setup::reasoning().await.start().await;
        let app = server.reasoning();
        let ran = app.answer("客户张伟的订单").await;
        let result = &ran["result"];
        let plan = &result["planning"]["plan_state"];
        assert_eq!(plan["input_ontology_codes"], json!(["customer"]));
        assert_eq!(plan["target_ontology_codes"], json!(["order"]));
        let decision = &plan["execution_decision"];
        assert_eq!(
            (&decision["action"], &decision["code"]),
            (&json!("execute_object_property"), &json!("customer_places_order"))
        );
        assert_eq!(plan["executor"], "LLMObjectPropertyExecutor");
        let execution = &result["data_execution"];
        assert_eq!(execution["ontology"]["code"], "order", "the data belongs to the target");
        assert_eq!(execution["class_id"], "order");
        assert_eq!(
            execution["plan"]["filters"],
            json!([{ "field": "customer_name", "op": "eq", "value": "张伟" }])
        );
        assert_eq!(execution["total"], 3);
        assert_eq!(ran["tasks"][0]["task_type"], "object_property");
        let sent = server.mcp_calls("mcp.data.query");
        assert_eq!((sent.len(), &sent[0]["class_id"]), (1, &json!("order")));
    }
}

mod s1_15_s1_19_s1_22_s1_54_s1_75 {
    use super::{Fault, FaultRule, Pattern, Setup, Value, deciding, json, pairs, rows_of};

    #[tokio::test]
    async fn test_reasoning_run_fails_when_llm_unavailable() {
        let server = Setup::reasoning().await.start().await;
        let app = server.reasoning();
        let down = Fault::Status { status: 500, retry_after: None, body: None };
        server.standin().fault(FaultRule::new(Pattern::model("reasoning"), down.clone()));
        let session = app.ask("统计各区域的客户数量").await;
        let failed = app.on(&session, "run", &json!({})).await;
        assert_eq!((failed.status, &failed.body["code"]), (400, &json!(9000)), "{failed:?}");
        let message = failed.body["message"].as_str().unwrap();
        assert!(message.contains("llm decision failed (task)"), "{message}");
        assert_eq!(failed.body["data"], Value::Null);
        assert_eq!(app.session(&session).await["status"], "failed");

        // Only the summary fails: the executed steps stay visible, and the application invents no
        // summary.
        server.standin().clear_faults();
        server.standin().fault(FaultRule::new(deciding("reasoning_summary"), down));
        let failed = app.on(&session, "run", &json!({})).await;
        assert_eq!((failed.status, &failed.body["code"]), (400, &json!(9000)));
        let message = failed.body["message"].as_str().unwrap();
        assert!(message.contains("llm summary failed"), "{message}");
        let trace = app.trace(&session).await;
        assert_eq!(pairs(&trace).0, 6, "one call of the first run and five of the second");
        assert_eq!(rows_of(&trace, "session_failed").len(), 2);

        server.standin().clear_faults();
        assert_eq!(app.run(&session).await["status"], "completed", "a failed turn can run again");
    }
}

mod s1_17_s1_58_s1_59_s1_76 {
    use super::{Setup, TENANT_LLM, Value, data, json, redact};

    #[tokio::test]
    async fn test_reasoning_uses_tenant_llm_route_metadata() {
        let server = Setup::reasoning().await.with_tenants().start().await;
        let (acme, bolt) = (server.reasoning_of("acme"), server.reasoning_of("bolt"));
        let config = json!({
            "provider": "openai", "model": "acme-model", "api_key": "acme-key",
            "base_url": format!("{}/v1/", server.standin().base_url), "timeout_ms": 20_000,
            "status": "active",
        });
        let shown = data(acme.send("PUT", TENANT_LLM, Some(&config)).await);
        assert_eq!((&shown["model"], &shown["has_api_key"]), (&json!("acme-model"), &json!(true)));
        assert_eq!(data(acme.send("GET", TENANT_LLM, None).await), shown);
        assert!(!shown.to_string().contains("acme-key"), "{shown}");

        let route = |ran: Value| ran["result"]["llm_route"].clone();
        let of_acme = route(acme.answer("统计各区域的客户数量").await);
        assert_eq!(
            of_acme,
            json!({ "provider": "openai", "model": "acme-model", "has_fallback": false })
        );
        assert!(server.reasoning_calls().iter().all(|call| {
            call.model.as_deref() == Some("acme-model")
                && call.headers["authorization"] == redact("Bearer acme-key")
        }));
        assert_eq!(route(bolt.answer("统计各区域的客户数量").await)["model"], "reasoning");

        assert_eq!(data(acme.send("DELETE", TENANT_LLM, None).await), Value::Null);
        assert_eq!(route(acme.answer("统计各区域的客户数量").await)["model"], "reasoning");
    }
}
