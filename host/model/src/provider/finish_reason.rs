//! Finish reasons, as the services of all formats name them.
//!
//! A gateway that translates between formats often leaves the reason as the service behind it names
//! it: OpenAI's format contains `STOP`, `FinishReason.MAX_TOKENS` and
//! `content_filter: PROHIBITED_CONTENT`. No name has different meanings in different formats, so
//! all formats share one table.

use wattle_graph::llm::FinishReason;

/// Names for complete output. TGI sends `eos_token`, Cohere `COMPLETE`.
const STOP: [&str; 9] = [
    "stop",
    "eos",
    "eos_token",
    "end",
    "end_turn",
    "end_of_turn",
    "stop_sequence",
    "complete",
    "completed",
];

/// Names for output that reached a limit. Mistral sends `model_length`, Cohere `ERROR_LIMIT`.
const LENGTH: [&str; 9] = [
    "length",
    "max_length",
    "max_tokens",
    "max_new_tokens",
    "max_output_tokens",
    "token_limit",
    "model_length",
    "model_context_window_exceeded",
    "error_limit",
];

/// Names for output that ends with tool calls.
const TOOL_CALLS: [&str; 4] = ["tool_calls", "tool_call", "tool_use", "function_call"];

/// Names for output that the service withheld. Zhipu sends `sensitive`, Bedrock
/// `guardrail_intervened`, Cohere `ERROR_TOXIC`.
const CONTENT_FILTER: [&str; 17] = [
    "content_filter",
    "content_filtered",
    "refusal",
    "safety",
    "sensitive",
    "recitation",
    "language",
    "blocklist",
    "prohibited_content",
    "spii",
    "image_safety",
    "image_prohibited_content",
    "image_recitation",
    "model_armor",
    "guardrail",
    "guardrail_intervened",
    "error_toxic",
];

/// Names for output that the service did not finish. DeepSeek sends `insufficient_system_resource`
/// when it has no capacity, Zhipu `network_error`, vLLM `abort`, watsonx `time_limit`, Cohere
/// `USER_CANCEL`. Some routers send `error` for any error.
const INTERRUPTED: [&str; 14] = [
    "error",
    "failed",
    "network_error",
    "server_error",
    "internal_error",
    "insufficient_system_resource",
    "abort",
    "aborted",
    "cancel",
    "canceled",
    "cancelled",
    "user_cancel",
    "timeout",
    "time_limit",
];

/// Returns whether a reason is specified. The default value of each enum of Google's API ends with
/// `_UNSPECIFIED`; other services send `null` as a text. Gateways send such a value with every
/// chunk.
pub(super) fn is_specified(reason: &str) -> bool {
    let name = name(reason);
    !matches!(name.as_str(), "" | "null" | "none") && !name.ends_with("unspecified")
}

/// Returns whether the service stopped before the completion was finished. The output so far is
/// not a completion.
pub(super) fn is_interrupted(reason: &str) -> bool {
    INTERRUPTED.contains(&name(reason).as_str())
}

/// Returns the finish reason of a completion. Services also send the names for complete output
/// with tool calls.
pub(super) fn from_name(reason: Option<&str>, has_calls: bool) -> FinishReason {
    let Some(reason) = reason else {
        return if has_calls {
            FinishReason::ToolCalls
        } else {
            FinishReason::Other("unknown".to_owned())
        };
    };
    let name = name(reason);
    let is_in = |names: &[&str]| names.contains(&name.as_str());
    if is_in(&TOOL_CALLS) || is_in(&STOP) && has_calls {
        FinishReason::ToolCalls
    } else if is_in(&STOP) {
        FinishReason::Stop
    } else if is_in(&LENGTH) {
        FinishReason::Length
    } else if is_in(&CONTENT_FILTER) {
        FinishReason::ContentFilter
    } else {
        FinishReason::Other(reason.to_owned())
    }
}

/// Returns the name in a reason, in lower case: without the explanation after a colon, without the
/// name of the enum, and with underscores between words.
fn name(reason: &str) -> String {
    let lower = reason.to_ascii_lowercase();
    let name = lower.split(':').next().unwrap_or_default();
    let name = name.rsplit('.').next().unwrap_or_default().trim();
    name.strip_prefix("finish_reason_").unwrap_or(name).replace(['-', ' '], "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_formats_are_mapped() {
        let other = |name: &str| FinishReason::Other(name.to_owned());
        for (reason, calls, expected) in [
            ("stop", false, FinishReason::Stop),
            ("stop", true, FinishReason::ToolCalls),
            ("STOP", false, FinishReason::Stop),
            ("STOP", true, FinishReason::ToolCalls),
            ("FinishReason.STOP", false, FinishReason::Stop),
            ("FINISH_REASON_STOP", false, FinishReason::Stop),
            ("eos_token", false, FinishReason::Stop),
            ("COMPLETE", false, FinishReason::Stop),
            ("end_turn", true, FinishReason::ToolCalls),
            ("stop_sequence", false, FinishReason::Stop),
            ("MAX_TOKENS", false, FinishReason::Length),
            ("MAX_TOKENS", true, FinishReason::Length),
            ("model_length", false, FinishReason::Length),
            ("model_context_window_exceeded", false, FinishReason::Length),
            ("tool_use", true, FinishReason::ToolCalls),
            ("FUNCTION_CALL", true, FinishReason::ToolCalls),
            ("tool-calls", true, FinishReason::ToolCalls),
            ("SAFETY", false, FinishReason::ContentFilter),
            ("sensitive", false, FinishReason::ContentFilter),
            ("RECITATION", false, FinishReason::ContentFilter),
            ("content_filter: PROHIBITED_CONTENT", false, FinishReason::ContentFilter),
            ("guardrail_intervened", false, FinishReason::ContentFilter),
            ("MALFORMED_FUNCTION_CALL", false, other("MALFORMED_FUNCTION_CALL")),
            (
                "function_call_filter: MALFORMED_FUNCTION_CALL",
                false,
                other("function_call_filter: MALFORMED_FUNCTION_CALL"),
            ),
            ("pause_turn", false, other("pause_turn")),
        ] {
            assert_eq!(from_name(Some(reason), calls), expected, "{reason}");
            assert!(is_specified(reason) && !is_interrupted(reason), "{reason}");
        }
        assert_eq!(from_name(None, true), FinishReason::ToolCalls);
        assert_eq!(from_name(None, false), other("unknown"));
    }

    #[test]
    fn interruptions_are_recognized() {
        for reason in [
            "error",
            "ERROR",
            "error: upstream",
            "network_error",
            "abort",
            "FinishReason.ABORT",
            "cancelled",
            "USER_CANCEL",
            "timeout",
            "time_limit",
            "insufficient_system_resource",
        ] {
            assert!(is_interrupted(reason), "{reason}");
        }
    }

    #[test]
    fn placeholders_are_no_reasons() {
        for reason in ["", " ", "null", "None", "FINISH_REASON_UNSPECIFIED", "unspecified"] {
            assert!(!is_specified(reason), "{reason}");
        }
    }
}
