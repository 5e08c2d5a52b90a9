//! Tests of the models for each task, and of the fallback models.

use serde_json::{Value, json};
use wattle_kit::standin::{
    Fault, FaultRule, Pattern, deepseek_not_found, google_not_found, google_quota,
};
use wattle_suite::server::{Setup, TestServer};
use wattle_suite::travel::{CHAT_MODEL, IMAGEN, TOKYO, working_on};

const BLOCKS: &str = "json_compilation_strict";

/// Returns the models that were called for a task, in order.
fn asked(server: &TestServer, task: &str) -> Vec<String> {
    server.requests_for(task).into_iter().filter_map(|entry| entry.model).collect()
}

/// Returns a document with this many blocks, none of which is a spot.
fn blocks(count: usize) -> Value {
    let block = |number| {
        json!({"block_id": format!("b{number}"), "type": "food", "title": "Soup",
            "description": "Hot soup.", "location": null, "smart_tags": []})
    };
    json!({"blocks": (0..count).map(block).collect::<Vec<_>>(), "spot_blocks": []})
}

fn says(document: &Value) -> Fault {
    Fault::Content { text: document.to_string() }
}

#[tokio::test]
async fn s3_40_to_s3_44_every_task_uses_its_own_model() {
    let server = Setup::travel().await.start().await;
    let (_, said) = server.travel().make(TOKYO).await;
    for (task, model) in [
        (BLOCKS, "gemini-2.5-pro"),
        ("spot_query_normalization", "gemini-2.5-flash"),
        ("handbook_image_query_planning", "gemini-2.5-flash"),
        ("handbook_html_generation", "gemini-3-pro-preview"),
    ] {
        assert_eq!(asked(&server, task), [model], "{task}");
    }
    let talked = server.requests_on(CHAT_MODEL);
    assert_eq!(talked.len(), 7, "six tools and the final message");
    assert!(talked.iter().all(|entry| entry.model.as_deref() == Some("deepseek-chat")));
    let planner = said.output("search_image")["planner_model"].clone();
    assert_eq!(planner, "google:gemini-2.5-flash (attempts=1)");
}

#[tokio::test]
async fn s3_23_too_few_blocks_are_requested_again_with_the_error() {
    let server = Setup::travel().await.start().await;
    let telling = |error: &str| Pattern {
        body_contains: Some(error.to_owned()),
        ..Pattern::path("/v1beta/models/*")
    };
    for rule in [
        FaultRule::new(working_on(BLOCKS), says(&blocks(3))).times(1),
        FaultRule::new(telling("has 3 blocks"), says(&blocks(17))).times(1),
        // This rule changes nothing, but is recorded.
        FaultRule::new(telling("has 17 blocks"), Fault::Slow { ms: 0 }).times(1),
    ] {
        server.standin().fault(rule);
    }
    let (_, said) = server.travel().make(TOKYO).await;
    assert_eq!(said.output("build_travel_blocks")["blockCount"], 6);
    let entries = server.requests_on("/v1beta/models/*").into_iter();
    let tries: Vec<_> = entries
        .filter(|entry| entry.model.as_deref() == Some("gemini-2.5-pro"))
        .map(|entry| entry.fault.unwrap_or_default())
        .collect();
    assert_eq!(tries, ["content", "content", "slow"]);
}

#[tokio::test]
async fn s3_46_all_models_of_a_task_are_called_as_often_as_its_policy_allows() {
    let server = Setup::travel().await.start().await;
    server.standin().fault(FaultRule::new(working_on(BLOCKS), says(&blocks(3))));
    let (session, said) = server.travel().make(TOKYO).await;
    let error = said.tool_error("build_travel_blocks");
    assert!(error.contains(BLOCKS) && error.contains("3 blocks"), "{error}");
    let expected = [["gemini-2.5-pro"; 3], ["gemini-2.5-flash"; 3]].concat();
    assert_eq!(asked(&server, BLOCKS), expected);
    let shown = server.travel().session(&session).await;
    assert_eq!(
        (&shown["status"], &shown["failedStep"]),
        (&json!("ERROR"), &json!("build_travel_blocks"))
    );
}

#[tokio::test]
async fn s3_47_a_missing_model_is_not_retried() {
    let server = Setup::travel().await.start().await;
    let gone = Pattern::model("gemini-2.5-pro");
    server.standin().fault(FaultRule::new(gone, google_not_found("gemini-2.5-pro")));
    let gone = Pattern::model("deepseek-chat");
    server.standin().fault(FaultRule::new(gone, deepseek_not_found()));
    let (_, said) = server.travel().make(TOKYO).await;
    assert!(said.text().contains("is ready"), "{:#?}", said.chunks);
    let expected = ["gemini-2.5-pro", "gemini-2.5-flash"];
    assert_eq!(asked(&server, BLOCKS), expected);
    let talked = server.requests_on(CHAT_MODEL);
    let models: Vec<&str> = talked.iter().filter_map(|entry| entry.model.as_deref()).collect();
    assert_eq!(models[..2], ["deepseek-chat", "deepseek-reasoner"]);
}

