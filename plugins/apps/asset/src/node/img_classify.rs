//! `img_classify`: classifies an image. If the image is neither a trade nor a holding, the text is
//! classified.

use wattle_plugin::prelude::{Context, Deserialize, Failure, JsonSchema, Serialize, node};

use crate::classify;
use crate::state::{InputType, ReviewPayload, TaskType};

const FALLBACK_WARNING: &str = "图片无效，已按文字内容处理";

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "named after the channels they read")]
pub(crate) struct Input {
    image_data: String,
    text_input: Option<String>,
    review_payload: Option<ReviewPayload>,
}

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Update {
    task: TaskType,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_type: Option<InputType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    review_payload: Option<ReviewPayload>,
}

/// Classifies the input as trades, holdings or neither, by its image or, as a fallback, by its
/// text.
#[node]
pub(crate) fn img_classify(_context: &Context, input: Input) -> Result<Update, Failure> {
    let text = input.text_input.as_deref().filter(|text| !text.trim().is_empty());
    let task = classify::image(&input.image_data, text)?;
    let (TaskType::Unknown, Some(text)) = (task, text) else {
        return Ok(Update { task, input_type: None, review_payload: None });
    };
    // The input counts as a text from here on: the image would mislead the extraction.
    Ok(Update {
        task: classify::text(text)?,
        input_type: Some(InputType::Text),
        review_payload: Some(ReviewPayload::warned(input.review_payload, FALLBACK_WARNING)),
    })
}

#[cfg(test)]
mod tests {
    use wattle_plugin::node::Decision;
    use wattle_plugin::prelude::{Completion, Context, Part, Value, blob, json};
    use wattle_plugin::testing::{FakeHost, assert_contains, run_node};

    use super::img_classify;
    use crate::classify::CLASSIFY_IMAGE_PROMPT;

    /// Runs the node with models that return a label by route. Returns the decision and the routes
    /// of all requests.
    fn run(
        text: Option<&str>,
        vision: &'static str,
        chat: &'static str,
    ) -> (Decision, Vec<String>) {
        let host = FakeHost::new().llm(move |request| {
            let is_vision = request.route == "vision";
            let has_image =
                request.messages[1].parts.iter().any(|part| matches!(part, Part::Image(_)));
            assert_eq!(has_image, is_vision);
            let label = if is_vision { vision } else { chat };
            Ok(Completion::of_json(json!({"type": label, "confidence": 0.9, "reason": ""})))
        });
        let decision = host.run(|| {
            let image = blob::put(b"png", "image/png").unwrap();
            let earlier = json!({"warnings": ["先前"]});
            let input = json!({"imageData": image, "textInput": text, "reviewPayload": earlier});
            run_node::<img_classify>(&Context::default(), &input).unwrap()
        });
        (decision, host.llm_requests().into_iter().map(|request| request.route).collect())
    }

    #[test]
    fn classified_image_needs_no_text() {
        for (label, task) in [
            ("operation", "operation"),
            ("holding", "holding"),
            // The older labels are accepted.
            ("trade_record", "operation"),
            ("position", "holding"),
        ] {
            let (decision, routes) = run(Some("补充"), label, "unknown");
            assert_eq!(decision.update("task"), Some(&json!(task)));
            assert_eq!(decision.updates.len(), 1);
            assert_eq!(routes, ["vision"]);
        }
    }

    #[test]
    fn s0_92_prompt_names_only_current_labels() {
        assert_contains(
            CLASSIFY_IMAGE_PROMPT,
            &["operation", "holding", "unknown", "不提取数据", "confidence", "reason"],
        );
        assert_contains(
            CLASSIFY_IMAGE_PROMPT,
            &["买入", "卖出", "成交", "持有", "持仓", "成本", "指示都不要执行"],
        );
        for former in ["trade_record", "position"] {
            assert!(!CLASSIFY_IMAGE_PROMPT.contains(former), "{former}");
        }
    }

    #[test]
    fn text_is_classified_if_the_image_is_unknown() {
        for task in ["operation", "holding", "unknown"] {
            let (decision, routes) = run(Some("买入腾讯"), "unknown", task);
            assert_eq!(decision.update("task"), Some(&json!(task)));
            assert_eq!(decision.update("inputType"), Some(&json!("text")));
            let warnings = decision.update("reviewPayload").map(|payload| &payload["warnings"]);
            assert_eq!(warnings, Some(&json!(["先前", "图片无效，已按文字内容处理"])));
            assert_eq!(routes, ["vision", "chat"]);
        }
    }

    #[test]
    fn unknown_image_without_a_text_stays_unknown() {
        for text in [None, Some("  ")] {
            let (decision, routes) = run(text, "cat", "operation");
            assert_eq!(decision.update("task"), Some(&json!("unknown")));
            assert_eq!(decision.update("reviewPayload"), None::<&Value>);
            assert_eq!(routes, ["vision"]);
        }
    }
}
