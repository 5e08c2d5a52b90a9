//! The host of the folder: its configuration, and its services under an address without a port.

use std::slice;
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::{Client, Method};
use serde_json::{Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_kit::replay::{Case, Replays};
use wattle_run::grant::Grants;
use wattle_run::hostcall::http::{HttpBody, HttpRequest, HttpResponse};
use wattle_run::ports::{BlobStore, Caller, Net};

use crate::guests;
use crate::server::Setup;

/// The app of all threads.
pub const APP: &str = "before";

/// The path that starts runs of the app.
pub const RUNS: &str = "/api/v1/apps/before/runs";

/// The address of the stand-in for guests and webhooks.
const SERVICES: &str = "http://services.example";

/// The path that `two_questions` requests before its interrupt.
pub const VISITS: &str = "/count/visits";

/// The path of runs that fail or are cut before they request it.
pub const MORE: &str = "/count/more";

/// The path that holds requests of runs until they are cancelled.
pub const GATED: &str = "/count/gated";

/// The path of an effect that is in progress when the host stops.
pub const HELD: &str = "/count/held";

/// The path that a node with a cache requests.
pub const CACHED: &str = "/count/cached";

/// The path of the webhook.
pub const HOOK: &str = "/count/hook";

/// The id of an assistant with two versions.
pub const ASSISTANT: &str = "00000000-0000-4000-8000-00000000000a";

/// The id of a thread with a cron.
pub const CRON_THREAD: &str = "00000000-0000-4000-8000-00000000000b";

/// The id of a thread with a webhook that is not yet delivered.
pub const WEBHOOK_THREAD: &str = "00000000-0000-4000-8000-00000000000c";

/// Returns the address of a path at the services.
pub fn url(path: &str) -> String {
    format!("{SERVICES}{path}")
}

/// Returns the input of the graph `errand`, which calls a model and then requests a path.
pub fn errand(path: &str) -> Value {
    json!({ "route": "chat", "text": "go", "url": url(path) })
}

/// Returns the answer that settles a call in doubt: the effect took place, with this result.
pub fn settled() -> Value {
    let answer = json!({ "status": 201, "headers": [], "body": { "text": "" }, "url": url(HELD) });
    json!({ "kind": "answer", "answer": answer })
}

/// Creates a server without apps that can open the folder, and an MCP server that requests input
/// from a person.
///
/// # Panics
///
/// If the services cannot be started.
pub async fn setup() -> (Setup, Replays) {
    let case = guests::root().join("tests/replays/mcp-http/asks-a-person.txt");
    let case = Case::read(&case).unwrap_or_else(|error| panic!("{error}"));
    let replays = Replays::start(slice::from_ref(&case)).await.expect("a free port");
    let setup = Setup::bare().await.with(&toml(&replays.url(&case)));
    // Calls in progress are cut immediately, because the services hold some of them without end.
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
[grants."before/misdeeds"]
llm = ["chat"]
http = [{{ host = "services.example", scheme = "http", methods = ["GET"] }}]
sql = [{{ database = "ledger", access = "read-only" }}]
memory = [{{ namespace = ["users"], access = "read-write" }}]
[grants."before/tools"]
llm = ["chat"]
http = [{{ host = "services.example", scheme = "http", methods = ["GET", "POST"] }}]
sql = [{{ database = "ledger", access = "read-only" }}]
tools = ["tools/*", "mcp:far/*"]
in_doubt = "ask"
"#
    )
}

/// Outbound HTTP that sends every request to the stand-in. Addresses in the folder must not contain
/// the port of one stand-in.
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
        _: &Grants,
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
