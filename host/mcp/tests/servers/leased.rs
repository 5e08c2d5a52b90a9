//! Calls that are not sent, because another host has taken over the thread before.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use wattle_graph::failure::code;
use wattle_graph::id::ThreadId;
use wattle_kit::standin::Pattern;
use wattle_mcp::McpServers;
use wattle_run::ports::lease::{CallLease, Lease};
use wattle_run::ports::store::StoreError;

use crate::asking::{EVENTS, Talk};
use crate::support::{
    Request, SOON, call, call_under, greeting, names, over_http, read, respond, servers, standin,
    text,
};

/// Maximum concurrent calls of one caller, if no other caller has calls.
const AT_ONCE: usize = 32;

/// A lease that another host can take.
#[derive(Default)]
struct Taken {
    is_lost: AtomicBool,
    /// Notified when a check fails because the lease is lost.
    refused: Notify,
}

impl Taken {
    fn lose(&self) {
        self.is_lost.store(true, Ordering::SeqCst);
    }
}

#[async_trait]
impl Lease for Taken {
    fn is_locally_valid(&self) -> bool {
        !self.is_lost.load(Ordering::SeqCst)
    }

    async fn confirm(&self) -> Result<(), StoreError> {
        if self.is_locally_valid() {
            return Ok(());
        }
        self.refused.notify_one();
        Err(StoreError::Fenced { thread: ThreadId::new("t").unwrap(), epoch: 1 })
    }
}

/// A server with a new path. It delays the redirect of the messages that `is_counted` selects, and
/// counts the selected messages that arrive at the new path.
struct Moved {
    is_counted: fn(&Value) -> bool,
    /// Notified when a message that `is_counted` selects arrives at the old path, before its
    /// redirect.
    came: Notify,
    /// Lets the server send the redirect.
    goes_on: Notify,
    arrived: AtomicUsize,
    sessions: AtomicUsize,
    /// Number of elicitation answers that have arrived.
    answers: watch::Sender<usize>,
}

impl Moved {
    fn arrived(&self) -> usize {
        self.arrived.load(Ordering::SeqCst)
    }
}

fn is_call(message: &Value) -> bool {
    message["method"] == "tools/call"
}

fn is_answer(message: &Value) -> bool {
    message["result"].is_object()
}

/// Headers of each response. A client ignores `location` in a response that is not a redirect.
const HEADERS: &str = "mcp-session-id: s-1\r\nlocation: /there\r\n";

async fn moved(is_counted: fn(&Value) -> bool) -> (McpServers, Arc<Moved>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let moved = Arc::new(Moved {
        is_counted,
        came: Notify::new(),
        goes_on: Notify::new(),
        arrived: AtomicUsize::new(0),
        sessions: AtomicUsize::new(0),
        answers: watch::Sender::new(0),
    });
    let server = moved.clone();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(serve(socket, server.clone()));
        }
    });
    let servers = servers(over_http(&format!("http://{address}/mcp")));
    names(&servers).await;
    (servers, moved)
}

async fn serve(socket: TcpStream, moved: Arc<Moved>) {
    let Request { method, path, body, mut socket, .. } = read(socket).await;
    if (moved.is_counted)(&body) {
        if (method.as_str(), path.as_str()) == ("POST", "/mcp") {
            moved.came.notify_one();
            moved.goes_on.notified().await;
            let status = "307 Temporary Redirect";
            return respond(&mut socket, status, HEADERS, &Value::Null).await;
        }
        moved.arrived.fetch_add(1, Ordering::SeqCst);
    }
    if body["method"] == "initialize" {
        moved.sessions.fetch_add(1, Ordering::SeqCst);
    }
    let (status, document) = match greeting(&body) {
        Some(said) => said,
        None if is_call(&body) => return book(&mut socket, &body, &moved).await,
        None if is_answer(&body) => {
            moved.answers.send_modify(|answers| *answers += 1);
            ("202 Accepted", Value::Null)
        }
        None => ("405 Method Not Allowed", Value::Null),
    };
    respond(&mut socket, status, HEADERS, &document).await;
}

