//! `ext_hold`: reads holdings.

use serde_json::Number;
use wattle_plugin::prelude::{Context, Deserialize, Failure, JsonSchema, Serialize, node};

use crate::node::extract::{self, Input, Prompts};
use crate::state::{HoldingItem, ReviewPayload};

const PARSE_HOLDING_PROMPT: &str = "\
你从券商截图中提取持仓，每只股票一行，放入 holdings。
- name：股票名称；ticker：股票代码。可以是近似值，没有就留空。
- quantity：持仓数量（股）；costPrice：成本价。看不清就留空，不要猜，也不要用现价代替成本价。
不要输出货币。";

const TEXT_EXTRACT_HOLDING_PROMPT: &str = "\
你从用户的文字中提取持仓，每只股票一行，放入 holdings。
- name：股票名称；ticker：股票代码。按用户所写，可以是近似值，没有就留空。
- quantity：持仓数量（股，1 手按 100 股）；costPrice：每股成本价。没有提到就留空，不要猜。
不要输出货币。";

const PROMPTS: Prompts = Prompts { image: PARSE_HOLDING_PROMPT, text: TEXT_EXTRACT_HOLDING_PROMPT };

#[derive(Deserialize, JsonSchema)]
struct HoldingParse {
    holdings: Vec<Holding>,
}

/// One holding as a model reads it.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Holding {
    ticker: Option<String>,
    name: Option<String>,
    quantity: Option<Number>,
    cost_price: Option<Number>,
}

impl From<Holding> for HoldingItem {
    fn from(read: Holding) -> Self {
        Self {
            ticker: extract::text(read.ticker),
            name: extract::text(read.name),
            quantity: extract::number(read.quantity),
            cost_price: extract::number(read.cost_price),
            currency: String::new(),
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Update {
    extracted_data: Vec<HoldingItem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    review_payload: Option<ReviewPayload>,
}

/// Reads holdings, with the vision model from a picture, with the chat model from a text.
#[node]
pub(crate) fn ext_hold(_context: &Context, input: Input) -> Result<Update, Failure> {
    let request = input.request(&PROMPTS)?.schema::<HoldingParse>("HoldingParseSchema");
    let read: HoldingParse = request.complete()?.structured()?;
    let extracted_data: Vec<HoldingItem> = read.holdings.into_iter().map(Into::into).collect();
    let review_payload = input.warning(extracted_data.len());
    Ok(Update { extracted_data, review_payload })
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::json;

    use super::{PARSE_HOLDING_PROMPT, TEXT_EXTRACT_HOLDING_PROMPT, ext_hold};
    use crate::testing::extract;

    #[test]
    fn absent_values_are_null_or_empty_and_the_currency_comes_later() {
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
    fn the_input_decides_the_model_and_the_prompt() {
        let (_, request) = extract::<ext_hold>("text", json!({"holdings": []}));
        assert_eq!(request.route, "chat");
        assert!(request.text().contains(TEXT_EXTRACT_HOLDING_PROMPT));
        let (decision, request) = extract::<ext_hold>("image", json!({"holdings": []}));
        assert_eq!(request.route, "vision");
        assert!(request.text().contains(PARSE_HOLDING_PROMPT));
        let payload = decision.update("reviewPayload").unwrap();
        assert_eq!(payload["warnings"], json!(["先前", "未提取到任何记录"]));
    }
}
