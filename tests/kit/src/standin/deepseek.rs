//! Behavior of DeepSeek's service that differs from OpenAI's format.

use serde_json::{Value, json};

use super::{faults::Fault, question::Question};

/// Prefix of the names of DeepSeek models.
const MODELS: &str = "deepseek";

/// Prefix of the names of models that reason unless the request disables it.
const THINKING_MODELS: &str = "deepseek-v4";

/// Returns the fault of a model that is no longer served. DeepSeek responds with the status 400,
/// not 404.
pub fn deepseek_not_found() -> Fault {
    let error = json!({"message": "Model Not Exist", "type": "invalid_request_error",
        "param": null, "code": "invalid_request_error"});
    Fault::Status { status: 400, retry_after: None, body: Some(json!({ "error": error })) }
}

/// Returns true if the model reasons before it responds.
pub(super) fn thinks(request: &Value) -> bool {
    match request.pointer("/thinking/type").and_then(Value::as_str) {
        Some(kind) => kind == "enabled",
        None => model(request).starts_with(THINKING_MODELS),
    }
}

/// Rejects requests as DeepSeek does: response schemas, JSON objects without the word "json" in the
/// prompt, and tool calls that are sent back without their reasoning.
pub(super) fn check(request: &Value) -> Result<(), &'static str> {
    if !model(request).starts_with(MODELS) {
        return Ok(());
    }
    let messages = request.get("messages").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    match request.pointer("/response_format/type").and_then(Value::as_str) {
        Some("json_schema") => return Err("This response_format type is unavailable now"),
        Some("json_object") if !json!(messages).to_string().to_lowercase().contains("json") => {
            return Err("Prompt must contain the word 'json' in some form to use \
                        'response_format' of type 'json_object'.");
        }
        _ => {}
    }
    let lost = |message: &Value| {
        message.get("tool_calls").is_some() && message.get("reasoning_content").is_none()
    };
    if thinks(request) && messages.iter().any(lost) {
        return Err("The reasoning_content in the thinking mode must be passed back to the API.");
    }
    Ok(())
}

/// Returns the reasoning of a model, which depends on the last message only.
pub(super) fn reasoning(question: &Question) -> String {
    let last = question.turns.last().map_or("", |turn| turn.text.as_str());
    let start: String = last.chars().take(40).collect();
    format!("The last message begins with \"{start}\"; I answer it step by step.")
}

fn model(request: &Value) -> &str {
    request.get("model").and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(model: &str, thinking: Option<&str>, messages: Value) -> Value {
        let mut request = json!({"model": model, "messages": messages});
        if let Some(kind) = thinking {
            request["thinking"] = json!({"type": kind});
        }
        request
    }

    #[test]
    fn version_4_reasons_unless_disabled() {
        let cases = [
            ("deepseek-v4-flash", None, true),
            ("deepseek-v4-flash", Some("disabled"), false),
            ("gpt-4o", None, false),
            ("gpt-4o", Some("enabled"), true),
        ];
        for (model, thinking, expected) in cases {
            assert_eq!(thinks(&ask(model, thinking, json!([]))), expected, "{model}");
        }
    }

    #[test]
    fn tool_calls_require_their_reasoning() {
        let calls = json!([{"id": "a"}]);
        let lost = json!([{"role": "assistant", "tool_calls": calls}]);
        let kept = json!([{"role": "assistant", "tool_calls": calls, "reasoning_content": "hm"}]);
        assert!(check(&ask("deepseek-v4-pro", None, lost.clone())).is_err());
        assert!(check(&ask("deepseek-v4-pro", Some("disabled"), lost)).is_ok());
        assert!(check(&ask("deepseek-v4-pro", None, kept)).is_ok());
    }

    #[test]
    fn schemas_are_rejected_and_json_requires_the_word() {
        let with = |kind: &str, text: &str| {
            let messages = json!([{"role": "system", "content": text}]);
            let mut request = ask("deepseek-v4-pro", None, messages);
            request["response_format"] = json!({"type": kind});
            request
        };
        assert!(check(&with("json_schema", "json")).is_err());
        assert!(check(&with("json_object", "answer")).is_err());
        assert!(check(&with("json_object", "answer in JSON")).is_ok());
    }
}