#[tokio::test]
async fn s3_48_without_any_model_the_error_names_the_setting() {
    let server = Setup::travel().await.start().await;
    for model in ["gemini-2.5-pro", "gemini-2.5-flash"] {
        server.standin().fault(FaultRule::new(Pattern::model(model), google_not_found(model)));
    }
    let (_, said) = server.travel().make(TOKYO).await;
    let error = said.tool_error("build_travel_blocks");
    for part in [BLOCKS, "gemini-2.5-flash", "[model.routes.json_compilation_strict]"] {
        assert!(error.contains(part), "`{part}` in {error}");
    }
}

#[tokio::test]
async fn s3_32_the_fallback_model_generates_missing_pictures() {
    let server = Setup::travel().await.start().await;
    let imagen = google_not_found("imagen-4.0-fast-generate-001");
    server.standin().fault(FaultRule::new(Pattern::path(IMAGEN), imagen));
    let travel = server.travel();
    let session = travel.create().await;
    let said = travel.chat(&session, &format!("2 AI pictures for {TOKYO}")).await;
    let made = said.output("generate_image");
    assert_eq!((&made["mode"], &made["image_count"]), (&json!("imagen"), &json!(2)), "{made}");
    assert_eq!(made["generation_models"], json!(["gemini-2.5-flash-image"]));
    let first = &made["images"][0];
    assert_eq!(first["credit"], "Generated with gemini-2.5-flash-image");
    assert!(first["image_url"].as_str().unwrap().starts_with("/blobs/"), "{first}");
}

#[tokio::test]
async fn s3_47_a_quota_with_a_long_wait_is_not_retried() {
    let server = Setup::travel().await.start().await;
    let busy = Pattern::model("gemini-3-pro-preview");
    server.standin().fault(FaultRule::new(busy, google_quota("3600s")));
    let (session, said) = server.travel().make(TOKYO).await;
    assert!(said.text().contains("is ready"), "{:#?}", said.chunks);
    assert_eq!(server.travel().session(&session).await["status"], "COMPLETED");
    let pages = asked(&server, "handbook_html_generation");
    assert_eq!(pages.last().map(String::as_str), Some("gemini-2.5-pro"), "{pages:?}");
}

/// Returns the model and its `thinking` of each request of the conversation.
fn talked(server: &TestServer) -> Vec<(String, Value)> {
    let entries = server.requests_on(CHAT_MODEL).into_iter();
    let told = entries.map(|entry| {
        let body = entry.body.unwrap_or_default();
        (entry.model.unwrap_or_default(), body["thinking"]["type"].clone())
    });
    told.collect()
}

#[tokio::test]
async fn s3_48_a_retired_model_is_replaced_by_an_alias() {
    let alias = "[model.aliases]\n\"deepseek-chat\" = { model = \"deepseek-v4-flash\", \
                 extra = { thinking = { type = \"disabled\" } } }\n";
    let server = Setup::travel().await.with(alias).start().await;
    server.standin().fault(FaultRule::new(Pattern::model("deepseek-chat"), deepseek_not_found()));
    let (_, said) = server.travel().make(TOKYO).await;
    assert!(said.text().contains("is ready"), "{:#?}", said.chunks);
    let expected = ("deepseek-v4-flash".to_owned(), json!("disabled"));
    assert!(talked(&server).iter().all(|told| *told == expected), "{:?}", talked(&server));
    assert!(said.of("reasoning-delta").is_empty());
}

#[tokio::test]
async fn s3_76_reasoning_is_sent_back_to_the_model() {
    // The stand-in rejects tool calls that are sent without the reasoning that led to them.
    let setup = Setup::travel().await;
    let server =
        setup.replace("model = \"deepseek-chat\"", "model = \"deepseek-v4-pro\"").start().await;
    let travel = server.travel();
    let (session, said) = travel.make(TOKYO).await;
    assert!(said.text().contains("is ready"), "{:#?}", said.chunks);
    assert!(!said.of("reasoning-delta").is_empty());
    let again = travel.chat(&session, "please make 2 new pictures").await;
    assert_eq!(again.tools(), ["search_image", "generate_handbook_html"], "{:#?}", again.chunks);
    let models = talked(&server).into_iter().map(|(model, _)| model);
    assert!(models.into_iter().all(|model| model == "deepseek-v4-pro"), "there is no fallback");
}
