//! Tests of the JSON format of every type and variant in the event log. A change of the format
//! breaks old logs and the digests of requests.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::sample::select;
use serde_json::{Value, json};

use super::*;
use crate::failure::Failure;
use crate::id::{BlobRef, Digest};
use crate::tool::{ToolOutput, ToolRequest};

fn blob() -> BlobRef {
    BlobRef(Digest::of(b"bytes"))
}

fn parts() -> Vec<Part> {
    let image = |source| Image { source, media_type: "image/png".to_owned() };
    let call_id = || "c".to_owned();
    vec![
        Part::Text("t".to_owned()),
        Part::Image(image(ImageSource::Blob(blob()))),
        Part::Image(image(ImageSource::Url("https://host/a.png".to_owned()))),
        Part::ToolCall(ToolCall {
            id: call_id(),
            name: "find".to_owned(),
            arguments: json!({ "q": 1 }),
        }),
        Part::ToolResult(ToolResult {
            call_id: call_id(),
            content: "x".to_owned(),
            is_error: true,
        }),
        Part::Reasoning("r".to_owned()),
        Part::Other(json!({ "kind": "sound" })),
    ]
}

fn completion() -> Completion {
    Completion {
        id: Some("run--t-0".to_owned()),
        parts: parts(),
        structured: Some(json!({ "a": 1 })),
        finish_reason: FinishReason::Other("odd".to_owned()),
        usage: Usage { input_tokens: Some(1), ..Usage::default() },
        model: "m".to_owned(),
        attempts: vec![Attempt {
            provider: "p".to_owned(),
            model: "m".to_owned(),
            tries: 2,
            error: Some(Failure::new("timeout", "slow")),
        }],
    }
}

fn request() -> CompletionRequest {
    let roles = [
        Role::System,
        Role::User,
        Role::Assistant,
        Role::Tool,
        Role::Other("developer".to_owned()),
    ];
    let message = |role| Message { role, parts: vec![Part::Text("t".to_owned())] };
    CompletionRequest {
        route: "chat".to_owned(),
        history: None,
        messages: roles.into_iter().map(message).collect(),
        tools: vec![ToolDefinition {
            name: "find".to_owned(),
            description: "finds".to_owned(),
            arguments_schema: json!({ "type": "object" }),
        }],
        tool_choice: ToolChoice::Tool("find".to_owned()),
        response_schema: Some(ResponseSchema { name: "doc".to_owned(), schema: json!({}) }),
        temperature: Some(0.5),
        max_output_tokens: Some(9),
        seed: Some(7),
        stop: vec!["END".to_owned()],
        tries: Tries { candidate: Some(0), repair: Some(false), ..Tries::default() },
    }
}

#[test]
fn completions_have_the_format_of_the_log() {
    insta::assert_json_snapshot!(completion());
}

#[test]
fn requests_have_the_format_of_the_log() {
    insta::assert_json_snapshot!(request());
    let plain = json!({ "route": "chat", "messages": [], "tool_choice": "auto" });
    let read: CompletionRequest = serde_json::from_value(plain.clone()).unwrap();
    // The digest of a request is computed over this JSON.
    assert_eq!(serde_json::to_string(&read).unwrap(), plain.to_string());
}

#[test]
fn tool_calls_and_images_have_the_format_of_the_log() {
    let request = ToolRequest {
        tool: "t/find".to_owned(),
        call_id: "c".to_owned(),
        arguments: json!({ "q": 1 }),
        timeout_ms: None,
        state: None,
    };
    let output = ToolOutput { content: parts(), is_error: true, ..ToolOutput::default() };
    let images = ImageRequest {
        route: "art".to_owned(),
        prompt: "a wattle".to_owned(),
        count: 2,
        aspect_ratio: Some("16:9".to_owned()),
        tries: Tries::default(),
    };
    let image = GeneratedImage {
        blob: blob(),
        media_type: "image/png".to_owned(),
        provider: "p".to_owned(),
        model: "m".to_owned(),
        link: String::new(),
    };
    insta::assert_json_snapshot!((request, output, images, image));
}

fn delta() -> impl Strategy<Value = Delta> {
    let text = || select(vec!["", "a", "\"\n"]).prop_map(str::to_owned);
    let some = || option::of(text());
    prop_oneof![
        text().prop_map(|text| Delta::Text { text }),
        text().prop_map(|text| Delta::Reasoning { text }),
        (0..3_u32, some(), some(), text()).prop_map(|(index, id, name, arguments)| {
            Delta::ToolCall { index, id, name, arguments }
        }),
        Just(Delta::Restart),
    ]
}

