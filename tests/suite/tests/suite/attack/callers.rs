//! One caller that exhausts what it can, and other callers meanwhile.

use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use wattle_suite::server::{Setup, TestServer};

use super::listeners::raise_file_limit;

/// Maximum duration of a wait. It takes a fraction of that.
const SOON: Duration = Duration::from_mins(2);

const GRAPH: &str = r#"
[graphs.flood]
entry = "flood_emit"
[graphs.flood.channels.count]
schema = { type = "integer" }
[graphs.flood.channels.number]
schema = { type = "integer" }
[graphs.flood.nodes.flood_emit]
"#;

/// Opens an event stream of a thread and reads only the head of the response, so that the stream
/// has started.
async fn follow(server: &TestServer, thread: &str, headers: &str) -> (u16, TcpStream) {
    let mut socket = TcpStream::connect(server.running.addr).await.unwrap();
    let request =
        format!("GET /api/v1/threads/{thread}/events HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut head = [0; 12];
    timeout(SOON, socket.read_exact(&mut head)).await.unwrap().unwrap();
    let status = std::str::from_utf8(&head[9..]).unwrap().parse().unwrap();
    (status, socket)
}

fn start(thread: &str, count: u32) -> serde_json::Value {
    json!({ "graph": "flood", "input": { "count": count }, "thread_id": thread, "wait": true })
}

const RUNS: &str = "/api/v1/apps/misdeeds/runs";

#[tokio::test]
async fn hundreds_of_clients_that_never_read_delay_no_run() {
    raise_file_limit();
    let server = Setup::misdeeds(GRAPH).await.start().await;
    server.post(RUNS, &start("t", 1)).await.expect(200);
    let streams = join_all((0..500).map(|_| follow(&server, "t", ""))).await;
    assert!(streams.iter().all(|(status, _)| *status == 200));
    // The run that all streams follow, and one without a stream.
    let (followed, other) = (start("t", 90), start("other", 90));
    let runs = join_all([server.post(RUNS, &followed), server.post(RUNS, &other)]);
    for run in timeout(SOON, runs).await.expect("both runs end") {
        assert_eq!(run.expect(200)["status"], "completed");
    }
    drop(streams);
}

#[tokio::test]
async fn streams_leave_room_for_requests_and_for_the_control_plane() {
    let setup = Setup::misdeeds(GRAPH).await.with("[server.limits]\nopen = 8\n");
    let server = setup.start().await;
    server.post(RUNS, &start("t", 1)).await.expect(200);
    let streams = join_all((0..8).map(|_| follow(&server, "t", ""))).await;
    let refused = streams.iter().filter(|(status, _)| *status == 429).count();
    assert_eq!((streams.len(), refused), (8, 2), "three in four open requests may be streams");
    server.post(RUNS, &start("other", 1)).await.expect(200);
    let more = server.get("/api/v1/threads/t/events").await;
    assert_eq!((more.status, more.header("retry-after")), (429, "1"));
    for path in ["/ok", "/healthz", "/api/v1/threads"] {
        assert_eq!(server.get(path).await.status, 200, "{path}");
    }
    assert_eq!(server.delete("/api/v1/threads/other").await.status, 204);
    drop(streams);
}

#[tokio::test]
async fn bodies_of_one_caller_do_not_fill_the_memory() {
    let server = Setup::misdeeds(GRAPH).await.start().await;
    let head = "POST /api/v1/apps/misdeeds/runs HTTP/1.1\r\nhost: localhost\r\n\
                content-type: application/json\r\ncontent-length: 16000000\r\n\r\n";
    let piece = vec![b' '; 12 << 20];
    // The bodies never end. Together they have 192 MiB, and the share of a caller is at most 128
    // MiB.
    let half = join_all((0..16).map(|_| async {
        let mut socket = TcpStream::connect(server.running.addr).await.unwrap();
        socket.write_all(head.as_bytes()).await.unwrap();
        // A refused connection is closed before it has sent everything.
        let sent = socket.write_all(&piece).await;
        (sent.is_ok(), socket)
    }));
    let half = timeout(SOON, half).await.unwrap();
    let refused = async {
        loop {
            let text = server.get("/metrics").await.expect(200).as_str().unwrap().to_owned();
            let line = "wattle_http_cut_total{reason=\"bodies\"} ";
            let count = text.lines().find_map(|it| it.strip_prefix(line)).unwrap().to_owned();
            if count.parse::<u32>().unwrap() >= 5 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(SOON, refused).await.expect("some bodies are refused");
    drop(half);
    server.post(RUNS, &start("t", 1)).await.expect(200);
}
