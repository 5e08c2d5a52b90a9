//! Structured output: JSON documents that match a response schema.
//!
//! A call uses the strongest structured mode of the provider, and a weaker mode if the provider
//! rejects the schema. Later calls with the schema begin in that mode. The host validates every
//! document against the schema of the guest. The model corrects an invalid document in one repair
//! turn, unless the guest disables it. A `restart` discards the deltas of the invalid document.

mod coerce;
mod extract;
pub(crate) mod reader;
pub(crate) mod response_schema;
pub(crate) mod strict;

use serde_json::{Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_graph::llm::{Completion, FinishReason, Part, ResponseSchema};
use wattle_run::blocking::block_in_place_in_turn;
use wattle_run::caller_id::CallerId;
use wattle_run::schemas::SchemaCache;

use crate::chat::Chat;
use crate::config::{ProviderKind, StructuredMode};
use crate::provider::{ResponseFormat, TurnResponse, rejection_words};
use crate::route::CandidateCall;
use crate::structured::response_schema::{CompiledSchema, InvalidDocument};

/// Maximum characters of an invalid completion in the details of a failure: enough to diagnose it.
const MAX_EXCERPT_CHARS: usize = 2_000;

/// Words in an error with status 400 or 422 by which a provider rejects the schema and not the
/// conversation.
const SCHEMA_WORDS: [&str; 4] = ["schema", "response_format", "output_config", "json"];

/// Completes a call with a document that matches the schema, with at most one repair turn.
pub(crate) async fn complete(
    call: &CandidateCall<'_>,
    shape: &CompiledSchema<'_>,
) -> Result<Completion, Failure> {
    let first_mode = call.provider.structured_mode(call.spec, shape.definition());
    let mut mode = first_mode;
    let (mut chat, first) = loop {
        let chat = with_schema_prompt(call, shape, mode);
        match call.turn(&chat, response_format(shape, mode)).await {
            Ok(reply) => break (chat, reply),
            Err(failure) => match weaker_mode(mode, call.provider.kind()) {
                Some(next) if is_schema_rejection(&failure) => {
                    call.sink.restart();
                    mode = next;
                }
                _ => return Err(failure),
            },
        }
    };
    if mode != first_mode {
        call.provider.remember_mode(call.spec, shape.definition(), mode);
    }
    let owner = call.spec.owner();
    let source = (call.spec.model, call.spec.route);
    let wrong = match validate(owner, shape, &first).await {
        Validation::Accepted(document) => return Ok(first.into_completion(document)),
        Validation::Invalid(wrong) => wrong,
    };
    if first.finish_reason == FinishReason::Length {
        return Err(truncated_error(call, &first));
    }
    if !call.may_repair() {
        return Err(schema_violation_error(source, false, shape, &first, wrong));
    }
    chat.append_turn(first.text(), repair_prompt(&wrong.reason));
    call.sink.restart();
    let second = call.turn(&chat, response_format(shape, mode)).await?.add_usage_of(&first);
    match validate(owner, shape, &second).await {
        Validation::Accepted(document) => Ok(second.into_completion(document)),
        Validation::Invalid(_) if second.finish_reason == FinishReason::Length => {
            Err(truncated_error(call, &second))
        }
        Validation::Invalid(wrong) => {
            Err(schema_violation_error(source, true, shape, &second, wrong))
        }
    }
}

/// Reads and validates the structured output of a completion that no provider made, such as the
/// completion that a test gives. There is no repair turn. The work is counted to `owner`.
///
/// # Errors
///
/// `invalid` for a schema that a route would refuse, and for a completion that violates it;
/// [`code::LIMIT`] for a schema that exceeds a limit.
pub async fn read_structured(
    owner: CallerId,
    schemas: &SchemaCache,
    route: &str,
    wanted: &ResponseSchema,
    completion: Completion,
) -> Result<Completion, Failure> {
    let shape = CompiledSchema::new(owner, wanted, schemas).await?;
    let Completion { id, parts, finish_reason, usage, model, attempts, .. } = completion;
    let reply = TurnResponse { parts, finish_reason, usage, model };
    match validate(owner, &shape, &reply).await {
        Validation::Accepted(document) => {
            Ok(Completion { id, attempts, ..reply.into_completion(document) })
        }
        Validation::Invalid(wrong) => {
            let source = (reply.model.as_str(), route);
            Err(schema_violation_error(source, false, &shape, &reply, wrong))
        }
    }
}

/// The outcome of validating a completion.
enum Validation {
    /// The completion is valid. It has no document if the model called tools or its output was
    /// filtered.
    Accepted(Option<Value>),
    /// The document violates the schema, or there is no document.
    Invalid(InvalidDocument),
}

async fn validate(owner: CallerId, shape: &CompiledSchema<'_>, reply: &TurnResponse) -> Validation {
    let calls = reply.parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
    if calls || reply.finish_reason == FinishReason::ContentFilter {
        return Validation::Accepted(None);
    }
    let (text, is_cut) = (reply.text(), reply.finish_reason == FinishReason::Length);
    let is_long = shape.is_long_read(&text);
    let parse = block_in_place_in_turn(owner, is_long, || shape.parse(&text, is_cut));
    match parse.await {
        Ok(document) => Validation::Accepted(Some(document)),
        Err(wrong) => Validation::Invalid(wrong),
    }
}

fn response_format<'a>(shape: &CompiledSchema<'a>, mode: StructuredMode) -> ResponseFormat<'a> {
    match mode {
        StructuredMode::Schema => ResponseFormat::Schema(shape.definition()),
        StructuredMode::JsonObject => ResponseFormat::JsonObject,
        StructuredMode::Prompt => ResponseFormat::Text,
    }
}

