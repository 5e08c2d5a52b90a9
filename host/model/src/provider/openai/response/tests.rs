//! Tests of responses in chunks.

use wattle_graph::llm::{Part, ToolCall};
use wattle_run::ports::model::DiscardDeltas;

use crate::provider::provider_state::{SentMessage, SentPart};

use super::{
    CallSink, Fields, FinishReason, LeftOutLog, OpenAiResponse, Progress, ResponseBuilder as _,
    ResponseError, StateOwner, TurnResponse, Value, json,
};

fn read(chunks: &[Value]) -> Result<TurnResponse, ResponseError> {
    let (sink, log) = (CallSink::new(&DiscardDeltas), LeftOutLog::new("p"));
    let mut builder = OpenAiResponse::new(StateOwner::new("p", "m"), "m", &sink, &log);
    for chunk in chunks {
        builder.push(chunk)?;
    }
    Ok(builder.build())
}

fn delta(delta: Value) -> Value {
    json!({ "id": "a", "model": "m-dated", "choices": [{ "index": 0, "delta": delta }] })
}

fn end(reason: &str) -> Value {
    json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] })
}

#[test]
fn reasoning_precedes_text_and_tool_calls() {
    let call = json!({ "index": 0, "id": "x", "function": { "name": "t", "arguments": "{}" } });
    let reply = read(&[
        delta(json!({ "role": "assistant", "content": "", "reasoning_content": null })),
        delta(json!({ "reasoning_content": "h" })),
        delta(json!({ "reasoning_content": "m" })),
        delta(json!({ "content": "let me " })),
        delta(json!({ "content": "see" })),
        delta(json!({ "tool_calls": [call] })),
        end("stop"),
        json!({ "choices": [], "usage": { "prompt_tokens": 7, "prompt_cache_hit_tokens": 5 } }),
    ])
    .unwrap();
    let call = ToolCall { id: "x".into(), name: "t".into(), arguments: json!({}) };
    let expected =
        [Part::Reasoning("hm".into()), Part::Text("let me see".into()), Part::ToolCall(call)];
    assert_eq!(reply.parts[1..], expected, "after the state");
    assert_eq!(reply.finish_reason, FinishReason::ToolCalls);
    assert_eq!((reply.usage.input_tokens, reply.usage.cached_input_tokens), (Some(7), Some(5)));
    assert_eq!(reply.model, "m-dated");
}

/// Returns the parts of a completion without provider state.
fn spoken(chunks: &[Value]) -> Vec<Part> {
    let parts = read(chunks).unwrap().parts.into_iter();
    parts.filter(|part| !matches!(part, Part::Other(_))).collect()
}

#[test]
fn several_choices_are_one_message() {
    let call = |id: &str, arguments: &str| {
        let function = json!({ "name": "t", "arguments": arguments });
        json!({ "index": 0, "id": id, "function": function })
    };
    let message = |index: usize, message: Value| {
        let reason = "tool_calls";
        json!({ "index": index, "message": message, "finish_reason": reason })
    };
    let whole = json!({ "id": "a", "choices": [
        message(2, json!({ "content": null, "tool_calls": [call("y", "{}")] })),
        message(0, json!({ "content": "let me " })),
        message(1, json!({ "content": "see", "tool_calls": [call("x", "{}")] })),
    ] });
    let chunk = |index: usize, delta: Value| {
        let choice = json!({ "index": index, "delta": delta });
        json!({ "id": "a", "choices": [choice] })
    };
    let rest = json!([{ "index": 0, "function": { "arguments": "}" } }]);
    let streamed = [
        chunk(0, json!({ "content": "let " })),
        chunk(1, json!({ "content": "s", "tool_calls": [call("x", "{")] })),
        chunk(2, json!({ "tool_calls": [call("y", "{")] })),
        chunk(0, json!({ "content": "me " })),
        chunk(1, json!({ "content": "ee", "tool_calls": rest })),
        chunk(2, json!({ "tool_calls": rest })),
        end("tool_calls"),
    ];
    let made = |id: &str| {
        Part::ToolCall(ToolCall { id: id.into(), name: "t".into(), arguments: json!({}) })
    };
    let expected = [Part::Text("let me see".into()), made("x"), made("y")];
    assert_eq!(spoken(&[whole]), expected);
    assert_eq!(spoken(&streamed), expected);
}

#[test]
fn index_of_a_choice_may_be_missing_or_odd() {
    let chunk = |index: Value, text: &str| {
        let choice = json!({ "index": index, "delta": { "content": text } });
        json!({ "choices": [choice] })
    };
    for indexes in [[json!(null), json!(0)], [json!(1), json!(1)], [json!(5), json!(6)]] {
        let [first, second] = indexes;
        let chunks = [chunk(first, "a"), chunk(second, "b"), end("stop")];
        assert_eq!(spoken(&chunks), [Part::Text("ab".into())], "{chunks:?}");
    }
}

