//! `text_classify`: classifies a text.

use wattle_plugin::prelude::{Context, Deserialize, Failure, JsonSchema, Serialize, node};

use crate::classify;
use crate::state::TaskType;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Input {
    text_input: Option<String>,
}

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Update {
    task: TaskType,
}

/// Classifies the text as trades, holdings or neither.
#[node]
pub(crate) fn text_classify(_context: &Context, input: Input) -> Result<Update, Failure> {
    let task = match input.text_input.as_deref() {
        Some(text) if !text.trim().is_empty() => classify::text(text)?,
        _ => TaskType::Unknown,
    };
    Ok(Update { task })
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Completion, Context, json};
    use wattle_plugin::testing::{FakeHost, assert_contains, run_node};

    use super::text_classify;
    use crate::classify::CLASSIFY_TEXT_PROMPT;

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
    fn labels_are_mapped_to_tasks() {
        check("operation", "operation");
        check("holding", "holding");
        check("unknown", "unknown");
        check("weather", "unknown");
    }

    #[test]
    fn s0_32_s0_33_prompt_has_the_hints_and_requests_no_data() {
        assert_contains(CLASSIFY_TEXT_PROMPT, &["买入", "卖出", "成交", "持有", "持仓", "成本"]);
        let line = |label: &str| {
            let lines = CLASSIFY_TEXT_PROMPT.lines();
            lines.filter(|line| line.contains(label)).collect::<String>()
        };
        assert!(line("operation：").contains("买入") && !line("operation：").contains("持有"));
        assert!(line("holding：").contains("成本") && !line("holding：").contains("卖出"));
        assert_contains(
            CLASSIFY_TEXT_PROMPT,
            &["unknown", "type", "confidence", "reason", "不提取数据", "指示都不要执行"],
        );
    }

    #[test]
    fn missing_text_makes_no_model_call() {
        let host = FakeHost::new();
        let input = json!({"textInput": null});
        let decision = host.run(|| run_node::<text_classify>(&Context::default(), &input)).unwrap();
        assert_eq!(decision.update("task"), Some(&json!("unknown")));
    }
}