fn answer() -> impl Strategy<Value = Completion> {
    let reason = prop_oneof![
        Just(FinishReason::Stop),
        Just(FinishReason::Length),
        Just(FinishReason::ToolCalls),
        Just(FinishReason::ContentFilter),
        Just(FinishReason::Other("odd".to_owned())),
    ];
    let tokens = || option::of(any::<u64>());
    (vec(select(parts()), 0..5), reason, tokens(), tokens()).prop_map(
        |(parts, finish_reason, input_tokens, output_tokens)| Completion {
            parts,
            finish_reason,
            usage: Usage { input_tokens, output_tokens, ..Usage::default() },
            structured: None,
            attempts: Vec::new(),
            ..completion()
        },
    )
}

/// Returns the text, the reasoning and the arguments by tool call that deltas contain.
fn told(deltas: &[Delta]) -> (String, String, Vec<String>) {
    let mut told = (String::new(), String::new(), Vec::<String>::new());
    for delta in deltas {
        match delta {
            Delta::Text { text } => told.0.push_str(text),
            Delta::Reasoning { text } => told.1.push_str(text),
            Delta::ToolCall { index, arguments, .. } => {
                let index = usize::try_from(*index).unwrap();
                told.2.resize(told.2.len().max(index + 1), String::new());
                told.2[index].push_str(arguments);
            }
            Delta::Restart => told = Default::default(),
        }
    }
    told
}

proptest! {
    #[test]
    fn completions_and_deltas_round_trip(answer in answer(), deltas in vec(delta(), 0..6)) {
        let document = serde_json::to_value((&answer, &deltas)).unwrap();
        let read: (Completion, Vec<Delta>) = serde_json::from_value(document.clone()).unwrap();
        assert_eq!(read, (answer, deltas));
        assert_eq!(serde_json::to_value(read).unwrap(), document);
    }

    #[test]
    fn joined_deltas_have_the_same_content(deltas in vec(delta(), 0..12)) {
        let mut joined: Vec<Delta> = Vec::new();
        for delta in deltas.clone() {
            let rest = match joined.last_mut() {
                Some(last) => last.join(delta),
                None => Some(delta),
            };
            joined.extend(rest);
        }
        assert_eq!(told(&joined), told(&deltas));
    }

    #[test]
    fn deltas_that_are_joined_by_kind_have_the_same_content(deltas in vec(delta(), 0..24)) {
        let joined = Delta::join_by_kind(deltas.clone());
        assert_eq!(told(&joined), told(&deltas));
        let number = |is_kind: fn(&Delta) -> bool| joined.iter().filter(|it| is_kind(it)).count();
        assert!(number(|delta| matches!(delta, Delta::Text { .. })) <= 1);
        assert!(number(|delta| matches!(delta, Delta::Reasoning { .. })) <= 1);
        assert!(number(|delta| matches!(delta, Delta::Restart)) <= 1);
    }

    #[test]
    fn deltas_contain_the_whole_completion(answer in answer()) {
        let (text, _, calls) = told(&answer.deltas());
        assert_eq!(text, answer.text());
        let asked: Vec<String> =
            answer.tool_calls().map(|call| call.arguments.to_string()).collect();
        assert_eq!(calls, asked);
    }
}

#[test]
fn completions_of_older_hosts_are_readable() {
    let old = json!({
        "parts": [{ "text": "hi" }], "finish_reason": "stop", "model": "m",
        "usage": { "input_tokens": 1, "output_tokens": 2, "cached_input_tokens": null,
            "reasoning_tokens": null },
    });
    let read: Completion = serde_json::from_value(old.clone()).unwrap();
    assert_eq!((read.id.clone(), read.text()), (None, "hi".to_owned()));
    assert_eq!(serde_json::to_value(read).unwrap(), old);
    let unknown: Result<Part, _> = serde_json::from_value(json!({ "sound": Value::Null }));
    assert!(unknown.is_err());
}

/// Agents of the standard plugin decide these cases in the same way.
#[test]
fn text_is_an_answer_as_for_agents() {
    let cases = include_str!("../../../../plugins/std/answers.json");
    let cases: Vec<(String, FinishReason, bool)> = serde_json::from_str(cases).unwrap();
    for (text, finish_reason, is_answer) in cases {
        let completion = Completion {
            id: None,
            parts: vec![Part::Reasoning("hm".to_owned()), Part::Text(text.clone())],
            structured: None,
            finish_reason,
            usage: Usage::default(),
            model: "m".to_owned(),
            attempts: Vec::new(),
        };
        let answer = is_answer.then_some(text);
        assert_eq!(completion.answer_text(), answer, "{:?}", completion.finish_reason);
    }
}
