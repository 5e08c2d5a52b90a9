//! The reasoning application through the endpoints of its page, with its graph and data services as
//! a stand-in.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wattle_kit::standin::{Entry, Handle, Pattern};

use crate::answer::Answer;
use crate::asset::{open_sqlite, sqlite_rows};
use crate::guests;
use crate::server::{Setup, TestServer};
use crate::workspace;

/// The path that creates sessions. The application is mounted below its name, because `/api/v1`
/// belongs to the host.
pub const SESSIONS: &str = "/apps/reasoning/api/v1/reasoning/sessions";

/// The path of the tenant's model settings.
pub const TENANT_LLM: &str = "/apps/reasoning/api/v1/config/tenant-llm";

/// The path of model requests at the stand-in.
const MODEL_PATH: &str = "/v1/chat/completions";

/// The package of the application.
pub const REASONING: &str = "wattle-app-reasoning";

/// Returns the configuration of the application on the stand-in, with its data in the database at
/// `sql_url`.
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

/// Creates a server with the configuration that the application ships.
pub async fn example() -> Setup {
    let setup = Setup::without_models().await;
    let config = workspace::shipped("reasoning", &setup.standin);
    setup.with(&config.to_string())
}

impl Setup {
    /// Creates a server with the reasoning application on a SQLite file.
    pub async fn reasoning() -> Self {
        Self::reasoning_on("sqlite:reasoning.db").await
    }

    /// Creates a server with the reasoning application on any database.
    pub async fn reasoning_on(sql_url: &str) -> Self {
        let setup = Self::bare().await;
        let toml = toml(&setup.standin, sql_url);
        setup.with(&toml)
    }
}

/// A client of the application, for one tenant or for a host without tenants.
pub struct Reasoning<'a> {
    server: &'a TestServer,
    tenant: Option<&'static str>,
}

impl TestServer {
    /// Returns a client of the reasoning application.
    pub fn reasoning(&self) -> Reasoning<'_> {
        Reasoning { server: self, tenant: None }
    }

    /// Returns a client of the reasoning application for a tenant.
    pub fn reasoning_of(&self, tenant: &'static str) -> Reasoning<'_> {
        Reasoning { server: self, tenant: Some(tenant) }
    }

    /// Returns all rows of a table of the application.
    pub async fn reasoning_rows(&self, table: &str) -> Vec<Value> {
        let file = self.setup.workspace.data().join("reasoning.db");
        sqlite_rows(&mut open_sqlite(&file).await, table).await
    }

    /// Returns all model requests.
    pub fn reasoning_calls(&self) -> Vec<Entry> {
        let mut entries = self.standin().requests();
        entries.retain(|entry| entry.path == MODEL_PATH);
        entries
    }

    /// Returns the arguments of all calls of one tool.
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

    /// Creates a session and returns its id.
    ///
    /// # Panics
    ///
    /// If the response has no id.
    pub async fn ask(&self, text: &str) -> String {
        let body = json!({ "user_input": text });
        let made = self.send("POST", SESSIONS, Some(&body)).await.expect(200);
        made["data"]["session_id"].as_str().expect("a session").to_owned()
    }

    /// Posts a document to a path below a session.
    pub async fn on(&self, session: &str, what: &str, body: &Value) -> Answer {
        self.send("POST", &format!("{SESSIONS}/{session}/{what}"), Some(body)).await
    }

    /// Runs a session and returns the data of the successful response.
    ///
    /// # Panics
    ///
    /// If the response is not successful.
    pub async fn run(&self, session: &str) -> Value {
        data(self.on(session, "run", &json!({})).await)
    }

    /// Creates a session and runs it.
    pub async fn answer(&self, text: &str) -> Value {
        let session = self.ask(text).await;
        self.run(&session).await
    }

    /// Returns a session.
    pub async fn session(&self, session: &str) -> Value {
        data(self.send("GET", &format!("{SESSIONS}/{session}"), None).await)
    }

    /// Returns the rows of the audit trail.
    ///
    /// # Panics
    ///
    /// If their numbers have gaps.
    pub async fn trace(&self, session: &str) -> Vec<Value> {
        let trace = data(self.send("GET", &format!("{SESSIONS}/{session}/trace"), None).await);
        let events = trace["events"].as_array().cloned().unwrap_or_default();
        for (event, seq) in events.iter().zip(1_u64..) {
            assert_eq!(event["seq"], seq, "{events:#?}");
        }
        events
    }
}

/// Returns the data of a successful response.
///
/// # Panics
///
/// If the response is not successful.
pub fn data(answer: Answer) -> Value {
    let body = answer.expect(200);
    assert_eq!((&body["code"], &body["message"]), (&json!(0), &json!("ok")), "{body}");
    assert!(body["trace_id"].as_str().is_some_and(|id| !id.is_empty()), "{body}");
    body["data"].clone()
}

/// Returns the types of the rows of an audit trail.
pub fn types(trace: &[Value]) -> Vec<&str> {
    trace.iter().filter_map(|row| row["event_type"].as_str()).collect()
}

/// Returns the rows of one type.
pub fn rows_of<'a>(trace: &'a [Value], event_type: &str) -> Vec<&'a Value> {
    trace.iter().filter(|row| row["event_type"] == event_type).collect()
}

/// Checks that the trail has two rows in order for every call, and returns the numbers of model
/// calls and tool calls.
///
/// # Panics
///
/// If a row has no counterpart.
pub fn pairs(trace: &[Value]) -> (usize, usize) {
    let mut open: BTreeMap<&str, &str> = BTreeMap::new();
    let mut counts = (0, 0);
    for row in trace {
        let id = row["payload"]["call_id"].as_str().unwrap_or_default();
        let event_type = row["event_type"].as_str().unwrap_or_default();
        match event_type {
            "llm_prompt_sent" | "mcp_call_requested" => {
                assert_eq!(open.insert(id, event_type), None, "{id} started twice: {trace:#?}");
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
    assert!(open.is_empty(), "without a result: {open:?}");
    counts
}

/// Matches model requests for a document of this name, such as `reasoning_plan`.
pub fn deciding(purpose: &str) -> Pattern {
    mentioning(&format!("\"name\":\"{purpose}\""))
}

/// Matches model requests that contain this text. The stand-in compares whole bodies, while its
/// journal truncates long texts.
pub fn mentioning(text: &str) -> Pattern {
    Pattern { body_contains: Some(text.to_owned()), ..Pattern::path(MODEL_PATH) }
}

/// Matches calls of this tool.
pub fn calling(tool: &str) -> Pattern {
    Pattern { body_contains: Some(format!("\"name\":\"{tool}\"")), ..Pattern::path("/mcp/*") }
}
