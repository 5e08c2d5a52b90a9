//! `GET /api/operations` and `GET /api/holdings`: stored rows in pages.

use serde_json::{Value, json};
use wattle_suite::server::Setup;

#[tokio::test]
async fn s0_91_stored_rows_are_listed_newest_first_and_by_portfolio() {
    let server = Setup::asset().await.start().await;
    let (first, second) = (server.portfolio("甲").await, server.portfolio("乙").await);
    for (text, portfolio) in [
        ("昨天买入腾讯 100 股 320", first),
        ("昨天卖出苹果 10 股 190", second),
        ("持有贵州茅台 10 股，成本 1500.5", first),
    ] {
        let review = server.invoke_text(text).await;
        server.resume(&review.thread, &review.rows(), portfolio).await.expect(200);
    }
    let all = server.get("/api/operations").await.expect(200);
    assert_eq!(all["nextBefore"], Value::Null);
    assert_eq!(
        all["items"][1],
        json!({ "id": 1, "ticker": "0700.HK", "name": "腾讯", "action": "buy", "quantity": 100.0,
                "price": 320.0, "currency": "HKD", "tradedAt": "2025-01-14", "memo": null,
                "riskCategory": "aggressive", "portfolioId": first,
                "createdAt": "2025-01-15T02:30:45Z" })
    );
    let of_second = server.get(&format!("/api/operations?portfolioId={second}")).await.expect(200);
    assert_eq!(of_second["items"].as_array().unwrap().len(), 1);
    assert_eq!(of_second["items"][0]["ticker"], "AAPL");
    let holdings = server.get(&format!("/api/holdings?portfolioId={first}")).await.expect(200);
    assert_eq!(holdings["items"][0]["costPrice"], 1500.5);
    assert_eq!(server.get("/api/holdings?portfolioId=99").await.expect(200)["items"], json!([]));
}

#[tokio::test]
async fn lists_are_paged_and_limits_are_validated() {
    let server = Setup::asset().await.start().await;
    let portfolio = server.portfolio("多").await;
    let review = server.invoke_text("今天天气很好").await;
    let row = |index: usize| {
        json!({ "ticker": "AAPL", "name": "苹果", "action": "buy", "quantity": index + 1,
                "price": 1, "currency": "USD", "tradedAt": "2025-01-02" })
    };
    let rows: Vec<Value> = (0..5).map(row).collect();
    server.resume(&review.thread, &json!(rows), portfolio).await.expect(200);
    let page = server.get("/api/operations?limit=3").await.expect(200);
    let ids = |page: &Value| -> Vec<i64> {
        page["items"].as_array().unwrap().iter().map(|it| it["id"].as_i64().unwrap()).collect()
    };
    assert_eq!((ids(&page), &page["nextBefore"]), (vec![5, 4, 3], &json!(3)));
    let rest = server.get("/api/operations?limit=3&before=3").await.expect(200);
    assert_eq!((ids(&rest), &rest["nextBefore"]), (vec![2, 1], &json!(null)));
    for query in ["limit=0", "limit=1001", "portfolioId=x", "before=-1"] {
        assert_eq!(server.get(&format!("/api/operations?{query}")).await.status, 400, "{query}");
    }
}
