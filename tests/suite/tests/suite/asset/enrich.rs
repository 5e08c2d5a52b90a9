//! The lookup of securities: in the app's own table, then at Massive, then with the light model.

use serde_json::{Value, json};
use wattle_kit::standin::{Fault, FaultRule, Pattern};
use wattle_suite::asset::MASSIVE_PATH;
use wattle_suite::server::{Setup, TestServer};

use crate::asset::extracts;

/// Returns the tickers and currencies of the rows.
fn securities(rows: &Value) -> Vec<(&str, &str)> {
    rows.as_array()
        .unwrap()
        .iter()
        .map(|row| (row["ticker"].as_str().unwrap(), row["currency"].as_str().unwrap()))
        .collect()
}

/// Makes the light model return exactly this text.
fn light_says(server: &TestServer, text: &str) {
    let fault = Fault::Content { text: text.to_owned() };
    server.standin().fault(FaultRule::new(Pattern::model("light"), fault));
}

#[tokio::test]
async fn s0_04_one_node_completes_both_inputs_and_models_get_no_tools() {
    let server = Setup::asset().await.start().await;
    let text = "买入腾讯 100 股 320";
    for review in [server.invoke_text(text).await, server.invoke_image(text).await] {
        assert_eq!(securities(&review.rows()), [("0700.HK", "HKD")]);
        let path = format!("/api/v1/threads/{}/history", review.thread);
        let history = server.get(&path).await.expect(200);
        let before =
            history.as_array().unwrap().iter().filter(|it| it["next"] == json!(["enrich"]));
        assert_eq!(before.count(), 1);
    }
    for request in server.model_requests("chat").iter().chain(&server.model_requests("vision")) {
        assert_eq!(request.body.as_ref().unwrap().get("tools"), None);
    }
}

#[tokio::test]
async fn s0_41_s0_46_the_own_table_is_first_and_the_suffix_decides_the_currency() {
    let server = Setup::asset().await.start().await;
    let review = server
        .invoke_text("买入腾讯100股320，买入贵州茅台10股1500，买入五粮液20股150，买入苹果5股180")
        .await;
    assert_eq!(
        securities(&review.rows()),
        [("0700.HK", "HKD"), ("600519.SS", "CNY"), ("000858.SZ", "CNY"), ("AAPL", "USD")]
    );
    assert!(server.massive_searches().is_empty());
    assert_eq!(server.model_calls(), ["chat", "chat"]);
}

#[tokio::test]
async fn s0_40_s0_42_s0_48_massive_is_second_and_its_result_needs_no_model() {
    let server = Setup::asset().await.start().await;
    let review = server.invoke_text("买入 Quillmere 10 股 80").await;
    let row = &review.rows()[0];
    assert_eq!((&row["ticker"], &row["currency"]), (&json!("QXZR"), &json!("USD")));
    assert_eq!(row["name"], "Quillmere", "the name of the input is kept");
    assert_eq!(server.massive_searches(), ["Quillmere"]);
    assert_eq!(server.model_calls(), ["chat", "chat"]);
    let search = server.standin().requests().into_iter().find(|it| it.path == MASSIVE_PATH);
    let query = search.unwrap().query;
    assert_eq!((query["active"].as_str(), query["limit"].as_str()), ("true", "3"));
    assert_eq!(query["apiKey"], wattle_kit::standin::redact("suite-massive-key"));
    let events = format!("{:?}", server.events(&review.thread).await);
    assert!(!events.contains("suite-massive-key"), "the key never enters the log");
}

#[tokio::test]
async fn s0_40_s0_43_the_light_model_is_called_last() {
    let server = Setup::asset().await.start().await;
    let review = server.invoke_text("买入澜山潮能 100 股 260，买入栖岸科技 200 股 40").await;
    assert_eq!(securities(&review.rows()), [("309999.SZ", "CNY"), ("8999.HK", "HKD")]);
    let mut searches = server.massive_searches();
    searches.sort();
    assert_eq!(searches, ["栖岸科技", "澜山潮能"]);
    assert_eq!(server.model_calls(), ["chat", "chat", "light", "light"]);
    assert_eq!(review.payload["warnings"], json!([]));
}

#[tokio::test]
async fn a5_s0_45_an_unknown_name_stays_missing() {
    let server = Setup::asset().await.start().await;
    let review = server.invoke_text("买入青杉玩偶 100 股 200").await;
    assert_eq!(
        review.payload,
        json!({
            "type": "operation",
            "rows": [{ "ticker": "UNKNOWN", "name": "青杉玩偶", "action": "buy", "quantity": 100,
                       "price": 200, "currency": "", "tradedAt": "2025-01-15" }],
            "missingFields": ["rows[0].ticker"],
            "warnings": ["UNKNOWN ticker: 青杉玩偶"],
        })
    );
    assert_eq!(server.model_calls(), ["chat", "chat", "light"]);
}

