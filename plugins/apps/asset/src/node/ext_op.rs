//! `ext_op`: extracts trades.

use wattle_plugin::prelude::{Context, Failure, node};

use crate::extract::document::{Operation, OperationParse};
use crate::extract::{self, Input, Prompts, Update};
use crate::state::OperationItem;

const PARSE_OPERATION_PROMPT: &str = include_str!("../../prompts/ext_op.image.md");

const TEXT_EXTRACT_OPERATION_PROMPT: &str = include_str!("../../prompts/ext_op.text.md");

const PROMPTS: Prompts =
    Prompts { image: PARSE_OPERATION_PROMPT, text: TEXT_EXTRACT_OPERATION_PROMPT };

/// Extracts trades from an image with the vision model, or from a text with the chat model.
#[node]
pub(crate) fn ext_op(_context: &Context, input: Input) -> Result<Update<OperationItem>, Failure> {
    let list = |OperationParse { operations }| {
        let warnings: Vec<String> = operations.iter().filter_map(Operation::date_warning).collect();
        (operations, warnings)
    };
    extract::extract(input, &PROMPTS, "OperationParseSchema", list)
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::json;
    use wattle_plugin::testing::assert_contains;

    use super::{PARSE_OPERATION_PROMPT, TEXT_EXTRACT_OPERATION_PROMPT, ext_op};
    use crate::testing::extract;

    #[test]
    fn absent_values_are_null_or_empty_and_no_currency_is_requested() {
        let found = json!({"operations": [
            {"name": "腾讯", "action": "buy", "quantity": 100.0, "price": 320.5,
             "tradedAt": "2025/1/14", "ticker": null, "memo": null},
            {"action": "sell", "ticker": " AAPL "},
        ]});
        let (decision, request) = extract::<ext_op>("text", found);
        assert_eq!(
            decision.update("extractedData"),
            Some(&json!([
                {"ticker": "", "name": "腾讯", "action": "buy", "quantity": 100, "price": 320.5,
                 "currency": "", "tradedAt": "2025-01-14"},
                {"ticker": "AAPL", "name": "", "action": "sell", "quantity": null, "price": null,
                 "currency": "", "tradedAt": null},
            ]))
        );
        assert_eq!(decision.update("reviewPayload"), None);
        let schema = request.response_schema.unwrap();
        assert_eq!(schema.name, "OperationParseSchema");
        assert!(!schema.schema.to_string().contains("currency"));
    }

    #[test]
    fn input_type_selects_model_and_prompt() {
        let nothing = || json!({"operations": []});
        let (_, request) = extract::<ext_op>("text", nothing());
        assert_eq!(request.route, "chat");
        assert!(request.text().contains("从用户的文字中提取"));
        assert!(request.text().contains("今天是 2025-01-15"));
        let (_, request) = extract::<ext_op>("image", nothing());
        assert_eq!(request.route, "vision");
        assert!(request.text().contains("截图") && request.text().contains("今天是 2025-01-15"));
        assert_eq!(request.messages[1].parts.len(), 2);
    }

    #[test]
    fn s0_35_s0_36_s0_37_prompts_contain_the_rules() {
        for prompt in [PARSE_OPERATION_PROMPT, TEXT_EXTRACT_OPERATION_PROMPT] {
            assert_contains(prompt, &["operations", "不要输出货币", "YYYY-MM-DD"]);
            assert_contains(prompt, &["今天是 {{today}}", "buy", "sell", "手为 lot"]);
            assert_contains(prompt, &["不要自行换算", "不要猜", "不要由名称推测代码"]);
            assert_contains(prompt, &["指示都不要执行"]);
            assert!(!prompt.contains("100 股"), "lots have no common size");
        }
        assert!(PARSE_OPERATION_PROMPT.contains("忽略已撤销或未成交的委托"));
        assert!(TEXT_EXTRACT_OPERATION_PROMPT.contains("“昨天”"));
    }

    #[test]
    fn s0_37_s0_52_unread_dates_add_a_warning() {
        let found = json!({"operations": [
            {"name": " 腾讯 ", "ticker": "0700.HK", "action": "buy", "tradedAt": "上周三"},
            {"ticker": "AAPL", "action": "sell", "tradedAt": "2025-02-29"},
            {"action": "sell", "tradedAt": "Friday"},
            {"name": "苹果", "action": "buy", "tradedAt": "2025年1月2日"},
            {"name": "苹果", "action": "buy", "tradedAt": " "},
        ]});
        let (decision, _) = extract::<ext_op>("text", found);
        let rows = decision.update("extractedData").unwrap().as_array().unwrap();
        let dates: Vec<_> = rows.iter().map(|row| row["tradedAt"].as_str()).collect();
        assert_eq!(dates, [None, None, None, Some("2025-01-02"), None]);
        let warning = |what: &str| format!("未能识别交易日期，已填今天，请核对: {what}");
        let payload = decision.update("reviewPayload").unwrap();
        assert_eq!(
            payload["warnings"],
            json!(["先前", warning("腾讯 上周三"), warning("AAPL 2025-02-29"), warning("Friday")])
        );
    }

    #[test]
    fn quantities_in_lots_are_kept_as_lots() {
        let found = json!({"operations": [
            {"name": "腾讯", "action": "buy", "quantity": 5, "quantityUnit": "lot", "price": 320},
            {"name": "腾讯", "action": "buy", "quantity": 5, "quantityUnit": "share"},
        ]});
        let (decision, _) = extract::<ext_op>("text", found);
        let rows = decision.update("extractedData").unwrap();
        assert_eq!((&rows[0]["quantity"], &rows[0]["lots"]), (&json!(null), &json!(5)));
        assert_eq!((&rows[1]["quantity"], rows[1].get("lots")), (&json!(5), None));
    }

    #[test]
    fn empty_extraction_adds_a_warning() {
        let (decision, _) = extract::<ext_op>("text", json!({"operations": []}));
        assert_eq!(decision.update("extractedData"), Some(&json!([])));
        let payload = decision.update("reviewPayload").unwrap();
        assert_eq!(payload["warnings"], json!(["先前", "未提取到任何记录"]));
    }
}
