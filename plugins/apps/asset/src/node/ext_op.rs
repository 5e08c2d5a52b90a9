//! `ext_op`: reads trades.

use serde_json::Number;
use wattle_plugin::prelude::{Context, Deserialize, Failure, JsonSchema, Serialize, node};

use crate::node::extract::{self, Input, Prompts};
use crate::state::{Action, OperationItem, ReviewPayload};

const PARSE_OPERATION_PROMPT: &str = "\
你从券商截图中提取交易记录，每笔成交一行，放入 operations。
- name：股票名称；ticker：股票代码。可以是近似值，没有就留空。
- action：买入为 buy，卖出为 sell。
- quantity：成交数量（股）；price：成交价格。看不清就留空，不要猜。
- tradedAt：成交日期，格式 YYYY-MM-DD；没有就留空。
- memo：截图中对该笔交易的备注；没有就留空。
不要输出货币。忽略已撤销或未成交的委托。";

const TEXT_EXTRACT_OPERATION_PROMPT: &str = "\
你从用户的文字中提取交易操作，每笔交易一行，放入 operations。
- name：股票名称；ticker：股票代码。按用户所写，可以是近似值，没有就留空。
- action：买入为 buy，卖出为 sell。
- quantity：数量（股，1 手按 100 股）；price：每股价格。没有提到就留空，不要猜。
- tradedAt：交易日期，格式 YYYY-MM-DD，把“昨天”等相对日期换算成具体日期；没有提到就留空。
- memo：用户的其他说明；没有就留空。
不要输出货币。";

const PROMPTS: Prompts =
    Prompts { image: PARSE_OPERATION_PROMPT, text: TEXT_EXTRACT_OPERATION_PROMPT };

#[derive(Deserialize, JsonSchema)]
struct OperationParse {
    operations: Vec<Operation>,
}

/// One trade as a model reads it.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Operation {
    ticker: Option<String>,
    name: Option<String>,
    action: Action,
    quantity: Option<Number>,
    price: Option<Number>,
    traded_at: Option<String>,
    memo: Option<String>,
}

impl From<Operation> for OperationItem {
    fn from(read: Operation) -> Self {
        Self {
            ticker: extract::text(read.ticker),
            name: extract::text(read.name),
            action: read.action,
            quantity: extract::number(read.quantity),
            price: extract::number(read.price),
            currency: String::new(),
            traded_at: extract::day(read.traded_at),
            memo: extract::note(read.memo),
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Update {
    extracted_data: Vec<OperationItem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    review_payload: Option<ReviewPayload>,
}

/// Reads trades, with the vision model from a picture, with the chat model from a text.
#[node]
pub(crate) fn ext_op(_context: &Context, input: Input) -> Result<Update, Failure> {
    let request = input.request(&PROMPTS)?.schema::<OperationParse>("OperationParseSchema");
    let read: OperationParse = request.complete()?.structured()?;
    let extracted_data: Vec<OperationItem> = read.operations.into_iter().map(Into::into).collect();
    let review_payload = input.warning(extracted_data.len());
    Ok(Update { extracted_data, review_payload })
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::json;

    use super::{PARSE_OPERATION_PROMPT, TEXT_EXTRACT_OPERATION_PROMPT, ext_op};
    use crate::testing::extract;

    #[test]
    fn absent_values_are_null_or_empty_and_the_currency_comes_later() {
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
    fn the_input_decides_the_model_and_the_prompt() {
        let nothing = || json!({"operations": []});
        let (_, request) = extract::<ext_op>("text", nothing());
        assert_eq!(request.route, "chat");
        assert!(request.text().contains(TEXT_EXTRACT_OPERATION_PROMPT));
        assert!(request.text().contains("今天是 2025-01-15"));
        let (_, request) = extract::<ext_op>("image", nothing());
        assert_eq!(request.route, "vision");
        assert!(request.text().contains(PARSE_OPERATION_PROMPT));
        assert_eq!(request.messages[1].parts.len(), 2);
    }

    #[test]
    fn no_rows_are_a_warning() {
        let (decision, _) = extract::<ext_op>("text", json!({"operations": []}));
        assert_eq!(decision.update("extractedData"), Some(&json!([])));
        let payload = decision.update("reviewPayload").unwrap();
        assert_eq!(payload["warnings"], json!(["先前", "未提取到任何记录"]));
    }
}