/// Returns the conversation, with the schema in a system message in the weaker modes. OpenAI's JSON
/// mode requires the word "json" in the conversation.
fn with_schema_prompt<'a>(
    call: &CandidateCall<'a>,
    shape: &CompiledSchema<'_>,
    mode: StructuredMode,
) -> Chat<'a> {
    let chat = call.chat.clone();
    if mode == StructuredMode::Schema {
        return chat;
    }
    chat.with_instructions(format!(
        "Answer with one json object that is valid under the following JSON Schema. Write the \
         json object only: no other words, no code fence.\n\n{}",
        shape.definition().schema
    ))
}

fn weaker_mode(mode: StructuredMode, kind: ProviderKind) -> Option<StructuredMode> {
    match mode {
        StructuredMode::Schema if kind == ProviderKind::Anthropic => Some(StructuredMode::Prompt),
        StructuredMode::Schema => Some(StructuredMode::JsonObject),
        StructuredMode::JsonObject => Some(StructuredMode::Prompt),
        StructuredMode::Prompt => None,
    }
}

fn is_schema_rejection(failure: &Failure) -> bool {
    let words = rejection_words(failure).unwrap_or_default();
    SCHEMA_WORDS.iter().any(|word| words.contains(word))
}

/// Returns the message that requests a repair.
fn repair_prompt(wrong: &str) -> String {
    format!(
        "That answer is not valid:\n{wrong}\nAnswer again with the whole corrected json object \
         and nothing else."
    )
}

fn truncated_error(call: &CandidateCall<'_>, reply: &TurnResponse) -> Failure {
    let message = format!(
        "the completion of model `{}` of route `{}` reached its token limit before the json was \
         complete; raise `max_output_tokens`",
        call.spec.model, call.spec.route
    );
    Failure::new(code::INVALID, message).with_details(json!({ "answer": excerpt(&reply.text()) }))
}

fn schema_violation_error(
    (model, route): (&str, &str),
    is_repaired: bool,
    shape: &CompiledSchema<'_>,
    reply: &TurnResponse,
    wrong: InvalidDocument,
) -> Failure {
    let even = if is_repaired { ", even after a repair" } else { "" };
    let message = format!(
        "the completion of model `{model}` of route `{route}` violates the response schema \
         `{}`{even}: {}",
        shape.definition().name,
        wrong.reason
    );
    let text = reply.text();
    let excerpt = excerpt(&text);
    let mut details = json!({ "answer": excerpt });
    // The document is a string, because the event log bounds the depth of JSON. The string is about
    // as large as the completion, so it is omitted if the completion is truncated.
    if let Some(document) = wrong.document.filter(|_| excerpt.len() == text.len()) {
        details["document"] = document.to_string().into();
    }
    Failure::new(code::INVALID, message).with_details(details)
}

fn excerpt(text: &str) -> &str {
    text.char_indices().nth(MAX_EXCERPT_CHARS).map_or(text, |(end, _)| &text[..end])
}
