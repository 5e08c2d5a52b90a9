//! Clients that open connections and misuse them.

use std::time::Duration;

use futures::future::join_all;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use wattle_suite::server::{Setup, TestServer};

use super::http2::{self, Http2};

/// Maximum duration of a wait. It takes a fraction of that.
const SOON: Duration = Duration::from_mins(1);

/// A graph whose runs write large events.
const LARGE: &str = r#"
[graphs.large]
entry = "huge_output"
[graphs.large.channels.size]
schema = { type = "integer" }
[graphs.large.channels.text]
[graphs.large.nodes.huge_output]
"#;

/// Bytes of a large event.
const LARGE_BYTES: usize = 900_000;

/// Raises the limit of open files. Client and server are in one process, so each connection takes
/// two.
pub(super) fn raise_file_limit() {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).unwrap();
}

async fn start(connections: &str) -> TestServer {
    raise_file_limit();
    Setup::bare().await.with(&format!("[server.connections]\n{connections}\n")).start().await
}

/// Opens a connection and sends some bytes.
async fn send(server: &TestServer, bytes: &str) -> TcpStream {
    let mut socket = TcpStream::connect(server.running.addr).await.unwrap();
    socket.write_all(bytes.as_bytes()).await.unwrap();
    socket
}

/// Reads until the server closes the connection.
async fn rest(mut socket: TcpStream) -> String {
    let mut bytes = Vec::new();
    // A reset connection is closed, too.
    let _ = timeout(SOON, socket.read_to_end(&mut bytes)).await.expect("the server closes");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the value of a metric.
async fn metric(server: &TestServer, name: &str) -> u64 {
    let text = server.get("/metrics").await.expect(200);
    let text = text.as_str().unwrap().to_owned();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("no `{name}` in {text}")).trim().parse().unwrap()
}

fn cut(reason: &str) -> String {
    format!("wattle_http_cut_total{{reason=\"{reason}\"}}")
}

#[tokio::test]
async fn incomplete_requests_are_closed_and_do_not_affect_others() {
    let server = start("head_timeout = \"2s\"\nstall_timeout = \"2s\"").await;
    let heads = (0..800).map(|_| send(&server, "GET / HTTP/1.1\r\nhost: localhost\r\nx-"));
    let heads = join_all(heads).await;
    let begun = "POST /api/v1/apps/a/runs HTTP/1.1\r\nhost: localhost\r\n\
                 content-type: application/json\r\ncontent-length: 1000\r\n\r\n{\"input\"";
    let bodies = join_all((0..200).map(|_| send(&server, begun))).await;
    assert_eq!(server.get("/healthz").await.status, 200);
    for answer in join_all(heads.into_iter().map(rest)).await {
        assert_eq!(answer, "");
    }
    for answer in join_all(bodies.into_iter().map(rest)).await {
        assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
        assert!(answer.contains("no part of the body arrived within 2s"), "{answer}");
    }
    assert_eq!(metric(&server, &cut("head")).await, 800);
    assert_eq!(metric(&server, &cut("body")).await, 200);
    server.running.shutdown().await;
}

#[tokio::test]
async fn a_slow_body_reaches_the_body_timeout() {
    let server = start("body_timeout = \"1s\"\nstall_timeout = \"30s\"").await;
    let head = "POST /api/v1/apps/a/runs HTTP/1.1\r\nhost: localhost\r\n\
                content-type: application/json\r\ncontent-length: 1000000\r\n\r\n";
    let (mut reader, mut writer) = send(&server, head).await.into_split();
    let drip = async {
        while writer.write_all(b" ").await.is_ok() {
            tokio::task::yield_now().await;
        }
        std::future::pending::<()>().await;
    };
    let mut answer = [0; 12];
    tokio::select! {
        read = timeout(SOON, reader.read_exact(&mut answer)) => read.unwrap().unwrap(),
        () = drip => unreachable!(),
    };
    assert_eq!(&answer, b"HTTP/1.1 408");
}

#[tokio::test]
async fn idle_connections_are_closed() {
    let server = start("idle_timeout = \"1s\"").await;
    let request = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let answer = rest(send(&server, request).await).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let mut http2 = Http2::open(server.running.addr).await;
    http2.headers(1, "/healthz").await;
    assert!(http2.until_closed().await.contains(&http2::GOAWAY));
    assert_eq!(metric(&server, &cut("idle")).await, 2);
}

/// Opens event streams of thread `t`, which has no further events.
async fn streams(server: &TestServer, count: usize) -> Vec<TcpStream> {
    let request = "GET /api/v1/threads/t/events HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned();
    let streams = join_all((0..count).map(|_| async {
        let mut socket = send(server, &request).await;
        let mut head = [0; 15];
        timeout(SOON, socket.read_exact(&mut head)).await.unwrap().unwrap();
        assert_eq!(&head, b"HTTP/1.1 200 OK");
        socket
    }));
    streams.await
}

async fn with_thread(connections: &str) -> TestServer {
    raise_file_limit();
    let setup = Setup::misdeeds(LARGE).await;
    let setup = setup.with(&format!("[server.connections]\n{connections}\n"));
    let server = setup.start().await;
    run(&server, 1).await;
    server
}