#[test]
fn dialects_are_understood() {
    let thinking = json!([{ "type": "thinking", "thinking": [{ "text": "hm" }] }]);
    let cases = [
        (json!({ "reasoning": "hm", "content": "hi" }), "hm", "hi"),
        (json!({ "content": "<think>hm</think>hi" }), "hm", "hi"),
        (json!({ "content": thinking }), "hm", ""),
        (json!({ "content": [{ "type": "text", "text": "hi" }] }), "", "hi"),
    ];
    for (said, reasoning, text) in cases {
        let reply = read(&[delta(said.clone()), end("stop")]).unwrap();
        let found = reply.parts.iter().find_map(|part| match part {
            Part::Reasoning(text) => Some(text.as_str()),
            _ => None,
        });
        assert_eq!(found.unwrap_or_default(), reasoning, "{said}");
        assert_eq!(reply.text(), text, "{said}");
    }
}

#[test]
fn provider_specific_fields_become_provider_state() {
    let signature = json!({ "google": { "thought_signature": "s" } });
    let call = json!({ "index": 0, "id": "x", "extra_content": signature,
        "function": { "name": "t", "arguments": "{}" } });
    let detail = json!({ "type": "reasoning.encrypted", "data": "abc", "index": 0 });
    let reply = read(&[
        delta(json!({ "role": "assistant", "content": "", "reasoning_details": [detail] })),
        delta(json!({ "tool_calls": [call], "annotations": [1] })),
        end("tool_calls"),
    ])
    .unwrap();
    let said = SentMessage::new(&reply.parts, &StateOwner::new("p", "m"));
    assert_eq!(Value::Object(said.fields), json!({ "reasoning_details": [detail] }));
    let [SentPart::Call(_, fields)] = &said.parts[..] else { panic!("{:?}", said.parts) };
    assert_eq!(Value::Object(fields.clone()), json!({ "extra_content": signature }));
}

#[test]
fn parts_of_the_content_stay_in_order() {
    let page = json!({ "type": "page", "at": [1] });
    let text = |text: &str| json!({ "type": "text", "text": text });
    let thinking = |text: &str| json!({ "type": "thinking", "thinking": text });
    let content = json!([text("a"), page, page, text("b"), thinking("hm"), 7, { "at": 1 }]);
    let reply = read(&[
        delta(json!({ "content": "see: " })),
        delta(json!({ "content": content })),
        delta(json!({ "content": [thinking("!"), thinking("and")] })),
        delta(json!({ "content": "c" })),
        end("stop"),
    ])
    .unwrap();
    assert_eq!(reply.text(), "see: abc");
    let said = SentMessage::new(&reply.parts, &StateOwner::new("p", "m"));
    let state = |bytes: u64| {
        let state = json!({ "type": "thinking", "thinking": bytes });
        serde_json::from_value(state).unwrap()
    };
    let expected = [
        SentPart::Text("see: a", Fields::new()),
        SentPart::Opaque(page.clone()),
        SentPart::Opaque(page),
        SentPart::Text("b", Fields::new()),
        SentPart::Reasoning("hm!", state(3)),
        SentPart::Reasoning("and", state(3)),
        SentPart::Text("c", Fields::new()),
    ];
    assert_eq!(said.parts, expected);
}

/// Returns the texts of a message as they go back, each with its other fields.
fn sent_texts(chunks: &[Value]) -> Vec<(String, Value)> {
    let reply = read(chunks).unwrap();
    let said = SentMessage::new(&reply.parts, &StateOwner::new("p", "m"));
    let texts = said.parts.into_iter().map(|piece| match piece {
        SentPart::Text(text, fields) => (text.to_owned(), Value::Object(fields)),
        SentPart::Reasoning(text, fields) => (format!("({text})"), Value::Object(fields)),
        other => panic!("{other:?}"),
    });
    texts.collect()
}

