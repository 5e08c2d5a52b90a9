//! `expense`: a conversation that books what it is told, in a Feishu table.

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::host::{Host, Services};
use crate::say;

/// What a user tells, one message after the other on one thread.
const MESSAGES: [&str; 3] = ["昨天打车花了20元", "今天早餐15元，午饭38元", "前天发工资 8000 元"];

/// Its part of `wattle.toml`.
pub(crate) fn configuration(services: &Services) -> String {
    let Services { base, port, .. } = services;
    format!(
        r#"
[secrets.FEISHU_APP_ID]
env = "FEISHU_APP_ID"

[secrets.FEISHU_APP_SECRET]
env = "FEISHU_APP_SECRET"

# A token that the host fetches and renews; no plugin ever sees it.
[secrets.FEISHU_TENANT_TOKEN.token]
url = "{base}/open-apis/auth/v3/tenant_access_token/internal"
body = '{{"app_id":"{{{{secret:FEISHU_APP_ID}}}}","app_secret":"{{{{secret:FEISHU_APP_SECRET}}}}"}}'
field = "tenant_access_token"
expires_field = "expire"
message_field = "msg"
refresh_before = "30m"
invalid = {{ field = "code", values = [99991663, 99991661] }}

[apps.expense]
path = {app:?}
settings = {{ lark_base_url = "{base}", lark_app_token = "app1", lark_table_id = "tbl1" }}

[grants.lark]
http = [{{ host = "127.0.0.1", scheme = "http", port = {port}, methods = ["POST"], secrets = ["FEISHU_TENANT_TOKEN"], private = true }}]
"#,
        app = services.app("expense"),
    )
}

/// Talks, and shows each tool call. Gives the thread.
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
        ensure!(reply.contains("记账成功"), "nothing was booked: {answer}");
        say(reply);
        body["threadId"] = answer["threadId"].clone();
    }
    body["threadId"].as_str().map(str::to_owned).context("the answer has no threadId")
}
