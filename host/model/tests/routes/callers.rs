//! Callers that share a provider.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use wattle_run::caller_id::CallerId;
use wattle_run::ports::model::DiscardDeltas;
use wattle_run::ports::{Caller, Model as _};

use crate::support::{Blobs, ask, caller, chat, routes, table};

/// Maximum wait for a call that must not wait for others.
const SOON: Duration = Duration::from_mins(1);

/// Reads a request. Responds to `quick`. Passes the connection of `slow` to `held`.
async fn serve(mut socket: TcpStream, held: mpsc::UnboundedSender<TcpStream>) {
    let mut request = Vec::new();
    while socket.read_buf(&mut request).await.unwrap() > 0 {
        let text = String::from_utf8_lossy(&request);
        if text.contains("slow") {
            held.send(socket).ok();
            return;
        }
        if text.contains("quick") {
            break;
        }
    }
    let body = chat("hi").to_string();
    let response = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(response.as_bytes()).await.ok();
    // The client reads the response before the connection is closed.
    socket.read_to_end(&mut request).await.ok();
}

/// Starts a server that holds the requests with the text `slow`. Returns its address and the held
/// connections.
async fn holding_server() -> (String, mpsc::UnboundedReceiver<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (held, receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(serve(socket, held.clone()));
        }
    });
    (format!("http://{address}"), receiver)
}

#[tokio::test]
async fn slow_calls_of_one_caller_leave_requests_for_another() {
    let (base, mut held) = holding_server().await;
    let patient = json!({ "timeout": "10m" });
    let routes = Arc::new(routes(table("openai", &base, &json!({ "stream": false }), &patient)));
    let call = |key: &'static str, text: &'static str| {
        let routes = routes.clone();
        async move {
            let caller = Caller { owner: CallerId::of_key(key), ..caller() };
            routes.complete(&caller, &ask(text), &Blobs::default(), &DiscardDeltas).await
        }
    };
    let mut slow = JoinSet::new();
    for _ in 0..72 {
        slow.spawn(call("one", "slow"));
    }
    let mut connections = Vec::new();
    for _ in 0..32 {
        connections.push(held.recv().await.unwrap());
    }
    timeout(SOON, call("other", "quick")).await.unwrap().unwrap();
    assert!(held.try_recv().is_err(), "one caller has half of the 64 requests");
    assert!(slow.try_join_next().is_none());
}
