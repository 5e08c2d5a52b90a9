//! Tests of the spans and metrics of a run.

use serde_json::{Value, json};
use wattle_graph::event::RunStatus;
use wattle_graph::failure::Failure;
use wattle_telemetry::run_log::read_run;

use crate::support::{config, log, named, note, spans, standin, store, tell};

#[tokio::test]
async fn run_becomes_a_trace_of_tasks_and_calls() {
    let standin = standin().await;
    let log = log();
    tell(&config(&standin, "sk-test"), &log, note(log.len())).await;
    let entry = &standin.requests()[0];
    assert_eq!(entry.headers["x-langfuse-ingestion-version"], "4");
    assert_eq!(entry.body.as_ref().unwrap()["resource"]["service.name"], "wattle");
    let spans = spans(&standin);
    assert_eq!(spans.len(), 6, "{spans:#?}");
    let (root, task) = (&spans[0], named(&spans, "agent"));
    let tool = named(&spans, "execute_tool date/parse");
    assert_eq!(root["parent_span_id"], "");
    assert_eq!(task["parent_span_id"], root["span_id"]);
    assert_eq!(tool["parent_span_id"], task["span_id"]);
    let models: Vec<&Value> =
        spans.iter().filter(|span| span["name"] == "chat gpt-4o-2024").collect();
    let parents = [&models[0]["parent_span_id"], &models[1]["parent_span_id"]];
    assert_eq!(parents, [&task["span_id"], &tool["span_id"]]);
    for span in &spans {
        assert_eq!(span["trace_id"], root["trace_id"]);
        let attributes = &span["attributes"];
        assert_eq!(attributes["session.id"], "thread-1");
        assert_eq!(attributes["user.id"], "acme");
        assert_eq!(attributes["langfuse.trace.name"], "asset/main");
        assert_eq!(attributes["langfuse.trace.tags"], json!(["asset", "main"]));
        assert!(span["end_ns"].as_u64() >= span["start_ns"].as_u64());
    }
    assert_eq!(root["attributes"]["langfuse.observation.type"], "agent");
    assert_eq!(task["attributes"]["langfuse.observation.type"], "chain");
    assert_eq!(task["attributes"]["langfuse.observation.output"], r#"{"answer":"hi"}"#);
    assert_eq!(task["events"][0]["name"], "task_planned");
    assert_eq!(task["events"][0]["attributes"]["wattle.data"], r#"{"n":1}"#);
}

#[tokio::test]
async fn spans_of_calls_have_the_attributes_of_opentelemetry_and_langfuse() {
    let standin = standin().await;
    let log = log();
    tell(&config(&standin, "sk-test"), &log, note(log.len())).await;
    let spans = spans(&standin);
    let model = &named(&spans, "chat gpt-4o-2024")["attributes"];
    for (key, expected) in [
        ("langfuse.observation.type", json!("generation")),
        ("gen_ai.operation.name", json!("chat")),
        ("gen_ai.provider.name", json!("openai")),
        ("gen_ai.request.model", json!("gpt-4o")),
        ("gen_ai.response.model", json!("gpt-4o-2024")),
        ("gen_ai.request.temperature", json!(0.5)),
        ("gen_ai.usage.input_tokens", json!(12)),
        ("gen_ai.usage.output_tokens", json!(3)),
        ("gen_ai.response.finish_reasons", json!(["stop"])),
        ("langfuse.observation.usage_details", json!(r#"{"input":12,"output":3}"#)),
        ("langfuse.observation.output", json!(r#"[{"text":"hi"}]"#)),
    ] {
        assert_eq!(model[key], expected, "{key}");
    }
    assert!(model["langfuse.observation.input"].as_str().unwrap().contains("hello"));
    let tool = &named(&spans, "execute_tool date/parse")["attributes"];
    assert_eq!(tool["langfuse.observation.type"], "tool");
    assert_eq!(tool["gen_ai.tool.name"], "date/parse");
    assert_eq!(tool["langfuse.observation.input"], r#"{"text":"today"}"#);
    assert_eq!(tool["langfuse.observation.output"], r#"{"day":1}"#);
    let http = named(&spans, "HTTP GET");
    assert_eq!(http["status"], json!({ "code": 2, "message": "unavailable: gone" }));
    assert_eq!(http["attributes"]["server.address"], "a.example");
    assert_eq!(http["attributes"]["error.type"], "unavailable");
    assert!(!spans.iter().any(|span| span.to_string().contains("secret:K")));
    // The log also has an `llm.route` call, which is not a model call.
    let is_generation =
        |span: &&Value| span["attributes"]["langfuse.observation.type"] == "generation";
    assert_eq!(spans.iter().filter(is_generation).count(), 2);
    assert!(!spans.iter().any(|span| span["attributes"]["wattle.function"] == "llm.route"));
}

#[tokio::test]
async fn reused_completions_are_not_counted_again() {
    let standin = standin().await;
    let mut log = log();
    let model = log.iter_mut().find(|event| event["tokens"].is_object()).unwrap();
    model["reused"] = json!(1);
    model["tokens"] = Value::Null;
    let text = tell(&config(&standin, "sk-test"), &log, note(log.len())).await;
    let spans = spans(&standin);
    let again = &named(&spans, "chat gpt-4o-2024")["attributes"];
    assert_eq!(again["langfuse.observation.type"], "span");
    assert!(again["gen_ai.usage.input_tokens"].is_null(), "{again}");
    let calls = r#"wattle_model_calls_total{route="chat",model="gpt-4o",outcome="ok"} 1"#;
    assert!(text.lines().any(|line| line == calls), "{text}");
}

#[tokio::test]
async fn equal_logs_have_equal_spans() {
    let standin = standin().await;
    let log = log();
    for _ in 0..2 {
        tell(&config(&standin, "sk-test"), &log, note(log.len())).await;
    }
    let bodies: Vec<_> = standin.requests().into_iter().map(|entry| entry.body).collect();
    assert_eq!(bodies.len(), 2);
    assert_eq!(bodies[0], bodies[1]);
}

#[tokio::test]
async fn spans_can_omit_inputs_and_outputs() {
    let standin = standin().await;
    let log = log();
    let mut config = config(&standin, "sk-test");
    config.content = false;
    tell(&config, &log, note(log.len())).await;
    let shown = serde_json::to_string(&spans(&standin)).unwrap();
    for word in ["hello", "\"hi\"", "today", "gone", "task_planned\\", "langfuse.observation.input"]
    {
        assert!(!shown.contains(word), "{word}: {shown}");
    }
    assert!(shown.contains("gen_ai.usage.input_tokens") && shown.contains("unavailable"));
}

#[tokio::test]
async fn failed_run_has_spans_of_pending_calls() {
    let standin = standin().await;
    // The tool raised an interrupt, so its call has no result in this run.
    let log = &log()[..5];
    let mut note = note(log.len());
    note.status = RunStatus::Failed;
    note.failure = Some(Failure::new("trap", "out of order"));
    tell(&config(&standin, "sk-test"), log, note).await;
    let spans = spans(&standin);
    let tool = named(&spans, "tools.call");
    assert_eq!(tool["attributes"]["langfuse.observation.level"], "WARNING");
    let inner = spans.iter().find(|span| span["parent_span_id"] == tool["span_id"]).unwrap();
    assert_eq!(inner["name"], "chat gpt-4o-2024");
    assert_eq!(named(&spans, "agent")["attributes"]["wattle.outcome"], "cut");
    assert_eq!(spans[0]["status"]["message"], "trap: out of order");
    assert_eq!(spans[0]["attributes"]["langfuse.observation.level"], "ERROR");
}

#[tokio::test]
async fn metrics_count_runs_calls_and_tokens() {
    let standin = standin().await;
    let log = log();
    let text = tell(&config(&standin, "sk-test"), &log, note(log.len())).await;
    for line in [
        r#"wattle_runs_total{app="asset",graph="main",status="completed"} 1"#,
        r#"wattle_active_runs{app="asset",graph="main"} 0"#,
        r#"wattle_node_seconds_count{app="asset",graph="main",node="agent"} 1"#,
        r#"wattle_model_calls_total{route="chat",model="gpt-4o",outcome="ok"} 2"#,
        r#"wattle_model_tokens_total{route="chat",model="gpt-4o",direction="input"} 12"#,
        r#"wattle_tool_calls_total{tool="date/parse",outcome="ok"} 1"#,
        r#"wattle_host_call_failures_total{function="http.send",code="unavailable"} 1"#,
        "wattle_telemetry_sent_spans_total 6",
        "wattle_telemetry_waiting_spans 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    assert!(text.ends_with("# EOF\n"));
}

#[tokio::test]
async fn large_run_is_truncated() {
    // Each list takes 7.2 MB in memory.
    let large = json!({
        "type": "custom", "task": "t1", "node": "agent", "name": "list", "data": vec![0; 100_000],
    });
    let log = vec![large; 12];
    let store = store(&log).await;
    let read = read_run(store.as_ref(), note(log.len()), false).await.unwrap();
    assert_eq!((read.events.len(), read.truncated), (9, true));
    let read = read_run(store.as_ref(), note(9), false).await.unwrap();
    assert_eq!((read.events.len(), read.truncated), (9, false));
}
