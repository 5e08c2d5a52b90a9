//! Streamed OpenAI answers: server-sent events with the oddities a client must survive.

use std::time::Duration;

use axum::{
    body::Body,
    http::header,
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use serde_json::{Value, json};

use super::{
    engine::Answer,
    faults::{Fault, StreamQuirks},
    journal::now_ms,
    openai::{completion_id, usage},
};

/// Characters of content in one chunk.
const CHUNK_CHARACTERS: usize = 8;

/// The answer as a stream of chunks.
pub(super) fn response(
    request: &Value,
    model: &str,
    answer: &Answer,
    fault: Option<&Fault>,
) -> Response {
    let quirks = match fault {
        Some(Fault::Stream(quirks)) => quirks.clone(),
        _ => StreamQuirks::default(),
    };
    let wants_usage = request.pointer("/stream_options/include_usage") == Some(&json!(true));
    let pause = Duration::from_millis(quirks.pause_ms);
    let events = events(model, answer, &quirks, wants_usage);
    let body = stream::iter(events).then(move |event| async move {
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        Ok::<Bytes, std::io::Error>(Bytes::from(event))
    });
    let headers =
        [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
    (headers, Body::from_stream(body)).into_response()
}

/// All events in order, as they go over the wire.
fn events(model: &str, answer: &Answer, quirks: &StreamQuirks, wants_usage: bool) -> Vec<String> {
    let created = now_ms() / 1_000;
    let chunk = |choices: Value| {
        json!({"id": completion_id(answer), "object": "chat.completion.chunk",
               "created": created, "model": model, "choices": choices})
    };
    let delta = |delta: Value, finish: Value| {
        chunk(json!([{"index": 0, "delta": delta, "finish_reason": finish}]))
    };
    let mut documents = vec![delta(json!({"role": "assistant", "content": ""}), Value::Null)];
    let letters: Vec<char> = answer.content.chars().collect();
    let pieces = letters.chunks(CHUNK_CHARACTERS).take(quirks.error_after.unwrap_or(usize::MAX));
    documents.extend(
        pieces
            .map(|piece| delta(json!({"content": piece.iter().collect::<String>()}), Value::Null)),
    );
    if quirks.error_after.is_some() {
        let error = json!({"message": "ordered by the test", "type": "server_error", "code": null});
        documents.push(json!({ "error": error }));
        return documents.iter().map(|document| event(&document.to_string(), quirks)).collect();
    }
    let mut last = delta(json!({}), json!("stop"));
    if quirks.usage_in_last_choice {
        last["usage"] = usage(answer);
    }
    documents.push(last);
    if wants_usage && !quirks.no_usage && !quirks.usage_in_last_choice {
        let mut summary = chunk(json!([]));
        summary["usage"] = usage(answer);
        documents.push(summary);
    }
    let mut events: Vec<String> =
        documents.iter().map(|document| event(&document.to_string(), quirks)).collect();
    if !quirks.no_done {
        events.push(event("[DONE]", quirks));
    }
    events
}

fn event(data: &str, quirks: &StreamQuirks) -> String {
    let end = if quirks.crlf { "\r\n" } else { "\n" };
    let comment = if quirks.comments { format!(": keep-alive{end}{end}") } else { String::new() };
    format!("{comment}data: {data}{end}{end}")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::{Answer, StreamQuirks, events};

    fn run(quirks: &StreamQuirks) -> Vec<String> {
        let answer = Answer {
            content: "你好, this is a longer answer".to_owned(),
            rule: "chat",
            prompt_tokens: 3,
            completion_tokens: 4,
        };
        events("m", &answer, quirks, true)
    }

    fn data(event: &str) -> Value {
        serde_json::from_str(event.strip_prefix("data: ").unwrap().trim()).unwrap()
    }

    #[test]
    fn content_is_whole_and_usage_comes_last() {
        let events = run(&StreamQuirks::default());
        let content: String = events[..events.len() - 2]
            .iter()
            .filter_map(|event| {
                data(event).pointer("/choices/0/delta/content")?.as_str().map(str::to_owned)
            })
            .collect();
        assert_eq!(content, "你好, this is a longer answer");
        assert_eq!(data(&events[events.len() - 2])["usage"]["total_tokens"], 7);
        assert_eq!(events.last().unwrap(), "data: [DONE]\n\n");
    }

    #[test]
    fn quirks_show() {
        let odd = StreamQuirks { crlf: true, comments: true, no_done: true, ..Default::default() };
        let events = run(&odd);
        assert!(events.iter().all(|event| event.starts_with(": keep-alive\r\n\r\ndata: {")));
        let usage =
            StreamQuirks { usage_in_last_choice: true, no_done: true, ..Default::default() };
        let last = run(&usage).pop().unwrap();
        assert_eq!(data(&last)["choices"][0]["finish_reason"], "stop");
        assert_eq!(data(&last)["usage"]["total_tokens"], 7);
        let error = StreamQuirks { error_after: Some(1), ..Default::default() };
        let events = run(&error);
        assert_eq!(events.len(), 3);
        assert_eq!(data(&events[2])["error"]["type"], "server_error");
    }
}
