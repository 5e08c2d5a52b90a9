//! `text_classify`: what a text is about. It extracts nothing.

use wattle_plugin::prelude::{Context, Deserialize, Failure, JsonSchema, Serialize, llm, node};

use crate::node::label;
use crate::state::TaskType;

const CLASSIFY_TEXT_PROMPT: &str = "\
你是资产录入助手的分类器。判断用户的文字描述的是哪一类内容，只做分类，不提取数据：
- operation：交易操作，例如买入、卖出、成交、加仓、减仓。
- holding：持仓情况，例如持有、持仓、成本价。
- unknown：两者都不是，或无法判断。
给出 type、confidence（0 到 1）和一句话的 reason。";

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Input {
    text_input: Option<String>,
}

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Update {
    task: TaskType,
}

/// The answer's shape.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used; `label` reads the answer")]
struct Classification {
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["operation", "holding", "unknown"]))]
    kind: String,
    #[schemars(range(min = 0, max = 1))]
    confidence: f64,
    reason: String,
}

/// Tells trades, holdings and anything else apart.
#[node]
pub(crate) fn text_classify(_context: &Context, input: Input) -> Result<Update, Failure> {
    let task = match input.text_input.as_deref() {
        Some(text) if !text.trim().is_empty() => classify(text)?,
        _ => TaskType::Unknown,
    };
    Ok(Update { task })
}

/// Classifies a text with one call of the chat model.
pub(crate) fn classify(text: &str) -> Result<TaskType, Failure> {
    let answer = llm::Request::route("chat")
        .system(CLASSIFY_TEXT_PROMPT)
        .user(text)
        .schema::<Classification>("ClassifySchema")
        .temperature(0.0)
        .complete();
    label::task(answer)
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Completion, Context, json};
    use wattle_plugin::testing::{FakeHost, run_node};

    use super::text_classify;

    fn check(label: &'static str, task: &str) {
        let host = FakeHost::new().llm(move |request| {
            assert_eq!(request.route, "chat");
            Ok(Completion::of_json(json!({"type": label, "confidence": 0.9, "reason": "词"})))
        });
        let input = json!({"textInput": "昨天买入腾讯 100 股 320"});
        let decision = host.run(|| run_node::<text_classify>(&Context::default(), &input)).unwrap();
        assert_eq!(decision.update("task"), Some(&json!(task)));
        assert_eq!(decision.updates.len(), 1);
        assert_eq!(host.llm_requests().len(), 1);
    }

    #[test]
    fn labels_become_tasks() {
        check("operation", "operation");
        check("holding", "holding");
        check("unknown", "unknown");
        check("weather", "unknown");
    }

    #[test]
    fn without_a_text_nobody_is_asked() {
        let host = FakeHost::new();
        let input = json!({"textInput": null});
        let decision = host.run(|| run_node::<text_classify>(&Context::default(), &input)).unwrap();
        assert_eq!(decision.update("task"), Some(&json!("unknown")));
    }
}
