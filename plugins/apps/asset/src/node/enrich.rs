//! `enrich`: completes tickers and currencies, for trades and holdings alike.

use wattle_plugin::prelude::{Context, Deserialize, Failure, JsonSchema, Serialize, node};

use crate::currency;
use crate::lookup::{self, Found};
use crate::state::{ReviewPayload, Row, UNKNOWN_TICKER};

const SERVICE_FAILED: &str = "行情服务不可用";

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Input {
    extracted_data: Option<Vec<Row>>,
    review_payload: Option<ReviewPayload>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Update {
    extracted_data: Vec<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    review_payload: Option<ReviewPayload>,
}

/// Completes tickers and currencies. A model is asked only if nobody else knows a name.
#[node]
pub(crate) fn enrich(_context: &Context, input: Input) -> Result<Update, Failure> {
    let mut rows = input.extracted_data.unwrap_or_default();
    let queries: Vec<String> = rows.iter().map(query).collect();
    let found = lookup::look_up(&queries)?;
    for (row, query) in rows.iter_mut().zip(&queries) {
        complete(row, query, &found);
    }
    let review_payload =
        found.service_failed.then(|| ReviewPayload::warned(input.review_payload, SERVICE_FAILED));
    Ok(Update { extracted_data: rows, review_payload })
}

/// What to look for: the name, or the ticker of a row without one.
fn query(row: &Row) -> String {
    let field = if row.has("name") { "name" } else { "ticker" };
    row.text(field).to_owned()
}

fn complete(row: &mut Row, query: &str, found: &Found) {
    let Some(security) = found.get(query) else {
        row.set("ticker", UNKNOWN_TICKER);
        row.set("currency", "");
        return;
    };
    row.set("currency", currency::of(&security.ticker, security.currency.as_deref()));
    row.set("ticker", security.ticker.as_str());
    if row.is_empty("name") {
        row.set("name", security.name.as_str());
    }
}

#[cfg(test)]
mod tests {
    use wattle_plugin::http::Response;
    use wattle_plugin::prelude::{Completion, Context, Failure, Value, json};
    use wattle_plugin::testing::{FakeHost, run_node};

    use super::enrich;

    fn host() -> FakeHost {
        FakeHost::new()
            .setting("massive_base_url", "https://api.massive.com/")
            .setting("massive_secret", "MASSIVE_API_KEY")
    }

    fn run(host: &FakeHost, rows: Value) -> (Value, Value) {
        let input = json!({"extractedData": rows, "reviewPayload": {"warnings": ["先前"]}});
        let decision = host.run(|| run_node::<enrich>(&Context::default(), &input)).unwrap();
        let written = |channel| decision.update(channel).cloned().unwrap_or_default();
        (written("extractedData"), written("reviewPayload"))
    }

    #[test]
    fn the_own_table_needs_no_calls() {
        let host = host();
        let rows = json!([
            {"ticker": "", "name": "腾讯", "action": "buy", "quantity": 100},
            {"ticker": "aapl", "name": ""},
            {"ticker": "700", "name": "贵州茅台"},
        ]);
        let (rows, payload) = run(&host, rows);
        assert_eq!(
            rows,
            json!([
                {"ticker": "0700.HK", "name": "腾讯", "action": "buy", "quantity": 100,
                 "currency": "HKD"},
                {"ticker": "AAPL", "name": "苹果", "currency": "USD"},
                {"ticker": "600519.SS", "name": "贵州茅台", "currency": "CNY"},
            ])
        );
        assert_eq!(payload, Value::Null);
        assert!(host.http_requests().is_empty() && host.llm_requests().is_empty());
    }

    #[test]
    fn the_service_is_asked_once_for_each_name() {
        let host = host().http(|request| {
            assert!(
                request.url.starts_with("https://api.massive.com/v3/reference/tickers?search=")
            );
            assert!(
                request.url.ends_with("&active=true&limit=3&apiKey={{secret:MASSIVE_API_KEY}}")
            );
            let results = json!([
                {"ticker": "PLTW", "name": "Other", "currency_name": "usd"},
                {"ticker": "PLTR", "name": "Palantir Technologies", "currency_name": "eur"},
            ]);
            Ok(Response::new(200, json!({"results": results, "status": "OK"}).to_string()))
        });
        let rows = json!([{"name": "PLTR"}, {"name": "", "ticker": "PLTR"}, {"name": "腾讯"}]);
        let (rows, _) = run(&host, rows);
        assert_eq!(rows[0], json!({"name": "PLTR", "currency": "EUR", "ticker": "PLTR"}));
        assert_eq!(rows[1]["name"], "Palantir Technologies");
        assert_eq!(host.http_requests().len(), 1);
        assert!(host.llm_requests().is_empty());
    }

    #[test]
    fn the_light_model_helps_when_the_service_does_not() {
        for answer in [
            Ok(Response::new(429, "{}")),
            Ok(Response::new(200, "no JSON")),
            Err(Failure::timeout("10 s")),
        ] {
            let host = host().http(move |_| answer.clone()).llm(|_| {
                Ok(Completion::of_text(r#"[{"ticker":"300750.SZ","currencyName":"usd"}]"#))
            });
            let (rows, payload) = run(&host, json!([{"name": "宁德时代"}, {"name": "宁德时代"}]));
            assert_eq!(rows[1]["ticker"], "300750.SZ");
            assert_eq!(rows[1]["currency"], "CNY");
            assert_eq!(payload["warnings"], json!(["先前", "行情服务不可用"]));
            assert_eq!(host.llm_requests().len(), 1);
        }
    }

    #[test]
    fn what_nobody_knows_is_unknown() {
        let host = host()
            .http(|_| Ok(Response::new(200, r#"{"results":[],"status":"OK"}"#)))
            .llm(|_| Ok(Completion::of_text("[]")));
        let rows = json!([{"name": "泡泡玛特", "ticker": "x"}, {"name": " ", "ticker": null}]);
        let (rows, payload) = run(&host, rows);
        assert_eq!(rows[0], json!({"name": "泡泡玛特", "ticker": "UNKNOWN", "currency": ""}));
        assert_eq!(rows[1]["ticker"], "UNKNOWN");
        assert_eq!(payload, Value::Null);
        assert_eq!(host.http_requests().len(), 1, "nobody is asked about nothing");
    }

    #[test]
    fn no_rows_are_no_work() {
        let host = FakeHost::new();
        assert_eq!(run(&host, json!([])).0, json!([]));
        assert_eq!(run(&host, json!(null)).0, json!([]));
    }
}
