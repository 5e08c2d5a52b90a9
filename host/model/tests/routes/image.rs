//! Image generation.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use wattle_graph::failure::Failure;
use wattle_graph::llm::{GeneratedImage, ImageRequest, Tries};
use wattle_kit::standin::{Config, Fault, FaultRule, Pattern, Server};
use wattle_model::Routes;
use wattle_run::ports::{BlobStore, Model};
use wiremock::{MockServer, Request, ResponseTemplate};

use crate::support::{
    Blobs, KEY, assert_no_key, attempts_in, blob, bodies, caller, error_status, json_response,
    raw_server, routes, server, table,
};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n and the rest";
const JPEG: &[u8] = b"\xff\xd8\xff\xe0 and the rest";
const IMAGEN: &str = "imagen-4.0-fast-generate-001";
const FLASH: &str = "gemini-2.5-flash-image";

fn predictions(pictures: &[&[u8]]) -> ResponseTemplate {
    let prediction = |bytes: &&[u8]| {
        let data = STANDARD.encode(bytes);
        json!({ "mimeType": "image/png", "bytesBase64Encoded": data })
    };
    json_response(&json!({ "predictions": pictures.iter().map(prediction).collect::<Vec<_>>() }))
}

fn candidate(bytes: &[u8]) -> ResponseTemplate {
    let data = json!({ "mimeType": "image/png", "data": STANDARD.encode(bytes) });
    let parts = json!([{ "text": "Here it is." }, { "inlineData": data }]);
    let content = json!({ "role": "model", "parts": parts });
    json_response(&json!({ "candidates": [{ "content": content, "finishReason": "STOP" }] }))
}

/// Returns a table with a route of two models at one stand-in.
fn image_table(kind: &str, base: &str, models: [&str; 2], retries: u32) -> Value {
    let fallbacks = json!([{ "provider": "first", "model": models[1] }]);
    let route = json!({ "model": models[0], "retries": retries, "fallbacks": fallbacks });
    table(kind, base, &json!({}), &route)
}

fn google(server: &MockServer, retries: u32) -> Routes {
    let base = format!("{}/v1beta/", server.uri());
    routes(image_table("gemini", &base, [IMAGEN, FLASH], retries))
}

fn image_request(count: u32) -> ImageRequest {
    ImageRequest {
        route: "chat".into(),
        prompt: "a tower at dusk".into(),
        count,
        aspect_ratio: Some("16:9".into()),
        tries: Tries::default(),
    }
}

/// Returns a request for one candidate.
fn only(candidate: u32, count: u32) -> ImageRequest {
    let candidate = Some(candidate);
    ImageRequest { tries: Tries { candidate, ..Tries::default() }, ..image_request(count) }
}

async fn make(routes: &Routes, request: &ImageRequest) -> Result<Vec<GeneratedImage>, Failure> {
    let made = routes.generate_images(&caller(), request, &Blobs::default()).await;
    if let Err(failure) = &made {
        assert_no_key(failure);
    }
    made
}

/// Returns the paths of the received requests.
async fn paths(server: &MockServer) -> Vec<String> {
    let requests = server.received_requests().await.unwrap();
    requests.iter().map(|request| request.url.path().to_owned()).collect()
}