#[tokio::test]
async fn s0_42_an_empty_name_is_not_looked_up() {
    let server = Setup::asset().await.start().await;
    let row = json!({ "ticker": null, "name": " ", "action": "buy", "quantity": 1, "price": 2,
                      "tradedAt": null, "memo": null });
    extracts(&server, &json!({ "operations": [row] }));
    let review = server.invoke_text("买入").await;
    assert_eq!(securities(&review.rows()), [("UNKNOWN", "")]);
    assert!(server.massive_searches().is_empty());
    assert_eq!(server.model_calls(), ["chat", "chat"]);
}

#[tokio::test]
async fn s0_42_a_row_without_a_name_is_looked_up_by_ticker() {
    let server = Setup::asset().await.start().await;
    let review = server.invoke_text("卖出 0700.HK 100 股 320").await;
    let row = &review.rows()[0];
    assert_eq!((&row["ticker"], &row["name"]), (&json!("0700.HK"), &json!("腾讯控股")));
}

#[tokio::test]
async fn s0_43_code_fences_are_stripped_and_errors_count_as_unknown() {
    let server = Setup::asset().await.start().await;
    let fenced = FaultRule::new(Pattern::model("light"), Fault::Fenced).times(1);
    server.standin().fault(fenced);
    let review = server.invoke_text("买入栖岸科技 200 股 40").await;
    assert_eq!(securities(&review.rows()), [("8999.HK", "HKD")]);
    for fault in [
        Fault::Status { status: 500, retry_after: Some("0".into()), body: None },
        Fault::Garbage,
        Fault::Content { text: "不知道".into() },
        Fault::Content { text: "{\"ticker\": 5}".into() },
    ] {
        server.standin().clear_faults();
        server.standin().fault(FaultRule::new(Pattern::model("light"), fault.clone()));
        let review = server.invoke_text("买入栖岸科技 200 股 40").await;
        assert_eq!(securities(&review.rows()), [("UNKNOWN", "")], "{fault:?}");
        assert_eq!(review.payload["warnings"], json!(["UNKNOWN ticker: 栖岸科技"]));
    }
}

#[tokio::test]
async fn s0_44_currency_comes_from_the_suffix_then_the_service_then_usd() {
    let server = Setup::asset().await.start().await;
    for (answer, expected) in [
        (
            r#"[{"ticker":"8999.HK","name":"Heron Bay","nameCN":"栖岸科技","primaryExchange":"XHKG","currencyName":"usd"}]"#,
            ("8999.HK", "HKD"),
        ),
        (
            r#"[{"ticker":"SAP.DE","name":"SAP","nameCN":"","primaryExchange":"XETR","currencyName":"eur"}]"#,
            ("SAP.DE", "EUR"),
        ),
        (
            r#"[{"ticker":"XYZ","name":"XYZ","nameCN":null,"primaryExchange":"XNAS","currencyName":null}]"#,
            ("XYZ", "USD"),
        ),
    ] {
        server.standin().clear_faults();
        light_says(&server, answer);
        let review = server.invoke_text("买入青杉玩偶 200 股 40").await;
        assert_eq!(securities(&review.rows()), [expected]);
    }
}

#[tokio::test]
async fn a10_s0_46_a_failure_of_massive_is_a_warning_and_the_light_model_is_called() {
    let server = Setup::asset().await.start().await;
    for fault in [
        Fault::Status { status: 429, retry_after: Some("60".into()), body: None },
        Fault::Status { status: 500, retry_after: None, body: None },
        Fault::Cut,
        Fault::Garbage,
    ] {
        server.standin().clear_faults();
        server.standin().clear_requests();
        server.standin().fault(FaultRule::new(Pattern::path(MASSIVE_PATH), fault.clone()));
        let review = server.invoke_text("买入 Quillmere 10 股 80").await;
        assert_eq!(securities(&review.rows()), [("QXZR", "USD")], "{fault:?}");
        assert_eq!(review.payload["warnings"], json!(["行情服务不可用"]), "{fault:?}");
        assert_eq!(server.model_calls(), ["chat", "chat", "light"], "{fault:?}");
    }
}

#[tokio::test]
async fn s0_47_a_name_is_looked_up_once_per_run() {
    let server = Setup::asset().await.start().await;
    let review = server
        .invoke_text("买入 Quillmere 10 股 80，卖出 Quillmere 5 股 90，买入青杉玩偶 1 股 2")
        .await;
    let tickers: Vec<Value> =
        review.rows().as_array().unwrap().iter().map(|row| row["ticker"].clone()).collect();
    assert_eq!(tickers, ["QXZR", "QXZR", "UNKNOWN"]);
    let mut searches = server.massive_searches();
    searches.sort();
    assert_eq!(searches, ["Quillmere", "青杉玩偶"]);
    assert_eq!(server.model_requests("light").len(), 1);
}

