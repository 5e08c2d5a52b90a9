//! The native API.

use serde_json::{Value, json};

use crate::fixture::{Fixture, answer};

#[tokio::test]
async fn a_run_is_interrupted_and_continues_with_the_answer() {
    let fixture = Fixture::start("").await;
    let start = json!({ "input": { "name": "Ada" }, "wait": true });
    let (status, run) = fixture.post("/api/v1/apps/greeter/runs", &start).await;
    assert_eq!((status, &run["status"]), (200, &json!("interrupted")), "{run}");
    assert_eq!(run["interrupts"][0]["payload"], json!({ "about": "hello Ada" }));
    let thread = run["thread"].as_str().unwrap();

    let (_, listed) = fixture.get("/api/v1/threads?status=interrupted&app=greeter").await;
    assert_eq!(listed["items"][0]["thread"], thread);
    let resume = format!("/api/v1/threads/{thread}/resume");
    let (status, refused) = fixture.post(&resume, &json!({ "answers": { "": 7 } })).await;
    assert_eq!((status, &refused["code"]), (400, &json!("invalid")), "{refused}");

    let (status, run) =
        fixture.post(&resume, &json!({ "answers": { "": true }, "wait": true })).await;
    assert_eq!((status, &run["status"]), (200, &json!("completed")), "{run}");
    assert_eq!(run["state"]["approved"], true);
    let (_, state) = fixture.get(&format!("/api/v1/threads/{thread}/state")).await;
    assert_eq!(state, run["state"]);
    let (_, history) = fixture.get(&format!("/api/v1/threads/{thread}/history?state=true")).await;
    assert_eq!(history[0]["state"], run["state"]);
    let (_, trace) = fixture.get(&format!("/api/v1/threads/{thread}/trace")).await;
    assert_eq!(trace["runs"].as_array().unwrap().len(), 2, "{trace}");
    assert_eq!(trace["runs"][1]["reason"], "resume");

    let url = fixture.url(&format!("/api/v1/threads/{thread}"));
    assert_eq!(fixture.client.delete(&url).send().await.unwrap().status(), 204);
    assert_eq!(answer(fixture.client.get(&url)).await.0, 404);
    fixture.server.shutdown().await;
}

#[tokio::test]
async fn waiting_for_a_started_run_returns_its_failure() {
    let fixture = Fixture::start("").await;
    let start = json!({ "input": { "name": "nobody" }, "thread_id": "my-thread" });
    let (status, run) = fixture.post("/api/v1/apps/greeter/runs", &start).await;
    assert_eq!((status, &run["thread"]), (202, &json!("my-thread")));
    let id = run["run"].as_str().unwrap();
    let (_, ended) = fixture.get(&format!("/api/v1/runs/{id}/wait")).await;
    assert_eq!((&ended["status"], &ended["failure"]["code"]), (&json!("failed"), &json!("rude")));
    let (_, known) = fixture.get(&format!("/api/v1/runs/{id}")).await;
    assert_eq!(known["status"], "failed");
    let (_, thread) = fixture.get("/api/v1/threads/my-thread").await;
    assert_eq!(thread["status"], "error");
}

#[tokio::test]
async fn event_streams_resume_after_any_event() {
    let fixture = Fixture::start("").await;
    let start = json!({ "input": { "name": "Ada" }, "thread_id": "t", "wait": true });
    fixture.post("/api/v1/apps/greeter/runs", &start).await;
    let url = fixture.url("/api/v1/threads/t/events?until=idle");
    let all = fixture.client.get(&url).send().await.unwrap();
    assert_eq!(all.headers()["content-type"], "text/event-stream; charset=utf-8");
    let all = all.text().await.unwrap();
    assert!(all.starts_with("id: 1\nevent: run_started\n"), "{all}");
    assert!(all.contains("event: asked\n") && all.contains("\"status\":\"interrupted\""), "{all}");
    let rest = fixture.client.get(&url).header("last-event-id", "2").send().await.unwrap();
    let rest = rest.text().await.unwrap();
    assert!(rest.starts_with("id: 3\n") && all.ends_with(&rest), "{rest}");
    let odd = fixture.client.get(&url).header("last-event-id", "x").send().await.unwrap();
    assert_eq!(odd.status(), 400);
}

