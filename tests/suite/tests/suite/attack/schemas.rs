//! Small schemas whose expansion or validation is expensive.

use serde_json::{Value, json};
use wattle_suite::attack::hostile::doubling;

use super::calm;

/// A graph that raises an interrupt with a response schema.
const ASK: &str = r#"
[graphs.ask]
entry = "ask_shaped"
[graphs.ask.channels.schema]
[graphs.ask.channels.answer]
[graphs.ask.nodes.ask_shaped]
"#;

/// Numbers in an array, more than one validation may visit, and fewer than a body may have.
const LARGE: u32 = 600_000;

/// Returns a graph with a channel of this schema.
fn with_channel(schema: &str) -> String {
    format!(
        r#"
[graphs.typed]
entry = "counter"
[graphs.typed.channels.number]
[graphs.typed.channels.value]
schema = {schema}
[graphs.typed.nodes.counter]
"#
    )
}

#[tokio::test]
async fn an_interrupt_with_a_schema_that_doubles_is_refused() {
    let server = calm::start(ASK).await;
    for (levels, keyword, limit) in [
        (24, "allOf", "schema_expanded"),
        (30, "anyOf", "schema_expanded"),
        (36, "allOf", "schema_chain"),
    ] {
        let input = json!({ "schema": doubling(levels, keyword) });
        let failure = calm::fails_at(&server, "ask", input, limit).await;
        let message = failure["message"].as_str().unwrap();
        assert!(message.contains("the response schema of the question"), "{message}");
    }
    for (schema, word) in [
        (json!({ "pattern": "(?=a)b" }), "backtracking"),
        (json!({ "$ref": "http://127.0.0.1:1/schema.json" }), "not a part of it"),
        (json!({ "type": 1 }), "response schema"),
    ] {
        let run = server.run("misdeeds", "ask", json!({ "schema": schema })).await;
        assert_eq!(run["failure"]["code"], "invalid", "{run}");
        assert!(run["failure"]["message"].as_str().unwrap().contains(word), "{run}");
    }
    calm::check(server).await;
}

#[tokio::test]
async fn validation_of_an_answer_has_a_budget_of_steps() {
    let server = calm::start(ASK).await;
    let schema = json!({ "type": "array", "items": { "anyOf": [
        { "type": "string" }, { "type": "array", "items": { "type": "string" } },
        { "type": "boolean" }, { "type": "null" }, { "type": "object" }, { "const": "c" },
    ] } });
    let run = server.run("misdeeds", "ask", json!({ "schema": schema })).await;
    assert_eq!(run["status"], "interrupted", "{run}");
    let thread = run["thread"].as_str().unwrap();
    let answer = |answer: Value| {
        let path = format!("/api/v1/threads/{thread}/resume");
        let body = json!({ "answers": { "": answer }, "wait": true });
        let server = &server;
        async move { server.post(&path, &body).await }
    };
    let large: Vec<u32> = (0..LARGE).collect();
    let (refused, ()) = tokio::join!(answer(json!(large)), calm::honest_run(&server));
    assert_eq!(refused.body["code"], "limit", "{refused:?}");
    assert_eq!(refused.body["details"]["limit"], "schema_steps", "{refused:?}");
    let wrong = answer(json!([1])).await;
    assert_eq!(wrong.body["code"], "invalid", "{wrong:?}");
    let ended = answer(json!(["a", ["b"]])).await.expect(200);
    assert_eq!(ended["state"]["answer"], json!(["a", ["b"]]), "{ended}");
    calm::check(server).await;
}

#[tokio::test]
async fn an_app_with_a_schema_that_doubles_is_refused_and_others_load() {
    let defs: String = (1..=30)
        .map(|level| {
            let below = format!("{{ \"$ref\" = \"#/$defs/d{}\" }}", level - 1);
            format!(", d{level} = {{ allOf = [{below}, {below}] }}")
        })
        .collect();
    let schema = format!(
        "{{ \"$ref\" = \"#/$defs/d30\", \"$defs\" = {{ d0 = {{ type = \"object\" }}{defs} }} }}"
    );
    let setup = wattle_suite::server::Setup::misdeeds(calm::HONEST).await;
    setup.workspace.write("plugins/hostile/graph.toml", with_channel(&schema));
    setup.workspace.write(
        "plugins/hostile/misdeeds.wasm",
        wattle_suite::guests::bytes(wattle_suite::workspace::MISDEEDS),
    );
    setup.workspace.write(
        "plugins/hostile/app.toml",
        "[app]\nname = \"hostile\"\nversion = \"0.1.0\"\ndoc = \"a schema that doubles\"\n\
         [components]\nmisdeeds = \"misdeeds.wasm\"\n",
    );
    let server = setup.start().await;
    let apps = server.get("/api/v1/apps").await.expect(200);
    let names: Vec<&str> =
        apps.as_array().unwrap().iter().map(|app| app["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["misdeeds"]);
    let problems = server.get("/api/v1/problems").await.expect(200).to_string();
    assert!(problems.contains("more than 10000 parts of the schema"), "{problems}");
    calm::check(server).await;
}

#[tokio::test]
async fn validation_of_a_channel_has_a_budget_of_steps() {
    let server = calm::start(&with_channel(
        "{ type = \"array\", items = { anyOf = [{ type = \"string\" }, { type = \"boolean\" }, \
         { type = \"null\" }, { type = \"array\" }, { type = \"object\" }, \
         { type = \"integer\" }] } }",
    ))
    .await;
    let large: Vec<u32> = (0..LARGE).collect();
    let start = json!({ "graph": "typed", "input": { "value": large }, "wait": true });
    let refused = server.post("/api/v1/apps/misdeeds/runs", &start).await;
    assert_eq!(refused.body["code"], "limit", "{refused:?}");
    assert_eq!(refused.body["details"]["limit"], "schema_steps", "{refused:?}");
    let message = refused.body["detail"].as_str().or(refused.body["message"].as_str()).unwrap();
    assert!(message.contains("channel `value`") && message.contains("reached at `/"), "{message}");
    calm::check(server).await;
}
