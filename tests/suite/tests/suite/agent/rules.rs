//! Rules of a graph file for tool calls: their order, sequential calls, and the channels that tools
//! may write.

use serde_json::{Value, json};
use wattle_suite::desk::{Desk, tool_messages};
use wattle_suite::server::Setup;

fn statuses(run: &Value) -> Vec<Value> {
    tool_messages(run).into_iter().map(|message| message["status"].clone()).collect()
}

#[tokio::test]
async fn s2_29_a_call_out_of_order_is_refused_and_made_later() {
    let desk = Desk::with("order = [{ tool = \"add\", after = [\"echo\"] }]");
    let server = Setup::desk(&desk).await.start().await;
    let add = "call add {\"a\":1,\"b\":2}";
    let echo = "call echo {\"text\":\"a\"}";
    let run = server.chat(&format!("{add}\n{echo}\nthen\n{add}")).await;
    assert_eq!(statuses(&run), ["error", "success", "success"]);
    let refused = tool_messages(&run).remove(0);
    assert_eq!(refused["content"], "call `echo` first, wait for the result, then call `add`");
    // Results of an earlier message do not count for the next one.
    let run = server.say(run["thread"].as_str(), add).await;
    assert_eq!(statuses(&run).pop(), Some(json!("error")));
}

#[tokio::test]
async fn sequential_calls_count_the_results_before_them() {
    let desk = Desk::with(
        "parallel = false\norder = [{ tool = \"add\", after = [\"echo\"], message = \"wait\" }]",
    );
    let server = Setup::desk(&desk).await.start().await;
    let run = server.chat("call echo {\"text\":\"a\"}\ncall add {\"a\":1,\"b\":2}").await;
    assert_eq!(statuses(&run), ["success", "success"]);
    let run = server.chat("call add {\"a\":1,\"b\":2}\ncall echo {\"text\":\"a\"}").await;
    assert_eq!(statuses(&run), ["error", "success"]);
    assert_eq!(tool_messages(&run)[0]["content"], "wait");
}

#[tokio::test]
async fn tools_write_only_the_configured_channels() {
    let server = Setup::desk(&Desk::with("updates = [\"total\"]")).await.start().await;
    let run = server
        .chat(
            "call add {\"a\":1,\"b\":2,\"channel\":\"total\"}\n\
             call add {\"a\":3,\"b\":4,\"channel\":\"total\"}\n\
             call add {\"a\":5,\"b\":6,\"channel\":\"result\"}",
        )
        .await;
    assert_eq!(run["state"]["total"].as_f64(), Some(10.0), "{run}");
    assert!(run["state"].get("result").is_none_or(Value::is_null), "{run}");
    assert_eq!(statuses(&run), ["success", "success", "success"]);
    let events = server.events(run["thread"].as_str().unwrap()).await;
    let logs = events.iter().filter(|event| event.event == "log");
    let told = logs.filter(|log| log.data.to_string().contains("channel `result`")).count();
    assert_eq!(told, 1, "the refused write is logged");
}

#[tokio::test]
async fn an_app_with_an_invalid_node_configuration_is_not_loaded() {
    let setup = Setup::desk(&Desk::with("max_turn = 3")).await;
    let server = setup.start().await;
    let refused = server.get("/api/v1/apps/desk").await;
    assert_eq!(refused.status, 404, "{refused:?}");
}

#[tokio::test]
async fn s2_39_an_app_with_an_unknown_granted_tool_is_not_loaded() {
    for granted in ["[\"tools/fly\"]", "[\"wings/*\"]", "[\"mcp:nowhere/*\"]"] {
        let desk = Desk { granted: granted.to_owned(), ..Desk::default() };
        let server = Setup::desk(&desk).await.start().await;
        assert_eq!(server.get("/api/v1/apps/desk").await.status, 404, "{granted}");
    }
}