/// Responds to a call; sends an elicitation before the response if the call has the argument `who`.
async fn book(socket: &mut TcpStream, request: &Value, moved: &Moved) {
    let mut answers = moved.answers.subscribe();
    let mut said = EVENTS.to_owned();
    if let Some(who) = request["params"]["arguments"]["who"].as_str() {
        let schema = json!({ "type": "object", "properties": {} });
        let question = json!({ "jsonrpc": "2.0", "id": who, "method": "elicitation/create",
            "params": { "message": "Sure?", "requestedSchema": schema } });
        said.push_str(&format!("data: {question}\n\n"));
        socket.write_all(said.as_bytes()).await.ok();
        said.clear();
        answers.changed().await.unwrap();
    }
    let block = json!({ "type": "text", "text": "booked" });
    let done = json!({ "jsonrpc": "2.0", "id": request["id"], "result": { "content": [block] } });
    said.push_str(&format!("data: {done}\n\n"));
    socket.write_all(said.as_bytes()).await.ok();
}

/// The wait for the redirect represents every wait before a call is sent.
#[tokio::test]
async fn call_is_not_sent_after_its_lease_is_lost() {
    let (servers, moved) = moved(is_call).await;
    let lease = Arc::<Taken>::default();
    let leased = CallLease::new(lease.clone());
    let late = call_under(&servers, "book", json!({}), &leased);
    let lost = async {
        moved.came.notified().await;
        lease.lose();
        moved.goes_on.notify_one();
    };
    let (late, ()) = timeout(SOON, async { tokio::join!(late, lost) }).await.unwrap();
    assert_eq!(late.unwrap_err().code, code::BUSY);
    assert_eq!(moved.arrived(), 0);
    // Calls of other threads still use the same session.
    moved.goes_on.notify_one();
    let other = call(&servers, "book", json!({})).await.unwrap();
    assert_eq!(text(&other), "booked");
    assert_eq!((moved.arrived(), moved.sessions.load(Ordering::SeqCst)), (1, 1));
}

#[tokio::test]
async fn answer_is_not_sent_after_its_lease_is_lost() {
    let (servers, moved) = moved(is_answer).await;
    let lease = Arc::<Taken>::default();
    let mut talk = Talk::new(&servers, json!({ "who": "a" }));
    let asked = talk.asked().await;
    talk.lease = CallLease::new(lease.clone());
    let lost = async {
        moved.came.notified().await;
        lease.lose();
        moved.goes_on.notify_one();
        lease.refused.notified().await;
    };
    let late = async {
        tokio::select! {
            answer = talk.answer(asked, "accept") => panic!("{answer:?}"),
            () = lost => {}
        }
    };
    timeout(SOON, late).await.unwrap();
    assert_eq!(moved.arrived(), 0);
    let mut talk = Talk::new(&servers, json!({ "who": "b" }));
    let asked = talk.asked().await;
    moved.goes_on.notify_one();
    assert_eq!(talk.answer(asked, "accept").await.unwrap().as_deref(), Some("booked"));
    assert_eq!(moved.arrived(), 1);
}

/// The caller already has its share of the calls of the server, so a further call waits for its
/// place.
#[tokio::test]
async fn queued_call_is_not_sent_after_its_lease_is_lost() {
    let standin = standin().await;
    let servers = servers(over_http(&format!("{}/mcp", standin.base_url)));
    names(&servers).await;
    let gate = standin.gate(Pattern { body_contains: Some("tools/call".into()), ..Pattern::any() });
    let lease = Arc::<Taken>::default();
    let leased = CallLease::new(lease.clone());
    let calls = (0..AT_ONCE).map(|n| call(&servers, "echo", json!({ "text": n.to_string() })));
    let late = async {
        gate.arrived(AT_ONCE).await.unwrap();
        let late = call_under(&servers, "echo", json!({ "text": "late" }), &leased);
        let lost = async {
            lease.lose();
            gate.open();
        };
        tokio::join!(late, lost).0
    };
    let (calls, late) = tokio::join!(join_all(calls), late);
    assert!(calls.iter().all(Result::is_ok), "{calls:?}");
    assert_eq!(late.unwrap_err().code, code::BUSY);
    let requests = standin.requests();
    let bodies = requests.iter().filter_map(|entry| entry.body.as_ref());
    assert_eq!(bodies.filter(|body| is_call(body)).count(), AT_ONCE);
}
