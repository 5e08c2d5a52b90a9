//! The reasoning application as its page uses it, with its graph and data services as a stand-in.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wattle_kit::standin::{Entry, Handle, Pattern};

use crate::answer::Answer;
use crate::asset::{open_sqlite, sqlite_rows};
use crate::guests;
use crate::place;
use crate::server::{Setup, TestServer};

/// Makes sessions. The application stands below its name, since `/api/v1` is the host's own.
pub const SESSIONS: &str = "/apps/reasoning/api/v1/reasoning/sessions";

/// The tenant's model.
pub const TENANT_LLM: &str = "/apps/reasoning/api/v1/config/tenant-llm";

/// Where model requests arrive at the stand-in.
const MODEL_PATH: &str = "/v1/chat/completions";

/// The package of the application.
pub const REASONING: &str = "wattle-app-reasoning";

/// The application on the stand-in, with its data in the database at `sql_url`.
pub fn toml(standin: &Handle, sql_url: &str) -> String {
    format!(
        r#"
[model]
tenant_private = true
[model.routes.reasoning]
provider = "standin"
model = "reasoning"
retries = 0
[model.routes.spare]
provider = "standin"
model = "spare"
[mcp.graph]
url = "{base}/mcp/graph"
private = true
timeout = "10s"
[mcp.data]
url = "{base}/mcp/data"
private = true
timeout = "10s"
[sql.reasoning]
url = "{sql_url}"
[apps.reasoning]
path = "{app}"
components = {{ reasoning = "{component}" }}
"#,
        base = standin.base_url,
        app = guests::root().join("plugins/apps/reasoning").display(),
        component = guests::path(REASONING).display(),
    )
}

/// A server on the configuration that the application ships.
pub async fn example() -> Setup {
    let setup = Setup::without_models().await;
    let config = place::shipped("reasoning", &setup.standin);
    setup.with(&config.to_string())
}

impl Setup {
    /// A server with the reasoning application on a SQLite file.
    pub async fn reasoning() -> Self {
        Self::reasoning_on("sqlite:reasoning.db").await
    }

    /// A server with the reasoning application on any database.
    pub async fn reasoning_on(sql_url: &str) -> Self {
        let setup = Self::bare().await;
        let toml = toml(&setup.standin, sql_url);
        setup.with(&toml)
    }
}

/// Requests of one tenant, or of a host without tenants.
pub struct Reasoning<'a> {
    server: &'a TestServer,
    tenant: Option<&'static str>,
}

impl TestServer {
    /// The reasoning application.
    pub fn reasoning(&self) -> Reasoning<'_> {
        Reasoning { server: self, tenant: None }
    }

    /// The same as a tenant sees it.
    pub fn reasoning_of(&self, tenant: &'static str) -> Reasoning<'_> {
        Reasoning { server: self, tenant: Some(tenant) }
    }

    /// All rows of a table of the application.
    pub async fn reasoning_rows(&self, table: &str) -> Vec<Value> {
        let file = self.setup.place.data().join("reasoning.db");
        sqlite_rows(&mut open_sqlite(&file).await, table).await
    }

    /// The model requests so far.
    pub fn reasoning_calls(&self) -> Vec<Entry> {
        let mut entries = self.standin().requests();
        entries.retain(|entry| entry.path == MODEL_PATH);
        entries
    }

    /// The arguments of the calls of one tool so far.
    pub fn mcp_calls(&self, tool: &str) -> Vec<Value> {
        let entries = self.standin().requests().into_iter();
        let calls = entries.filter_map(|entry| entry.body?.get("params").cloned());
        calls.filter(|params| params["name"] == tool).map(|it| it["arguments"].clone()).collect()
    }
}

