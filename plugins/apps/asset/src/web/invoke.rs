//! `POST /api/ai/asset-graph/invoke`: parses an input up to the interrupt for the user.
//! `POST /api/ai/asset-graph/stream` does the same and streams the progress of each node.

use std::borrow::Cow;

use wattle_plugin::prelude::{
    Deserialize, Failure, JsonSchema, Request, Response, Serialize, StreamFormat, Value, blob,
    handler, json,
};
use wattle_plugin::runs::{EndedRun, Start};
use wattle_plugin::web::{ErrorDocument, HandOff, refuse, respond, status};

use crate::web::document::Review;
use crate::web::{not_understood, reason};
use crate::{GRAPH, picture};

/// Name of the stream in the app's folder.
const STREAM: &str = "invoke";

/// Maximum bytes of the image and the text together. Vision models accept no larger images.
const INPUT_BYTES: usize = 10 << 20;

/// An image, a text, or both.
// Texts are borrowed, so that an image of megabytes is in memory only once.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Input<'a> {
    /// A data URL.
    #[serde(borrow, default)]
    #[schemars(!default, with = "Option<String>")]
    image_data: Option<Text<'a>>,
    #[serde(borrow, default)]
    #[schemars(!default, with = "Option<String>")]
    text_input: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The review of an input.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Parsed<'a> {
    thread_id: &'a str,
    #[schemars(with = "Review")]
    review_payload: &'a Value,
}

/// An event of the stream: its name, and the document in its data, from `streams/invoke.toml`.
#[expect(dead_code, reason = "only its schema is used: the host makes the events")]
#[derive(JsonSchema)]
#[serde(tag = "event", content = "data", rename_all = "snake_case")]
enum StreamEvent {
    Start(Started),
    NodeStart(NodeEvent),
    NodeEnd(NodeEvent),
    Review(ReviewEvent),
    Error(FailedEvent),
}

/// The thread of the run.
#[expect(dead_code, reason = "only its schema is used: the host makes the events")]
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Started {
    thread_id: String,
}

/// The start or the end of a node.
#[expect(dead_code, reason = "only its schema is used: the host makes the events")]
#[derive(JsonSchema)]
struct NodeEvent {
    node: String,
    /// Progress for users.
    message: String,
    seq: u64,
}

/// The last event of a successful run.
#[expect(dead_code, reason = "only its schema is used: the host makes the events")]
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ReviewEvent {
    thread_id: String,
    review_payload: Review,
}

/// The last event of a failed run, with the status that `invoke` responds with.
#[expect(dead_code, reason = "only its schema is used: the host makes the events")]
#[derive(JsonSchema)]
struct FailedEvent {
    status: u16,
    error: String,
}

/// Starts a run and responds with the review that the user has to confirm.
#[handler(POST, "/api/ai/asset-graph/invoke", body = Input<'_>, returns = Parsed<'_>,
    error = ErrorDocument)]
pub(crate) fn invoke(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorDocument>(request, || parsed(&start(request)?.start_and_wait()?))
}

/// Starts a run and streams the progress of each node. The last event has the review that the user
/// has to confirm.
#[handler(POST, "/api/ai/asset-graph/stream", body = Input<'_>, events = StreamEvent,
    error = ErrorDocument)]
pub(crate) fn stream(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorDocument>(request, || {
        let run = start(request)?.start()?;
        let format = StreamFormat::Custom(STREAM.to_owned());
        Ok(Response::hand_off_from(HandOff::run(run.thread_id, run.run_id, format)))
    })
}

/// Returns the run for the input.
fn start(request: &Request) -> Result<Start, Failure> {
    let body: Input<'_> = serde_json::from_slice(&request.body).map_err(|_| not_understood())?;
    let image = present(body.image_data.as_ref());
    let text = present(body.text_input.as_ref());
    let image = check(image, text)?;
    let image = image.map(|image| blob::put(&image.bytes, &image.media_type)).transpose()?;
    Ok(Start::graph(GRAPH).input(json!({ "imageData": image, "textInput": text })))
}

/// Returns the trimmed text, or `None` if it is absent or blank.
fn present<'a>(text: Option<&'a Text<'_>>) -> Option<&'a str> {
    text.map(|text| text.0.trim()).filter(|text| !text.is_empty())
}

/// Checks the input and decodes its image, if it has one.
fn check(image: Option<&str>, text: Option<&str>) -> Result<Option<blob::Data>, Failure> {
    if image.is_none() && text.is_none() {
        return Err(refuse(status::BAD_REQUEST, "缺少输入参数"));
    }
    let image_bytes = image.map_or(0, decoded_length);
    if image_bytes + text.map_or(0, str::len) > INPUT_BYTES {
        return Err(refuse(status::PAYLOAD_TOO_LARGE, "图片和文字合计不能超过 10 MiB"));
    }
    let Some(url) = image else { return Ok(None) };
    match blob::parse_data_url(url) {
        Ok(data) if picture::is_image(&data.media_type) && !data.bytes.is_empty() => Ok(Some(data)),
        _ => Err(refuse(status::BAD_REQUEST, "imageData 必须是图片的 data URL")),
    }
}

/// Returns the size of the image in a data URL in bytes, without decoding it.
fn decoded_length(url: &str) -> usize {
    let data = url.split_once(',').map_or(url, |(_, data)| data);
    let padding = data.bytes().rev().take_while(|byte| *byte == b'=').count();
    (data.len() / 4 * 3 + data.len() % 4).saturating_sub(padding)
}