#[test]
fn fields_of_texts_stay_with_their_texts() {
    let text = |text: &str, own: Value| {
        let mut part = own;
        (part["type"], part["text"]) = (json!("text"), json!(text));
        part
    };
    let (cited, tags) = (json!({ "citations": [1] }), json!({ "tags": ["<think>", "</think>"] }));
    let (named, signed) = (json!({ "id": "t" }), json!({ "signature": "s" }));
    let (none, numbered) = (json!({}), json!({ "index": 0 }));
    let both = json!({ "id": "t", "citations": [1] });
    for (contents, expected) in [
        (
            vec![
                json!("see: "),
                json!([
                    text("a", cited.clone()),
                    text("b", none.clone()),
                    text("c", cited.clone())
                ]),
                json!("d"),
            ],
            vec![("see: ", &none), ("a", &cited), ("b", &none), ("c", &cited), ("d", &none)],
        ),
        (
            vec![json!([text("a", numbered.clone())]), json!([text("b", numbered.clone())])],
            vec![("ab", &none)],
        ),
        (
            vec![json!([text("a", named.clone())]), json!([text("b", both.clone())])],
            vec![("ab", &both)],
        ),
        (
            vec![json!([text("a", cited.clone())]), json!([text("b", cited.clone())])],
            vec![("ab", &cited)],
        ),
        (
            vec![json!("a"), json!([text("", signed.clone())]), json!([text("b", none.clone())])],
            vec![("a", &none), ("", &signed), ("b", &none)],
        ),
        (
            vec![json!([text("<think>hm</think>hi", cited.clone())])],
            vec![("(hm)", &tags), ("hi", &cited)],
        ),
        (
            vec![
                json!([text("<think>h", named.clone())]),
                json!([text("m</think>hi", named.clone())]),
            ],
            vec![("(hm)", &tags), ("hi", &named)],
        ),
        (
            vec![json!("a</th"), json!([text("ink>b", cited.clone())])],
            vec![("a</th", &none), ("ink>b", &cited)],
        ),
    ] {
        let deltas = contents.iter().map(|content| delta(json!({ "content": content })));
        let chunks: Vec<Value> = deltas.chain([end("stop")]).collect();
        let expected: Vec<(String, Value)> =
            expected.into_iter().map(|(text, own)| (text.to_owned(), own.clone())).collect();
        assert_eq!(sent_texts(&chunks), expected, "{contents:?}");
    }
}

#[test]
fn text_is_kept_without_fields_that_cannot_be_kept() {
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    let content = json!([{ "type": "text", "text": "a", "own": deep },
        { "type": "text", "text": { "value": "b" } }, { "type": "text", "text": "c" }]);
    let texts = sent_texts(&[delta(json!({ "content": content })), end("stop")]);
    assert_eq!(texts, [("ac".to_owned(), json!({}))]);
}

#[test]
fn last_of_many_parts_is_continued() {
    let thinking = |text: &str| json!({ "type": "thinking", "thinking": text });
    let mut content = vec![json!({ "type": "page" }); 999];
    content.push(thinking("h"));
    let reply = read(&[
        delta(json!({ "content": content })),
        delta(json!({ "content": [thinking("m")] })),
        delta(json!({ "content": [{ "type": "page" }, thinking("left out")] })),
        end("stop"),
    ])
    .unwrap();
    assert_eq!(reply.parts[1..], [Part::Reasoning("hm".into())], "after the state");
}

#[test]
fn long_id_of_a_response_is_not_copied_to_its_calls() {
    let call = json!({ "function": { "name": "t", "arguments": "{}" } });
    for (id, expected) in
        [("a".to_owned(), ["a-0", "a-1"]), ("x".repeat(1_000), ["call_0", "call_1"])]
    {
        let mut chunk = delta(json!({ "tool_calls": [call, call] }));
        chunk["id"] = id.into();
        let ids =
            read(&[chunk, end("stop")]).unwrap().parts.into_iter().filter_map(|part| match part {
                Part::ToolCall(call) => Some(call.id),
                _ => None,
            });
        assert_eq!(ids.collect::<Vec<String>>(), expected);
    }
}

#[test]
fn refusal_stays_in_order() {
    let reply =
        read(&[delta(json!({ "content": "a <" })), delta(json!({ "refusal": "no" })), end("stop")]);
    assert_eq!(reply.unwrap().text(), "a <no");
}

#[test]
fn text_before_a_closing_tag_alone_is_reasoning() {
    let reply = read(&[
        delta(json!({ "content": "The user greets me.\n</thi" })),
        delta(json!({ "content": "nk>\n\nHello!" })),
        end("stop"),
    ])
    .unwrap();
    let expected = [Part::Reasoning("The user greets me.\n".into()), Part::Text("Hello!".into())];
    assert_eq!(reply.parts[1..], expected);
}

#[test]
fn split_surrogate_pairs_are_joined() {
    let piece = |text: &str| {
        let chunk = format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}}}}]}}"#);
        wattle_run::json::lenient::parse(&chunk).unwrap()
    };
    let reply = read(&[piece("caf\\ud83d"), piece("\\ude00!\\ud83d"), end("stop")]).unwrap();
    assert_eq!(reply.text(), "caf\u{1f600}!\u{fffd}");
}

