//! `present_review`: shows the review to the user and waits for the confirmed table.

use wattle_plugin::prelude::{
    Context, Deserialize, Failure, JsonSchema, Serialize, interrupt, node,
};

use crate::state::{ConfirmedData, ReviewPayload, Row, TaskType};

/// Warning about an input that is neither trades nor holdings. The user can still add rows.
const NOT_RECOGNIZED: &str = "无法识别为交易或持仓信息";

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
    review_payload: ReviewPayload,
    confirmed_data: ConfirmedData,
}

/// Interrupts the run and asks the user to confirm the rows. The answer is the confirmed data.
#[node]
pub(crate) fn present_review(_context: &Context, input: Input) -> Result<Update, Failure> {
    let noted = match input.task {
        TaskType::Unknown => ReviewPayload::warned(input.review_payload, NOT_RECOGNIZED),
        _ => input.review_payload.unwrap_or_default(),
    };
    let rows = input.extracted_data.unwrap_or_default();
    let review_payload = ReviewPayload { kind: input.task, rows, ..noted };
    let question = serde_json::to_value(&review_payload)?;
    let confirmed_data = interrupt::ask_with_schema::<ConfirmedData>(question)?;
    Ok(Update { review_payload, confirmed_data })
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Context, json};
    use wattle_plugin::testing::{FakeHost, run_node};

    use super::present_review;

    #[test]
    fn interrupt_has_the_payload_and_its_answer_is_written() {
        let confirmed =
            json!({"rows": [{"ticker": "AAPL"}], "riskCategory": "稳健", "portfolioId": 1});
        let host = FakeHost::new().answer(confirmed.clone());
        let input = json!({
            "task": "operation",
            "extractedData": [{"ticker": "UNKNOWN"}],
            "reviewPayload": {"missingFields": ["rows[0].ticker"], "warnings": ["警告"]},
        });
        let decision =
            host.run(|| run_node::<present_review>(&Context::default(), &input)).unwrap();
        let payload = json!({
            "type": "operation",
            "rows": [{"ticker": "UNKNOWN"}],
            "missingFields": ["rows[0].ticker"],
            "warnings": ["警告"],
        });
        assert_eq!(host.questions()[0].payload, payload);
        assert_eq!(decision.update("reviewPayload"), Some(&payload));
        assert_eq!(decision.update("confirmedData"), Some(&confirmed));
        assert!(host.llm_requests().is_empty());
    }

    #[test]
    fn s0_58_s0_88_unknown_input_has_no_rows_and_a_warning() {
        let host = FakeHost::new();
        let input = json!({"task": "unknown", "extractedData": null, "reviewPayload": null});
        host.run(|| run_node::<present_review>(&Context::default(), &input)).unwrap_err();
        assert_eq!(
            host.questions()[0].payload,
            json!({
                "type": "unknown", "rows": [], "missingFields": [],
                "warnings": ["无法识别为交易或持仓信息"],
            })
        );
    }
}