#[tokio::test]
async fn imagen_generates_with_predict() {
    let server = server(vec![predictions(&[PNG, JPEG])]).await;
    let (routes, blobs) = (google(&server, 0), Blobs::default());
    let made = routes.generate_images(&caller(), &image_request(2), &blobs).await.unwrap();
    let types: Vec<&str> = made.iter().map(|image| image.media_type.as_str()).collect();
    assert_eq!(types, ["image/png", "image/jpeg"], "detected from the bytes");
    assert_eq!((made[0].provider.as_str(), made[0].model.as_str()), ("first", IMAGEN));
    assert_eq!(made[0].blob, blob(0x89));
    assert_eq!(blobs.get(made[0].blob, 0, None).await.unwrap(), PNG);

    let request = &server.received_requests().await.unwrap()[0];
    assert_eq!(request.url.path(), format!("/v1beta/models/{IMAGEN}:predict"));
    assert_eq!(request.url.query(), None);
    assert_eq!(request.headers["x-goog-api-key"], KEY);
    let body: Value = request.body_json().unwrap();
    let parameters = json!({ "sampleCount": 2, "aspectRatio": "16:9" });
    let expected =
        json!({ "instances": [{ "prompt": "a tower at dusk" }], "parameters": parameters });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn imagen_is_called_again_for_more_than_four_images() {
    let server = server(vec![predictions(&[PNG; 4]), predictions(&[PNG; 2])]).await;
    assert_eq!(make(&google(&server, 0), &image_request(6)).await.unwrap().len(), 6);
    let sent = bodies(&server).await;
    let counts: Vec<&Value> = sent.iter().map(|body| &body["parameters"]["sampleCount"]).collect();
    assert_eq!(counts, [4, 2]);
}

#[tokio::test]
async fn gemini_is_called_once_for_each_image() {
    let server = server(vec![candidate(PNG)]).await;
    let made = make(&google(&server, 0), &only(1, 3)).await.unwrap();
    assert_eq!(made.len(), 3);
    assert_eq!(made[0].model, FLASH);
    let path = format!("/v1beta/models/{FLASH}:generateContent");
    assert_eq!(paths(&server).await, [path.as_str(); 3]);
    let config =
        json!({ "responseModalities": ["IMAGE"], "imageConfig": { "aspectRatio": "16:9" } });
    for body in bodies(&server).await {
        assert_eq!(body["generationConfig"], config);
        assert_eq!(body["contents"][0]["parts"], json!([{ "text": "a tower at dusk" }]));
    }
}

#[tokio::test]
async fn generated_images_are_kept_if_others_fail() {
    let server = server(vec![candidate(PNG), error_status(403)]).await;
    assert_eq!(make(&google(&server, 0), &only(1, 2)).await.unwrap().len(), 1);
}

#[tokio::test]
async fn openai_generates_with_images_generations() {
    let answer = json!({ "data": [{ "b64_json": STANDARD.encode(PNG) }] });
    let server = server(vec![json_response(&answer)]).await;
    let base = format!("{}/v1", server.uri());
    let routes = routes(image_table("openai", &base, ["gpt-image-1", "dall-e-3"], 0));
    make(&routes, &image_request(1)).await.unwrap();
    make(&routes, &only(1, 1)).await.unwrap();
    let request = &server.received_requests().await.unwrap()[0];
    assert_eq!(request.url.path(), "/v1/images/generations");
    assert_eq!(request.headers["authorization"], format!("Bearer {KEY}"));
    let prompt = "a tower at dusk";
    let first = json!({ "model": "gpt-image-1", "prompt": prompt, "n": 1, "size": "1536x1024" });
    let second = json!({ "model": "dall-e-3", "prompt": prompt, "n": 1, "size": "1792x1024",
                         "response_format": "b64_json" });
    assert_eq!(bodies(&server).await, [first, second]);
}

#[tokio::test]
async fn s3_47_withheld_image_falls_back_without_retry() {
    let filtered = json!({ "predictions": [{ "raiFilteredReason": "it shows people" }] });
    for answer in [filtered, json!({})] {
        let server = server(vec![json_response(&answer), candidate(PNG)]).await;
        let made = make(&google(&server, 2), &image_request(1)).await.unwrap();
        assert_eq!(made[0].model, FLASH);
        let expected = [
            format!("/v1beta/models/{IMAGEN}:predict"),
            format!("/v1beta/models/{FLASH}:generateContent"),
        ];
        assert_eq!(paths(&server).await, expected);
    }
}

#[tokio::test]
async fn google_stand_in_generates_with_either_model() {
    let server = Server::start(Config::default()).await.unwrap();
    let base = format!("{}/v1beta/", server.base_url);
    let routes = routes(image_table("gemini", &base, [IMAGEN, FLASH], 0));
    for (candidate, model) in [(0, IMAGEN), (1, FLASH)] {
        let made = make(&routes, &only(candidate, 2)).await.unwrap();
        let told: Vec<(&str, &str)> =
            made.iter().map(|image| (image.model.as_str(), image.media_type.as_str())).collect();
        assert_eq!(told, [(model, "image/png"); 2]);
    }
    server.fault(FaultRule::new(Pattern::model(IMAGEN), Fault::Withheld { reason: None }));
    assert_eq!(make(&routes, &image_request(1)).await.unwrap()[0].model, FLASH);
}

#[tokio::test]
async fn call_fails_as_withheld_if_all_candidates_withhold_the_image() {
    let filtered = json!({ "predictions": [{ "raiFilteredReason": "it shows people" }] });
    for blocked in [
        json!({ "promptFeedback": { "blockReason": "PROHIBITED_CONTENT" } }),
        json!({ "candidates": [{ "finishReason": "IMAGE_SAFETY", "index": 0 }] }),
    ] {
        let server = server(vec![json_response(&filtered), json_response(&blocked)]).await;
        let failure = make(&google(&server, 2), &image_request(1)).await.unwrap_err();
        assert_eq!((failure.code.as_str(), failure.retryable), ("withheld", false));
        assert!(failure.message.contains("it shows people"), "{failure}");
        let codes: Vec<_> =
            attempts_in(&failure).into_iter().map(|(_, _, tries, code)| (tries, code)).collect();
        assert_eq!(codes, [(1, "withheld".to_owned()), (1, "withheld".to_owned())]);
    }
}

#[tokio::test]
async fn s3_48_retired_image_model_falls_back_and_names_the_setting() {
    let gone = json!({ "error": { "code": 404, "status": "NOT_FOUND",
                                  "message": format!("{IMAGEN} is not found for API v1beta") } });
    let gone = || ResponseTemplate::new(404).set_body_json(&gone);
    let first = server(vec![gone(), candidate(PNG)]).await;
    assert_eq!(make(&google(&first, 2), &image_request(1)).await.unwrap()[0].model, FLASH);
    assert_eq!(paths(&first).await.len(), 2, "a missing model is not retried");

    let both = server(vec![gone()]).await;
    let failure = make(&google(&both, 0), &image_request(1)).await.unwrap_err();
    assert_eq!(failure.code, "unavailable");
    for word in ["(route `chat`)", "`model` under `[model.routes.chat]`", "[model.aliases]"] {
        assert!(failure.message.contains(word), "{failure}");
    }
    // The configuration has the alias that the message suggests.
    let server = server(vec![candidate(PNG)]).await;
    let base = format!("{}/v1beta/", server.uri());
    let mut config = image_table("gemini", &base, [IMAGEN, FLASH], 0);
    config["aliases"] = json!({ IMAGEN: { "model": "gemini-3.1-flash-image" } });
    assert_eq!(
        make(&routes(config), &image_request(1)).await.unwrap()[0].model,
        "gemini-3.1-flash-image"
    );
    assert_eq!(paths(&server).await, ["/v1beta/models/gemini-3.1-flash-image:generateContent"]);
}

#[tokio::test]
async fn rate_limited_provider_is_retried() {
    let body = json!({ "error": {
        "code": 429, "status": "RESOURCE_EXHAUSTED", "message": "slow down",
        "details": [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.02s" }],
    } });
    let busy = || ResponseTemplate::new(429).set_body_json(&body);
    let server1 = server(vec![busy(), busy(), predictions(&[PNG])]).await;
    assert_eq!(make(&google(&server1, 2), &image_request(1)).await.unwrap()[0].model, IMAGEN);

    let server2 = server(vec![busy()]).await;
    let failure = make(&google(&server2, 1), &only(0, 1)).await.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.retryable), ("rate-limited", true));
    assert_eq!(failure.details.as_ref().unwrap()["retry_after_ms"], 20);
    assert_eq!(attempts_in(&failure)[0].2, 2);
}

