//! `reasoning`: a question to an ontology, answered from data, with an audit trail.

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::host::Host;
use crate::say;
use crate::table::table;

const SESSIONS: &str = "/apps/reasoning/api/v1/reasoning/sessions";

/// A question with a value for a filter.
const QUESTION: &str = "查询手机号13800138000的客户";

/// Asks the question, and shows the decisions, the rows and the audit trail.
pub(crate) async fn show(host: &Host) -> Result<()> {
    say(&format!("\n> {QUESTION}"));
    let made = host.post(SESSIONS, &json!({ "user_input": QUESTION })).await?;
    let session = made["data"]["session_id"].as_str().context("no session")?;
    let answer = host.post(&format!("{SESSIONS}/{session}/run"), &json!({})).await?;
    let data = &answer["data"];
    ensure!(data["status"] == "completed", "no answer: {answer}");
    let result = &data["result"];
    say(&format!(
        "ontology {}, {} by {}",
        result["selected_ontology"]["code"],
        result["selected_task"]["task_type"],
        result["data_execution_mode"]
    ));
    if let Some(items) = result["data_execution"]["items"].as_array() {
        say(&table(items));
    }
    say(result["summary"].as_str().unwrap_or_default());

    let trace = host.get(&format!("{SESSIONS}/{session}/trace")).await?;
    let events = trace["data"]["events"].as_array().context("no audit trail")?;
    say(&format!("\n== audit of session {session}: {} events", events.len()));
    for event in events {
        say(&format!(
            "{:>4}  {:<15} {:<24} {}",
            event["seq"],
            event["step"].as_str().unwrap_or_default(),
            event["event_type"].as_str().unwrap_or_default(),
            event["payload"]["method"].as_str().unwrap_or_default()
        ));
    }
    Ok(())
}
