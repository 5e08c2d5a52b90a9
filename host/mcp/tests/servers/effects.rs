//! A call that a server has executed is not sent again, whatever the server responds, and even if
//! it forgets the session with the call.
//!
//! The server of these tests executes every call of a session that it knows, and refuses the others
//! with status 404. So it never responds with 404 to a call that it has executed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use wattle_graph::failure::{Failure, code};
use wattle_graph::tool::ToolOutput;
use wattle_kit::oddity::{change_one, wire};
use wattle_mcp::McpServers;

use crate::support::{Request, call, greeting, over_http, read, respond, servers, text};

/// The timeout of a call. No response in these tests may make a call wait for it.
const TIMEOUT: Duration = Duration::from_secs(20);

const OK: &str = "200 OK";

/// Statuses of refusals that do not deny the session.
const REFUSALS: [&str; 10] = [
    "400 Bad Request",
    "401 Unauthorized",
    "403 Forbidden",
    "409 Conflict",
    "410 Gone",
    "422 Unprocessable Content",
    "429 Too Many Requests",
    "500 Internal Server Error",
    "502 Bad Gateway",
    "503 Service Unavailable",
];

/// The location of the text in a result.
const TEXT: &str = "/result/content/0/text";

/// The id in a message that is replaced with the id of the call.
const ID: &str = "$id";

/// The response to a call.
#[derive(Clone, Debug, Default)]
struct CallResponse {
    status: &'static str,
    /// The JSON of the body.
    body: String,
    /// Where the connection ends within the body.
    cut: Option<Index>,
    /// Whether the server forgets the session of the call.
    forgets: bool,
}

/// A server that counts the calls that it executes.
#[derive(Debug, Default)]
struct Desk {
    /// Number of the session that the server knows.
    session: AtomicUsize,
    effects: AtomicUsize,
    /// The response to the next call.
    response: Mutex<CallResponse>,
}

impl Desk {
    async fn serve(self: Arc<Self>, socket: TcpStream) {
        let Request { session, body, mut socket, .. } = read(socket).await;
        let known = format!("s-{}", self.session.load(Ordering::SeqCst));
        let (status, document) = match greeting(&body) {
            _ if !session.is_empty() && session != known => ("404 Not Found", Value::Null),
            Some(said) => said,
            None if body["method"] == "tools/call" => {
                return self.execute(&mut socket, &body).await;
            }
            None => ("405 Method Not Allowed", Value::Null),
        };
        respond(&mut socket, status, &format!("mcp-session-id: {known}\r\n"), &document).await;
    }

    async fn execute(&self, socket: &mut TcpStream, request: &Value) {
        self.effects.fetch_add(1, Ordering::SeqCst);
        let CallResponse { status, body, cut, forgets } = self.response.lock().unwrap().clone();
        if forgets {
            self.session.fetch_add(1, Ordering::SeqCst);
        }
        let body = body.replace(&format!("\"{ID}\""), &request["id"].to_string());
        let sent = cut.map_or(body.len(), |cut| cut.index(body.len()));
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
             connection: close\r\n\r\n",
            body.len()
        );
        // The client may have disconnected.
        socket.write_all(head.as_bytes()).await.ok();
        socket.write_all(&body.as_bytes()[..sent]).await.ok();
    }
}

/// The server and its client.
struct Scene {
    runtime: Runtime,
    desk: Arc<Desk>,
    servers: McpServers,
}

impl Scene {
    fn new() -> Self {
        let runtime = Runtime::new().unwrap();
        let desk = Arc::<Desk>::default();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let mut config = over_http(&format!("http://{}/mcp", listener.local_addr().unwrap()));
        config.timeout = TIMEOUT;
        let serving = desk.clone();
        runtime.spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serving.clone().serve(socket));
            }
        });
        Self { runtime, desk, servers: servers(config) }
    }

    /// Makes a call. Returns its outcome and how often the server executed the call.
    fn call(&self, response: CallResponse) -> (Result<ToolOutput, Failure>, usize) {
        *self.desk.response.lock().unwrap() = response;
        let outcome = self.runtime.block_on(call(&self.servers, "book", json!({})));
        (outcome, self.desk.effects.swap(0, Ordering::SeqCst))
    }
}

static SCENE: LazyLock<Scene> = LazyLock::new(Scene::new);

/// Returns a response with a result, or with an error.
fn message(is_result: bool) -> Value {
    if is_result {
        let content = json!([{ "type": "text", "text": "booked" }]);
        let result = json!({ "content": content, "isError": false });
        json!({ "jsonrpc": "2.0", "id": ID, "result": result })
    } else {
        let error = json!({ "code": -32_000, "message": "no room", "data": { "rooms": 0 } });
        json!({ "jsonrpc": "2.0", "id": ID, "error": error })
    }
}

proptest! {
    #[test]
    fn executed_call_is_not_sent_again(
        status in prop_oneof![Just(OK), prop::sample::select(REFUSALS.to_vec())],
        is_result in any::<bool>(),
        change in prop::option::weighted(0.8, any::<(usize, usize)>()),
        cut in prop::option::weighted(0.2, any::<Index>()),
        forgets in prop::bool::weighted(0.2),
    ) {
        let mut message = message(is_result);
        let changed = change.map(|(place, variant)| change_one(&mut message, place, variant));
        let response = CallResponse { status, body: wire(&message), cut, forgets };
        let (outcome, effects) = SCENE.call(response);
        prop_assert_eq!(effects, 1, "{:?}", outcome);
        match outcome {
            Ok(output) => {
                prop_assert!(status == OK && is_result && cut.is_none(), "{output:?}");
                let is_text_changed = changed.is_some_and(|place| TEXT.starts_with(&place));
                prop_assert!(is_text_changed || text(&output) == "booked", "{output:?}");
            }
            Err(failure) => prop_assert!(failure.code != code::TIMEOUT, "{failure}"),
        }
    }
}