#[tokio::test]
async fn s0_47_at_most_four_lookups_run_concurrently() {
    let server = Setup::asset().await.start().await;
    server.standin().fault(FaultRule::new(Pattern::path(MASSIVE_PATH), Fault::Slow { ms: 60 }));
    let names =
        ["Quillmere", "微型星辰", "云杉航运", "澜山潮能", "栖岸科技", "青杉玩偶", "远桥重工"];
    let rows: Vec<Value> = names
        .iter()
        .map(|name| {
            json!({ "ticker": null, "name": name, "action": "buy", "quantity": 1,
                            "price": 2, "tradedAt": null, "memo": null })
        })
        .collect();
    extracts(&server, &json!({ "operations": rows }));
    server.invoke_text("买入").await;
    let mut spans: Vec<(u64, u64)> = server
        .standin()
        .requests()
        .iter()
        .filter(|entry| entry.path == MASSIVE_PATH)
        .map(|entry| (entry.at_ms, entry.at_ms + entry.took_ms.unwrap()))
        .collect();
    spans.sort_unstable();
    assert!(spans.len() > 4, "{spans:?}");
    for (start, _) in &spans {
        let running = spans.iter().filter(|(from, to)| from <= start && start < to).count();
        assert!(running <= 4, "{running} at once: {spans:?}");
    }
}

/// Returns a trade as the model extracts it.
fn trade(ticker: &str, name: &str) -> Value {
    json!({ "ticker": ticker, "name": name, "action": "buy", "quantity": 1,
            "quantityUnit": "share", "price": 2, "tradedAt": null, "memo": null })
}

#[tokio::test]
async fn s0_36_s0_40_a_ticker_of_the_user_yields_to_the_name_only_if_no_source_lists_it() {
    let server = Setup::asset().await.start().await;
    let rows = [
        trade("9988.HK", "阿里巴巴"),
        trade("309998.SZ", "青杉玩偶"),
        trade("AAPL", "贵州茅台"),
        trade("QXZR", ""),
        trade("309998", "腾讯"),
        trade("QXZR", "苹果"),
    ];
    extracts(&server, &json!({ "operations": rows }));
    let review = server.invoke_text("买入").await;
    assert_eq!(
        securities(&review.rows()),
        [
            ("9988.HK", "HKD"),
            ("309998.SZ", "CNY"),
            ("AAPL", "USD"),
            ("QXZR", "USD"),
            ("0700.HK", "HKD"),
            ("QXZR", "USD")
        ]
    );
    assert_eq!(
        review.payload["warnings"],
        json!([
            "未能核实股票代码，请核对: 309998.SZ",
            "股票代码与名称不一致，请核对: AAPL 贵州茅台",
            "股票代码不明确，请核对: 309998 → 0700.HK",
            "股票代码与名称不一致，请核对: QXZR 苹果"
        ])
    );
    assert_eq!(review.payload["missingFields"], json!([]));
}

#[tokio::test]
async fn s0_36_s0_41_tickers_in_other_formats_are_normalized() {
    let server = Setup::asset().await.start().await;
    let rows = [
        trade("BRK-B", ""),
        trade("sh.600519", "贵州茅台"),
        trade("HK00700", "腾讯"),
        trade("920748", "青杉玩偶"),
        trade("113050", "青杉玩偶"),
    ];
    extracts(&server, &json!({ "operations": rows }));
    let review = server.invoke_text("买入").await;
    assert_eq!(
        securities(&review.rows()),
        [
            ("BRK.B", "USD"),
            ("600519.SS", "CNY"),
            ("0700.HK", "HKD"),
            ("920748.BJ", "CNY"),
            ("113050", "")
        ]
    );
    assert_eq!(
        review.payload["warnings"],
        json!([
            "未能核实股票代码，请核对: 920748.BJ",
            "未能核实股票代码，请核对: 113050",
            "股票代码已改为通用写法: BRK-B → BRK.B、sh.600519 → 600519.SS、\
             HK00700 → 0700.HK、920748 → 920748.BJ"
        ])
    );
    assert_eq!(review.payload["missingFields"], json!(["rows[4].currency"]), "S0-50");
}

#[tokio::test]
async fn lots_are_converted_except_in_hong_kong_where_the_quantity_is_missing() {
    let server = Setup::asset().await.start().await;
    let review = server.invoke_text("买入贵州茅台 5 手 1500，买入腾讯 5 手 320").await;
    let rows = review.rows();
    assert_eq!((&rows[0]["quantity"], &rows[1]["quantity"]), (&json!(500), &json!(null)));
    assert_eq!(rows[1].get("lots"), None);
    assert_eq!(review.payload["missingFields"], json!(["rows[1].quantity"]));
    assert_eq!(review.payload["warnings"], json!(["每手股数不确定，请填写股数: 腾讯 5 手"]));
}

#[tokio::test]
async fn s0_46_well_known_names_need_no_lookup() {
    let server = Setup::asset().await.start().await;
    let text = "买入小米 200 股 40，买入宁德时代 100 股 260，买入泡泡玛特 100 股 200，买入 Palantir 10 股 80";
    let review = server.invoke_text(text).await;
    assert_eq!(
        securities(&review.rows()),
        [("1810.HK", "HKD"), ("300750.SZ", "CNY"), ("9992.HK", "HKD"), ("PLTR", "USD")]
    );
    assert!(server.massive_searches().is_empty());
    assert_eq!(server.model_calls(), ["chat", "chat"]);
}
