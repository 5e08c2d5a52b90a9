//! Answers of a wanted shape.
//!
//! The provider is asked on the strongest rung that it knows; if it refuses the schema itself, on
//! the next lower one. Whatever the rung, the answer is validated against the schema that the
//! guest gave, and a wrong answer is repaired by the model once, unless the guest wants to ask
//! again in its own words. What was handed on of the wrong one is taken back then.

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

/// Characters of a wrong answer that a failure keeps: enough to see what went wrong.
const ANSWER_CHARS: usize = 2_000;

/// Words by which a provider that answers 400 says that it does not like the schema, not the
/// conversation.
const SCHEMA_WORDS: [&str; 4] = ["schema", "response_format", "output_config", "json"];

/// Asks until the answer has the shape, at most one repair turn.
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

/// What becomes of an answer.
enum Verdict {
    /// It is good; without a document if the model did something else that it may do.
    Accepted(Option<Value>),
    /// It has another shape.
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

/// The conversation, with the schema in it where the provider does not get it otherwise. OpenAI's
/// JSON mode insists on the word "json".
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
    // Only what the provider says counts: the route may be named after json. Servers of vLLM refuse a schema in their
    // answer.
    let places = [format!("(status {status}): "), "(in its answer): ".to_owned()];
    let told = places.iter().find_map(|place| failure.message.split_once(place.as_str()));
    let told = told.map(|(_, told)| told.to_lowercase()).unwrap_or_default();
    SCHEMA_WORDS.iter().any(|word| told.contains(word))
}

/// What asks for a correction.
fn repair(wrong: &str) -> String {
    format!(
        "That answer is not valid:\n{wrong}\nAnswer again with the whole corrected json object \
         and nothing else."
    )
}

fn cut_off(call: &Call<'_>, reply: &Reply) -> Failure {
    let message = format!(
        "the answer of model `{}` of route `{}` was cut off at its length limit before the json \
         was complete; raise `max_output_tokens`",
        call.aim.model, call.aim.route
    );
    Failure::new(code::INVALID, message).with_details(json!({ "answer": cut(&reply.text()) }))
}

fn not_in_shape(call: &Call<'_>, shape: &Shape<'_>, reply: &Reply, wrong: Wrong) -> Failure {
    let even = if call.repairs() { ", even when asked to correct its answer" } else { "" };
    let message = format!(
        "model `{}` of route `{}` did not answer in the wanted shape `{}`{even}: {}",
        call.aim.model,
        call.aim.route,
        shape.wanted().name,
        wrong.why
    );
    let text = reply.text();
    let answer = cut(&text);
    let mut details = json!({ "answer": answer });
    // As a text, since the log has no room for a document of any depth. It is about as large as the
    // answer, and so left out where that is cut.
    if let Some(document) = wrong.document.filter(|_| answer.len() == text.len()) {
        details["document"] = document.to_string().into();
    }
    Failure::new(code::INVALID, message).with_details(details)
}

fn cut(text: &str) -> &str {
    text.char_indices().nth(ANSWER_CHARS).map_or(text, |(end, _)| &text[..end])
}
