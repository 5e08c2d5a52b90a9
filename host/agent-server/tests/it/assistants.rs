//! Graphs as assistants, and what is said of the server.

use serde_json::json;

use crate::host::Host;

#[tokio::test]
async fn every_graph_is_an_assistant_by_itself() {
    let host = Host::new();
    let found = host.post("/assistants/search", json!({ "limit": 2 })).await;
    assert_eq!(found.header("x-pagination-total"), "4");
    assert_eq!(found.header("x-pagination-next"), "2");
    let found = host.post("/assistants/search", json!({ "graph_id": "agent" })).await.ok();
    let agent = &found[0];
    assert_eq!(agent["assistant_id"], "fe096781-5601-53d2-b2f6-0d3403f7e9ca");
    assert_eq!(agent["metadata"], json!({ "created_by": "system" }));
    for id in ["agent", "test/agent", "fe096781-5601-53d2-b2f6-0d3403f7e9ca"] {
        assert_eq!(&host.get(&format!("/assistants/{}", id.replace('/', "%2F"))).await.ok(), agent);
    }
    let missing = host.get("/assistants/01a1ffdc-22ab-744e-a2fc-8bb051a654f8").await;
    assert_eq!(missing.status, 404);
    assert_eq!(host.post("/assistants/count", json!({ "name": "AGENT" })).await.ok(), 1);
}

#[tokio::test]
async fn a_graph_is_drawn_and_described() {
    let host = Host::new();
    let drawn = host.get("/assistants/agent/graph").await.ok();
    let nodes: Vec<_> = drawn["nodes"].as_array().unwrap().iter().map(|it| &it["id"]).collect();
    assert_eq!(nodes, ["__start__", "ask", "greet", "__end__"]);
    assert_eq!(
        drawn["edges"],
        json!([
            { "source": "__start__", "target": "greet" },
            { "source": "greet", "target": "ask" },
            { "source": "ask", "target": "__end__" },
        ])
    );
    let schemas = host.get("/assistants/agent/schemas").await.ok();
    assert!(schemas["input_schema"]["properties"]["messages"].is_object());
    assert!(schemas["config_schema"].is_null());
}

#[tokio::test]
async fn the_server_says_what_it_is() {
    let host = Host::new();
    assert_eq!(host.get("/ok").await.ok(), json!({ "ok": true, "services": {} }));
    assert!(host.get("/info").await.ok()["version"].is_string());
    assert_eq!(host.call("PUT", "/threads", None).await.status, 405);
}
