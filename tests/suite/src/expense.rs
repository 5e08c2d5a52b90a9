//! The expense application through the endpoints of its page, with Feishu as a stand-in.

use serde_json::{Value, json};
use wattle_kit::configuration::Configuration;
use wattle_kit::standin::{Entry, Handle};

use crate::answer::Answer;
use crate::guests;
use crate::server::{Setup, TestServer};
use crate::workspace::{self, Workspace};

/// The path that sends a message.
pub const CHAT: &str = "/api/chat";

/// The path that sends a message and streams the reply.
pub const STREAM: &str = "/api/chat/stream";

/// The path of model requests at the stand-in.
pub const MODEL_PATH: &str = "/v1/chat/completions";

/// The path of token requests at the stand-in.
pub const TOKEN_PATH: &str = "/open-apis/auth/v3/tenant_access_token/internal";

/// The path that creates records at the stand-in.
pub const RECORDS_PATH: &str = "/open-apis/bitable/v1/apps/app1/tables/tbl1/records";

/// The path that searches records at the stand-in.
pub const SEARCH_PATH: &str = "/open-apis/bitable/v1/apps/app1/tables/tbl1/records/search";

/// The path of the bookings of a month.
pub const BOOKINGS: &str = "/api/bookings";

/// The app's secret at Feishu, which must appear nowhere else.
pub const APP_SECRET: &str = "feishu-app-secret-of-the-suite";

/// Standalone plugins: the package, and the file below the test folder.
const PLUGINS: [(&str, &str); 3] = [
    ("wattle-std", "plugins/std/std.wasm"),
    ("wattle-tool-date", "plugins/tools/date/date.wasm"),
    ("wattle-tool-lark", "plugins/tools/lark/lark.wasm"),
];

/// Writes the plugins and secrets to the files that [`configuration`] names.
pub fn put(workspace: &Workspace) {
    for (package, file) in PLUGINS {
        workspace.write(file, guests::bytes(package));
    }
    workspace.write("feishu-id", "cli_suite");
    workspace.write("feishu-secret", format!("{APP_SECRET}\n"));
}

/// Environment variables that the shipped configuration names, with values that the stand-in
/// accepts.
pub const VARIABLES: [(&str, &str); 3] = [
    ("OPENAI_API_KEY", "openai-key-of-the-suite"),
    ("FEISHU_APP_ID", "cli_suite"),
    ("FEISHU_APP_SECRET", APP_SECRET),
];

/// Returns the shipped configuration with a table of the stand-in and no other changes.
pub fn shipped(standin: &Handle) -> Configuration {
    let mut config = workspace::shipped("expense", standin);
    config.replace("apps.expense.settings.lark_app_token", "app1");
    config.replace("apps.expense.settings.lark_table_id", "tbl1");
    config
}

/// Returns the shipped configuration with the models of the suite in place of its own, and with
/// secrets from files.
///
/// # Panics
///
/// If the shipped configuration has no models or secrets.
pub fn configuration(standin: &Handle) -> Configuration {
    let mut config = shipped(standin);
    config.remove("model").expect("the shipped models");
    for (secret, file) in [("FEISHU_APP_ID", "feishu-id"), ("FEISHU_APP_SECRET", "feishu-secret")] {
        config.remove(&format!("secrets.{secret}.env")).expect("a shipped secret");
        config.insert(&format!("secrets.{secret}.file"), file);
    }
    config
}

impl Setup {
    /// Creates a server with the expense application.
    pub async fn expense() -> Self {
        Self::expense_with(|_| ()).await
    }

    /// Creates a server with the expense application and a changed configuration.
    pub async fn expense_with(change: impl FnOnce(&mut Configuration)) -> Self {
        let setup = Self::bare().await;
        put(&setup.workspace);
        let mut config = configuration(&setup.standin);
        change(&mut config);
        setup.with(&config.to_string())
    }
}

/// A reply with the steps that led to it.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The thread of the conversation, for the next message.
    pub thread: String,
    /// The text of the reply.
    pub text: String,
    /// Model turns and tool calls, in order.
    pub steps: Vec<Value>,
}

impl Reply {
    /// Parses a response that must be a reply.
    ///
    /// # Panics
    ///
    /// If the status is not 200.
    pub fn of(answer: Answer) -> Self {
        let body = answer.expect(200);
        let text = |key: &str| body[key].as_str().unwrap_or_default().to_owned();
        let steps = body["steps"].as_array().cloned().unwrap_or_default();
        Self { thread: text("threadId"), text: text("reply"), steps }
    }

    /// Returns the steps of one tool.
    pub fn calls(&self, tool: &str) -> Vec<&Value> {
        self.steps.iter().filter(|step| step["tool"] == tool).collect()
    }

    /// Returns the names of the called tools, in order.
    pub fn tools(&self) -> Vec<&str> {
        self.steps.iter().filter_map(|step| step["tool"].as_str()).collect()
    }
}

impl TestServer {
    /// Sends a message on a new thread. The response must be a reply.
    pub async fn tell(&self, message: &str) -> Reply {
        Reply::of(self.post(CHAT, &json!({ "message": message })).await)
    }

    /// Sends a message on a thread. The response must be a reply.
    pub async fn tell_on(&self, thread: &str, message: &str) -> Reply {
        let body = json!({ "threadId": thread, "message": message });
        Reply::of(self.post(CHAT, &body).await)
    }

    /// Sends a message that makes the model call a tool with these arguments, and returns the
    /// tool's result.
    ///
    /// # Panics
    ///
    /// If the tool was not called exactly once.
    pub async fn call_tool(&self, tool: &str, arguments: &Value) -> Value {
        let reply = self.tell(&format!("call {tool} {arguments}")).await;
        let calls = reply.calls(tool);
        assert_eq!(calls.len(), 1, "{reply:?}");
        calls[0]["result"].clone()
    }

    /// Writes records directly into the table of the stand-in, a thousand per request.
    ///
    /// # Panics
    ///
    /// If the stand-in refuses them.
    pub async fn fill_table(&self, records: &[Value]) {
        let base = &self.standin().base_url;
        let app = json!({ "app_id": "cli_filler", "app_secret": "secret-of-the-filler" });
        let asked = self.client.post(format!("{base}{TOKEN_PATH}")).json(&app);
        let token = Answer::of(asked).await.expect(200);
        let token = token["tenant_access_token"].as_str().expect("a token").to_owned();
        for batch in records.chunks(1_000) {
            let records: Vec<Value> = batch.iter().map(|it| json!({ "fields": it })).collect();
            let url = format!("{base}{RECORDS_PATH}/batch_create");
            let made = self.client.post(url).bearer_auth(&token);
            let made = Answer::of(made.json(&json!({ "records": records }))).await.expect(200);
            assert_eq!(made["code"], 0, "{made}");
        }
    }

    /// Returns the requests to a path of the stand-in.
    pub fn requests_to(&self, path: &str) -> Vec<Entry> {
        let mut entries = self.standin().requests();
        entries.retain(|entry| entry.path == path);
        entries
    }

    /// Returns the fields of all records.
    pub fn booked(&self) -> Vec<Value> {
        let records = self.standin().feishu_records();
        records.into_iter().map(|record| record["fields"].clone()).collect()
    }
}
