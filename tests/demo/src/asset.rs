//! `asset`: trades and holdings from a sentence and from an image, confirmed and stored.

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use wattle_kit::picture::png_with_text;

use crate::host::Host;
use crate::say;
use crate::table::table;

/// A sentence with two trades.
const SENTENCE: &str = "昨天买入腾讯 100 股 320，今天卖出苹果 20 股 每股 189.5";

/// The text in the image: a portfolio as a broker's app shows it.
const PICTURE: &str = "持有 贵州茅台 200 股 成本 1500；持有 小米 1,000 股 成本 18.2";

/// Adds assets and shows the rows of the database. Returns the thread of the sentence.
pub(crate) async fn show(host: &Host) -> Result<String> {
    let portfolio = host.post("/apps/asset/api/portfolios", &json!({ "name": "长期" })).await?;
    say(&format!("\n== a portfolio\n{portfolio}"));

    let text = json!({ "textInput": SENTENCE });
    say(&format!("\n== assets from a sentence\n{SENTENCE}"));
    let first = add(host, &text, &portfolio["id"]).await?;

    say(&format!("\n== assets from an image ({PICTURE})"));
    let png = png_with_text(PICTURE, 0);
    let picture = json!({ "imageData": format!("data:image/png;base64,{}", STANDARD.encode(png)) });
    add(host, &picture, &portfolio["id"]).await?;

    for (name, query) in [
        ("Operation", "SELECT * FROM \"Operation\" ORDER BY id"),
        ("Holding", "SELECT * FROM \"Holding\" ORDER BY id"),
        ("OperationLog", "SELECT * FROM \"OperationLog\" ORDER BY id"),
    ] {
        let rows = host.rows(query).await?;
        ensure!(!rows.is_empty(), "table {name} is empty");
        say(&format!("\n== table {name}, read back from the database\n{}", table(&rows)));
    }
    Ok(first)
}

/// Runs one round: sends the input, confirms the review without changes, and stores the rows.
async fn add(host: &Host, input: &Value, portfolio: &Value) -> Result<String> {
    let parsed = host.post("/apps/asset/api/ai/asset-graph/invoke", input).await?;
    let thread = parsed["threadId"].as_str().context("the response has no threadId")?.to_owned();
    let review = &parsed["reviewPayload"];
    let rows = review["rows"].as_array().context("the response has no rows")?.clone();
    ensure!(!rows.is_empty(), "the review has no rows: {parsed}");
    say(&format!("review of thread {thread}: {}", review["type"]));
    say(&table(&rows));
    say(&format!("missing: {}   warnings: {}", review["missingFields"], review["warnings"]));
    let confirmed = json!({ "rows": rows, "riskCategory": "aggressive", "portfolioId": portfolio });
    let body = json!({ "threadId": thread, "confirmedData": confirmed });
    let stored = host.post("/apps/asset/api/ai/asset-graph/resume", &body).await?;
    ensure!(stored["storeResult"]["success"] == true, "not stored: {stored}");
    say(&format!("confirmed and stored: {}", stored["storeResult"]));
    Ok(thread)
}
