//! Plugins that an app uses only for their tools are part of the app's version.

use serde_json::json;
use wattle_suite::desk::{Desk, tool_messages};
use wattle_suite::guests;
use wattle_suite::server::Setup;

#[tokio::test]
async fn a_thread_continues_with_the_tools_of_its_version() {
    let desk = Desk::with("approve = { tools = \"*\" }");
    let server = Setup::desk(&desk).await.start().await;
    let script = "call echo {\"text\":\"a\"}";
    let run = server.say(None, script).await;
    assert_eq!(run["status"], "interrupted", "{run}");
    let old = run["thread"].as_str().unwrap().to_owned();
    // Another component under the same name, whose `echo` returns another text.
    server
        .setup
        .workspace
        .write("plugins/tools/tools/tools.wasm", guests::bytes("wattle-guest-shadow"));
    let server = server.restart().await;
    let approve = json!({ "": { "decision": "approve" } });
    let run = server.say(None, script).await;
    let new = run["thread"].as_str().unwrap().to_owned();
    let run = server.decide(&new, &approve).await;
    assert_eq!(tool_messages(&run)[0]["content"], "shadow: a", "{run}");
    let run = server.decide(&old, &approve).await;
    assert_eq!(tool_messages(&run)[0]["content"], "a", "{run}");
}
