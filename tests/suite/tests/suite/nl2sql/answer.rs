//! Tests of what the user receives: an answer in words, the first rows, and a file with all rows.

use serde_json::json;
use wattle_suite::answer::Answer;
use wattle_suite::nl2sql::writes;
use wattle_suite::server::Setup;

/// 73 hours in milliseconds. Files are kept for 72 hours.
const LATER_MS: u32 = 73 * 3_600_000;

#[tokio::test]
async fn b11_s4_42_s4_43_more_than_ten_rows_become_a_file_for_the_same_admin() {
    let server = Setup::nl2sql().await.start().await;
    let result = server.ask("列出2024年北京的订单").await;
    let rows = result["sql_validate_result"]["rows"].as_u64().unwrap();
    assert!(rows > 10, "{rows}");
    let url = result["download_url"].as_str().unwrap();
    let file = url.strip_prefix("/api/chat/downloads/").unwrap();
    assert!(file.strip_suffix(".csv").is_some_and(|name| !name.contains('/')), "{url}");
    let reply = result["assistant_reply"].as_str().unwrap();
    assert!(reply.starts_with(result["summary"].as_str().unwrap()), "{reply}");
    assert_eq!(reply.lines().filter(|line| line.starts_with('|')).count(), 12, "{reply}");

    let file = server.get(url).await;
    assert_eq!(file.status, 200);
    assert_eq!(file.header("content-type"), "text/csv; charset=utf-8");
    assert!(file.header("content-disposition").starts_with("attachment; filename=\""));
    let text = server.file(url).await;
    assert!(text.starts_with("\u{feff}order_no,customer_name,city,status,"), "{text}");
    assert_eq!(text.lines().count() as u64, rows + 1);
    assert!(text.contains("\r\n"));
    let known = server.request("GET", url).header("if-none-match", file.header("etag"));
    assert_eq!(Answer::of(known).await.status, 304);

    assert_eq!(server.as_admin("2", "GET", url).await.status, 404, "another admin");
    for name in ["..%2Fnl2sql.db", "%2e%2e", "x.csv", "a%00.csv"] {
        let path = format!("/api/chat/downloads/{name}");
        assert_eq!(server.get(&path).await.status, 404, "{name}");
    }
    server.clock().advance_ms(LATER_MS);
    assert_eq!(server.get(url).await.status, 404, "the file has expired");
}

#[tokio::test]
async fn b11_ten_rows_need_no_file() {
    let server = Setup::nl2sql().await.start().await;
    let result = server.ask("列出2024年北京金额最高的10个订单").await;
    assert_eq!(result["sql_validate_result"]["rows"], 10);
    assert_eq!(result["download_url"], json!(null));
}

#[tokio::test]
async fn s4_44_cells_cannot_be_formulas() {
    let server = Setup::nl2sql().await.start().await;
    let sql = "WITH RECURSIVE x AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM x WHERE i < 11) \
               SELECT '=1+1' || i AS bad, 0 - i AS number FROM x";
    writes(&server, sql, 1);
    let result = server.ask("列出订单").await;
    let text = server.file(result["download_url"].as_str().unwrap()).await;
    assert!(text.contains("\r\n'=1+11,-1\r\n"), "{text}");
}

#[tokio::test]
async fn s4_42_equal_rows_of_a_list_are_shown_once() {
    let server = Setup::nl2sql().await.start().await;
    let sql = "WITH x AS (SELECT customers.city AS city FROM customers WHERE customers.city = '北京') \
               SELECT city FROM x";
    writes(&server, sql, 1);
    let result = server.ask("列出客户").await;
    assert!(result["sql_validate_result"]["rows"].as_u64().unwrap() > 10);
    assert_eq!(result["download_url"], json!(null));
    let reply = result["assistant_reply"].as_str().unwrap();
    assert_eq!(reply.matches("| 北京 |").count(), 1, "{reply}");
}

#[tokio::test]
async fn s4_36_numbers_of_the_database_keep_all_digits() {
    let server = Setup::nl2sql().await.start().await;
    let sql = "WITH x AS (SELECT 9007199254740993 AS big, 9007199254740991 AS small, 1.5 AS real, \
               x'ff00' AS bytes, NULL AS blank) SELECT big, small, real, bytes, blank FROM x";
    writes(&server, sql, 1);
    let result = server.ask("列出订单").await;
    let first = &result["hidden_context_result"]["error"];
    assert_eq!(
        result["sql_validate_result"]["result"],
        json!([{"big": "9007199254740993", "small": 9_007_199_254_740_991_i64, "real": 1.5,
                "bytes": "/wA=", "blank": null}]),
        "{first}"
    );
}
