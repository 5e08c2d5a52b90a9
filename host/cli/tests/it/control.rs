//! Control of runs over HTTP: options, drains, node caches.

use serde_json::json;

use crate::fixture::{Fixture, answer};

#[tokio::test]
async fn run_options_apply_and_unknown_ones_are_refused() {
    let fixture = Fixture::start("").await;
    let start = |options| json!({ "input": { "name": "Ada" }, "options": options, "wait": true });
    let runs = "/api/v1/apps/greeter/runs";
    let all = json!({
        "interrupt_before": ["greet"], "interrupt_after": "*", "durability": "exit",
        "recursion_limit": 9, "max_concurrency": 1,
    });
    let run = fixture.post(runs, &start(all)).await.1;
    assert_eq!((&run["status"], &run["next"]), (&json!("interrupted"), &json!(["greet"])), "{run}");
    let resume = format!("/api/v1/threads/{}/resume", run["thread"].as_str().unwrap());
    let short = json!({ "options": { "recursion_limit": 1 }, "wait": true });
    let run = fixture.post(&resume, &short).await.1;
    assert_eq!(run["failure"]["details"]["limit"], "recursion", "{run}");
    for wrong in [
        json!({ "interrupt_before": ["nowhere"] }),
        json!({ "durability": "sometimes" }),
        json!({ "speed": 9 }),
        json!({ "recursion_limit": 0 }),
    ] {
        let (status, refused) = fixture.post(runs, &start(wrong)).await;
        assert_eq!((status, &refused["code"]), (400, &json!("invalid")), "{refused}");
    }
}

#[tokio::test]
async fn a_run_is_drained_by_its_thread_and_id() {
    let fixture = Fixture::start("").await;
    let start = json!({ "input": { "name": "Ada" }, "wait": true });
    let run = fixture.post("/api/v1/apps/greeter/runs", &start).await.1;
    let (thread, run) = (run["thread"].as_str().unwrap(), run["run"].as_str().unwrap());
    let (status, drained) =
        fixture.post(&format!("/api/v1/threads/{thread}/runs/{run}/drain"), &json!({})).await;
    assert_eq!((status, &drained["status"]), (202, &json!("interrupted")));
    for path in [format!("other/runs/{run}"), format!("{thread}/runs/other")] {
        let refused = fixture.post(&format!("/api/v1/threads/{path}/drain"), &json!({})).await;
        assert_eq!(refused.1["code"], "not-found");
    }
}

#[tokio::test]
async fn a_cache_is_cleared_by_app_graph_and_node() {
    let fixture = Fixture::start("").await;
    let clear = async |query: &str| {
        let path = format!("/api/v1/apps/greeter/cache{query}");
        answer(fixture.client.delete(fixture.url(&path))).await
    };
    assert_eq!(clear("").await, (200, json!({ "cleared": 0 })));
    assert_eq!(clear("?node=greet").await.1["code"], "invalid");
    assert_eq!(clear("?graph=nowhere").await.1["code"], "not-found");
}