#[tokio::test]
async fn open_streams_end_when_the_server_stops() {
    let fixture = Fixture::start("").await;
    let start = json!({ "input": { "name": "Ada" }, "thread_id": "t", "wait": true });
    fixture.post("/api/v1/apps/greeter/runs", &start).await;
    let url = fixture.url("/api/v1/threads/t/events");
    let stream = fixture.client.get(&url).send().await.unwrap();
    let reader = tokio::spawn(stream.text());
    fixture.server.shutdown().await;
    assert!(reader.await.unwrap().unwrap().contains("run_ended"));
}

#[tokio::test]
async fn apps_graphs_and_plugins_are_described() {
    let fixture = Fixture::start("").await;
    let (_, apps) = fixture.get("/api/v1/apps").await;
    assert_eq!(apps[0]["settings"], json!(["color"]));
    assert_eq!(apps[0]["endpoints"][0], json!({ "method": "POST", "path": "/apps/greeter/start" }));
    let (_, graph) = fixture.get("/api/v1/apps/greeter/graphs/Greet").await;
    assert!(graph["mermaid"].as_str().unwrap().contains("greet"), "{graph}");
    let (status, missing) = fixture.get("/api/v1/apps/greeter/graphs/Other").await;
    assert_eq!(status, 404);
    assert!(missing["detail"].as_str().unwrap().contains("`Greet`"), "{missing}");
    for (path, meant) in [
        ("/api/v1/apps/greetr", "`greetr`; did you mean `greeter`? see `GET /api/v1/apps`"),
        ("/api/v1/apps/greeter/graphs/Great", "`Great`; did you mean `Greet`? graphs of app"),
    ] {
        let (status, missing) = fixture.get(path).await;
        assert_eq!(status, 404, "{missing}");
        assert!(missing["detail"].as_str().unwrap().contains(meant), "{missing}");
    }
    let start = json!({ "input": {}, "graph": "greet" });
    let (status, missing) = fixture.post("/api/v1/apps/greeter/runs", &start).await;
    assert_eq!(status, 404, "{missing}");
    let meant = "has no graph `greet`; did you mean `Greet`? it has: `Greet`";
    assert!(missing["detail"].as_str().unwrap().contains(meant), "{missing}");
    let (_, plugins) = fixture.get("/api/v1/plugins/greeter").await;
    assert_eq!(plugins[0]["grants"]["llm"], json!([]));
    assert_eq!(fixture.get("/api/v1/health").await.1["status"], "ok");
    assert_eq!(fixture.get("/healthz").await.0, 200);
    let (_, document) = fixture.get("/openapi.json").await;
    for path in ["/api/v1/threads/{thread}/events", "/api/v1/apps/{app}/runs", "/api/v1/health"] {
        assert!(document["paths"][path].is_object(), "{path}");
    }
}

