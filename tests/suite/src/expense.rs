//! The expense application as its page uses it, with Feishu as a stand-in.

use serde_json::{Value, json};
use wattle_kit::configuration::Configuration;
use wattle_kit::standin::{Entry, Handle};

use crate::answer::Answer;
use crate::guests;
use crate::place::{self, Place};
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

/// Where records are searched.
pub const SEARCH_PATH: &str = "/open-apis/bitable/v1/apps/app1/tables/tbl1/records/search";

/// The bookings of a month.
pub const BOOKINGS: &str = "/api/bookings";

/// The secret of the app at Feishu, which must be seen nowhere else.
pub const APP_SECRET: &str = "feishu-app-secret-of-the-suite";

/// Loose plugins: the package, and the file it is found as.
const PLUGINS: [(&str, &str); 3] = [
    ("wattle-std", "plugins/std/std.wasm"),
    ("wattle-tool-date", "plugins/tools/date/date.wasm"),
    ("wattle-tool-lark", "plugins/tools/lark/lark.wasm"),
];

/// Puts the plugins and secrets where the [`configuration`] expects them.
pub fn put(place: &Place) {
    for (package, file) in PLUGINS {
        place.write(file, guests::bytes(package));
    }
    place.write("feishu-id", "cli_suite");
    place.write("feishu-secret", format!("{APP_SECRET}\n"));
}

/// The variables that the shipped file names, with values that the stand-in accepts.
pub const VARIABLES: [(&str, &str); 3] = [
    ("OPENAI_API_KEY", "openai-key-of-the-suite"),
    ("FEISHU_APP_ID", "cli_suite"),
    ("FEISHU_APP_SECRET", APP_SECRET),
];

/// The shipped configuration with a table of the stand-in; everything else is as it is there.
pub fn shipped(standin: &Handle) -> Configuration {
    let mut config = place::shipped("expense", standin);
    config.replace("apps.expense.settings.lark_app_token", "app1");
    config.replace("apps.expense.settings.lark_table_id", "tbl1");
    config
}

/// The shipped configuration without its models, for those of the suite, and with secrets from
/// files.
///
/// # Panics
///
/// If it has no models or secrets.
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
    /// A server with the expense application.
    pub async fn expense() -> Self {
        Self::expense_with(|_| ()).await
    }

    /// The same with a changed configuration.
    pub async fn expense_with(change: impl FnOnce(&mut Configuration)) -> Self {
        let setup = Self::bare().await;
        put(&setup.place);
        let mut config = configuration(&setup.standin);
        change(&mut config);
        setup.with(&config.to_string())
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

    /// Puts records into the table past the application, a thousand at a time.
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
