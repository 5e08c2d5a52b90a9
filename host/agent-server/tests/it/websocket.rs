//! The streaming protocol over WebSockets, with real connections.

use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;
use std::time::Duration;

use async_trait::async_trait;
use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};
use tower::ServiceExt as _;
use wattle_api::guard::limits::{ALL_BODY_BYTES, Limits};
use wattle_api::traffic::CutReason;
use wattle_api::{ApiConfig, Operator, unguarded_router};
use wattle_graph::weight::VALUE_BYTES;
use wattle_kit::layer::{Layer, Layered};
use wattle_run::ports::store::{Store, StoreError};
use wattle_run::reads::begin_large_read;
use wattle_store::InMemoryStore;

use crate::gated_store::GatedStore;
use crate::host::{Host, HostOptions, read, request};
use crate::live_stream::is_run_end;

const ID: &str = "01a1ffdc-22ab-744e-a2fc-8bb051a654f8";

/// Starts a server that listens until the end of the test. Returns its address.
async fn listen(host: &Host) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let router = host.router.clone();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// A connection, and the messages that arrived while the test waited for a reply.
struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>, VecDeque<Value>);

impl Socket {
    async fn open(
        address: &str,
        thread: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<Self, Error> {
        let uri = format!("ws://{address}/threads/{thread}/stream/events");
        let mut request = uri.into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        let (socket, _) = connect_async(request).await?;
        Ok(Self(socket, VecDeque::new()))
    }

    async fn send(&mut self, command: &Value) {
        self.0.send(Message::text(command.to_string())).await.unwrap();
    }

    async fn command(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.send(&json!({ "id": id, "method": method, "params": params })).await;
        let mut messages = self.until(|message| message["id"] == id).await;
        let answer = messages.pop().unwrap();
        self.1 = messages.into();
        answer
    }

    async fn next(&mut self) -> Message {
        self.0.next().await.unwrap().unwrap()
    }

    /// Returns the messages up to and including the first message for which `is_last` returns true.
    async fn until(&mut self, is_last: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut messages = Vec::new();
        loop {
            let document = match self.1.pop_front() {
                Some(document) => document,
                None => match self.next().await {
                    Message::Text(text) => serde_json::from_str(&text).unwrap(),
                    _ => continue,
                },
            };
            let ends = is_last(&document);
            messages.push(document);
            if ends {
                return messages;
            }
        }
    }

    /// Returns the code with which the server closes the connection.
    async fn closed(&mut self) -> u16 {
        self.closed_with().await.0
    }

    /// Returns the code and the reason with which the server closes the connection.
    async fn closed_with(&mut self) -> (u16, String) {
        loop {
            if let Message::Close(frame) = self.next().await {
                let frame = frame.unwrap();
                return (frame.code.into(), frame.reason.to_string());
            }
        }
    }
}

fn methods(messages: &[Value]) -> Vec<&str> {
    messages.iter().map(|message| message["method"].as_str().unwrap_or_default()).collect()
}

#[tokio::test]
async fn commands_and_events_share_a_connection() {
    let host = Host::new();
    let address = listen(&host).await;
    let mut socket = Socket::open(&address, ID, &[]).await.unwrap();
    let wanted = json!({ "channels": ["lifecycle", "input", "values"] });
    let subscribed = socket.command(1, "subscription.subscribe", wanted.clone()).await;
    let first = subscribed["result"]["subscription_id"].as_str().unwrap().to_owned();
    let input = json!({ "assistant_id": "agent", "input": { "value": "v" } });
    let started = socket.command(2, "run.start", input).await;
    assert_eq!(started["type"], "success", "{started}");
    let messages = socket.until(is_run_end).await;
    assert_eq!(
        methods(&messages),
        ["lifecycle", "values", "values", "input.requested", "lifecycle"]
    );
    let question = &messages[3]["params"]["data"]["interrupt_id"];
    let answer = json!({ "interrupt_id": question, "namespace": [], "response": "yes" });
    socket.command(3, "input.respond", answer).await;
    let rest = socket.until(is_run_end).await;
    assert_eq!(rest.last().unwrap()["params"]["data"]["event"], "completed");

    // A later subscription on the connection receives all events, and the first subscription
    // receives no event twice.
    let wanted = json!({ "channels": ["lifecycle"] });
    let subscribed = socket.command(4, "subscription.subscribe", wanted.clone()).await;
    let second = subscribed["result"]["subscription_id"].as_str().unwrap().to_owned();
    let ends = |message: &Value| message["params"]["data"]["event"] == "completed";
    assert_eq!(methods(&socket.until(ends).await), ["lifecycle"; 4]);
    let run = json!({ "assistant_id": "agent", "input": { "value": "w" } });
    socket.command(5, "run.start", run).await;
    let messages = socket.until(is_run_end).await;
    let mut seqs: Vec<u64> =
        messages.iter().filter_map(|message| message["seq"].as_u64()).collect();
    assert!(seqs.is_sorted_by(|one, other| one < other), "{seqs:?}");
    seqs.dedup();
    assert_eq!(seqs.len(), methods(&messages).len(), "each event once for both subscriptions");

    let known = messages[messages.len() - 2]["event_id"].as_str().unwrap();
    let again = json!({ "run_id": "r", "last_event_id": known, "subscriptions": [first] });
    let again = socket.command(6, "subscription.reconnect", again).await;
    assert_eq!(again["result"], json!({ "restored": true }));
    assert_eq!(socket.until(is_run_end).await, messages[messages.len() - 1..]);
    let lost = json!({ "run_id": "r", "subscriptions": ["x"] });
    let lost = socket.command(7, "subscription.reconnect", lost).await;
    assert_eq!(lost["result"], json!({ "restored": false }));

    for id in [&first, &second] {
        let ended = json!({ "subscription_id": id });
        let ended = socket.command(8, "subscription.unsubscribe", ended).await;
        assert_eq!(ended["result"], json!({}));
    }
    let ended = json!({ "subscription_id": first });
    let ended = socket.command(9, "subscription.unsubscribe", ended).await;
    assert_eq!(ended["error"], "no_such_subscription");
}

#[tokio::test]
async fn reconnect_receives_missed_events() {
    let host = Host::new();
    let address = listen(&host).await;
    let wanted = json!({ "channels": ["lifecycle", "values"] });
    let mut socket = Socket::open(&address, ID, &[]).await.unwrap();
    socket.command(1, "subscription.subscribe", wanted.clone()).await;
    let input = json!({ "assistant_id": "slow", "input": { "word": "a" } });
    socket.command(2, "run.start", input).await;
    let messages = socket.until(is_run_end).await;
    drop(socket);
    let mut socket = Socket::open(&address, ID, &[]).await.unwrap();
    let mut wanted = wanted;
    wanted["since"] = messages[1]["seq"].clone();
    socket.command(1, "subscription.subscribe", wanted).await;
    assert_eq!(socket.until(is_run_end).await, messages[2..]);
}

#[tokio::test]
async fn invalid_command_keeps_the_connection_open() {
    let host = Host::new();
    let address = listen(&host).await;
    let mut socket = Socket::open(&address, ID, &[]).await.unwrap();
    socket.0.send(Message::text("{")).await.unwrap();
    let refused = socket.until(|_| true).await;
    assert_eq!(
        (&refused[0]["error"], &refused[0]["id"]),
        (&json!("invalid_argument"), &json!(null))
    );
    let wrong = json!({ "channels": ["nothing"] });
    let refused = socket.command(1, "subscription.subscribe", wrong).await;
    assert_eq!(refused["error"], "invalid_argument");
    let nothing = socket.command(2, "input.inject", json!({})).await;
    assert_eq!(nothing["error"], "unknown_command");
    socket
        .0
        .send(Message::binary(json!({ "id": 3, "method": "state.get" }).to_string()))
        .await
        .unwrap();
    let state = socket.until(|message| message["id"] == 3).await;
    assert_eq!(state[0]["result"], json!({ "values": {} }));
    for id in 0..64 {
        let wanted = json!({ "channels": ["values"] });
        socket.command(10 + id, "subscription.subscribe", wanted).await;
    }
    let wanted = json!({ "channels": ["values"] });
    let refused = socket.command(99, "subscription.subscribe", wanted).await;
    assert_eq!(refused["error"], "invalid_argument", "too many subscriptions");
}

#[tokio::test]
async fn close_code_is_4000_plus_the_http_status() {
    let config =
        ApiConfig { tenant_header: Some("x-tenant".parse().unwrap()), ..ApiConfig::default() };
    let host = Host::with_config(config);
    let address = listen(&host).await;
    let own = [("x-tenant", "a")];
    let mut socket = Socket::open(&address, ID, &own).await.unwrap();
    let input = json!({ "assistant_id": "slow", "input": {} });
    socket.command(1, "run.start", input).await;
    let mut foreign = Socket::open(&address, ID, &[("x-tenant", "b")]).await.unwrap();
    assert_eq!(foreign.closed().await, 4_404);
    let mut none = Socket::open(&address, "x", &own).await.unwrap();
    assert_eq!(none.closed().await, 4_422);
    let thread = wattle_graph::id::ThreadId::new(ID).unwrap();
    let channels = json!({ "channels": ["lifecycle"] });
    socket.command(2, "subscription.subscribe", channels).await;
    socket.until(is_run_end).await;
    host.state.engine.ports().store.delete_thread(&thread).await.unwrap();
    assert_eq!(socket.closed().await, 4_404);
}

#[tokio::test]
async fn websocket_passes_the_guards_of_http() {
    let config = ApiConfig {
        origins: ["https://ui.example".to_owned()].into(),
        keys: [ApiConfig::key_digest("s3cret")].into(),
        ..ApiConfig::default()
    };
    let host = Host::with_config(config);
    let address = listen(&host).await;
    let key = ("x-api-key", "s3cret");
    for (headers, status) in [
        (vec![], 401),
        (vec![("x-api-key", "wrong")], 401),
        (vec![key, ("origin", "https://evil.example")], 403),
        (vec![key, ("origin", "null")], 403),
    ] {
        match Socket::open(&address, ID, &headers).await {
            Err(Error::Http(response)) => assert_eq!(response.status(), status, "{headers:?}"),
            _ => panic!("{headers:?} may open a socket"),
        }
    }
    for headers in [vec![key], vec![key, ("origin", "https://ui.example")]] {
        assert!(Socket::open(&address, ID, &headers).await.is_ok(), "{headers:?}");
    }
    let plain = host.get(&format!("/threads/{ID}/stream/events")).await;
    assert_eq!(plain.status, 401);
}

#[tokio::test]
async fn slow_command_does_not_block_events() {
    let store = GatedStore::new();
    let options = HostOptions { store: store.clone(), ..HostOptions::default() };
    let host = Host::with_options(ApiConfig::default(), options);
    let address = listen(&host).await;
    let mut socket = Socket::open(&address, ID, &[]).await.unwrap();
    let wanted = json!({ "channels": ["lifecycle"] });
    socket.command(1, "subscription.subscribe", wanted.clone()).await;
    let input = json!({ "assistant_id": "slow", "input": { "word": "a" } });
    socket.command(2, "run.start", input).await;
    let messages = socket.until(is_run_end).await;

    store.checkpoints.send_replace(false);
    for id in 3..8 {
        socket.send(&json!({ "id": id, "method": "state.get", "params": {} })).await;
    }
    socket.0.send(Message::Ping("hello".into())).await.unwrap();
    assert_eq!(socket.next().await, Message::Pong("hello".into()));
    socket.command(9, "subscription.subscribe", wanted).await;
    assert_eq!(socket.until(is_run_end).await.last(), messages.last());

    store.checkpoints.send_replace(true);
    for id in 3..8 {
        let answer = socket.until(|message| message["id"].is_u64()).await.pop().unwrap();
        assert_eq!((&answer["id"], &answer["result"]["values"]["word"]), (&json!(id), &json!("a")));
    }
}

#[tokio::test]
async fn queued_commands_complete_after_a_disconnect() {
    let store = GatedStore::new();
    let options = HostOptions { store: store.clone(), ..HostOptions::default() };
    let host = Host::with_options(ApiConfig::default(), options);
    let address = listen(&host).await;
    let mut socket = Socket::open(&address, ID, &[]).await.unwrap();
    let run = |word: &str| json!({ "assistant_id": "slow", "input": { "word": word } });
    socket.command(1, "run.start", run("a")).await;
    host.post(&format!("/threads/{ID}/runs/wait"), run("b")).await.ok();
    store.checkpoints.send_replace(false);
    socket.send(&json!({ "id": 2, "method": "state.get", "params": {} })).await;
    socket.send(&json!({ "id": 3, "method": "run.start", "params": run("c") })).await;
    socket.0.close(None).await.unwrap();
    while let Some(Ok(_)) = socket.0.next().await {}
    store.checkpoints.send_replace(true);
    host.wait_for_started(3).await;
}

#[tokio::test]
async fn commands_count_as_request_bodies_until_they_were_executed() {
    let store = GatedStore::new();
    let options = HostOptions { store: store.clone(), ..HostOptions::default() };
    let host = Host::with_options(ApiConfig::default(), options);
    let address = listen(&host).await;
    let mut socket = Socket::open(&address, ID, &[]).await.unwrap();
    socket.command(1, "subscription.subscribe", json!({ "channels": ["lifecycle"] })).await;
    let input = json!({ "assistant_id": "slow", "input": { "word": "a" } });
    socket.command(2, "run.start", input).await;
    socket.until(is_run_end).await;

    // Two of these commands fit in the half of `ALL_BODY_BYTES` that one caller may have.
    let params = json!({ "keys": vec![""; ALL_BODY_BYTES / 5 / VALUE_BYTES as usize] });
    store.checkpoints.send_replace(false);
    for id in 3..6 {
        socket.send(&json!({ "id": id, "method": "state.get", "params": params })).await;
    }
    let refused = socket.until(|message| message["id"].is_u64()).await.pop().unwrap();
    assert_eq!((&refused["id"], &refused["error"]), (&json!(5), &json!("unknown_error")));
    assert!(refused["message"].as_str().unwrap().contains("wait for replies"), "{refused}");
    assert_eq!(host.state.traffic.cut_count(CutReason::BodyMemory), 1);

    store.checkpoints.send_replace(true);
    for id in 3..5 {
        let answer = socket.until(|message| message["id"] == id).await.pop().unwrap();
        assert_eq!(answer["type"], "success");
    }
    assert_eq!(socket.command(6, "state.get", params).await["type"], "success");
}

/// A store layer whose checkpoints are large. Their reads end when the test lets them.
struct LargeCheckpoints {
    below: Arc<dyn Store>,
    /// Number of reads that were requested.
    requested: watch::Sender<usize>,
    /// Number of reads that had their turn.
    begun: AtomicUsize,
    may_end: watch::Sender<bool>,
}

#[async_trait]
impl Layer for LargeCheckpoints {
    fn over(below: Arc<dyn Store>) -> Self {
        let (requested, may_end) = (watch::channel(0).0, watch::channel(true).0);
        Self { below, requested, begun: AtomicUsize::new(0), may_end }
    }

