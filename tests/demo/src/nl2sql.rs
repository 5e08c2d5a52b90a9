//! `nl2sql`: questions to a database of customers, products and orders.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::host::Host;
use crate::say;
use crate::table::table;

/// Questions. The last one needs a repair, because the model uses a column that does not exist.
const QUESTIONS: [&str; 3] =
    ["2024年每个月的销售额是多少", "销售额最高的5个商品", "2024年的下单金额是多少"];

/// Maximum number of rows that are shown of a result.
const SHOWN: usize = 6;

/// Asks the questions, and shows each executed statement with its rows.
pub(crate) async fn show(host: &Host) -> Result<()> {
    for question in QUESTIONS {
        say(&format!("\n> {question}"));
        let answer = host.post("/apps/nl2sql/api/chat", &json!({ "message": question })).await?;
        let data = &answer["data"];
        ensure!(data["final_status"] == "success", "no answer: {answer}");
        if let Some(sql) = data["sql_validate_result"]["executed_sql"].as_str() {
            say(sql);
        }
        if let Some(replaced) =
            data["sql_result"]["applied_field_replacements"].as_array().filter(|it| !it.is_empty())
        {
            let (times, replaced) = (&data["hidden_context_retry_count"], json!(replaced));
            say(&format!("after {times} retry, with {replaced}"));
        }
        if let Some(rows) = data["sql_validate_result"]["result"].as_array() {
            say(&table(&rows[..rows.len().min(SHOWN)]));
        }
        say(data["summary"].as_str().unwrap_or_default());
        if let Some(url) = data["download_url"].as_str() {
            say(&format!("as CSV: {}/apps/nl2sql{url}", host.address));
        }
    }
    Ok(())
}
