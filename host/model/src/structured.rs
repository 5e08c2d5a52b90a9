//! Structured output: JSON documents that match a response schema.
//!
//! A call uses the strongest structured mode of the provider, and a weaker mode if the provider rejects the schema. The
//! host validates every document against the schema of the guest. The model corrects an invalid document in one repair
//! turn, unless the guest disables it. A `restart` discards the deltas of the invalid document.

mod extract;
mod mend;
mod reader;
pub(crate) mod shape;
pub(crate) mod strict;

use serde_json::{Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_graph::llm::{Completion, FinishReason, Part};

use crate::chat::Chat;
use crate::config::{ProviderKind, Structured};
use crate::provider::{Format, Reply};
use crate::route::Call;
use crate::structured::shape::{Shape, Wrong};

/// Maximum characters of an invalid completion in the details of a failure: enough to diagnose it.
const ANSWER_CHARS: usize = 2_000;

/// Words in an error with status 400 or 422 by which a provider rejects the schema rather than the conversation.
const SCHEMA_WORDS: [&str; 4] = ["schema", "response_format", "output_config", "json"];

/// Completes a call with a document that matches the schema, with at most one repair turn.
pub(crate) async fn complete(call: &Call<'_>, shape: &Shape<'_>) -> Result<Completion, Failure> {
    let mut rung = call.provider.structured();
    let (mut chat, first) = loop {
        let chat = ask(call, shape, rung);
        match call.turn(&chat, format(shape, rung)).await {
            Ok(reply) => break (chat, reply),
            Err(failure) => match lower(rung, call.provider.kind()) {
                Some(next) if refuses_schema(&failure) => {
                    call.sink.restart();
                    rung = next;
                }
                _ => return Err(failure),
            },
        }
    };
    let wrong = match judge(shape, &first) {
        Verdict::Accepted(document) => return Ok(first.completion(document)),
        Verdict::Wrong(wrong) => wrong,
    };
    if first.finish == FinishReason::Length {
        return Err(cut_off(call, &first));
    }
    if !call.repairs() {
        return Err(not_in_shape(call, shape, &first, wrong));
    }
    chat.go_on(first.text(), repair(&wrong.why));
    call.sink.restart();
    let second = call.turn(&chat, format(shape, rung)).await?.after(&first);
    match judge(shape, &second) {
        Verdict::Accepted(document) => Ok(second.completion(document)),
        Verdict::Wrong(_) if second.finish == FinishReason::Length => Err(cut_off(call, &second)),
        Verdict::Wrong(wrong) => Err(not_in_shape(call, shape, &second, wrong)),
    }
}

/// The outcome of validating a completion.
enum Verdict {
    /// The completion is valid. It has no document if the model called tools or its output was filtered.
    Accepted(Option<Value>),
    /// The document violates the schema, or there is none.
    Wrong(Wrong),
}

fn judge(shape: &Shape<'_>, reply: &Reply) -> Verdict {
    let calls = reply.parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
    if calls || reply.finish == FinishReason::ContentFilter {
        return Verdict::Accepted(None);
    }
    match shape.read(&reply.text(), reply.finish == FinishReason::Length) {
        Ok(document) => Verdict::Accepted(Some(document)),
        Err(wrong) => Verdict::Wrong(wrong),
    }
}

fn format<'a>(shape: &Shape<'a>, rung: Structured) -> Format<'a> {
    match rung {
        Structured::Schema => Format::Schema(shape.wanted()),
        Structured::JsonObject => Format::JsonObject,
        Structured::Prompt => Format::Free,
    }
}

/// Returns the conversation, with the schema in a system message in the weaker modes. OpenAI's JSON mode requires the
/// word "json" in the conversation.
fn ask<'a>(call: &Call<'a>, shape: &Shape<'_>, rung: Structured) -> Chat<'a> {
    let chat = call.chat.clone();
    if rung == Structured::Schema {
        return chat;
    }
    chat.instructed(format!(
        "Answer with one json object that is valid under the following JSON Schema. Write the \
         json object only: no other words, no code fence.\n\n{}",
        shape.wanted().schema
    ))
}

fn lower(rung: Structured, kind: ProviderKind) -> Option<Structured> {
    match rung {
        Structured::Schema if kind == ProviderKind::Anthropic => Some(Structured::Prompt),
        Structured::Schema => Some(Structured::JsonObject),
        Structured::JsonObject => Some(Structured::Prompt),
        Structured::Prompt => None,
    }
}

fn refuses_schema(failure: &Failure) -> bool {
    let status = failure.details.as_ref().and_then(|details| details["status"].as_u64());
    let Some(status @ (400 | 422)) = status.filter(|_| failure.code == code::INVALID) else {
        return false;
    };
    // Only the message of the provider counts: the name of a route or a model may contain `json`. vLLM rejects a schema
    // within a response with a success status.
    let places = [format!("(status {status}): "), "(in its response): ".to_owned()];
    let told = places.iter().find_map(|place| failure.message.split_once(place.as_str()));
    let told = told.map(|(_, told)| told.to_lowercase()).unwrap_or_default();
    SCHEMA_WORDS.iter().any(|word| told.contains(word))
}

/// Returns the message that requests a repair.
fn repair(wrong: &str) -> String {
    format!(
        "That answer is not valid:\n{wrong}\nAnswer again with the whole corrected json object \
         and nothing else."
    )
}

fn cut_off(call: &Call<'_>, reply: &Reply) -> Failure {
    let message = format!(
        "the completion of model `{}` of route `{}` reached its token limit before the json was \
         complete; raise `max_output_tokens`",
        call.aim.model, call.aim.route
    );
    Failure::new(code::INVALID, message).with_details(json!({ "answer": cut(&reply.text()) }))
}

fn not_in_shape(call: &Call<'_>, shape: &Shape<'_>, reply: &Reply, wrong: Wrong) -> Failure {
    let even = if call.repairs() { ", even after a repair" } else { "" };
    let message = format!(
        "the completion of model `{}` of route `{}` violates the response schema `{}`{even}: {}",
        call.aim.model,
        call.aim.route,
        shape.wanted().name,
        wrong.why
    );
    let text = reply.text();
    let answer = cut(&text);
    let mut details = json!({ "answer": answer });
    // The document is a string, because the event log bounds the depth of JSON. It is about as large as the completion,
    // so it is left out if the completion is truncated.
    if let Some(document) = wrong.document.filter(|_| answer.len() == text.len()) {
        details["document"] = document.to_string().into();
    }
    Failure::new(code::INVALID, message).with_details(details)
}

fn cut(text: &str) -> &str {
    text.char_indices().nth(ANSWER_CHARS).map_or(text, |(end, _)| &text[..end])
}
