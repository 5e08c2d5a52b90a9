//! Tests of the assembly of responses.

use serde_json::json;
use wattle_graph::llm::Part;
use wattle_run::ports::model::DiscardDeltas;

use super::*;

fn begin(number: u64, block: Value) -> Value {
    json!({ "type": "content_block_start", "index": number, "content_block": block })
}

fn text(number: u64, text: &str) -> Value {
    let delta = json!({ "type": "text_delta", "text": text });
    json!({ "type": "content_block_delta", "index": number, "delta": delta })
}

/// Returns the reasoning and the text of a response.
fn read(events: &[Value]) -> (String, String) {
    let sink = CallSink::new(&DiscardDeltas);
    let mut builder = AnthropicResponse::new(StateOwner::new("a", "qwen3"), "qwen3", &sink);
    for event in events {
        builder.push(event).unwrap();
    }
    let mut read = (String::new(), String::new());
    for part in builder.build().parts {
        match part {
            Part::Reasoning(text) => read.0.push_str(&text),
            Part::Text(text) => read.1.push_str(&text),
            _ => {}
        }
    }
    read
}

#[test]
fn think_tags_are_found_after_empty_blocks_and_across_blocks() {
    let call = json!({ "type": "tool_use", "id": "t", "name": "add", "input": {} });
    let empty = begin(0, json!({ "type": "thinking", "thinking": "" }));
    let open = begin(1, json!({ "type": "text", "text": "" }));
    let behind = [empty, open.clone(), text(1, "hm\n"), text(1, "</think>\n\nHello!")];
    assert_eq!(read(&behind), ("hm\n".into(), "Hello!".into()));
    let within = [
        begin(0, json!({ "type": "text", "text": "<think>h" })),
        begin(1, call),
        text(0, "m</th"),
        text(0, "ink>Hello!"),
    ];
    assert_eq!(read(&within), ("hm".into(), "Hello!".into()));
    let mixed = [
        begin(0, json!({ "type": "text", "text": "" })),
        open,
        text(1, "hm\n"),
        text(0, "Hello!"),
        text(1, "</think>\n\n"),
    ];
    assert_eq!(read(&mixed), (String::new(), "Hello!hm\n".into()), "no restart");
}

#[test]
fn arguments_of_a_block_that_is_no_call_are_malformed() {
    let arguments = |index: u64, text: &str| {
        let delta = json!({ "type": "input_json_delta", "partial_json": text });
        json!({ "type": "content_block_delta", "index": index, "delta": delta })
    };
    for (block, is_call) in [
        (json!({ "type": "text", "text": "" }), false),
        (json!({ "type": "thinking", "thinking": "" }), false),
        (json!({ "type": "tool_use", "id": "t", "name": "add", "input": {} }), true),
        (json!({ "type": "server_tool_use", "id": "t", "name": "search", "input": {} }), true),
    ] {
        let sink = CallSink::new(&DiscardDeltas);
        let mut builder = AnthropicResponse::new(StateOwner::new("a", "claude"), "claude", &sink);
        builder.push(&begin(0, block.clone())).unwrap();
        builder.push(&arguments(0, "")).unwrap();
        let taken = builder.push(&arguments(0, "{\"a\": 1}"));
        assert_eq!(taken.is_ok(), is_call, "{block}");
    }
}

#[test]
fn long_id_of_a_message_is_not_copied_to_its_calls() {
    let call = json!({ "type": "tool_use", "name": "add", "input": {} });
    for (id, expected) in
        [("a".to_owned(), ["a-0", "a-1"]), ("x".repeat(1_000), ["toolu_0", "toolu_1"])]
    {
        let sink = CallSink::new(&DiscardDeltas);
        let mut builder = AnthropicResponse::new(StateOwner::new("a", "claude"), "claude", &sink);
        builder.push(&json!({ "type": "message", "id": id, "content": [call, call] })).unwrap();
        let ids = builder.build().parts.into_iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call.id),
            _ => None,
        });
        assert_eq!(ids.collect::<Vec<String>>(), expected);
    }
}

#[test]
fn provider_state_is_bounded() {
    let sink = CallSink::new(&DiscardDeltas);
    let long = "s".repeat(1 << 20);
    let begin = |block: Value| json!({ "type": "content_block_start", "content_block": block });
    let delta = |delta: Value| json!({ "type": "content_block_delta", "delta": delta });
    for piece in [
        begin(json!({ "type": "thinking", "thinking": "", "signature": long })),
        begin(json!({ "type": "redacted_thinking", "data": long })),
        delta(json!({ "type": "signature_delta", "signature": long })),
        delta(json!({ "type": "citations_delta", "citation": { "cited_text": long } })),
    ] {
        let mut builder = AnthropicResponse::new(StateOwner::new("a", "claude"), "claude", &sink);
        builder.push(&begin(json!({ "type": "thinking", "thinking": "" }))).unwrap();
        let taken = (0..5).try_for_each(|_| builder.push(&piece));
        assert!(matches!(taken, Err(ResponseError::Malformed(_))), "{taken:?}");
        assert!(builder.total_bytes() > 4 << 20);
    }
}
