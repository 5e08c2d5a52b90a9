//! The memory of responses that arrive.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::oneshot;
use tokio::time::timeout;
use wattle_run::caller_id::CallerId;
use wattle_run::ports::model::DiscardDeltas;
use wattle_run::ports::{Caller, Model as _};
use wattle_run::service_memory::ServiceMemory;

use crate::support::{
    Blobs, ask, caller, chat, complete, json_response, raw_server, routes, server, table,
};

/// Memory of all responses. Those of one caller hold at most half, and those of another one at most
/// half of the rest.
const MEMORY_BYTES: u64 = 9 << 18;

/// Size of the text of a response that fits beside any other one.
const SMALL_BYTES: usize = 512 << 10;

/// Size of the text of a response of at most 1 MiB, which fits only if no other one arrives.
const LARGE_BYTES: usize = (1 << 20) - (4 << 10);

#[tokio::test]
async fn response_holds_memory_until_it_is_read() {
    let (finish, finished) = oneshot::channel::<()>();
    let document = chat(&"x".repeat(SMALL_BYTES)).to_string();
    let slow_base = raw_server(move |mut socket| async move {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", document.len());
        let (part, end) = document.split_at(document.len() - 1);
        socket.write_all(head.as_bytes()).await.unwrap();
        socket.write_all(part.as_bytes()).await.unwrap();
        finished.await.unwrap();
        socket.write_all(end.as_bytes()).await.unwrap();
        // A connection that is closed before the request is read would be reset.
        let _ = socket.read_to_end(&mut Vec::new()).await;
    })
    .await;
    let memory = ServiceMemory::new(MEMORY_BYTES);
    let patient = |base: &str| {
        let table = table("openai", base, &json!({}), &json!({ "timeout": "1m" }));
        routes(table).with_memory(memory.clone())
    };
    let slow_routes = patient(&slow_base);
    let slow = tokio::spawn(async move {
        let other = Caller { owner: CallerId::of_key("other"), ..caller() };
        slow_routes.complete(&other, &ask("hi"), &Blobs::default(), &DiscardDeltas).await
    });
    let large = server(vec![json_response(&chat(&"x".repeat(LARGE_BYTES)))]).await;
    let large_routes = patient(&large.uri());
    // It is refused as soon as the part of the other response has arrived.
    let refused = async {
        loop {
            if let Err(failure) = complete(&large_routes, &ask("hi")).await {
                return failure;
            }
        }
    };
    let failure = timeout(Duration::from_mins(1), refused).await.unwrap();
    assert_eq!((failure.code.as_str(), failure.retryable), ("limit", true), "{failure}");
    assert_eq!(failure.details.unwrap()["limit"], "services_memory");
    finish.send(()).unwrap();
    assert_eq!(slow.await.unwrap().unwrap().text().len(), SMALL_BYTES);
    complete(&large_routes, &ask("hi")).await.unwrap();
}