#[tokio::test]
async fn endpoints_of_apps_are_in_the_openapi_document() {
    let fixture = Fixture::start("").await;
    let (_, document) = fixture.get("/openapi.json").await;
    let echo = &document["paths"]["/apps/greeter/echo/{word}"]["get"];
    assert_eq!(echo["summary"], "Returns the request.");
    assert_eq!(echo["tags"], json!(["apps/greeter"]));
    assert_eq!(echo["x-wattle-access"], json!({ "scope": "read", "share": "other" }));
    let parameters = echo["parameters"].as_array().unwrap().iter();
    let parameters: Vec<_> = parameters.map(|it| (&it["name"], &it["in"])).collect();
    let (path, query) = (json!("path"), json!("query"));
    assert_eq!(parameters, [(&json!("word"), &path), (&json!("times"), &query)]);
    let reference = json!({ "$ref": "#/components/schemas/greeter.Echo" });
    let returned = &echo["responses"]["200"];
    assert_eq!(returned["description"], "OK");
    assert_eq!(returned["content"]["application/json"]["schema"], reference);
    let schema = &document["components"]["schemas"]["greeter.Echo"];
    assert_eq!(schema["properties"]["again"], reference);

    // An endpoint without a description is listed with its method, its path and the other data that
    // the host has.
    let start = &document["paths"]["/apps/greeter/start"]["post"];
    assert_eq!(start["x-wattle-access"]["scope"], "write");
    let problem = &start["responses"]["default"]["content"]["application/problem+json"];
    assert_eq!(problem["schema"]["$ref"], "#/components/schemas/ProblemDocument");
    let tags = document["tags"].as_array().unwrap();
    assert!(tags.iter().any(|tag| tag["name"] == "apps/greeter"), "{tags:?}");
}

#[tokio::test]
async fn failures_are_problem_documents() {
    let fixture = Fixture::start("").await;
    let url = fixture.url("/api/v1/apps/greeter/runs");
    let response = fixture.client.post(&url).json(&json!({ "inptu": {} })).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    let problem: Value = response.json().await.unwrap();
    insta::assert_json_snapshot!(problem);
    let text = fixture.client.post(&url).body("x").send().await.unwrap();
    assert_eq!(text.status(), 415);
    let method = fixture.client.put(&url).send().await.unwrap();
    assert_eq!(
        (method.status().as_u16(), &method.headers()["allow"]),
        (405, &"POST".parse().unwrap())
    );
    let (status, unknown) =
        fixture.post("/api/v1/apps/greeter/runs", &json!({ "input": { "nmae": 1 } })).await;
    assert_eq!((status, &unknown["code"]), (400, &json!("invalid")), "{unknown}");
    assert_eq!(fixture.get("/api/v1/threads?colour=1").await.0, 400);
    assert_eq!(fixture.get("/nothing/here").await.1["code"], "not-found");
}

#[tokio::test]
async fn a_body_above_the_limit_is_refused() {
    let fixture = Fixture::start("[server]\nbody_limit = \"1KiB\"").await;
    let start = json!({ "input": { "name": "x".repeat(2_000_000) } });
    let (status, problem) = fixture.post("/api/v1/apps/greeter/runs", &start).await;
    assert_eq!((status, &problem["code"]), (413, &json!("too-large")));
    let (status, _) = fixture.post("/apps/greeter/start", &start).await;
    assert_eq!(status, 413);
}

#[tokio::test]
async fn blobs_are_read_in_full_and_in_ranges() {
    let fixture = Fixture::start("").await;
    let blobs = fixture.server.engine.ports().blobs.clone();
    let blob = blobs.put("0123456789".into(), "text/html").await.unwrap();
    let url = fixture.url(&format!("/api/v1/blobs/{}", blob.0));
    let whole = fixture.client.get(&url).send().await.unwrap();
    assert_eq!(whole.headers()["content-security-policy"], "sandbox; default-src 'none'");
    let etag = whole.headers()["etag"].clone();
    assert_eq!(whole.text().await.unwrap(), "0123456789");
    let part = fixture.client.get(&url).header("range", "bytes=2-4").send().await.unwrap();
    assert_eq!(part.status(), 206);
    assert_eq!(part.headers()["content-range"], "bytes 2-4/10");
    assert_eq!(part.text().await.unwrap(), "234");
    let outside = fixture.client.get(&url).header("range", "bytes=10-").send().await.unwrap();
    assert_eq!(outside.status(), 416);
    let known = fixture.client.get(&url).header("if-none-match", etag).send().await.unwrap();
    assert_eq!(known.status(), 304);
    let missing = fixture.get(&format!("/api/v1/blobs/{}", "0".repeat(64))).await;
    assert_eq!(missing.0, 404);
}
