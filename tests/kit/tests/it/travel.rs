//! The services of the travel application over real sockets: Apify, Nominatim, Unsplash and
//! Google's image models, with their faults.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};
use wattle_kit::{
    picture::text_of_png,
    standin::{
        Config, Fault, FaultRule, Handle, Pattern, Server, deepseek_not_found, google_not_found,
        google_quota,
    },
};

const APIFY: &str = "/v2/acts/streamers~youtube-scraper/run-sync-get-dataset-items";
const IMAGEN: &str = "/v1beta/models/imagen-4.0-fast-generate-001:predict";
const PICTURES: &str = "/v1beta/models/gemini-2.5-flash-image:generateContent";
const TEXTS: &str = "/v1beta/models/gemini-2.5-flash:generateContent";

async fn start() -> Handle {
    Server::start(Config::default()).await.unwrap()
}

fn post(server: &Handle, path: &str, body: &Value) -> RequestBuilder {
    let request = Client::new().post(format!("{}{path}", server.base_url)).json(body);
    request.header("x-goog-api-key", "k").header("authorization", "Bearer k")
}

fn get(server: &Handle, path: &str) -> RequestBuilder {
    let request = Client::builder().user_agent("kit/1.0").build().unwrap();
    request.get(format!("{}{path}", server.base_url)).header("authorization", "Client-ID k")
}

async fn read(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

async fn answer(request: RequestBuilder) -> (u16, Value) {
    read(request.send().await.unwrap()).await
}

fn status(status: u16) -> Fault {
    Fault::Status { status, retry_after: None, body: None }
}

#[tokio::test]
async fn apify_crawls_and_its_token_is_redacted() {
    let server = start().await;
    let input = json!({"startUrls": [{"url": "https://www.youtube.com/watch?v=dQw4w9WgXcQ"}],
        "downloadSubtitles": true});
    let path = format!("{APIFY}?token=apify-secret");
    let (status_code, items) = answer(post(&server, &path, &input)).await;
    assert_eq!((status_code, &items[0]["location"]), (201, &json!("Tokyo")));
    let alias = path.replace("/acts/", "/actors/");
    assert_eq!(answer(post(&server, &alias, &input)).await.0, 201);
    let journal = serde_json::to_string(&server.requests()).unwrap();
    assert!(!journal.contains("apify-secret"), "{journal}");
    for (code, kind) in [
        (402, "not-enough-usage-to-run-paid-actor"),
        (404, "record-not-found"),
        (408, "run-timeout-exceeded"),
        (429, "rate-limit-exceeded"),
        (503, "internal-server-error"),
    ] {
        server.fault(FaultRule::new(Pattern::path("/v2/*"), status(code)).times(1));
        let (answered, body) = answer(post(&server, &path, &input)).await;
        assert_eq!((answered, &body["error"]["type"]), (code, &json!(kind)));
    }
}

#[tokio::test]
async fn nominatim_finds_some_places() {
    let server = start().await;
    let (_, found) = answer(get(&server, "/search?q=Tokyo+Tower&format=jsonv2&limit=1")).await;
    assert_eq!((&found[0]["lat"], &found[0]["lon"]), (&json!("35.6585805"), &json!("139.7454329")));
    assert_eq!(answer(get(&server, "/search?q=Yanaka+Ginza&format=jsonv2")).await.1, json!([]));
    let (_, with_city) = answer(get(&server, "/search?q=Yanaka%20Ginza,%20Tokyo")).await;
    assert_eq!(with_city[0]["lat"], "35.7275");
    server.fault(FaultRule::new(Pattern::path("/search"), status(429)).times(1));
    let (refused, body) = answer(get(&server, "/search?q=x")).await;
    assert_eq!((refused, &body["error"]["code"]), (429, &json!(429)));
    assert!(server.requests().windows(2).all(|pair| pair[0].at_ms <= pair[1].at_ms));
}

#[tokio::test]
async fn unsplash_finds_photographs_until_its_quota_is_exceeded() {
    let server = start().await;
    let path = "/search/photos?query=tower&page=1&per_page=1&orientation=landscape";
    let response = get(&server, path).header("accept-version", "v1").send().await.unwrap();
    assert!(response.headers().contains_key("x-ratelimit-remaining"));
    assert!(response.headers().contains_key("link"));
    let (_, found) = read(response).await;
    let photo = &found["results"][0];
    assert_eq!(photo["user"]["name"], "Jo Lens");
    let place = photo["links"]["download_location"].as_str().unwrap();
    let place = place.strip_prefix(&server.base_url).unwrap();
    assert_eq!(answer(get(&server, place)).await.0, 200);
    assert_eq!(answer(get(&server, "/search/photos?query=hidden")).await.1["total"], 0);
    server.fault(FaultRule::new(Pattern::path("/search/photos"), status(403)).times(1));
    let limited = answer(get(&server, path)).await;
    assert_eq!(limited, (403, json!("Rate Limit Exceeded")));
}

#[tokio::test]
async fn images_are_generated_and_withheld() {
    let server = start().await;
    let imagen = json!({"instances": [{"prompt": "a tower"}], "parameters": {"sampleCount": 1}});
    let (_, made) = answer(post(&server, IMAGEN, &imagen)).await;
    let data = made["predictions"][0]["bytesBase64Encoded"].as_str().unwrap();
    let png = STANDARD.decode(data).unwrap();
    assert_eq!(text_of_png(&png).as_deref(), Some("a tower"));
    let gemini = json!({"contents": [{"parts": [{"text": "a tower"}]}],
        "generationConfig": {"responseModalities": ["IMAGE"]}});
    let (_, made) = answer(post(&server, PICTURES, &gemini)).await;
    assert_eq!(made["candidates"][0]["content"]["parts"][0]["inlineData"]["data"], data);
    let withheld = Fault::Withheld { reason: None };
    server.fault(FaultRule::new(Pattern::any(), withheld));
    assert_eq!(answer(post(&server, IMAGEN, &imagen)).await.1, json!({}));
    let (_, kept) = answer(post(&server, PICTURES, &gemini)).await;
    assert_eq!(kept["candidates"][0]["finishReason"], "IMAGE_SAFETY");
    let text = json!({"contents": [{"parts": [{"text": "hi"}]}]});
    let (_, blocked) = answer(post(&server, TEXTS, &text)).await;
    assert_eq!(blocked["promptFeedback"]["blockReason"], "SAFETY");
}

#[tokio::test]
async fn models_are_retired_by_faults() {
    let server = start().await;
    let text = json!({"contents": [{"parts": [{"text": "hi"}]}]});
    let gone = Pattern::model("gemini-2.5-flash");
    server.fault(FaultRule::new(gone, google_not_found("gemini-2.5-flash")).times(1));
    let (status, body) = answer(post(&server, TEXTS, &text)).await;
    assert_eq!((status, &body["error"]["status"]), (404, &json!("NOT_FOUND")));
    server.fault(FaultRule::new(Pattern::any(), google_quota("17s")).times(1));
    let (status, body) = answer(post(&server, TEXTS, &text)).await;
    assert_eq!(status, 429);
    assert_eq!(body["error"]["details"][0]["retryDelay"], "17s");
    server.fault(FaultRule::new(Pattern::model("deepseek-chat"), deepseek_not_found()));
    let chat = json!({"model": "deepseek-chat", "messages": [{"role": "user", "content": "hi"}]});
    let (status, body) = answer(post(&server, "/v1/chat/completions", &chat)).await;
    assert_eq!((status, &body["error"]["message"]), (400, &json!("Model Not Exist")));
}
