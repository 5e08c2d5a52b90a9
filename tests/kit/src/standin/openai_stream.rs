//! Streamed OpenAI responses: chunks of a completion, with peculiarities that a client must
//! tolerate.

use serde_json::{Value, json};

use super::{
    answer::Answer,
    faults::{StreamQuirks, StreamVariant},
    journal::now_ms,
    question::Ask,
    stream::Event,
};

/// Number of characters of content in one chunk.
const CHUNK_CHARACTERS: usize = 8;

/// Returns all events in order.
pub(super) fn events(
    model: &str,
    answer: &Answer,
    quirks: &StreamQuirks,
    wants_usage: bool,
) -> Vec<Event> {
    let (id, created) = (completion_id(answer), now_ms() / 1_000);
    let chunk = |choices: Value| {
        json!({"id": id, "object": "chat.completion.chunk",
               "created": created, "model": model, "choices": choices})
    };
    let delta = |delta: Value, finish: Value| {
        chunk(json!([{"index": 0, "delta": delta, "finish_reason": finish}]))
    };
    let mut deltas = vec![json!({"role": "assistant", "content": ""})];
    deltas.extend(pieces(&answer.reasoning).map(|piece| json!({"reasoning_content": piece})));
    let before_content = deltas.len();
    deltas.extend(pieces(&answer.content).map(|piece| json!({"content": piece})));
    deltas.extend(calls(&answer.asks, quirks).map(|call| json!({"tool_calls": [call]})));
    let kept = if quirks.is(StreamVariant::ErrorInStream) {
        deltas.len().div_ceil(2)
    } else if quirks.is(StreamVariant::InsufficientSystemResource) {
        deltas.len() / 2
    } else {
        quirks.error_after.map_or(usize::MAX, |chunks| before_content + chunks)
    };
    deltas.truncate(kept);
    let chunks = deltas.into_iter().map(|it| Event::data(delta(it, Value::Null)));
    let mut events: Vec<Event> = chunks.collect();
    if quirks.error_after.is_some() || quirks.is(StreamVariant::ErrorInStream) {
        let error = json!({"message": "ordered by the test", "type": "server_error", "code": null});
        events.push(Event::data(json!({ "error": error })));
        return events;
    }
    let reason = if quirks.is(StreamVariant::InsufficientSystemResource) {
        "insufficient_system_resource"
    } else {
        finish_reason(answer)
    };
    let mut last = delta(json!({}), json!(reason));
    if quirks.usage_in_last_choice {
        last["usage"] = usage(answer);
    }
    events.push(Event::data(last));
    if wants_usage && !quirks.no_usage && !quirks.usage_in_last_choice {
        let mut summary = chunk(json!([]));
        summary["usage"] = usage(answer);
        events.push(Event::data(summary));
    }
    if !quirks.no_done {
        events.push(Event::data("[DONE]"));
    }
    events
}

fn pieces(text: &str) -> impl Iterator<Item = String> {
    let letters: Vec<char> = text.chars().collect();
    let pieces: Vec<String> =
        letters.chunks(CHUNK_CHARACTERS).map(|piece| piece.iter().collect()).collect();
    pieces.into_iter()
}

/// Returns the deltas of all tool calls, in sequence or interleaved.
fn calls(asks: &[Ask], quirks: &StreamQuirks) -> impl Iterator<Item = Value> {
    let asks = asks.iter().enumerate();
    let mut queues: Vec<Vec<Value>> = asks.map(|(index, ask)| call(index, ask, quirks)).collect();
    let mut all = Vec::new();
    if quirks.is(StreamVariant::Interleaved) {
        while queues.iter().any(|queue| !queue.is_empty()) {
            all.extend(queues.iter_mut().filter(|queue| !queue.is_empty()).map(|it| it.remove(0)));
        }
    } else {
        all.extend(queues.into_iter().flatten());
    }
    all.into_iter()
}