    fn below(&self) -> &dyn Store {
        &*self.below
    }

    async fn reading(&self, read: &'static str) -> Result<(), StoreError> {
        if matches!(read, "checkpoint" | "checkpoint_outline" | "checkpoints") {
            self.requested.send_modify(|requested| *requested += 1);
            let _large = begin_large_read().await;
            self.begun.fetch_add(1, Ordering::SeqCst);
            let _ = self.may_end.subscribe().wait_for(|may| *may).await;
        }
        Ok(())
    }
}

#[tokio::test]
async fn commands_read_large_states_in_turns() {
    let below = Arc::new(InMemoryStore::new());
    let store = Arc::new(Layered::<LargeCheckpoints>::over(below));
    let options = HostOptions { store: store.clone(), ..HostOptions::default() };
    let host = Host::with_options(ApiConfig::default(), options);
    let address = listen(&host).await;
    let run = json!({ "assistant_id": "slow", "input": { "word": "a" } });
    host.post("/threads", json!({ "thread_id": ID })).await.ok();
    host.post(&format!("/threads/{ID}/runs/wait"), run).await.ok();
    // There are as many turns as cores, and at least four. A connection reads one state at a time.
    let turns = available_parallelism().map_or(1, NonZero::get).max(4);
    let mut sockets = Vec::new();
    for _ in 0..=turns {
        sockets.push(Socket::open(&address, ID, &[]).await.unwrap());
    }

    let (requested, begun) = (*store.requested.borrow(), store.begun.load(Ordering::SeqCst));
    store.may_end.send_replace(false);
    for socket in &mut sockets {
        socket.send(&json!({ "id": 1, "method": "state.get", "params": {} })).await;
    }
    let all = requested + sockets.len();
    store.requested.subscribe().wait_for(|requested| *requested == all).await.unwrap();
    assert_eq!(store.begun.load(Ordering::SeqCst) - begun, turns);
    store.may_end.send_replace(true);
    for socket in &mut sockets {
        let answer = socket.until(|message| message["id"] == 1).await.pop().unwrap();
        assert_eq!(answer["result"]["values"]["word"], "a");
    }
}

/// Returns a host where a caller may have 512 KiB of unread responses.
fn host_with_little_memory() -> Host {
    let limits = Limits { response_bytes: 1 << 20, ..Limits::default() };
    Host::with_config(ApiConfig { limits, ..ApiConfig::default() })
}

/// Runs `slow` with a word of `bytes` bytes, which is twice in the state.
async fn run_with_word(socket: &mut Socket, bytes: usize) {
    socket.command(1, "subscription.subscribe", json!({ "channels": ["lifecycle"] })).await;
    let input = json!({ "assistant_id": "slow", "input": { "word": "x".repeat(bytes) } });
    socket.command(2, "run.start", input).await;
    socket.until(is_run_end).await;
}

#[tokio::test]
async fn messages_that_exceed_the_unread_bytes_of_the_caller_are_not_sent() {
    let host = host_with_little_memory();
    let address = listen(&host).await;
    let mut socket = Socket::open(&address, ID, &[]).await.unwrap();
    run_with_word(&mut socket, 300_000).await;
    let refused = socket.command(3, "state.get", json!({})).await;
    assert_eq!(refused["error"], "unknown_error");
    let why = refused["message"].as_str().unwrap();
    assert!(why.contains("carried out") && why.contains("response_bytes"), "{why}");
    let small = socket.command(4, "state.get", json!({ "keys": [] })).await;
    assert_eq!(small["result"]["values"], json!({}), "the connection stays open");

    let values = json!({ "channels": ["values"] });
    let subscribe = json!({ "id": 5, "method": "subscription.subscribe", "params": values });
    socket.send(&subscribe).await;
    let (code, reason) = socket.closed_with().await;
    assert_eq!(code, 4_503);
    assert!(reason.contains("server.limits.response_bytes"), "{reason}");
    assert_eq!(host.state.traffic.cut_count(CutReason::ResponseMemory), 2);
}

#[tokio::test]
async fn connections_of_a_caller_share_the_bytes_of_their_buffers() {
    let host = host_with_little_memory();
    let address = listen(&host).await;
    let mut first = Socket::open(&address, ID, &[]).await.unwrap();
    let mut second = Socket::open(&address, ID, &[]).await.unwrap();
    run_with_word(&mut first, 150_000).await;
    let state = first.command(3, "state.get", json!({})).await;
    assert_eq!(state["type"], "success");
    let refused = second.command(1, "state.get", json!({})).await;
    assert_eq!(refused["error"], "unknown_error");
    first.0.close(None).await.unwrap();
    // The server frees the buffer when it has read the close frame.
    let freed =
        async { while second.command(2, "state.get", json!({})).await["type"] != "success" {} };
    tokio::time::timeout(Duration::from_mins(1), freed).await.unwrap();
}

#[tokio::test]
async fn commands_count_against_the_rate_limit() {
    let limits = Limits { key_rate: "4/h".parse().ok(), ..Limits::default() };
    let keys = [ApiConfig::key_digest("s3cret")].into();
    let host = Host::with_config(ApiConfig { keys, limits, ..ApiConfig::default() });
    let address = listen(&host).await;
    let mut socket = Socket::open(&address, ID, &[("x-api-key", "s3cret")]).await.unwrap();
    let wanted = json!({ "channels": ["lifecycle"] });
    let subscribed = socket.command(1, "subscription.subscribe", wanted).await;
    assert_eq!(subscribed["type"], "success", "{subscribed}");
    assert_eq!(socket.command(2, "state.get", json!({})).await["type"], "success");
    socket.0.send(Message::text("{")).await.unwrap();
    socket.until(|message| message["error"] == "invalid_argument").await;
    let refused = socket.command(3, "state.get", json!({})).await;
    assert_eq!(refused["error"], "unknown_error");
    let why = refused["message"].as_str().unwrap();
    assert!(why.contains("retry after"), "{why}");
}

#[tokio::test]
async fn message_above_the_body_limit_of_the_key_closes_the_connection() {
    let host = Host::new();
    let wanted = json!({ "name": "small", "body_limit_bytes": 200 });
    let mut made = request("POST", "/api/v1/keys", Some(wanted));
    made.extensions_mut().insert(Operator);
    let own = unguarded_router(host.state.clone());
    let made = read(own.oneshot(made).await.unwrap()).await.json();
    let address = listen(&host).await;
    let key = [("x-api-key", made["key"].as_str().unwrap())];

    let mut socket = Socket::open(&address, ID, &key).await.unwrap();
    let state = json!({ "id": 1, "method": "state.get" }).to_string();
    socket.0.send(Message::text(format!("{state:200}"))).await.unwrap();
    assert_eq!(socket.until(|message| message["id"] == 1).await[0]["type"], "success");
    socket.0.send(Message::text(format!("{state:201}"))).await.unwrap();
    let (code, reason) = socket.closed_with().await;
    assert_eq!(code, 1_009);
    assert!(reason.contains("200 bytes") && reason.contains("key"), "{reason}");

    // The server reads a message above the key's limit completely, so that the client receives the
    // reason.
    let mut socket = Socket::open(&address, ID, &key).await.unwrap();
    socket.0.send(Message::binary(vec![b' '; 4 << 20])).await.unwrap();
    assert_eq!(socket.closed().await, 1_009);
}

#[tokio::test]
async fn plain_request_to_the_websocket_path_is_400() {
    let host = Host::new();
    let plain = host.get(&format!("/threads/{ID}/stream/events")).await;
    assert_eq!(plain.status, 400);
    assert!(plain.json()["detail"].as_str().unwrap().contains("WebSocket"), "{}", plain.text);
}

#[tokio::test]
async fn a_client_that_pings_too_often_is_disconnected() {
    let host = Host::new();
    let address = listen(&host).await;
    let mut socket = Socket::open(&address, ID, &[]).await.unwrap();
    for _ in 0..50 {
        // The connection may be closed before all pings are sent.
        let _ = socket.0.send(Message::Ping(Default::default())).await;
    }
    let (code, reason) = socket.closed_with().await;
    assert_eq!((code, reason.as_str()), (1_008, "too many pings"));
}

#[tokio::test]
async fn a_client_that_never_reads_is_disconnected() {
    let stall_timeout = Duration::from_millis(300);
    let host = Host::with_config(ApiConfig { stall_timeout, ..ApiConfig::default() });
    let address = listen(&host).await;
    let run = json!({ "assistant_id": "agent", "input": { "value": "x".repeat(4 << 20) } });
    host.post("/threads", json!({ "thread_id": ID })).await.ok();
    host.post(&format!("/threads/{ID}/runs/wait"), run).await.ok();
    let mut socket = Socket::open(&address, ID, &[]).await.unwrap();
    for id in 0..8 {
        socket.send(&json!({ "id": id, "method": "state.get", "params": {} })).await;
    }
    let left = async {
        while host.state.traffic.cut_count(CutReason::WriteTimeout) == 0 {
            tokio::time::sleep(stall_timeout / 3).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), left).await.unwrap();
    assert_eq!(host.get("/ok").await.status, 200);
}
