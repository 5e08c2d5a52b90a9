//! `expense`: a conversation that books expenses in a Feishu table.

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::host::Host;
use crate::say;

/// The messages of a user, sent one after the other on one thread.
const MESSAGES: [&str; 3] = ["昨天打车花了20元", "今天早餐15元，午饭38元", "前天发工资 8000 元"];

/// Sends the messages and shows each tool call. Returns the thread.
pub(crate) async fn show(host: &Host) -> Result<String> {
    let mut body = json!({});
    for message in MESSAGES {
        say(&format!("\n> {message}"));
        body["message"] = json!(message);
        let answer = host.post("/apps/expense/api/chat", &body).await?;
        for step in answer["steps"].as_array().into_iter().flatten() {
            if let Some(tool) = step["tool"].as_str() {
                say(&format!("  {tool} {} -> {}", step["arguments"], step["result"]));
            }
        }
        let reply = answer["reply"].as_str().unwrap_or_default();
        ensure!(reply.contains("记账成功"), "the expense was not booked: {answer}");
        say(reply);
        body["threadId"] = answer["threadId"].clone();
    }
    body["threadId"].as_str().map(str::to_owned).context("the response has no threadId")
}
