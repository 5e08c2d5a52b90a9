//! The host of the folder: its configuration, and its services under a name that outlives their
//! ports.

use std::slice;
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::{Client, Method};
use serde_json::{Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_kit::replay::{Case, Replays};
use wattle_run::grant::HttpRule;
use wattle_run::hostcall::http::{HttpBody, HttpRequest, HttpResponse};
use wattle_run::limit::NetLimits;
use wattle_run::ports::{BlobStore, Caller, Net};

use crate::guests;
use crate::server::Setup;

/// The app of all threads.
pub const APP: &str = "before";

/// Where runs of it are started.
pub const RUNS: &str = "/api/v1/apps/before/runs";

/// Where guests and webhooks find the stand-in.
const SERVICES: &str = "http://services.example";

/// Where `two_questions` looks before it asks.
pub const VISITS: &str = "/count/visits";

/// Where runs look that fail or are cut before they come to it.
pub const MORE: &str = "/count/more";

/// Where runs wait that are cancelled.
pub const GATED: &str = "/count/gated";

/// Where an effect is under way when the host stops.
pub const HELD: &str = "/count/held";

/// Where a node with a cache looks.
pub const CACHED: &str = "/count/cached";

/// Where the webhook goes.
pub const HOOK: &str = "/count/hook";

/// An assistant with two versions.
pub const ASSISTANT: &str = "00000000-0000-4000-8000-00000000000a";

/// A thread with a cron.
pub const CRON_THREAD: &str = "00000000-0000-4000-8000-00000000000b";

/// A thread of which a webhook has not been told.
pub const WEBHOOK_THREAD: &str = "00000000-0000-4000-8000-00000000000c";

/// The address of a service.
pub fn url(path: &str) -> String {
    format!("{SERVICES}{path}")
}

/// The input of the graph `errand`: a model call, then a look at a path.
pub fn errand(path: &str) -> Value {
    json!({ "route": "chat", "text": "go", "url": url(path) })
}

/// What a person says of a call in doubt: it had its effect, and this was its answer.
pub fn settled() -> Value {
    let answer = json!({ "status": 201, "headers": [], "body": { "text": "" }, "url": url(HELD) });
    json!({ "kind": "answer", "answer": answer })
}

/// A server without apps that may open the folder, and the MCP server that asks a person.
///
/// # Panics
///
/// If the services cannot be started.
pub async fn setup() -> (Setup, Replays) {
    let case = guests::root().join("tests/replays/mcp-http/asks-a-person.txt");
    let case = Case::read(&case).unwrap_or_else(|error| panic!("{error}"));
    let replays = Replays::start(slice::from_ref(&case)).await.expect("a free port");
    let setup = Setup::bare().await.with(&toml(&replays.url(&case)));
    // Calls under way are cut at once: those that the services hold never end.
    let mut setup = setup.replace("[server]\n", "[server]\nstop_grace = \"100ms\"\n");
    setup.net = Some(Arc::new(Services::new(&setup.standin.base_url)));
    (setup, replays)
}

fn toml(asking: &str) -> String {
    format!(
        r#"
[sql.ledger]
url = "sqlite:ledger.db"
[mcp.far]
url = "{asking}/mcp"
private = true
[apps.before]
[grants.misdeeds]
llm = ["chat"]
http = [{{ host = "services.example", scheme = "http", methods = ["GET"] }}]
sql = [{{ database = "ledger", access = "read-only" }}]
memory = [{{ namespace = ["users"], access = "read-write" }}]
[grants.tools]
llm = ["chat"]
http = [{{ host = "services.example", scheme = "http", methods = ["GET", "POST"] }}]
sql = [{{ database = "ledger", access = "read-only" }}]
tools = ["tools/*", "mcp:far/*"]
in_doubt = "ask"
"#
    )
}

/// Outbound HTTP that leads to the stand-in whatever host is named: an address in the folder must
/// not have the port of one stand-in.
struct Services {
    base: String,
    client: Client,
}

impl Services {
    fn new(base: &str) -> Self {
        let client = Client::builder().no_proxy().build().expect("a client");
        Self { base: base.to_owned(), client }
    }
}

#[async_trait]
impl Net for Services {
    async fn send(
        &self,
        _: &Caller,
        _: &[HttpRule],
        _: &NetLimits,
        request: &HttpRequest,
        _: &dyn BlobStore,
    ) -> Result<HttpResponse, Failure> {
        let away =
            |error: reqwest::Error| Failure::new(code::UNAVAILABLE, error.to_string()).retryable();
        let method = Method::from_bytes(request.method.as_bytes()).unwrap_or_default();
        let path = request.url.strip_prefix(SERVICES).unwrap_or_default();
        let mut sent = self.client.request(method, format!("{}{path}", self.base));
        for (name, value) in &request.headers {
            sent = sent.header(name, value);
        }
        sent = match &request.body {
            HttpBody::Text(text) => sent.body(text.clone()),
            HttpBody::Bytes(bytes) => sent.body(bytes.clone()),
            HttpBody::Empty | HttpBody::Blob(_) => sent,
        };
        let response = sent.send().await.map_err(away)?;
        let status = response.status().as_u16();
        let body = response.bytes().await.map_err(away)?;
        Ok(HttpResponse { status, headers: Vec::new(), body, url: request.url.clone() })
    }
}
