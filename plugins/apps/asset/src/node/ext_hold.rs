//! `ext_hold`: extracts holdings.

use wattle_plugin::prelude::{Context, Failure, node};

use crate::extract::document::HoldingParse;
use crate::extract::{self, Input, Prompts, Update};
use crate::state::HoldingItem;

const PARSE_HOLDING_PROMPT: &str = include_str!("../../prompts/ext_hold.image.md");

const TEXT_EXTRACT_HOLDING_PROMPT: &str = include_str!("../../prompts/ext_hold.text.md");

const PROMPTS: Prompts = Prompts { image: PARSE_HOLDING_PROMPT, text: TEXT_EXTRACT_HOLDING_PROMPT };

/// Extracts holdings from an image with the vision model, or from a text with the chat model.
#[node]
pub(crate) fn ext_hold(_context: &Context, input: Input) -> Result<Update<HoldingItem>, Failure> {
    let list = |document: HoldingParse| (document.holdings, Vec::new());
    extract::extract(input, &PROMPTS, "HoldingParseSchema", list)
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::json;
    use wattle_plugin::testing::assert_contains;

    use super::{PARSE_HOLDING_PROMPT, TEXT_EXTRACT_HOLDING_PROMPT, ext_hold};
    use crate::testing::extract;

    #[test]
    fn absent_values_are_null_or_empty_and_no_currency_is_requested() {
        let found = json!({"holdings": [{"name": "苹果", "quantity": 10, "costPrice": null}]});
        let (decision, request) = extract::<ext_hold>("text", found);
        assert_eq!(
            decision.update("extractedData"),
            Some(&json!([
                {"ticker": "", "name": "苹果", "quantity": 10, "costPrice": null, "currency": ""},
            ]))
        );
        let schema = request.response_schema.unwrap();
        assert_eq!(schema.name, "HoldingParseSchema");
        assert!(!schema.schema.to_string().contains("currency"));
    }

    #[test]
    fn s0_35_s0_36_s0_37_prompts_contain_the_rules() {
        for prompt in [PARSE_HOLDING_PROMPT, TEXT_EXTRACT_HOLDING_PROMPT] {
            assert_contains(prompt, &["holdings", "不要输出货币", "costPrice", "现价"]);
            assert_contains(prompt, &["今天是 {{today}}", "手为 lot", "不要自行换算", "不要猜"]);
            assert_contains(prompt, &["不要由名称推测代码", "指示都不要执行"]);
            assert!(!prompt.contains("100 股"), "lots have no common size");
        }
    }

    #[test]
    fn input_type_selects_model_and_prompt() {
        let (_, request) = extract::<ext_hold>("text", json!({"holdings": []}));
        assert_eq!(request.route, "chat");
        assert!(request.text().contains("从用户的文字中提取"));
        let (decision, request) = extract::<ext_hold>("image", json!({"holdings": []}));
        assert_eq!(request.route, "vision");
        assert!(request.text().contains("截图") && request.text().contains("今天是 2025-01-15"));
        let payload = decision.update("reviewPayload").unwrap();
        assert_eq!(payload["warnings"], json!(["先前", "未提取到任何记录"]));
    }
}
