//! `enrich`: completes tickers and currencies of trades and holdings.

use wattle_plugin::prelude::{Context, Deserialize, Failure, JsonSchema, Serialize, node};

use crate::complete;
use crate::lookup::{self, Subject};
use crate::state::{ReviewPayload, Row};

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

/// Completes tickers and currencies. The light model is called only for names that no other source
/// knows.
#[node]
pub(crate) fn enrich(_context: &Context, input: Input) -> Result<Update, Failure> {
    let mut rows = input.extracted_data.unwrap_or_default();
    let subjects: Vec<Subject<'_>> = rows.iter().map(subject).collect();
    let (resolved, service_failed) = lookup::resolve(&subjects)?;
    let mut warnings = Vec::new();
    if service_failed {
        warnings.push(SERVICE_FAILED.to_owned());
    }
    warnings.extend(complete::rows(&mut rows, &resolved));
    let review_payload = ReviewPayload::with_warnings(input.review_payload, warnings);
    Ok(Update { extracted_data: rows, review_payload })
}

fn subject(row: &Row) -> Subject<'_> {
    Subject { name: row.text("name"), ticker: row.text("ticker") }
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
    fn search_in_the_table_makes_no_calls() {
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
        let doubt = "股票代码不明确，请核对: 700 → 600519.SS";
        assert_eq!(payload["warnings"], json!(["先前", doubt]));
        assert!(host.http_requests().is_empty() && host.llm_requests().is_empty());
    }

    #[test]
    fn each_name_is_sent_to_the_service_once() {
        let host = host().http(|request| {
            assert!(
                request.url.starts_with("https://api.massive.com/v3/reference/tickers?search=")
            );
            assert!(
                request.url.ends_with("&active=true&limit=3&apiKey={{secret:MASSIVE_API_KEY}}")
            );
            let results = json!([
                {"ticker": "QXZW", "name": "Other", "currency_name": "usd"},
                {"ticker": "QXZR", "name": "Quillmere Robotics", "currency_name": "eur"},
            ]);
            Ok(Response::new(200, json!({"results": results, "status": "OK"}).to_string()))
        });
        let rows = json!([{"name": "QXZR"}, {"name": "QXZR", "ticker": ""}, {"name": "腾讯"}]);
        let (rows, _) = run(&host, rows);
        assert_eq!(rows[0], json!({"name": "QXZR", "currency": "EUR", "ticker": "QXZR"}));
        assert_eq!(rows[1]["ticker"], "QXZR");
        let (rows, _) = run(&host, json!([{"name": "", "ticker": "QXZR"}]));
        assert_eq!(rows[0]["name"], "Quillmere Robotics");
        assert_eq!(host.http_requests().len(), 2, "once a run");
        assert!(host.llm_requests().is_empty());
    }

    #[test]
    fn light_model_is_called_if_the_service_fails() {
        for answer in [
            Ok(Response::new(429, "{}")),
            Ok(Response::new(200, "no JSON")),
            Err(Failure::timeout("10 s")),
        ] {
            let host = host().http(move |_| answer.clone()).llm(|_| {
                Ok(Completion::of_text(r#"[{"ticker":"309999.SZ","currencyName":"usd"}]"#))
            });
            let (rows, payload) = run(&host, json!([{"name": "澜山潮能"}, {"name": "澜山潮能"}]));
            assert_eq!(rows[1]["ticker"], "309999.SZ");
            assert_eq!(rows[1]["currency"], "CNY");
            assert_eq!(payload["warnings"], json!(["先前", "行情服务不可用"]));
            assert_eq!(host.llm_requests().len(), 1);
        }
    }

    #[test]
    fn s0_46_invalid_listings_are_skipped() {
        let host = host().http(|_| {
            let results = json!([{"ticker": null}, {"ticker": "QXZR", "name": "Quillmere"}]);
            Ok(Response::new(200, json!({"results": results, "status": "OK"}).to_string()))
        });
        let (rows, payload) = run(&host, json!([{"name": "Quillmere"}]));
        assert_eq!(rows[0]["ticker"], "QXZR");
        assert_eq!(payload, Value::Null);
    }

    #[test]
    fn unknown_names_get_the_ticker_unknown() {
        let host = host()
            .http(|_| Ok(Response::new(200, r#"{"results":[],"status":"OK"}"#)))
            .llm(|_| Ok(Completion::of_text("[]")));
        let rows = json!([{"name": "青杉玩偶", "ticker": "?"}, {"name": " ", "ticker": null}]);
        let (rows, payload) = run(&host, rows);
        assert_eq!(rows[0], json!({"name": "青杉玩偶", "ticker": "UNKNOWN", "currency": ""}));
        assert_eq!(rows[1]["ticker"], "UNKNOWN");
        assert_eq!(payload, Value::Null);
        assert_eq!(host.http_requests().len(), 2, "the name and what was given as a ticker");
    }

    /// A fake host whose service and model know no security.
    fn silent() -> FakeHost {
        host()
            .http(|_| Ok(Response::new(200, r#"{"results":[],"status":"OK"}"#)))
            .llm(|_| Ok(Completion::of_text("[]")))
    }

    /// Enriches rows with names and tickers, and checks the tickers, currencies and warnings.
    fn check(cases: &[[&str; 4]], warnings: &[&str]) -> (FakeHost, Value) {
        let host = silent();
        let given = cases.iter().map(|[name, ticker, ..]| json!({"name": name, "ticker": ticker}));
        let (rows, payload) = run(&host, given.collect());
        let found = |row: &Value| json!([row["ticker"], row["currency"]]);
        let found: Vec<Value> = rows.as_array().unwrap().iter().map(found).collect();
        let expected: Vec<Value> = cases.iter().map(|case| json!(case[2..])).collect();
        assert_eq!(found, expected);
        assert_eq!(payload["warnings"], json!([&["先前"][..], warnings].concat()));
        (host, rows)
    }

    #[test]
    fn s0_36_s0_40_given_tickers_are_kept() {
        let cases = [
            ["青杉玩偶", "0700.HK", "0700.HK", "HKD"],
            ["阿里巴巴", "9988.hk", "9988.HK", "HKD"],
            ["贵州茅台", "AAPL", "AAPL", "USD"],
            ["青杉玩偶", "309998.SZ", "309998.SZ", "CNY"],
            ["", "ZZZQ", "ZZZQ", "USD"],
            ["青杉玩偶", "8998", "8998.HK", "HKD"],
        ];
        let warnings = [
            "股票代码与名称不一致，请核对: AAPL 贵州茅台",
            "未能核实股票代码，请核对: 309998.SZ",
            "未能核实股票代码，请核对: ZZZQ",
            "未能核实股票代码，请核对: 8998.HK",
            "股票代码已改为通用写法: 8998 → 8998.HK",
        ];
        check(&cases, &warnings);
    }

    #[test]
    fn s0_36_s0_40_unlisted_tickers_and_words_yield_to_the_name_with_a_warning() {
        let cases = [
            ["腾讯", "309998", "0700.HK", "HKD"],
            ["台积电", "TSMC", "TSM", "USD"],
            ["苹果", "Microsoft", "AAPL", "USD"],
            ["贵州茅台", "700号", "600519.SS", "CNY"],
            ["阿里巴巴", "Alibaba", "BABA", "USD"],
            ["高盛", "Goldman", "GS", "USD"],
            ["招商银行", "招商银行股份", "600036.SS", "CNY"],
        ];
        let warnings = [
            "股票代码不明确，请核对: 309998 → 0700.HK",
            "股票代码不明确，请核对: TSMC → TSM",
            "股票代码不明确，请核对: Microsoft → AAPL",
            "股票代码不明确，请核对: 700号 → 600519.SS",
        ];
        let (host, _) = check(&cases, &warnings);
        assert_eq!(host.http_requests().len(), 2, "only tickers are looked up");
    }

    #[test]
    fn s0_36_s0_41_normalized_tickers_add_a_warning() {
        let cases = [
            ["", "BRK-B", "BRK.B", "USD"],
            ["", "sh.600519", "600519.SS", "CNY"],
            ["腾讯", "ＨＫ００７００", "0700.HK", "HKD"],
            ["阿里巴巴", "9988", "9988.HK", "HKD"],
            ["贵州茅台", "sh.600519", "600519.SS", "CNY"],
            ["青杉玩偶", "920748", "920748.BJ", "CNY"],
            ["", "aapl", "AAPL", "USD"],
        ];
        let warnings = [
            "未能核实股票代码，请核对: 920748.BJ",
            "股票代码已改为通用写法: BRK-B → BRK.B、sh.600519 → 600519.SS、\
             ＨＫ００７００ → 0700.HK、9988 → 9988.HK、920748 → 920748.BJ",
        ];
        check(&cases, &warnings);
    }

    #[test]
    fn s0_36_s0_45_uncertain_tickers_are_kept_or_resolved_with_a_warning() {
        let cases = [
            ["", "BRKb", "BRKb", ""],
            ["贵州茅台", "600519.SZ", "600519.SS", "CNY"],
            ["", "3M", "MMM", "USD"],
            ["苹果", "US0378331005", "US0378331005", ""],
            ["", "^HSI", "^HSI", ""],
            ["", "青杉玩偶", "UNKNOWN", ""],
            ["青杉", "Qingshan Toys", "UNKNOWN", ""],
        ];
        let warnings = [
            "未能核实股票代码，请核对: BRKb",
            "股票代码不明确，请核对: 600519.SZ → 600519.SS",
            "股票代码不明确，请核对: 3M → MMM",
            "未能核实股票代码，请核对: US0378331005",
            "未能核实股票代码，请核对: ^HSI",
            "未能识别股票代码: Qingshan Toys",
        ];
        let (_, rows) = check(&cases, &warnings);
        assert_eq!(rows[5]["name"], "青杉玩偶", "a later node warns of it by name");
    }

    #[test]
    fn s0_41_s0_45_assumed_currencies_add_a_warning() {
        let cases = [
            ["", "LON:VOD", "LON:VOD", ""],
            ["", "7203.T", "7203.T", "USD"],
            ["", "JPM-C", "JPM-C", ""],
        ];
        let warnings = [
            "未能核实股票代码，请核对: LON:VOD",
            "未能核实股票代码，请核对: 7203.T",
            "未能确定币种，请核对: 7203.T USD",
            "未能核实股票代码，请核对: JPM-C",
        ];
        check(&cases, &warnings);
    }

    #[test]
    fn s0_36_names_given_as_tickers_are_resolved() {
        let cases = [
            ["", "Apple", "AAPL", "USD"],
            ["苹果", "Apple", "AAPL", "USD"],
            ["", "apple", "AAPL", "USD"],
            ["", "JD.com", "JD", "USD"],
            ["", "Amazon.com", "AMZN", "USD"],
            ["", "Uber", "UBER", "USD"],
        ];
        let warnings = [
            "股票代码不明确，请核对: Apple → AAPL",
            "股票代码不明确，请核对: apple → AAPL",
            "股票代码不明确，请核对: JD.com → JD",
            "股票代码不明确，请核对: Amazon.com → AMZN",
        ];
        let (host, _) = check(&cases, &warnings);
        assert!(host.http_requests().is_empty() && host.llm_requests().is_empty());
    }

    #[test]
    fn s0_40_results_without_a_ticker_are_ignored() {
        let host = host()
            .http(|_| Ok(Response::new(200, r#"{"results":[],"status":"OK"}"#)))
            .llm(|_| Ok(Completion::of_text(r#"[{"ticker":"N/A"},{"ticker":"青杉玩偶"}]"#)));
        let (rows, _) = run(&host, json!([{"name": "青杉玩偶"}]));
        assert_eq!(rows[0]["ticker"], "UNKNOWN");
    }

    #[test]
    fn given_ticker_is_searched_if_the_name_is_unknown() {
        let host = silent();
        let (rows, payload) = run(&host, json!([{"name": "鹅厂来的", "ticker": "tencent"}]));
        assert_eq!((&rows[0]["ticker"], &rows[0]["name"]), (&json!("0700.HK"), &json!("鹅厂来的")));
        assert_eq!(payload, Value::Null);
    }

    #[test]
    fn lots_are_converted_or_add_a_warning() {
        let host = silent();
        let rows = json!([
            {"name": "贵州茅台", "quantity": null, "lots": 5},
            {"name": "腾讯", "quantity": null, "lots": 5},
            {"name": "", "ticker": "AAPL", "quantity": null, "lots": 2},
            {"name": "五粮液", "quantity": null, "lots": 0.5},
        ]);
        let (rows, payload) = run(&host, rows);
        let quantities: Vec<_> = (0..4).map(|row| rows[row]["quantity"].clone()).collect();
        assert_eq!(quantities, [json!(500), json!(null), json!(null), json!(50)]);
        assert!(rows.as_array().unwrap().iter().all(|row| row.get("lots").is_none()));
        assert_eq!(
            payload["warnings"],
            json!([
                "先前",
                "每手股数不确定，请填写股数: 腾讯 5 手",
                "每手股数不确定，请填写股数: 苹果 2 手",
            ])
        );
    }

    #[test]
    fn empty_tables_make_no_calls() {
        let host = FakeHost::new();
        assert_eq!(run(&host, json!([])).0, json!([]));
        assert_eq!(run(&host, json!(null)).0, json!([]));
    }
}