/// Returns the deltas of one tool call. The first one has the name of the tool.
fn call(index: usize, ask: &Ask, quirks: &StreamQuirks) -> Vec<Value> {
    let named = |arguments: &str| {
        let function = json!({"name": ask.name, "arguments": arguments});
        json!({"index": index, "id": ask.id, "type": "function", "function": function})
    };
    let more = |piece: &str| json!({"index": index, "function": {"arguments": piece}});
    let mut call = if quirks.is(StreamVariant::WholeCall) {
        vec![named(&ask.arguments)]
    } else if quirks.is(StreamVariant::SplitUtf8) {
        // One character per delta splits every escape.
        let letters = ask.arguments.chars().map(|letter| more(&letter.to_string()));
        std::iter::once(named("")).chain(letters).collect()
    } else {
        let texts = pieces(&ask.arguments);
        std::iter::once(named("")).chain(texts.map(|piece| more(&piece))).collect()
    };
    if quirks.is(StreamVariant::MissingIndex) {
        for piece in call.iter_mut().filter_map(Value::as_object_mut) {
            piece.shift_remove("index");
        }
    }
    call
}

/// Returns the `usage` of a completion.
pub(super) fn usage(answer: &Answer) -> Value {
    json!({
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
        "total_tokens": answer.prompt_tokens + answer.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    })
}

/// Returns the id of a completion. It is derived from the completion, so equal requests have equal
/// ids.
pub(super) fn completion_id(answer: &Answer) -> String {
    let asked: String = answer.asks.iter().map(|ask| ask.id.as_str()).collect();
    let digest = blake3::hash(format!("{}{asked}", answer.content).as_bytes()).to_hex();
    format!("chatcmpl-{}", &digest[..24])
}

/// Returns the finish reason.
pub(super) fn finish_reason(answer: &Answer) -> &'static str {
    if answer.asks.is_empty() { "stop" } else { "tool_calls" }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::{Answer, Ask, Event, StreamQuirks, StreamVariant, events};

    fn answer(asks: Vec<Ask>) -> Answer {
        Answer {
            content: "你好, this is a longer answer".to_owned(),
            reasoning: String::new(),
            asks,
            rule: "chat",
            prompt_tokens: 3,
            completion_tokens: 4,
        }
    }

    fn run(quirks: &StreamQuirks) -> Vec<Event> {
        events("m", &answer(Vec::new()), quirks, true)
    }

    fn data(event: &Event) -> Value {
        serde_json::from_str(&event.data).unwrap()
    }

    #[test]
    fn content_is_complete_and_usage_is_last() {
        let events = run(&StreamQuirks::default());
        let content: String = events[..events.len() - 2]
            .iter()
            .filter_map(|event| {
                data(event).pointer("/choices/0/delta/content")?.as_str().map(str::to_owned)
            })
            .collect();
        assert_eq!(content, "你好, this is a longer answer");
        assert_eq!(data(&events[events.len() - 2])["usage"]["total_tokens"], 7);
        assert_eq!(events.last().unwrap().data, "[DONE]");
    }

    #[test]
    fn quirks_change_the_stream() {
        let usage =
            StreamQuirks { usage_in_last_choice: true, no_done: true, ..StreamQuirks::default() };
        let last = run(&usage).pop().unwrap();
        assert_eq!(data(&last)["choices"][0]["finish_reason"], "stop");
        assert_eq!(data(&last)["usage"]["total_tokens"], 7);
        let error = StreamQuirks { error_after: Some(1), ..StreamQuirks::default() };
        let events = run(&error);
        assert_eq!(events.len(), 3);
        assert_eq!(data(&events[2])["error"]["type"], "server_error");
        let gave_up = run(&StreamQuirks::of(StreamVariant::InsufficientSystemResource));
        let reasons = gave_up.iter().filter(|event| event.data.contains("insufficient"));
        assert_eq!(reasons.count(), 1);
    }

    #[test]
    fn deltas_of_tool_calls_follow_the_variant() {
        let ask = |id: &str| {
            let (id, name) = (id.to_owned(), "t".to_owned());
            Ask { id, name, arguments: "{\"text\":\"long enough\"}".to_owned() }
        };
        let pieces = |variant| -> Vec<Value> {
            let answer = answer(vec![ask("a"), ask("b")]);
            let events = events("m", &answer, &StreamQuirks::of(variant), false);
            let call = |event: &Event| {
                let chunk: Value = serde_json::from_str(&event.data).ok()?;
                chunk.pointer("/choices/0/delta/tool_calls/0").cloned()
            };
            events.iter().filter_map(call).collect()
        };
        let turns = pieces(StreamVariant::Interleaved);
        assert_eq!((&turns[2]["index"], &turns[3]["index"]), (&0.into(), &1.into()));
        assert_eq!(pieces(StreamVariant::WholeCall).len(), 2);
        let unnumbered = pieces(StreamVariant::MissingIndex);
        assert!(unnumbered.iter().all(|piece| piece.get("index").is_none()));
    }
}
