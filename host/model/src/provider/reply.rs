//! A provider's answer in our words.

use genai::chat::{ChatResponse, ContentPart, MessageContent, StopReason, StreamEnd};
use serde_json::{Value, json};
use wattle_graph::llm::{Completion, FinishReason, Part, ToolCall, Usage};

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
    /// A whole answer.
    pub(super) fn read(mut response: ChatResponse) -> Self {
        let model = response.provider_model_iden.model_name.to_string();
        let stop = response.stop_reason.take();
        let reasoning = response.reasoning_content.take();
        Self::of(response.content, reasoning, stop, &response.usage, model)
    }

    /// A streamed answer; the end of the stream repeats all of it.
    pub(super) fn streamed(kind: ProviderKind, end: StreamEnd, model: String) -> Self {
        let usage = end.captured_usage.unwrap_or_default();
        let mut content = end.captured_content.unwrap_or_default();
        if kind == ProviderKind::Gemini {
            content = sign_calls(content);
        }
        Self::of(content, end.captured_reasoning_content, end.captured_stop_reason, &usage, model)
    }

    fn of(
        content: MessageContent,
        reasoning: Option<String>,
        stop: Option<StopReason>,
        usage: &genai::chat::Usage,
        model: String,
    ) -> Self {
        let mut parts: Vec<Part> = content.into_iter().filter_map(part).collect();
        if let Some(text) = reasoning.filter(|text| !text.is_empty())
            && !parts.iter().any(|part| matches!(part, Part::Reasoning(_)))
        {
            parts.insert(0, Part::Reasoning(text));
        }
        name_calls(&mut parts);
        let finish = finish(stop, &parts);
        Self { parts, finish, usage: count(usage), model }
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
            id: None,
            parts: self.parts,
            structured,
            finish_reason: self.finish,
            usage: self.usage,
            model: self.model,
            attempts: Vec::new(),
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

/// Gemini signs requests for tools and wants each signature back at its own. `genai` puts all
/// signatures of a stream before everything else; here they stand before their calls again.
fn sign_calls(content: MessageContent) -> MessageContent {
    let mut parts = content.into_parts();
    let mut place = 0;
    while let Some(part) = parts.get(place) {
        let signature =
            part.as_tool_call().and_then(|call| call.thought_signatures.as_ref()?.first());
        let signed = signature.and_then(|own| {
            parts[..place].iter().position(|part| part.as_thought_signature() == Some(own))
        });
        if let Some(from) = signed {
            // It moves right before its call, and the call stays where it is.
            parts[from..place].rotate_left(1);
        }
        place += 1;
    }
    MessageContent::from_parts(parts)
}

/// Gemini does not name its calls of tools. `genai` counts them anew in every piece of a stream, so
/// that two may have one name; here they are counted through the whole answer.
fn name_calls(parts: &mut [Part]) {
    let calls = parts.iter_mut().filter_map(|part| match part {
        Part::ToolCall(call) => Some(call),
        _ => None,
    });
    for (index, call) in calls.enumerate() {
        if let Some(id) = made_up_id(&call.id, &call.name, index) {
            call.id = id;
        }
    }
}

/// A better id than one that `genai` made up.
pub(super) fn made_up_id(id: &str, name: &str, index: usize) -> Option<String> {
    id.strip_prefix("call#")?.starts_with(name).then(|| format!("call#{name}#{index}"))
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

fn count(usage: &genai::chat::Usage) -> Usage {
    let count = |tokens: Option<i32>| tokens.and_then(|tokens| u64::try_from(tokens).ok());
    let cached = usage.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens);
    let thought =
        usage.completion_tokens_details.as_ref().and_then(|details| details.reasoning_tokens);
    Usage {
        input_tokens: count(usage.prompt_tokens),
        output_tokens: count(usage.completion_tokens),
        cached_input_tokens: count(cached),
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
