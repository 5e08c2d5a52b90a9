//! WebSockets whose clients send without end, or never read.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use wattle_suite::server::{Setup, TestServer};

/// Maximum duration of a wait. It takes a fraction of that.
const SOON: Duration = Duration::from_mins(1);

const THREAD: &str = "01a1ffdc-22ab-744e-a2fc-8bb051a654f8";

/// Frame types (RFC 6455), with the bit of the last frame of a message.
const TEXT: u8 = 0x81;
const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;

/// A WebSocket without a library, which would follow the protocol.
struct Socket(TcpStream);

impl Socket {
    async fn open(server: &TestServer) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        // A small buffer fills soon, so that the host notices early that the client does not read.
        socket.set_recv_buffer_size(4_096).unwrap();
        let mut socket = socket.connect(server.running.addr).await.unwrap();
        let request = format!(
            "GET /threads/{THREAD}/stream/events HTTP/1.1\r\nhost: localhost\r\n\
             connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
             sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(timeout(SOON, socket.read_u8()).await.unwrap().unwrap());
        }
        assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
        Self(socket)
    }

    /// Sends a frame. Returns `None` if the connection is closed.
    async fn send(&mut self, kind: u8, payload: &[u8]) -> Option<()> {
        // The frame is masked with zeros.
        let mut frame = vec![kind, 0x80 | 127];
        frame.extend((payload.len() as u64).to_be_bytes());
        frame.extend([0; 4]);
        frame.extend(payload);
        if payload.len() < 126 {
            frame = vec![kind, 0x80 | payload.len() as u8, 0, 0, 0, 0];
            frame.extend(payload);
        }
        self.0.write_all(&frame).await.ok()
    }

    async fn command(&mut self, id: u64, method: &str) -> Option<()> {
        let command = json!({ "id": id, "method": method, "params": {} });
        self.send(TEXT, command.to_string().as_bytes()).await
    }

    /// Returns type and payload of the next frame.
    async fn next(&mut self) -> (u8, Vec<u8>) {
        let read = async {
            let kind = self.0.read_u8().await.unwrap();
            let length = match self.0.read_u8().await.unwrap() {
                126 => self.0.read_u16().await.unwrap().into(),
                127 => self.0.read_u64().await.unwrap(),
                short => short.into(),
            };
            let mut payload = vec![0; usize::try_from(length).unwrap()];
            self.0.read_exact(&mut payload).await.unwrap();
            (kind, payload)
        };
        timeout(SOON, read).await.expect("a frame arrives")
    }

    /// Returns the response to a command.
    async fn answer(&mut self, id: u64) -> Value {
        loop {
            let (kind, payload) = self.next().await;
            let said: Value = serde_json::from_slice(&payload).unwrap_or_default();
            if kind == TEXT && said["id"] == id {
                return said;
            }
        }
    }
}

async fn start(toml: &str) -> TestServer {
    Setup::bare().await.with(toml).start().await
}

#[tokio::test]
async fn a_flood_of_pings_is_closed_and_a_flood_of_messages_gets_responses() {
    let server = start("").await;
    let mut socket = Socket::open(&server).await;
    for _ in 0..100 {
        if socket.send(PING, b"x").await.is_none() {
            break;
        }
    }
    let (mut kind, mut payload) = socket.next().await;
    while kind != CLOSE {
        (kind, payload) = socket.next().await;
    }
    assert_eq!(&payload[..2], 1_008_u16.to_be_bytes());

    let mut socket = Socket::open(&server).await;
    for _ in 0..1_000 {
        socket.send(TEXT, b"{").await.unwrap();
    }
    let deep = "[".repeat(100_000);
    socket.send(TEXT, deep.as_bytes()).await.unwrap();
    for _ in 0..1_001 {
        let (kind, payload) = socket.next().await;
        let said: Value = serde_json::from_slice(&payload).unwrap();
        assert_eq!((kind, &said["error"]), (TEXT, &json!("invalid_argument")), "{said}");
    }
    socket.command(7, "nothing").await.unwrap();
    assert_eq!(socket.answer(7).await["type"], "error");
    assert_eq!(server.get("/ok").await.status, 200);
}

#[tokio::test]
async fn a_message_above_the_limit_closes_its_connection() {
    let server = start("").await;
    let mut socket = Socket::open(&server).await;
    // Only the head of a frame of 1 GiB.
    let mut head = vec![TEXT, 0x80 | 127];
    head.extend((1_u64 << 30).to_be_bytes());
    head.extend([0; 4]);
    socket.0.write_all(&head).await.unwrap();
    let closed = async {
        let mut rest = Vec::new();
        // A reset connection is closed, too.
        let _ = socket.0.read_to_end(&mut rest).await;
    };
    timeout(SOON, closed).await.expect("the server closes");
    assert_eq!(server.get("/ok").await.status, 200);
}

#[tokio::test]
async fn a_client_that_sends_and_does_not_read_is_disconnected() {
    let server = start("[server.connections]\nstall_timeout = \"500ms\"\n").await;
    let mut socket = Socket::open(&server).await;
    let flood = async {
        let mut id = 0;
        // The host stops reading while its responses are not read, and then closes the connection.
        while socket.command(id, "nothing").await.is_some() {
            id += 1;
        }
    };
    timeout(SOON * 2, flood).await.expect("the server closes");
    let metrics = server.get("/metrics").await.expect(200);
    let line = "wattle_http_cut_total{reason=\"stalled\"} 1";
    assert!(metrics.as_str().unwrap().contains(line), "{metrics}");
}
