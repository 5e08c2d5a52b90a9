//! Structured output.

use serde_json::{Value, json};
use wattle_graph::llm::{CompletionRequest, FinishReason, Tries};
use wattle_model::Routes;
use wiremock::ResponseTemplate;

use crate::support::{
    ask_city, bodies, chat, complete, json_response, routes, server, simple, table,
};

fn with_mode(kind: &str, base: &str, rung: &str) -> Routes {
    routes(table(kind, base, &json!({ "structured": rung }), &json!({})))
}

fn gemini(text: &str) -> Value {
    json!({ "candidates": [{
        "content": { "parts": [{ "text": text }] }, "finishReason": "STOP",
    }] })
}

fn anthropic(text: &str) -> Value {
    json!({
        "model": "m", "stop_reason": "end_turn", "content": [{ "type": "text", "text": text }],
    })
}

#[tokio::test]
async fn openai_gets_a_strict_schema_and_nulls_are_dropped() {
    let server = server(vec![json_response(&chat(r#"{"city":"Rome","zip":null}"#))]).await;
    let completion = complete(&simple("openai", &server.uri()), &ask_city()).await.unwrap();
    assert_eq!(completion.structured, Some(json!({ "city": "Rome" })));
    let format = &bodies(&server).await[0]["response_format"];
    let expected = json!({
        "type": "json_schema",
        "json_schema": { "name": "place", "strict": true, "schema": {
            "type": "object",
            "required": ["city", "zip"],
            "properties": {
                "city": { "type": "string" }, "zip": { "type": ["string", "null"] },
            },
            "additionalProperties": false,
        } },
    });
    assert_eq!(format, &expected);
}

#[tokio::test]
async fn schema_outside_of_the_strict_subset_is_sent_unchanged() {
    let server = server(vec![json_response(&chat(r#"{"city":"Rome"}"#))]).await;
    let mut request = ask_city();
    let schema = json!({
        "type": "object", "properties": {}, "additionalProperties": { "type": "string" },
    });
    request.response_schema.as_mut().unwrap().schema = schema.clone();
    complete(&simple("openai", &server.uri()), &request).await.unwrap();
    let format = &bodies(&server).await[0]["response_format"]["json_schema"];
    assert_eq!((&format["strict"], &format["schema"]), (&json!(false), &schema));
}

#[tokio::test]
async fn pattern_with_lookahead_is_checked_by_the_host() {
    let answers = [r#"{"city":"rome"}"#, r#"{"city":"Rome"}"#];
    let server = server(answers.map(|text| json_response(&chat(text))).into()).await;
    let mut request = ask_city();
    let schema = &mut request.response_schema.as_mut().unwrap().schema;
    schema["properties"]["city"]["pattern"] = json!("^(?=.*[A-Z])[A-Za-z]+$");
    let completion = complete(&simple("openai", &server.uri()), &request).await.unwrap();
    assert_eq!(completion.structured, Some(json!({ "city": "Rome" })));
    let sent = &bodies(&server).await[0]["response_format"]["json_schema"];
    let city = &sent["schema"]["properties"]["city"];
    assert_eq!((&sent["strict"], city), (&json!(true), &json!({ "type": "string" })));
}

#[tokio::test]
async fn gemini_and_anthropic_get_the_schema() {
    let server_a = server(vec![json_response(&gemini(r#"{"city":"Rome"}"#))]).await;
    complete(&simple("gemini", &server_a.uri()), &ask_city()).await.unwrap();
    let config = &bodies(&server_a).await[0]["generationConfig"];
    assert_eq!(config["responseMimeType"], "application/json");
    assert_eq!(config["responseJsonSchema"]["required"], json!(["city"]));
    assert_eq!(config["responseJsonSchema"].get("$schema"), None);

    let server_b = server(vec![json_response(&anthropic(r#"{"city":"Rome"}"#))]).await;
    complete(&simple("anthropic", &server_b.uri()), &ask_city()).await.unwrap();
    let format = &bodies(&server_b).await[0]["output_config"]["format"];
    let closed = json!({
        "type": "object",
        "required": ["city"],
        "properties": { "city": { "type": "string" }, "zip": { "type": "string" } },
        "additionalProperties": false,
    });
    assert_eq!(format, &json!({ "type": "json_schema", "schema": closed }));
}

#[tokio::test]
async fn schema_that_anthropic_rejects_is_in_the_instructions() {
    let server = server(vec![json_response(&anthropic(r#"{"city":"Rome"}"#))]).await;
    let mut request = ask_city();
    let schema = json!({
        "type": "object", "properties": {}, "additionalProperties": { "type": "string" },
    });
    request.response_schema.as_mut().unwrap().schema = schema;
    let completion = complete(&simple("anthropic", &server.uri()), &request).await.unwrap();
    assert_eq!(completion.structured, Some(json!({ "city": "Rome" })));
    let bodies = bodies(&server).await;
    assert_eq!((bodies.len(), bodies[0].get("output_config")), (1, None));
    let system = bodies[0]["system"].as_str().unwrap();
    assert!(system.contains(r#""additionalProperties":{"type":"string"}"#), "{system}");
}

#[tokio::test]
async fn json_mode_has_the_schema_in_a_system_message() {
    let server_a = server(vec![json_response(&chat("{\"city\":\"Rome\"}"))]).await;
    let routes = with_mode("openai", &server_a.uri(), "json-object");
    complete(&routes, &ask_city()).await.unwrap();
    let body = &bodies(&server_a).await[0];
    assert_eq!(body["response_format"], json!({ "type": "json_object" }));
    let system = body["messages"][0]["content"].as_str().unwrap();
    assert!(system.contains("json") && system.contains(r#""required":["city"]"#), "{system}");

    let server_b = server(vec![json_response(&gemini("{\"city\":\"Rome\"}"))]).await;
    let mut request = ask_city();
    request.max_output_tokens = Some(7);
    let routes = with_mode("gemini", &server_b.uri(), "json-object");
    complete(&routes, &request).await.unwrap();
    let config = &bodies(&server_b).await[0]["generationConfig"];
    assert_eq!(config["responseMimeType"], "application/json");
    assert_eq!(config["maxOutputTokens"], 7);
    assert_eq!(config.get("responseJsonSchema"), None);
}

#[tokio::test]
async fn document_is_found_in_a_code_fence() {
    let text = "Sure!\n```json\n{\"city\": \"Rome\"}\n```";
    let server = server(vec![json_response(&chat(text))]).await;
    let routes = with_mode("openai", &server.uri(), "prompt");
    let completion = complete(&routes, &ask_city()).await.unwrap();
    assert_eq!(completion.structured, Some(json!({ "city": "Rome" })));
    assert_eq!(bodies(&server).await[0].get("response_format"), None);
}

#[tokio::test]
async fn last_valid_document_is_used_without_repair() {
    let cases = [
        ("Draft: {\"town\": \"?\"}\nFinal: {\"city\": \"Rome\"}", "Rome"),
        ("As in {\"city\": \"Oslo\"}: ```json\n[{\"city\": \"Rome\",}]\n``` Bye {}", "Rome"),
        ("{\"city\": \"Rome\nand Oslo\"}", "Rome\nand Oslo"),
    ];
    for (text, city) in cases {
        let server = server(vec![json_response(&chat(text))]).await;
        let completion = complete(&simple("openai", &server.uri()), &ask_city()).await.unwrap();
        assert_eq!(completion.structured, Some(json!({ "city": city })), "{text}");
        assert_eq!(bodies(&server).await.len(), 1, "{text}");
    }
}

#[tokio::test]
async fn rejected_schema_falls_back_to_a_weaker_mode() {
    let error = json!({ "error": { "message": "Invalid schema for response_format" } });
    let refused = ResponseTemplate::new(400).set_body_json(error);
    let server = server(vec![refused, json_response(&chat("{\"city\":\"Rome\"}"))]).await;
    let completion = complete(&simple("openai", &server.uri()), &ask_city()).await.unwrap();
    assert_eq!(completion.structured, Some(json!({ "city": "Rome" })));
    assert_eq!(bodies(&server).await[1]["response_format"], json!({ "type": "json_object" }));
}

#[tokio::test]
async fn rejected_schema_is_remembered() {
    let error = json!({ "error": { "message": "Invalid schema for response_format" } });
    let refused = ResponseTemplate::new(400).set_body_json(error);
    let city = json_response(&chat("{\"city\":\"Rome\"}"));
    let server = server(vec![refused, city.clone(), city.clone(), city]).await;
    let routes = simple("openai", &server.uri());
    for _ in 0..2 {
        complete(&routes, &ask_city()).await.unwrap();
    }
    // The provider may accept another schema.
    let mut other = ask_city();
    other.response_schema.as_mut().unwrap().schema["required"] = json!(["city", "zip"]);
    other.tries.repair = Some(false);
    complete(&routes, &other).await.unwrap_err();
    let bodies = bodies(&server).await;
    let modes: Vec<&Value> = bodies.iter().map(|body| &body["response_format"]["type"]).collect();
    assert_eq!(modes, ["json_schema", "json_object", "json_object", "json_schema"]);
}

#[tokio::test]
async fn mode_that_the_provider_rejects_as_well_is_not_remembered() {
    let error = json!({ "error": { "message": "this is no JSON" } });
    let refused = ResponseTemplate::new(400).set_body_json(error);
    let city = json_response(&chat("{\"city\":\"Rome\"}"));
    let server = server(vec![refused.clone(), refused.clone(), refused, city]).await;
    let routes = simple("openai", &server.uri());
    complete(&routes, &ask_city()).await.unwrap_err();
    complete(&routes, &ask_city()).await.unwrap();
    let bodies = bodies(&server).await;
    assert_eq!((bodies.len(), &bodies[3]["response_format"]["type"]), (4, &json!("json_schema")));
}

#[tokio::test]
async fn rejection_without_a_word_about_the_schema_does_not_change_the_mode() {
    let error = json!({ "error": { "message": "the conversation is too long" } });
    let refused = ResponseTemplate::new(400).set_body_json(error);
    let server = server(vec![refused]).await;
    // The name of the model contains a word that, in a message of the provider, marks a rejected
    // schema.
    let named = json!({ "model": "json-schema-1" });
    let routes = routes(table("openai", &server.uri(), &json!({}), &named));
    let failure = complete(&routes, &ask_city()).await.unwrap_err();
    assert!(failure.message.contains("json-schema-1"), "{failure}");
    assert_eq!(bodies(&server).await.len(), 1);
}

#[tokio::test]
async fn invalid_document_is_repaired_once() {
    let answers =
        vec![json_response(&chat("{\"city\": 5}")), json_response(&chat("{\"city\":\"R\"}"))];
    let server = server(answers).await;
    let completion = complete(&simple("openai", &server.uri()), &ask_city()).await.unwrap();
    assert_eq!(completion.structured, Some(json!({ "city": "R" })));
    assert_eq!(completion.usage.input_tokens, Some(24));
    let messages = &bodies(&server).await[1]["messages"];
    assert_eq!(messages[2], json!({ "role": "assistant", "content": "{\"city\": 5}" }));
    let wish = messages[3]["content"].as_str().unwrap();
    assert!(wish.contains("at `/city`") && messages[3]["role"] == "user", "{wish}");
}

#[tokio::test]
async fn invalid_document_after_the_repair_is_a_failure() {
    let server = server(vec![json_response(&chat("I would rather not"))]).await;
    let failure = complete(&simple("openai", &server.uri()), &ask_city()).await.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.retryable), ("invalid", false));
    assert!(failure.message.contains("`m-1` of route `chat`"), "{failure}");
    assert_eq!(failure.details.unwrap()["answer"], "I would rather not");
    assert_eq!(bodies(&server).await.len(), 2);
}

#[tokio::test]
async fn repair_can_be_disabled() {
    let server = server(vec![json_response(&chat("{\"city\": 5}"))]).await;
    let tries = Tries { repair: Some(false), ..Tries::default() };
    let request = CompletionRequest { tries, ..ask_city() };
    let failure = complete(&simple("openai", &server.uri()), &request).await.unwrap_err();
    assert!(failure.message.contains("at `/city`"), "{failure}");
    assert!(!failure.message.contains("after a repair"), "{failure}");
    let details = failure.details.unwrap();
    assert_eq!(details["answer"], "{\"city\": 5}");
    assert_eq!(details["document"], "{\"city\":5}");
    assert_eq!(bodies(&server).await.len(), 1);
}

#[tokio::test]
async fn truncated_document_is_not_repaired() {
    let mut answer = chat("{\"city\": \"Ro");
    answer["choices"][0]["finish_reason"] = json!("length");
    let server = server(vec![json_response(&answer)]).await;
    let failure = complete(&simple("openai", &server.uri()), &ask_city()).await.unwrap_err();
    assert!(failure.message.contains("max_output_tokens"), "{failure}");
    assert_eq!(bodies(&server).await.len(), 1);
}

#[tokio::test]
async fn truncated_repair_names_the_limit() {
    let mut repair = chat("{\"city\": \"Ro");
    repair["choices"][0]["finish_reason"] = json!("length");
    let server = server(vec![json_response(&chat("{\"city\": 5}")), json_response(&repair)]).await;
    let failure = complete(&simple("openai", &server.uri()), &ask_city()).await.unwrap_err();
    assert!(failure.message.contains("max_output_tokens"), "{failure}");
    assert_eq!(failure.details.unwrap()["answer"], "{\"city\": \"Ro");
    assert_eq!(bodies(&server).await.len(), 2);
}

#[tokio::test]
async fn filtered_response_has_no_document() {
    let mut answer = chat("");
    answer["choices"][0]["finish_reason"] = json!("content_filter");
    let server = server(vec![json_response(&answer)]).await;
    let completion = complete(&simple("openai", &server.uri()), &ask_city()).await.unwrap();
    assert_eq!(completion.finish_reason, FinishReason::ContentFilter);
    assert_eq!(completion.structured, None);
}
