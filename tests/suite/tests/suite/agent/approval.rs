//! Approvals of tool calls by a person, and tools that raise interrupts themselves.

use serde_json::{Value, json};
use wattle_suite::desk::{Desk, MODEL_PATH, tool_messages};
use wattle_suite::server::{Setup, TestServer};

async fn server() -> TestServer {
    Setup::desk(&Desk::with("approve = { tools = \"*\" }")).await.start().await
}

/// Returns the id of the pending interrupt about a call with these arguments.
fn question(run: &Value, arguments: &Value) -> String {
    let open = run["interrupts"].as_array().unwrap();
    let found = open.iter().find(|it| it["payload"]["arguments"] == *arguments);
    found.unwrap_or_else(|| panic!("no question about {arguments}: {run}"))["id"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn words(text: &str) -> Value {
    json!({ "text": text })
}

#[tokio::test]
async fn approvals_of_one_turn_are_answered_in_any_order_and_across_a_restart() {
    let server = server().await;
    let run = server
        .say(
            None,
            "call echo {\"text\":\"one\"}\ncall echo {\"text\":\"two\"}\n\
             call echo {\"text\":\"three\"}",
        )
        .await;
    assert_eq!(run["status"], "interrupted", "{run}");
    assert_eq!(run["interrupts"].as_array().map(Vec::len), Some(3), "{run}");
    let payload = &run["interrupts"][0]["payload"];
    assert_eq!((&payload["kind"], &payload["tool"]), (&json!("tool_approval"), &json!("echo")));
    assert_eq!(payload["description"], "Says the same.");
    assert_eq!(payload["allowed"], json!(["approve", "edit", "reject", "respond"]));
    let thread = run["thread"].as_str().unwrap().to_owned();
    let ids = ["one", "two", "three"].map(|text| question(&run, &words(text)));

    let approve = json!({ "decision": "approve" });
    let run = server.decide(&thread, &json!({ (ids[2].clone()): approve })).await;
    assert_eq!(run["interrupts"].as_array().map(Vec::len), Some(2), "{run}");
    let server = server.restart().await;
    let run = server.decide(&thread, &json!({ (ids[0].clone()): approve })).await;
    assert_eq!(run["interrupts"].as_array().map(Vec::len), Some(1), "{run}");
    let rejected = json!({ "decision": "reject", "message": "not this one" });
    let run = server.decide(&thread, &json!({ (ids[1].clone()): rejected })).await;
    assert_eq!(run["status"], "completed", "{run}");
    let contents: Vec<Value> = tool_messages(&run).iter().map(|it| it["content"].clone()).collect();
    assert_eq!(contents, ["one", "a person rejected the call: not this one", "three"]);
    let models = server.standin().requests().into_iter().filter(|it| it.path == MODEL_PATH);
    assert_eq!(models.count(), 2, "each model turn is paid once");
}

#[tokio::test]
async fn edited_arguments_and_responses_are_validated_and_used() {
    let server = server().await;
    let run = server.say(None, "call add {\"a\":1,\"b\":2}\ncall echo {\"text\":\"a\"}").await;
    let thread = run["thread"].as_str().unwrap();
    let add = question(&run, &json!({ "a": 1, "b": 2 }));
    let echo = question(&run, &words("a"));
    for wrong in [
        json!({ "decision": "edit" }),
        json!({ "decision": "edit", "arguments": { "a": "x", "b": 1 } }),
        json!({ "decision": "burn" }),
        json!("approve"),
    ] {
        let body = json!({ "answers": { (add.clone()): wrong }, "wait": true });
        let refused = server.post(&format!("/api/v1/threads/{thread}/resume"), &body).await;
        assert!((400..500).contains(&refused.status), "{refused:?}");
    }
    let answers = json!({
        (add): { "decision": "edit", "arguments": { "a": 20, "b": 2 } },
        (echo): { "decision": "respond", "content": "a person says b" },
    });
    let run = server.decide(thread, &answers).await;
    assert_eq!(run["status"], "completed", "{run}");
    let told = tool_messages(&run);
    assert_eq!(told[0]["structured"], json!({ "sum": 22 }));
    assert_eq!(told[0]["arguments"], json!({ "a": 20, "b": 2 }));
    assert_eq!(
        (&told[1]["content"], &told[1]["status"]),
        (&json!("a person says b"), &json!("success"))
    );
    // The model sees the edited arguments as its own.
    let last = server.standin().requests().pop().unwrap();
    let seen = last.body.clone().unwrap_or_default().to_string();
    assert!(seen.contains("20") && !seen.contains("{\\\\\\\"a\\\\\\\":1"), "{seen}");
}

#[tokio::test]
async fn approval_applies_to_named_tools_and_allowed_decisions() {
    let desk = Desk::with("approve = { tools = [\"add\"], allowed = [\"approve\", \"reject\"] }");
    let server = Setup::desk(&desk).await.start().await;
    let run = server.say(None, "call add {\"a\":1,\"b\":2}\ncall echo {\"text\":\"a\"}").await;
    assert_eq!(run["interrupts"].as_array().map(Vec::len), Some(1), "{run}");
    let thread = run["thread"].as_str().unwrap();
    let edit = json!({ "decision": "edit", "arguments": { "a": 1, "b": 1 } });
    let body = json!({ "answers": { "": edit }, "wait": true });
    let refused = server.post(&format!("/api/v1/threads/{thread}/resume"), &body).await;
    assert!((400..500).contains(&refused.status), "{refused:?}");
    let run = server.decide(thread, &json!({ "": { "decision": "approve" } })).await;
    assert_eq!(tool_messages(&run)[0]["structured"], json!({ "sum": 3 }), "{run}");
}

#[tokio::test]
async fn tools_raise_interrupts_and_have_their_effects_once() {
    let server = Setup::desk(&Desk::default()).await.start().await;
    let url = format!("{}/count/effect", server.standin().base_url);
    let script = format!(
        "call ask_first {{\"question\":\"may I?\"}}\n\
         call effect_then_ask {{\"url\":\"{url}\",\"question\":\"and now?\"}}"
    );
    let run = server.say(None, &script).await;
    let open = run["interrupts"].as_array().unwrap();
    assert_eq!(open.len(), 2, "{run}");
    let id = |wanted: &str| {
        let found = open.iter().find(|it| it["payload"]["question"] == wanted);
        found.unwrap()["id"].as_str().unwrap().to_owned()
    };
    let (first, second) = (id("may I?"), id("and now?"));
    let thread = run["thread"].as_str().unwrap().to_owned();
    let server = server.restart().await;
    let run = server.decide(&thread, &json!({ (second): "go on" })).await;
    assert_eq!(run["status"], "interrupted", "{run}");
    let run = server.decide(&thread, &json!({ (first): { "granted": true } })).await;
    assert_eq!(run["status"], "completed", "{run}");
    let told = tool_messages(&run);
    assert_eq!(told[0]["structured"], json!({ "granted": true }));
    assert_eq!(told[1]["structured"], json!({ "status": 200, "answer": "go on" }));
    let effects = server.standin().requests().into_iter().filter(|it| it.path == "/count/effect");
    assert_eq!(effects.count(), 1);
}
