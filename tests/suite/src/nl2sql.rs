//! The data question application as its page uses it, on the sample database.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use wattle_kit::standin::{Fault, FaultRule, Pattern};

use crate::answer::Answer;
use crate::guests;
use crate::place;
use crate::server::{Setup, TestServer};

/// Asks a question.
pub const CHAT: &str = "/api/chat";

/// Asks a question and streams the progress of every step.
pub const STREAM: &str = "/api/chat/stream";

/// Lists sessions.
pub const SESSIONS: &str = "/api/chat/sessions";

/// Header that names the admin.
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

/// How often a test looks for files, and the pause between two looks.
const LOOKS: u32 = 200;
const PAUSE: Duration = Duration::from_millis(25);

/// The operator's part of the configuration.
pub fn toml(own: &str, business: &str) -> String {
    let mut text = format!(
        r#"
[sql.nl2sql]
url = "{own}"
[sql.business]
url = "{business}"
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

/// A server on the configuration that the application ships, mounted at `/`.
pub async fn example() -> Setup {
    let setup = Setup::without_models().await;
    let mut config = place::shipped("nl2sql", &setup.standin);
    config.insert("apps.nl2sql.mount", "/");
    setup.with(&config.to_string())
}

impl Setup {
    /// A server with the application and the sample, both on SQLite.
    pub async fn nl2sql() -> Self {
        Self::nl2sql_on("sqlite:nl2sql.db", "sqlite:business.db").await
    }

    /// The same on any databases.
    pub async fn nl2sql_on(own: &str, business: &str) -> Self {
        Self::bare().await.with(&toml(own, business))
    }
}

/// Lets the model of a role say exactly this, for as many calls.
pub fn says(server: &TestServer, role: &str, content: &Value, times: u32) {
    let text = match content {
        Value::String(text) => text.clone(),
        document => document.to_string(),
    };
    let rule = FaultRule::new(Pattern::model(role), Fault::Content { text });
    server.standin().fault(rule.times(times));
}

/// Lets the model write this statement, for as many calls.
pub fn writes(server: &TestServer, sql: &str, times: u32) {
    says(server, "sql", &json!({ "sql": sql, "entity_mappings": [] }), times);
}

/// One message of the stream.
#[derive(Clone, Debug)]
pub struct Told {
    /// Its name.
    pub event: String,
    /// Its document.
    pub data: Value,
}

/// Reads a stream with its comments.
///
/// # Panics
///
/// If a message has no JSON.
pub fn told(text: &str) -> (Vec<String>, Vec<Told>) {
    let mut comments = Vec::new();
    let mut messages = Vec::new();
    for block in text.split("\n\n") {
        let field = |name: &str| {
            block.lines().find_map(|line| line.strip_prefix(name)).map(str::trim).map(str::to_owned)
        };
        comments.extend(field(":"));
        if let Some(data) = field("data:") {
            let data = serde_json::from_str(&data).expect("JSON");
            messages.push(Told { event: field("event:").unwrap_or_default(), data });
        }
    }
    (comments, messages)
}

impl TestServer {
    /// Asks in a fresh session; the answer must be one.
    ///
    /// # Panics
    ///
    /// If it is none.
    pub async fn ask(&self, message: &str) -> Value {
        self.answered(&json!({ "message": message })).await
    }

    /// Asks in a session.
    ///
    /// # Panics
    ///
    /// If there is no answer.
    pub async fn ask_in(&self, session: &str, message: &str) -> Value {
        self.answered(&json!({ "session_id": session, "message": message })).await
    }

    /// Posts a question that must be answered with a result.
    ///
    /// # Panics
    ///
    /// If it is not.
    pub async fn answered(&self, body: &Value) -> Value {
        let body = self.post(CHAT, body).await.expect(200);
        assert_eq!((&body["code"], &body["message"]), (&json!(0), &json!("ok")), "{body}");
        body["data"].clone()
    }

    /// A request of an admin.
    pub async fn as_admin(&self, admin: &str, method: &str, path: &str) -> Answer {
        Answer::of(self.request(method, path).header(ADMIN, admin)).await
    }

    /// The bytes of a file as text, with the mark at its beginning.
    ///
    /// # Panics
    ///
    /// If there is no answer, or it is no UTF-8.
    pub async fn file(&self, path: &str) -> String {
        let answer = self.request("GET", path).send().await.expect("the server answers");
        let bytes = answer.bytes().await.expect("the answer is whole");
        String::from_utf8(bytes.to_vec()).expect("UTF-8")
    }

    /// How often the model of a role was asked.
    pub fn asked_model(&self, role: &str) -> usize {
        self.model_requests(role).len()
    }

    /// How often each step has run on a thread.
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

    /// The node-I/O files of a session, once there are as many; in the order of their names.
    ///
    /// # Panics
    ///
    /// If there are not as many in five seconds, or one is no JSON.
    pub async fn node_io(&self, session: &str, wanted: usize) -> Vec<(PathBuf, Value)> {
        self.node_io_in(&self.setup.place.data().join("local_logs/node_io"), session, wanted).await
    }

    /// The same below another folder.
    ///
    /// # Panics
    ///
    /// If there are not as many in five seconds, or one is no JSON.
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

/// All files one folder below.
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
