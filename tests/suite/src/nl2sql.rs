//! The data question application through the endpoints of its page, on the sample database.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use wattle_kit::standin::{Fault, FaultRule, Pattern};

use crate::answer::Answer;
use crate::described::Exchange;
use crate::event_stream::blocks;
use crate::guests;
use crate::server::{Setup, TestServer};
use crate::workspace;

/// The path that asks a question.
pub const CHAT: &str = "/api/chat";

/// The path that asks a question and streams the progress of every step.
pub const STREAM: &str = "/api/chat/stream";

/// The path that lists sessions.
pub const SESSIONS: &str = "/api/chat/sessions";

/// The header that names the admin.
pub const ADMIN: &str = "x-admin-id";

/// The steps in their usual order.
pub const STEPS: [&str; 6] = [
    "intent_recognition",
    "task_parse",
    "sql_generation",
    "sql_validate",
    "hidden_context",
    "result_return",
];

/// Maximum number of polls for files, and the interval between two polls.
const LOOKS: u32 = 200;
const PAUSE: Duration = Duration::from_millis(25);

/// Returns the operator's part of the configuration.
pub fn toml(own: &str, business: &str) -> String {
    let mut text = format!(
        r#"
[sql.nl2sql]
url = "{own}"
[sql.business]
url = "{business}"
migrate = ["nl2sql"]
[apps.nl2sql]
path = "{app}"
mount = "/"
components = {{ nl2sql = "{component}" }}
"#,
        app = guests::root().join("plugins/apps/nl2sql").display(),
        component = guests::path("wattle-app-nl2sql").display(),
    );
    for role in ["intent", "parse", "sql", "summary"] {
        text.push_str(&format!(
            "[model.routes.{role}]\nprovider = \"standin\"\nmodel = \"{role}\"\nretries = 0\n"
        ));
    }
    text
}

/// Creates a server with the configuration that the application ships, mounted at `/`.
pub async fn example() -> Setup {
    let setup = Setup::without_models().await;
    let mut config = workspace::shipped("nl2sql", &setup.standin);
    config.insert("apps.nl2sql.mount", "/");
    setup.with(&config.to_string())
}

impl Setup {
    /// Creates a server with the application and the sample, both on SQLite.
    pub async fn nl2sql() -> Self {
        Self::nl2sql_on("sqlite:nl2sql.db", "sqlite:business.db").await
    }

    /// Creates a server with the application and the sample on any databases.
    pub async fn nl2sql_on(own: &str, business: &str) -> Self {
        Self::bare().await.with(&toml(own, business))
    }
}

/// Makes the model of a role return exactly this content, for `times` calls.
pub fn says(server: &TestServer, role: &str, content: &Value, times: u32) {
    let text = match content {
        Value::String(text) => text.clone(),
        document => document.to_string(),
    };
    let rule = FaultRule::new(Pattern::model(role), Fault::Content { text });
    server.standin().fault(rule.times(times));
}

/// Makes the model return this statement, for `times` calls.
pub fn writes(server: &TestServer, sql: &str, times: u32) {
    says(server, "sql", &json!({ "sql": sql, "entity_mappings": [] }), times);
}

/// One event of the stream.
#[derive(Clone, Debug)]
pub struct Told {
    /// The event type.
    pub event: String,
    /// The parsed data.
    pub data: Value,
}

/// Parses a stream into comments and events.
///
/// # Panics
///
/// If the data of an event is not JSON.
pub fn told(text: &str) -> (Vec<String>, Vec<Told>) {
    let mut comments = Vec::new();
    let mut messages = Vec::new();
    for block in blocks(text) {
        comments.extend(block.comment);
        if let Some(data) = block.data {
            let data = serde_json::from_str(&data).expect("JSON");
            messages.push(Told { event: block.event.unwrap_or_default(), data });
        }
    }
    (comments, messages)
}

impl TestServer {
    /// Asks a question in a new session and returns the result.
    ///
    /// # Panics
    ///
    /// If the response has no result.
    pub async fn ask(&self, message: &str) -> Value {
        self.answered(&json!({ "message": message })).await
    }

    /// Asks a question in a session and returns the result.
    ///
    /// # Panics
    ///
    /// If the response has no result.
    pub async fn ask_in(&self, session: &str, message: &str) -> Value {
        self.answered(&json!({ "session_id": session, "message": message })).await
    }

    /// Posts a question and returns the result.
    ///
    /// # Panics
    ///
    /// If the response has no result.
    pub async fn answered(&self, body: &Value) -> Value {
        let body = self.post(CHAT, body).await.expect(200);
        assert_eq!((&body["code"], &body["message"]), (&json!(0), &json!("ok")), "{body}");
        body["data"].clone()
    }

    /// Sends a request of an admin.
    pub async fn as_admin(&self, admin: &str, method: &str, path: &str) -> Answer {
        Answer::of(self.request(method, path).header(ADMIN, admin)).await
    }

    /// Returns a file as text, with its byte order mark.
    ///
    /// # Panics
    ///
    /// If the request fails, or the file is not UTF-8.
    pub async fn file(&self, path: &str) -> String {
        let (exchange, response) = Exchange::begin(self.request("GET", path)).await;
        exchange.check_head();
        let bytes = response.bytes().await.expect("the body is complete");
        String::from_utf8(bytes.to_vec()).expect("UTF-8")
    }

    /// Returns the number of requests to the model of a role.
    pub fn asked_model(&self, role: &str) -> usize {
        self.model_requests(role).len()
    }

    /// Returns the number of tasks of each step on a thread.
    pub async fn steps(&self, thread: &str) -> Vec<(String, usize)> {
        let events = self.events(thread).await;
        let started: Vec<&str> = events
            .iter()
            .filter(|it| it.event == "task_started")
            .filter_map(|it| it.data["node"].as_str())
            .collect();
        let count = |step: &str| started.iter().filter(|it| **it == step).count();
        STEPS.iter().map(|step| ((*step).to_owned(), count(step))).collect()
    }

    /// Waits for the node-I/O files of a session and returns them in the order of their names.
    ///
    /// # Panics
    ///
    /// If there are not `wanted` files within five seconds, or one is not JSON.
    pub async fn node_io(&self, session: &str, wanted: usize) -> Vec<(PathBuf, Value)> {
        self.node_io_in(&self.setup.workspace.data().join("local_logs/node_io"), session, wanted)
            .await
    }

    /// Waits for the node-I/O files of a session below another folder, like
    /// [`TestServer::node_io`].
    ///
    /// # Panics
    ///
    /// If there are not `wanted` files within five seconds, or one is not JSON.
    pub async fn node_io_in(
        &self,
        folder: &Path,
        session: &str,
        wanted: usize,
    ) -> Vec<(PathBuf, Value)> {
        let folder = folder.join(session);
        let mut found = Vec::new();
        for _ in 0..LOOKS {
            found = files(&folder);
            if found.len() >= wanted {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
        assert_eq!(found.len(), wanted, "{found:?}");
        let read = |file: PathBuf| {
            let text = std::fs::read_to_string(&file).expect("the file can be read");
            (file, serde_json::from_str(&text).expect("JSON"))
        };
        found.into_iter().map(read).collect()
    }
}

/// Returns the JSON files of all subfolders of a folder, by file name.
fn files(folder: &Path) -> Vec<PathBuf> {
    let list = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect()
    };
    let mut found: Vec<PathBuf> = list(folder).iter().flat_map(|it| list(it)).collect();
    found.retain(|file| file.extension().is_some_and(|ending| ending == "json"));
    found.sort_by_key(|file| file.file_name().map(ToOwned::to_owned));
    found
}
