//! The expense application as its page uses it, with Feishu as a stand-in.

use serde_json::{Value, json};
use wattle_kit::standin::{Entry, Handle};

use crate::answer::Answer;
use crate::guests;
use crate::place::Place;
use crate::server::{Setup, TestServer};

/// Sends a message.
pub const CHAT: &str = "/api/chat";

/// Sends a message and streams what happens.
pub const STREAM: &str = "/api/chat/stream";

/// Where model requests arrive at the stand-in.
pub const MODEL_PATH: &str = "/v1/chat/completions";

/// Where tokens are asked for.
pub const TOKEN_PATH: &str = "/open-apis/auth/v3/tenant_access_token/internal";

/// Where records are made.
pub const RECORDS_PATH: &str = "/open-apis/bitable/v1/apps/app1/tables/tbl1/records";

/// The secret of the app at Feishu, which must be seen nowhere else.
pub const APP_SECRET: &str = "feishu-app-secret-of-the-suite";

/// Loose plugins: the package, and the file it is found as.
const PLUGINS: [(&str, &str); 3] = [
    ("wattle-std", "plugins/std/std.wasm"),
    ("wattle-tool-date", "plugins/tools/date/date.wasm"),
    ("wattle-tool-lark", "plugins/tools/lark/lark.wasm"),
];

/// Puts the plugins and secrets where the configuration of [`toml`] expects them.
pub fn put(place: &Place) {
    for (package, file) in PLUGINS {
        place.write(file, guests::bytes(package));
    }
    place.write("feishu-id", "cli_suite");
    place.write("feishu-secret", format!("{APP_SECRET}\n"));
}

/// The operator's part of the configuration: Feishu is the stand-in.
pub fn toml(standin: &Handle) -> String {
    format!(
        r#"
[secrets]
FEISHU_APP_ID = {{ file = "feishu-id" }}
FEISHU_APP_SECRET = {{ file = "feishu-secret" }}
[secrets.FEISHU_TENANT_TOKEN.token]
url = "{base}{TOKEN_PATH}"
body = '{{"app_id":"{{{{secret:FEISHU_APP_ID}}}}","app_secret":"{{{{secret:FEISHU_APP_SECRET}}}}"}}'
field = "tenant_access_token"
expires_field = "expire"
message_field = "msg"
refresh_before = "30m"
invalid = {{ field = "code", values = [99991663, 99991661] }}
[apps.expense]
path = "{app}"
mount = "/"
components = {{ expense = "{component}" }}
[apps.expense.settings]
lark_base_url = "{base}"
lark_app_token = "app1"
lark_table_id = "tbl1"
[grants.lark]
http = [{{ host = "127.0.0.1", scheme = "http", port = {port}, methods = ["POST"], private = true, secrets = ["FEISHU_TENANT_TOKEN"] }}]
"#,
        base = standin.base_url,
        port = standin.addr.port(),
        app = guests::root().join("plugins/apps/expense").display(),
        component = guests::path("wattle-app-expense").display(),
    )
}

impl Setup {
    /// A server with the expense application.
    pub async fn expense() -> Self {
        let setup = Self::bare().await;
        put(&setup.place);
        let toml = toml(&setup.standin);
        setup.with(&toml)
    }
}

/// A reply with the steps to it.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The conversation, for the next message.
    pub thread: String,
    /// The words.
    pub text: String,
    /// Model turns and tool calls, in order.
    pub steps: Vec<Value>,
}

impl Reply {
    /// Reads an answer, which must be a reply.
    ///
    /// # Panics
    ///
    /// If it is none.
    pub fn of(answer: Answer) -> Self {
        let body = answer.expect(200);
        let text = |key: &str| body[key].as_str().unwrap_or_default().to_owned();
        let steps = body["steps"].as_array().cloned().unwrap_or_default();
        Self { thread: text("threadId"), text: text("reply"), steps }
    }

    /// The steps of one tool.
    pub fn calls(&self, tool: &str) -> Vec<&Value> {
        self.steps.iter().filter(|step| step["tool"] == tool).collect()
    }

    /// The tools that were called, in order.
    pub fn tools(&self) -> Vec<&str> {
        self.steps.iter().filter_map(|step| step["tool"].as_str()).collect()
    }
}

impl TestServer {
    /// Sends a message on a new thread; there must be a reply.
    pub async fn tell(&self, message: &str) -> Reply {
        Reply::of(self.post(CHAT, &json!({ "message": message })).await)
    }

    /// Sends a message on a thread; there must be a reply.
    pub async fn tell_on(&self, thread: &str, message: &str) -> Reply {
        let body = json!({ "threadId": thread, "message": message });
        Reply::of(self.post(CHAT, &body).await)
    }

    /// Calls a tool with these arguments, as a model that a person tells to, and answers with the
    /// tool's result.
    ///
    /// # Panics
    ///
    /// If it was not called once.
    pub async fn call_tool(&self, tool: &str, arguments: &Value) -> Value {
        let reply = self.tell(&format!("call {tool} {arguments}")).await;
        let calls = reply.calls(tool);
        assert_eq!(calls.len(), 1, "{reply:?}");
        calls[0]["result"].clone()
    }

    /// Requests on a path of the stand-in.
    pub fn requests_to(&self, path: &str) -> Vec<Entry> {
        let mut entries = self.standin().requests();
        entries.retain(|entry| entry.path == path);
        entries
    }

    /// The fields of all records.
    pub fn booked(&self) -> Vec<Value> {
        let records = self.standin().feishu_records();
        records.into_iter().map(|record| record["fields"].clone()).collect()
    }
}