#[test]
fn usage_is_found_in_every_place() {
    let counts = json!({ "prompt_tokens": 7, "cached_tokens": 2 });
    for last in [
        json!({ "choices": [], "usage": counts }),
        json!({ "choices": [{ "delta": {}, "usage": counts }], "usage": null }),
        json!({ "choices": [], "x_groq": { "id": "a", "usage": counts } }),
        json!({ "choices": [{ "delta": {}, "usage": counts }], "usage": {} }),
    ] {
        let empty = json!({ "choices": [], "usage": { "prompt_tokens": null } });
        let chunks = [delta(json!({ "content": "a" })), end("stop"), last, empty];
        let reply = read(&chunks).unwrap();
        assert_eq!((reply.usage.input_tokens, reply.usage.cached_input_tokens), (Some(7), Some(2)));
    }
}

#[test]
fn usage_in_several_chunks_is_merged() {
    let usage = |counts: Value| json!({ "choices": [], "usage": counts });
    let reply = read(&[
        usage(json!({ "prompt_tokens": "7", "completion_tokens": 0 })),
        delta(json!({ "content": "a" })),
        end("stop"),
        usage(json!({ "completion_tokens": 2.0, "prompt_tokens_details": null })),
        usage(json!({ "prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0 })),
    ]);
    let usage = reply.unwrap().usage;
    assert_eq!((usage.input_tokens, usage.output_tokens), (Some(7), Some(2)));
}

#[test]
fn reasoning_counted_apart_from_the_output_is_output() {
    let details = json!({ "reasoning_tokens": 2_809 });
    for (total, expected) in [
        (json!(14_428), 4_308),
        (json!("14428"), 4_308),
        (json!(11_619), 1_499),
        (json!(14_427), 1_499),
        (Value::Null, 1_499),
    ] {
        let usage = json!({ "prompt_tokens": 10_120, "completion_tokens": 1_499,
            "total_tokens": total, "completion_tokens_details": details });
        let last = json!({ "choices": [], "usage": usage });
        let usage = read(&[delta(json!({ "content": "a" })), end("stop"), last]).unwrap().usage;
        assert_eq!((usage.input_tokens, usage.output_tokens), (Some(10_120), Some(expected)));
        assert_eq!(usage.reasoning_tokens, Some(2_809), "{total}");
    }
}

#[test]
fn finish_reason_determines_the_progress() {
    let words = delta(json!({ "content": "a" }));
    let mut last = words.clone();
    last["choices"][0]["finish_reason"] = json!("stop");
    let usage = json!({ "choices": [], "usage": { "prompt_tokens": 1 } });
    let mut counted = last.clone();
    counted["usage"] = usage["usage"].clone();
    let mut counted_end = end("stop");
    counted_end["choices"][0]["usage"] = usage["usage"].clone();
    let choice = json!({ "message": { "content": "a" }, "finish_reason": "stop" });
    let whole = json!({ "choices": [choice] });
    let split = json!({ "choices": [choice, choice] });
    let own = delta(json!({ "reasoning_details": [{ "signature": "s" }] }));
    for (chunks, progress) in [
        (vec![&words, &end("stop")], Progress::Finished),
        (vec![&words, &end("stop"), &own], Progress::Finished),
        (vec![&words, &end("stop"), &usage], Progress::UsageReceived),
        (vec![&words, &counted_end], Progress::UsageReceived),
        (vec![&words, &usage, &end("stop")], Progress::Finished),
        (vec![&words, &usage, &end("stop"), &usage], Progress::UsageReceived),
        (vec![&words, &end("stop"), &words], Progress::FinishIgnored),
        (vec![&last], Progress::MaybeFinished),
        (vec![&last, &usage], Progress::MaybeFinished),
        (vec![&last, &last], Progress::FinishIgnored),
        (vec![&counted], Progress::MaybeFinished),
        (vec![&whole], Progress::Finished),
        (vec![&whole, &usage], Progress::UsageReceived),
        (vec![&split], Progress::Finished),
        (vec![&end("stop")], Progress::FinishIgnored),
    ] {
        let (sink, log) = (CallSink::new(&DiscardDeltas), LeftOutLog::new("p"));
        let mut builder = OpenAiResponse::new(StateOwner::new("p", "m"), "m", &sink, &log);
        for chunk in &chunks {
            builder.push(chunk).unwrap();
        }
        assert_eq!(builder.progress(), progress, "{chunks:?}");
    }
}

#[test]
fn service_that_stops_early_is_an_error() {
    let error = json!({ "error": { "message": "busy", "type": "server_error" } });
    assert_eq!(read(std::slice::from_ref(&error)).unwrap_err(), ResponseError::Reported(error));
    for reason in ["insufficient_system_resource", "network_error", "ABORT"] {
        let gave_up = read(&[delta(json!({ "content": "a" })), end(reason)]);
        assert_eq!(gave_up.unwrap_err(), ResponseError::Stopped(reason.to_owned()));
    }
}