impl Reasoning<'_> {
    /// Sends a request.
    pub async fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        let mut request = self.server.request_of(self.tenant, method, path);
        if let Some(body) = body {
            request = request.json(body);
        }
        Answer::of(request).await
    }

    /// Makes a session and returns its id.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub async fn ask(&self, text: &str) -> String {
        let body = json!({ "user_input": text });
        let made = self.send("POST", SESSIONS, Some(&body)).await.expect(200);
        made["data"]["session_id"].as_str().expect("a session").to_owned()
    }

    /// Does something with a session.
    pub async fn on(&self, session: &str, what: &str, body: &Value) -> Answer {
        self.send("POST", &format!("{SESSIONS}/{session}/{what}"), Some(body)).await
    }

    /// Runs a session and returns the data of a good answer.
    ///
    /// # Panics
    ///
    /// If the answer is a bad one.
    pub async fn run(&self, session: &str) -> Value {
        data(self.on(session, "run", &json!({})).await)
    }

    /// Asks and runs.
    pub async fn answer(&self, text: &str) -> Value {
        let session = self.ask(text).await;
        self.run(&session).await
    }

    /// Shows a session.
    pub async fn session(&self, session: &str) -> Value {
        data(self.send("GET", &format!("{SESSIONS}/{session}"), None).await)
    }

    /// The rows of the audit trail.
    ///
    /// # Panics
    ///
    /// If they are not numbered without gaps.
    pub async fn trace(&self, session: &str) -> Vec<Value> {
        let trace = data(self.send("GET", &format!("{SESSIONS}/{session}/trace"), None).await);
        let events = trace["events"].as_array().cloned().unwrap_or_default();
        for (event, seq) in events.iter().zip(1_u64..) {
            assert_eq!(event["seq"], seq, "{events:#?}");
        }
        events
    }
}

/// The data of a good answer.
///
/// # Panics
///
/// If the answer is a bad one.
pub fn data(answer: Answer) -> Value {
    let body = answer.expect(200);
    assert_eq!((&body["code"], &body["message"]), (&json!(0), &json!("ok")), "{body}");
    assert!(body["trace_id"].as_str().is_some_and(|id| !id.is_empty()), "{body}");
    body["data"].clone()
}

/// The types of the rows of an audit trail.
pub fn types(trace: &[Value]) -> Vec<&str> {
    trace.iter().filter_map(|row| row["event_type"].as_str()).collect()
}

/// The rows of one type.
pub fn rows_of<'a>(trace: &'a [Value], event_type: &str) -> Vec<&'a Value> {
    trace.iter().filter(|row| row["event_type"] == event_type).collect()
}

/// Checks that every call that was made is in the trail twice, in order, and returns how many of
/// models and of tools there are.
///
/// # Panics
///
/// If a row has no partner.
pub fn pairs(trace: &[Value]) -> (usize, usize) {
    let mut open: BTreeMap<&str, &str> = BTreeMap::new();
    let mut counts = (0, 0);
    for row in trace {
        let id = row["payload"]["call_id"].as_str().unwrap_or_default();
        let event_type = row["event_type"].as_str().unwrap_or_default();
        match event_type {
            "llm_prompt_sent" | "mcp_call_requested" => {
                assert_eq!(open.insert(id, event_type), None, "{id} began twice: {trace:#?}");
            }
            "llm_response_received" => {
                assert_eq!(open.remove(id), Some("llm_prompt_sent"), "{trace:#?}");
                counts.0 += 1;
            }
            "mcp_call_completed" => {
                assert_eq!(open.remove(id), Some("mcp_call_requested"), "{trace:#?}");
                counts.1 += 1;
            }
            _ => {}
        }
    }
    assert!(open.is_empty(), "without an answer: {open:?}");
    counts
}

/// Model requests that decide this: `reasoning_plan` and so on.
pub fn deciding(purpose: &str) -> Pattern {
    Pattern { body_contains: Some(format!("\"name\":\"{purpose}\"")), ..Pattern::path(MODEL_PATH) }
}

/// Calls of this tool.
pub fn calling(tool: &str) -> Pattern {
    Pattern { body_contains: Some(format!("\"name\":\"{tool}\"")), ..Pattern::path("/mcp/*") }
}