/// Writes an event of `size` bytes to thread `t`.
async fn run(server: &TestServer, size: usize) {
    let input = json!({ "size": size });
    let start = json!({ "graph": "large", "input": input, "wait": true, "thread_id": "t" });
    server.post("/api/v1/apps/misdeeds/runs", &start).await.expect(200);
}

#[tokio::test]
async fn control_plane_responds_when_all_connections_are_taken() {
    let server = with_thread("per_address = 8\nidle_timeout = \"1s\"").await;
    // The connection of the test's client counts as well, until it makes room.
    let streams = streams(&server, 8).await;
    let once = async |request: &str| {
        let request = format!("{request} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        rest(send(&server, &request).await).await
    };
    let refused = once("GET /api/v1/apps").await;
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    assert!(refused.contains("retry-after: 1"), "{refused}");
    for request in ["GET /healthz", "GET /ok", "GET /api/v1/threads", "GET /metrics"] {
        let answer = once(request).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{request}: {answer}");
    }
    let deleted = once("DELETE /api/v1/threads/t").await;
    assert!(deleted.starts_with("HTTP/1.1 204"), "{deleted}");
    // The deletion of the thread ends the streams, so there is room again.
    for stream in streams {
        rest(stream).await;
    }
    let answer = once("GET /api/v1/apps").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn connections_without_a_request_make_room() {
    let server = start("per_address = 16").await;
    let mut silent = Vec::new();
    for _ in 0..64 {
        silent.push(send(&server, "GET / HTTP/1.1\r\n").await);
        let answer =
            rest(send(&server, "GET /api/v1/apps HTTP/1.0\r\nhost: localhost\r\n\r\n").await);
        let answer = answer.await;
        assert!(answer.starts_with("HTTP/1.0 200"), "{answer}");
    }
    assert!(metric(&server, &cut("room")).await >= 40);
    assert_eq!(metric(&server, &cut("connections")).await, 0);
}

#[tokio::test]
async fn clients_that_do_not_read_are_disconnected() {
    let server = with_thread("stall_timeout = \"2s\"").await;
    for _ in 0..12 {
        run(&server, LARGE_BYTES).await;
    }
    let stalled = join_all((0..100).map(|_| async {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4_096).unwrap();
        let mut socket = socket.connect(server.running.addr).await.unwrap();
        let request = "GET /api/v1/threads/t/events HTTP/1.1\r\nhost: localhost\r\n\r\n";
        socket.write_all(request.as_bytes()).await.unwrap();
        socket
    }))
    .await;
    // An honest run meanwhile.
    let input = json!({ "size": 10 });
    server.run("misdeeds", "large", input).await;
    let all = async {
        while metric(&server, &cut("stalled")).await < 100 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(SOON, all).await.expect("all connections are closed");
    drop(stalled);
    assert!(metric(&server, "wattle_http_connections").await < 10);
}

/// Waits until a condition holds.
async fn until(holds: impl AsyncFn() -> bool) {
    let looks = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(SOON, looks).await.expect("it holds in time");
}

#[tokio::test]
async fn responses_that_a_client_does_not_read_are_limited() {
    // One caller has half of it, which is room for two states and some small responses.
    let server = with_thread("[server.limits]\nresponse_bytes = \"4MiB\"").await;
    run(&server, LARGE_BYTES).await;
    let state = "/api/v1/threads/t/state";
    server.get(state).await.expect(200);

    let mut http2 = Http2::open_without_window(server.running.addr).await;
    for stream in 0..10 {
        http2.headers(2 * stream + 1, state).await.unwrap();
    }
    until(async || metric(&server, &cut("responses")).await == 8).await;
    let refused = server.get(state).await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, "1"));
    // Small responses and the control plane have room.
    server.run("misdeeds", "large", json!({ "size": 1 })).await;
    for path in ["/healthz", "/metrics", "/api/v1/threads"] {
        assert_eq!(server.get(path).await.status, 200, "{path}");
    }

    // The end of the connection frees all of it.
    drop(http2);
    until(async || server.get(state).await.status == 200).await;
}

#[tokio::test]
async fn http2_is_supported_and_limited() {
    let server = start("streams = 10").await;
    let client = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap();
    let answer = client.get(server.url("/healthz")).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.version()), (200, reqwest::Version::HTTP_2));

    // Streams that are reset immediately ("rapid reset") are limited.
    let mut http2 = Http2::open(server.running.addr).await;
    for stream in 0..10_000 {
        if http2.headers(2 * stream + 1, "/api/v1/threads").await.is_none()
            || http2.reset(2 * stream + 1).await.is_none()
        {
            break;
        }
    }
    http2.until_closed().await;

    // Headers that do not end are limited.
    let mut http2 = Http2::open(server.running.addr).await;
    http2.endless_headers(1).await;
    http2.until_closed().await;
    assert_eq!(server.get("/healthz").await.status, 200);
}

#[tokio::test]
async fn a_stop_does_not_wait_for_idle_clients() {
    // Longer than the test waits.
    let grace = "[server]\nstop_grace = \"1h\"\n";
    let server = Setup::bare().await.replace("[server]\n", grace).start().await;
    let half = send(&server, "GET / HTTP/1.1\r\n").await;
    let mut idle = send(&server, "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    let mut head = [0; 15];
    idle.read_exact(&mut head).await.unwrap();
    let stopped = timeout(SOON, server.running.shutdown()).await;
    assert!(stopped.is_ok());
    rest(idle).await;
    rest(half).await;
}