#[tokio::test]
async fn malformed_responses_make_calls_fail_as_unavailable() {
    let cases = [
        ResponseTemplate::new(200).set_body_raw("<html>busy</html>", "text/html"),
        ResponseTemplate::new(200).set_body_raw("{\"predictions\": [", "application/json"),
        json_response(&json!({ "predictions": [{ "bytesBase64Encoded": "not base64!" }] })),
        predictions(&[b"<svg onload=alert(1)>"]),
        json_response(&json!({ "predictions": "none" })),
        error_status(500),
    ];
    for answer in cases {
        let server = server(vec![answer]).await;
        let failure = make(&google(&server, 0), &only(0, 1)).await.unwrap_err();
        assert_eq!((failure.code.as_str(), failure.retryable), ("unavailable", true), "{failure}");
    }
}

#[tokio::test]
async fn failure_for_a_compressed_response_names_its_coding() {
    for (status, retryable) in [(200, false), (503, true)] {
        let answer = ResponseTemplate::new(status)
            .insert_header("content-encoding", "zstd")
            .set_body_raw(b"\x28\xb5\x2f\xfd".to_vec(), "application/json");
        let server = server(vec![answer]).await;
        let failure = make(&google(&server, 0), &only(0, 1)).await.unwrap_err();
        assert_eq!((failure.code.as_str(), failure.retryable), ("unavailable", retryable));
        assert!(failure.message.contains("`content-encoding: zstd`"), "{failure}");
    }
    // A gateway that decompresses a response may keep the header.
    let picture = json!({ "mimeType": "image/png", "bytesBase64Encoded": STANDARD.encode(PNG) });
    let kept = json_response(&json!({ "note": "\u{fffd}", "predictions": [picture] }))
        .insert_header("content-encoding", "zstd");
    let server = server(vec![kept]).await;
    assert_eq!(make(&google(&server, 0), &only(0, 1)).await.unwrap().len(), 1);
}