fn parsed(ended: &EndedRun) -> Result<Response, Failure> {
    match ended.question() {
        Ok(question) => Response::json(
            200,
            &Parsed { thread_id: &ended.run.thread_id, review_payload: &question.payload },
        ),
        Err(failure) => {
            Err(refuse(status::BAD_GATEWAY, format!("AI 解析失败: {}", reason(&failure))))
        }
    }
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Failure, Request, StreamFormat, Value, json};
    use wattle_plugin::runs::{Interrupt, Outcome};
    use wattle_plugin::testing::FakeHost;
    use wattle_plugin::web::Body;

    use super::{INPUT_BYTES, decoded_length, invoke, stream};

    fn host(outcome: Outcome) -> FakeHost {
        FakeHost::new().outcome(outcome, json!({}))
    }

    fn asked() -> Outcome {
        let payload = json!({"type": "unknown", "rows": [], "missingFields": [], "warnings": []});
        Outcome::Interrupted(vec![Interrupt::new("q", "present_review", payload)])
    }

    fn post(host: &FakeHost, body: &str) -> (u16, Value) {
        let request = Request::new("POST", "/api/ai/asset-graph/invoke").with_body(body);
        host.respond(invoke, &request)
    }

    fn picture(bytes: usize) -> String {
        format!("data:image/png;base64,{}", "AAAA".repeat(bytes / 3))
    }

    #[test]
    fn response_has_the_payload_of_the_interrupt() {
        let host = host(asked());
        let (status, body) = post(&host, &json!({"textInput": " 买入腾讯 "}).to_string());
        assert_eq!(status, 200);
        assert_eq!(body["threadId"], "thread-1");
        assert_eq!(body["reviewPayload"]["type"], "unknown");
        let started = &host.started()[0];
        assert_eq!(started.graph, "AssetGraph");
        assert_eq!(started.input, json!({"imageData": null, "textInput": "买入腾讯"}));
    }

    #[test]
    fn image_is_stored_as_a_blob() {
        let host = host(asked());
        assert_eq!(post(&host, &json!({"imageData": picture(30)}).to_string()).0, 200);
        let reference = host.started()[0].input["imageData"].as_str().unwrap().to_owned();
        assert!(reference.starts_with("blob:"), "{reference}");
    }

    #[test]
    fn stream_hands_off_the_run_and_rejects_invalid_input() {
        let host = host(asked());
        let post = |body: &str| {
            let request = Request::new("POST", "/api/ai/asset-graph/stream").with_body(body);
            host.run(|| stream(&request)).unwrap()
        };
        let response = post(r#"{"textInput": "买入"}"#);
        let Body::HandOff(hand_off) = &response.body else { panic!("{response:?}") };
        assert_eq!(hand_off.run_id.as_deref(), Some("run-1"));
        assert!(matches!(&hand_off.format, StreamFormat::Custom(name) if name == "invoke"));
        assert_eq!(host.started().len(), 1);
        let refused = post("{}");
        assert_eq!(refused.status, 400);
        assert_eq!(refused.json_body().unwrap(), json!({"error": "缺少输入参数"}));
        assert_eq!(host.started().len(), 1);
    }

    #[test]
    fn invalid_input_starts_no_run() {
        let host = host(asked());
        for (body, error) in [
            ("{}", "缺少输入参数"),
            (r#"{"imageData": "", "textInput": "  "}"#, "缺少输入参数"),
            (r#"{"imageData": null}"#, "缺少输入参数"),
            ("[", "请求格式不正确"),
            (r#"{"textInput": 5}"#, "请求格式不正确"),
            (r#"{"imageData": "http://a/b.png"}"#, "imageData 必须是图片的 data URL"),
            (r#"{"imageData": "data:text/plain;base64,aGk="}"#, "imageData 必须是图片的 data URL"),
            (r#"{"imageData": "data:image/png;base64,"}"#, "imageData 必须是图片的 data URL"),
            (r#"{"imageData": "data:image/png;base64,*"}"#, "imageData 必须是图片的 data URL"),
        ] {
            assert_eq!(post(&host, body), (400, json!({ "error": error })), "{body}");
        }
        assert!(host.started().is_empty());
    }

    #[test]
    fn limit_counts_image_and_text() {
        let host = host(asked());
        // A multiple of 3 just below the limit; the rest is text.
        let bytes = INPUT_BYTES / 3 * 3;
        let rest = INPUT_BYTES - bytes;
        let body = |text: usize| {
            json!({"imageData": picture(bytes), "textInput": "x".repeat(text)}).to_string()
        };
        assert_eq!(post(&host, &body(rest)).0, 200);
        assert_eq!(post(&host, &body(rest + 1)).0, 413);
    }

    #[test]
    fn length_is_computed_without_decoding() {
        for (data, length) in [("aGk=", 2), ("aA==", 1), ("aGkh", 3), ("", 0)] {
            assert_eq!(decoded_length(&format!("data:image/png;base64,{data}")), length, "{data}");
        }
    }

    #[test]
    fn failed_run_is_a_bad_gateway() {
        let host = host(Outcome::Failed(Failure::unavailable("model down")));
        let (status, body) = post(&host, r#"{"textInput": "买入"}"#);
        assert_eq!((status, body), (502, json!({"error": "AI 解析失败: model down"})));
    }
}
