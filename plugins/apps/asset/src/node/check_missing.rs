//! `check_missing`: lists empty required fields and sets missing dates.

use wattle_plugin::prelude::{Context, Deserialize, Failure, JsonSchema, Serialize, node};

use crate::state::{ReviewPayload, Row, TaskType, UNKNOWN_TICKER};
use crate::{date, missing};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Input {
    task: TaskType,
    extracted_data: Option<Vec<Row>>,
    review_payload: Option<ReviewPayload>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Update {
    extracted_data: Vec<Row>,
    review_payload: ReviewPayload,
}

/// Lists empty required fields and unknown tickers, and sets the current date on trades without a
/// date.
#[node]
pub(crate) fn check_missing(_context: &Context, input: Input) -> Result<Update, Failure> {
    let mut rows = input.extracted_data.unwrap_or_default();
    let mut payload = input.review_payload.unwrap_or_default();
    payload.missing_fields = missing::fields(input.task, &rows);
    for row in rows.iter().filter(|row| row.text("ticker") == UNKNOWN_TICKER) {
        payload.warnings.push(format!("UNKNOWN ticker: {}", row.text("name")));
    }
    if input.task == TaskType::Operation {
        fill_dates(&mut rows)?;
    }
    Ok(Update { extracted_data: rows, review_payload: payload })
}

fn fill_dates(rows: &mut [Row]) -> Result<(), Failure> {
    let today = date::today()?;
    for row in rows.iter_mut().filter(|row| row.is_empty("tradedAt")) {
        row.set("tradedAt", today.as_str());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Context, Value, json};
    use wattle_plugin::testing::run_node;

    use super::check_missing;
    use crate::testing::host;

    fn run(task: &str, rows: Value) -> (Value, Value) {
        let host = host();
        let input = json!({
            "task": task, "extractedData": rows, "reviewPayload": {"warnings": ["先前"]},
        });
        let decision = host.run(|| run_node::<check_missing>(&Context::default(), &input)).unwrap();
        assert!(host.llm_requests().is_empty());
        let written = |channel| decision.update(channel).cloned().unwrap();
        (written("extractedData"), written("reviewPayload"))
    }

    #[test]
    fn missing_fields_are_ordered_by_row_and_field() {
        let (_, payload) = run(
            "operation",
            json!([
                {"ticker": "UNKNOWN", "name": "泡泡玛特", "quantity": null, "price": 0},
                {"ticker": "AAPL", "quantity": 10, "price": " "},
                {"quantity": 0, "price": 1},
            ]),
        );
        assert_eq!(
            payload["missingFields"],
            json!(["rows[0].ticker", "rows[0].quantity", "rows[1].price", "rows[2].ticker"])
        );
        assert_eq!(payload["warnings"], json!(["先前", "UNKNOWN ticker: 泡泡玛特"]));
    }

    #[test]
    fn s0_45_s0_50_code_of_an_unknown_exchange_lacks_a_currency() {
        let (_, payload) = run(
            "operation",
            json!([
                {"ticker": "LON:VOD", "quantity": 1, "price": null, "currency": ""},
                {"ticker": "LON:VOD", "quantity": 1, "price": 1, "currency": "GBP"},
                {"ticker": "UNKNOWN", "quantity": 1, "price": 1, "currency": ""},
            ]),
        );
        let expected = json!(["rows[0].price", "rows[0].currency", "rows[2].ticker"]);
        assert_eq!(payload["missingFields"], expected);
    }

    #[test]
    fn holdings_require_a_cost_price_and_no_date() {
        let (rows, payload) =
            run("holding", json!([{"ticker": "AAPL", "quantity": 1, "costPrice": null}]));
        assert_eq!(payload["missingFields"], json!(["rows[0].costPrice"]));
        assert_eq!(rows[0].get("tradedAt"), None);
    }

    #[test]
    fn trades_without_a_date_get_the_current_date() {
        let (rows, payload) = run(
            "operation",
            json!([
                {"ticker": "A", "quantity": 1, "price": 1, "tradedAt": null},
                {"ticker": "B", "quantity": 1, "price": 1, "tradedAt": ""},
                {"ticker": "C", "quantity": 1, "price": 1, "tradedAt": "2025-01-14"},
            ]),
        );
        let dates: Vec<_> = (0..3).map(|index| rows[index]["tradedAt"].clone()).collect();
        assert_eq!(dates, ["2025-01-15", "2025-01-15", "2025-01-14"]);
        assert_eq!(payload["missingFields"], json!([]));
    }
}
