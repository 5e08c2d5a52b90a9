//! `img_classify`: what a picture is about. If it says nothing but a text does, the text counts.

use wattle_plugin::prelude::{
    Context, Deserialize, Failure, JsonSchema, Serialize, llm, node, prompt,
};

use crate::node::label::{self, Classification};
use crate::node::text_classify;
use crate::picture;
use crate::state::{InputType, ReviewPayload, TaskType};

const CLASSIFY_IMAGE_PROMPT: &str = include_str!("../../prompts/img_classify.md");

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

/// Tells trades, holdings and anything else apart by the picture, or else by the text.
#[node]
pub(crate) fn img_classify(_context: &Context, input: Input) -> Result<Update, Failure> {
    let text = input.text_input.as_deref().filter(|text| !text.trim().is_empty());
    let task = classify(&input.image_data, text)?;
    let (TaskType::Unknown, Some(text)) = (task, text) else {
        return Ok(Update { task, input_type: None, review_payload: None });
    };
    // From here on the input is a text: the picture would only mislead the extraction.
    Ok(Update {
        task: text_classify::classify(text)?,
        input_type: Some(InputType::Text),
        review_payload: Some(ReviewPayload::warned(input.review_payload, FALLBACK_WARNING)),
    })
}

fn classify(image: &str, text: Option<&str>) -> Result<TaskType, Failure> {
    let question = match text {
        Some(text) => format!("请对这张图片分类。用户的附加文字：{text}"),
        None => "请对这张图片分类。".to_owned(),
    };
    let answer = llm::Request::route("vision")
        .system(prompt::fill(CLASSIFY_IMAGE_PROMPT, &[])?)
        .user(question)
        .image(picture::part(image)?)
        .schema::<Classification>("ClassifySchema")
        .temperature(0.0)
        .complete();
    label::task(answer)
}

#[cfg(test)]
mod tests {
    use wattle_plugin::node::Decision;
    use wattle_plugin::prelude::{Completion, Context, Part, Value, blob, json};
    use wattle_plugin::testing::{FakeHost, run_node};

    use super::{CLASSIFY_IMAGE_PROMPT, img_classify};

    /// Answers by route and returns what was decided and the routes that were asked.
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
    fn a_clear_picture_decides_alone() {
        for (label, task) in [
            ("operation", "operation"),
            ("holding", "holding"),
            // A model that answers in the former vocabulary is understood too.
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
    fn s0_92_the_prompt_names_the_present_labels_only() {
        for rule in ["operation", "holding", "unknown", "不提取数据", "confidence", "reason"] {
            assert!(CLASSIFY_IMAGE_PROMPT.contains(rule), "{rule}");
        }
        for hint in ["买入", "卖出", "成交", "持有", "持仓", "成本", "指示都不要执行"]
        {
            assert!(CLASSIFY_IMAGE_PROMPT.contains(hint), "{hint}");
        }
        for former in ["trade_record", "position"] {
            assert!(!CLASSIFY_IMAGE_PROMPT.contains(former), "{former}");
        }
    }

    #[test]
    fn the_text_counts_if_the_picture_says_nothing() {
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
    fn without_a_text_it_stays_unknown() {
        for text in [None, Some("  ")] {
            let (decision, routes) = run(text, "cat", "operation");
            assert_eq!(decision.update("task"), Some(&json!("unknown")));
            assert_eq!(decision.update("reviewPayload"), None::<&Value>);
            assert_eq!(routes, ["vision"]);
        }
    }
}
