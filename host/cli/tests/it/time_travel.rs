//! Time travel over HTTP: history, checkpoints, edits, forks.

use serde_json::{Value, json};

use crate::fixture::Fixture;

#[tokio::test]
async fn a_thread_is_read_edited_and_forked() {
    let fixture = Fixture::start("").await;
    let start = json!({ "input": { "name": "Ada" }, "thread_id": "t", "wait": true });
    let run = fixture.post("/api/v1/apps/greeter/runs", &start).await.1;
    assert_eq!(run["status"], "interrupted", "{run}");

    let history = fixture.get("/api/v1/threads/t/history?state=true").await.1;
    let steps: Vec<_> = history.as_array().unwrap().iter().map(|it| it["step"].clone()).collect();
    assert_eq!(steps, [1, 0]);
    assert_eq!(history[0]["state"]["name"], "Ada");
    assert_eq!(history[1]["tasks"][0]["writes"][0]["channel"], "greeting");
    let only = |filter: &str| format!("/api/v1/threads/t/history?filter={filter}");
    assert_eq!(fixture.get(&only("%7B%22step%22%3A0%7D")).await.1.as_array().unwrap().len(), 1);
    let hostile = "%7B%22%27%29%20OR%201%3D1%20--%22%3A1%7D";
    assert_eq!(fixture.get(&only(hostile)).await.1, json!([]));
    assert_eq!(fixture.get(&only("step")).await.1["code"], "invalid");

    let latest = fixture.get("/api/v1/threads/t/checkpoints/latest").await.1;
    assert_eq!(latest["tasks"][0]["interrupts"], json!([run["interrupts"][0]["id"]]));
    let first = fixture.get("/api/v1/threads/t/checkpoints/1").await.1;
    assert_eq!((&first["source"], &first["next"]), (&json!("input"), &json!(["greet"])));
    for (path, code) in [("99", "not-found"), ("one", "invalid")] {
        let refused = fixture.get(&format!("/api/v1/threads/t/checkpoints/{path}")).await.1;
        assert_eq!(refused["code"], code);
    }

    let edits = json!({ "supersteps": [[{ "values": { "greeting": "Good day" } }]] });
    let edited = fixture.post("/api/v1/threads/t/edits", &edits).await.1;
    assert_eq!((&edited["source"], &edited["next"]), (&json!("update"), &json!(["ask"])));
    assert_eq!(edited["state"]["greeting"], "Good day");
    let unclear = json!({ "supersteps": [[{ "as_node": "greet", "values": { "no": 1 } }]] });
    assert_eq!(fixture.post("/api/v1/threads/t/edits", &unclear).await.1["code"], "invalid");
    let nowhere = json!({ "namespace": "ask", "supersteps": [[{ "as_node": "greet" }]] });
    assert_eq!(fixture.post("/api/v1/threads/t/edits", &nowhere).await.1["code"], "not-found");
    let made = json!({ "app": "greeter", "supersteps": [[
        { "as_node": "__input__", "values": { "name": "Eve" } }
    ]] });
    let made = fixture.post("/api/v1/threads/new/edits", &made).await.1;
    assert_eq!(made["next"], json!(["greet"]));

    let fork = json!({ "checkpoint": 1, "copy": true, "thread_id": "u", "wait": true });
    let forked = fixture.post("/api/v1/threads/t/fork", &fork).await.1;
    assert_eq!((&forked["thread"], &forked["status"]), (&json!("u"), &json!("interrupted")));
    let neither = fixture.post("/api/v1/threads/t/fork", &json!({ "wait": true })).await.1;
    assert_eq!(neither["code"], "invalid");
    let call = json!({ "call": { "seq": 1, "answer": null } });
    let no_call: Value = fixture.post("/api/v1/threads/t/fork", &call).await.1;
    assert_eq!(no_call["code"], "not-found", "{no_call}");
}
