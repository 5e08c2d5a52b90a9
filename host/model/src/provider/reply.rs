//! A provider's answer in our words.

use genai::chat::{ChatResponse, ContentPart, StopReason};
use serde_json::{Value, json};
use wattle_run::call::llm::{Completion, FinishReason, Part, ToolCall, Usage};

use crate::config::ProviderKind;
use crate::message::{PROVIDER_PART, SIGNATURE};

/// One answer.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) parts: Vec<Part>,
    pub(crate) finish: FinishReason,
    pub(crate) usage: Usage,
    pub(crate) model: String,
}

impl Reply {
    /// Reads an answer, or says why it is none.
    pub(crate) fn read(kind: ProviderKind, mut response: ChatResponse) -> Result<Self, String> {
        let raw = response.captured_raw_body.take().unwrap_or_default();
        if kind == ProviderKind::Openai {
            openai_choice(&raw)?;
        }
        let usage = usage(&response, &raw);
        let model = response.provider_model_iden.model_name.to_string();
        let stop = response.stop_reason.take();
        let reasoning = response.reasoning_content.take();
        let mut parts: Vec<Part> = response.content.into_iter().filter_map(part).collect();
        if let Some(text) = reasoning.filter(|text| !text.is_empty())
            && !parts.iter().any(|part| matches!(part, Part::Reasoning(_)))
        {
            parts.insert(0, Part::Reasoning(text));
        }
        let mut finish = finish(stop, &parts);
        if let Some(refusal) = raw.pointer("/choices/0/message/refusal").and_then(Value::as_str) {
            parts.push(Part::Text(refusal.to_owned()));
            finish = FinishReason::ContentFilter;
        }
        Ok(Self { parts, finish, usage, model })
    }

    /// All text of the answer.
    pub(crate) fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// This answer as the second of two turns.
    pub(crate) fn after(mut self, first: &Self) -> Self {
        self.usage = sum(&first.usage, &self.usage);
        self
    }

    /// The answer for the guest.
    pub(crate) fn completion(self, structured: Option<Value>) -> Completion {
        Completion {
            parts: self.parts,
            structured,
            finish_reason: self.finish,
            usage: self.usage,
            model: self.model,
        }
    }
}

/// The empty answer that stands for a prompt that Gemini's filter blocked. `genai` takes it for a
/// broken answer.
pub(crate) fn blocked(error: &genai::Error) -> Option<Reply> {
    let genai::Error::ChatResponseGeneration { response_body, model_iden, .. } = error else {
        return None;
    };
    response_body.pointer("/promptFeedback/blockReason")?;
    let model = response_body.get("modelVersion").and_then(Value::as_str);
    let input = response_body.pointer("/usageMetadata/promptTokenCount").and_then(Value::as_u64);
    Some(Reply {
        parts: Vec::new(),
        finish: FinishReason::ContentFilter,
        usage: Usage { input_tokens: input, ..Usage::default() },
        model: model.unwrap_or(&model_iden.model_name).to_owned(),
    })
}

/// Some gateways answer 200 with an error in the body.
fn openai_choice(raw: &Value) -> Result<(), String> {
    if raw.pointer("/choices/0").is_some_and(Value::is_object) {
        return Ok(());
    }
    let message = raw.pointer("/error/message").and_then(Value::as_str);
    Err(message.unwrap_or("the answer has no `choices`").to_owned())
}

fn part(part: ContentPart) -> Option<Part> {
    match part {
        ContentPart::Text(text) => (!text.is_empty()).then_some(Part::Text(text)),
        ContentPart::ToolCall(call) => Some(Part::ToolCall(ToolCall {
            id: call.call_id,
            name: call.fn_name,
            arguments: call.fn_arguments,
        })),
        ContentPart::ReasoningContent(text) => Some(Part::Reasoning(text)),
        ContentPart::ThoughtSignature(signature) => {
            Some(Part::Other(json!({ "type": SIGNATURE, "signature": signature })))
        }
        ContentPart::Custom(custom) => {
            Some(Part::Other(json!({ "type": PROVIDER_PART, "data": custom.data })))
        }
        // Pictures are asked for in another call, and no model answers with a tool's result.
        ContentPart::Binary(_) | ContentPart::ToolResponse(_) => None,
    }
}

/// Gemini says `STOP` for calls of tools, too.
fn finish(stop: Option<StopReason>, parts: &[Part]) -> FinishReason {
    let calls = parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
    match stop {
        Some(StopReason::Completed(_) | StopReason::StopSequence(_)) | None if calls => {
            FinishReason::ToolCalls
        }
        Some(StopReason::Completed(_) | StopReason::StopSequence(_)) => FinishReason::Stop,
        Some(StopReason::MaxTokens(_)) => FinishReason::Length,
        Some(StopReason::ToolCall(_)) => FinishReason::ToolCalls,
        Some(StopReason::ContentFilter(_)) => FinishReason::ContentFilter,
        Some(StopReason::Other(reason)) => FinishReason::Other(reason),
        None => FinishReason::Other("unknown".to_owned()),
    }
}

fn usage(response: &ChatResponse, raw: &Value) -> Usage {
    let count = |tokens: Option<i32>| tokens.and_then(|tokens| u64::try_from(tokens).ok());
    let usage = &response.usage;
    let cached = usage.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens);
    let thought =
        usage.completion_tokens_details.as_ref().and_then(|details| details.reasoning_tokens);
    Usage {
        input_tokens: count(usage.prompt_tokens),
        output_tokens: count(usage.completion_tokens),
        cached_input_tokens: count(cached)
            // DeepSeek's name for it.
            .or_else(|| raw.pointer("/usage/prompt_cache_hit_tokens").and_then(Value::as_u64)),
        reasoning_tokens: count(thought),
    }
}

/// The tokens of two turns.
fn sum(left: &Usage, right: &Usage) -> Usage {
    let add = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
    };
    Usage {
        input_tokens: add(left.input_tokens, right.input_tokens),
        output_tokens: add(left.output_tokens, right.output_tokens),
        cached_input_tokens: add(left.cached_input_tokens, right.cached_input_tokens),
        reasoning_tokens: add(left.reasoning_tokens, right.reasoning_tokens),
    }
}