#[tokio::test]
async fn call_with_a_slow_or_truncated_response_fails_at_the_timeout() {
    let late = predictions(&[PNG]).set_delay(Duration::from_secs(30));
    let server = server(vec![late]).await;
    let mut request = only(0, 1);
    request.tries.timeout_ms = Some(100);
    let failure = make(&google(&server, 0), &request).await.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.retryable), ("timeout", true));
    // The timeout applies to the whole response: an early head does not extend it.
    let base = raw_server(|mut stream| async move {
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{").await.unwrap();
        std::future::pending::<()>().await;
    })
    .await;
    let slow = routes(image_table("gemini", &base, [IMAGEN, FLASH], 0));
    let failure = make(&slow, &request).await.unwrap_err();
    assert_eq!(failure.code, "timeout");

    let base = raw_server(|mut stream| async move {
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{").await.unwrap();
    })
    .await;
    let cut = routes(image_table("gemini", &base, [IMAGEN, FLASH], 0));
    let failure = make(&cut, &only(0, 1)).await.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.retryable), ("unavailable", true));
    assert!(failure.message.contains("cut off"), "{failure}");
}

#[tokio::test]
async fn malformed_requests_fail_as_invalid() {
    let server = server(vec![predictions(&[PNG])]).await;
    let routes = google(&server, 0);
    let empty = ImageRequest { prompt: "  ".into(), ..image_request(1) };
    let ratio = ImageRequest { aspect_ratio: Some("wide".into()), ..image_request(1) };
    for (request, word) in [
        (image_request(0), "1 to 8"),
        (image_request(9), "1 to 8"),
        (empty, "the prompt of an image"),
        (ratio, "`wide`"),
        (only(2, 1), "candidate 2"),
    ] {
        let failure = make(&routes, &request).await.unwrap_err();
        assert_eq!(failure.code, "invalid");
        assert!(failure.message.contains(word), "{failure}");
    }
    assert!(paths(&server).await.is_empty());
}

#[tokio::test]
async fn failure_for_a_provider_without_image_api_names_its_kind() {
    let routes = routes(image_table("anthropic", "http://127.0.0.1:9/", ["claude", "claude"], 0));
    let failure = make(&routes, &image_request(1)).await.unwrap_err();
    assert_eq!(failure.code, "unsupported");
    for word in ["`first`", "`anthropic`", "`gemini`"] {
        assert!(failure.message.contains(word), "{failure}");
    }
}

#[tokio::test]
async fn model_name_is_one_segment_of_the_request_path() {
    let server = server(vec![candidate(PNG)]).await;
    let base = format!("{}/v1beta/", server.uri());
    let models = ["../../admin?x=#", FLASH];
    make(&routes(image_table("gemini", &base, models, 0)), &only(0, 1)).await.unwrap();
    let path = "/v1beta/models/..%2F..%2Fadmin%3Fx%3D%23:generateContent";
    assert_eq!(paths(&server).await, [path]);
}

#[tokio::test]
async fn key_that_the_provider_repeats_is_masked() {
    let repeats = |code: u16| {
        move |request: &Request| {
            let key = request.headers["x-goog-api-key"].to_str().unwrap().to_owned();
            let words = format!("no {key}");
            let body = if code == 200 {
                json!({
                    "predictions": [{ "raiFilteredReason": words }],
                    "promptFeedback": { "blockReason": words },
                })
            } else {
                json!({ "error": { "code": code, "message": words, "status": words } })
            };
            ResponseTemplate::new(code).set_body_json(body)
        }
    };
    for code in [200, 400, 401, 403, 404, 429, 500, 503] {
        let server = MockServer::start().await;
        wiremock::Mock::given(wiremock::matchers::any())
            .respond_with(repeats(code))
            .mount(&server)
            .await;
        let failure = make(&google(&server, 0), &image_request(1)).await.unwrap_err();
        assert_no_key(&failure);
        assert_eq!(attempts_in(&failure).len(), 2, "{code}");
    }
}
