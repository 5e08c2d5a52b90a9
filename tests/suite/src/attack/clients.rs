//! Clients that exhaust the resources of a listener.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use futures::future::{join_all, try_join_all};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::app::APP;
use super::host::Host;
use super::hostile::numbers;
use super::until;

/// Connections with an incomplete request head.
const HEADS: usize = 900;

/// Connections with an incomplete request body.
const BODIES: usize = 200;

/// Connections that the host accepts from one address (`server.connections.per_address`).
const PER_ADDRESS: usize = 1_024;

/// Counts the connections that the host closed to make room for others.
const CLOSED_FOR_ROOM: &str = "wattle_http_cut_total{reason=\"room\"}";

/// Event streams that no client reads.
const STREAMS: usize = 500;

/// Bytes of numbers in a body, fewer than the host reads. Their values take 36 times as much memory.
const NUMBERS_BYTES: usize = 15 << 20;

/// Bodies with numbers that are sent together.
const NUMBER_BODIES: usize = 4;

/// Repetitions of the two frames that one WebSocket sends.
const MESSAGES: usize = 2_000;

/// Opens a connection and sends bytes.
pub(super) async fn send(host: &Host, bytes: &str) -> Result<TcpStream> {
    let mut socket = host.connect().await?;
    socket.write_all(bytes.as_bytes()).await?;
    Ok(socket)
}

/// Opens a connection and sends a part of a request. Dropping the connection resets it: after a
/// close, its port would stay taken for a minute, and repeated strikes would run out of ports.
async fn send_part(host: &Host, bytes: &str) -> Result<TcpStream> {
    let socket = send(host, bytes).await?;
    socket.set_zero_linger()?;
    Ok(socket)
}

/// Reads the status of the response.
pub(super) async fn status(socket: &mut TcpStream) -> Result<u16> {
    let mut head = [0; 12];
    socket.read_exact(&mut head).await?;
    Ok(std::str::from_utf8(&head[9..])?.parse()?)
}

/// Opens more requests that stay incomplete than the host accepts connections from one address.
/// Meanwhile honest work goes on.
pub(super) async fn half_requests(host: Arc<Host>) -> Result<()> {
    let before = host.honest.metric(CLOSED_FOR_ROOM).await?;
    let head = "GET / HTTP/1.1\r\nhost: localhost\r\nx-";
    // The host may already close the connection while the head is sent.
    let heads = join_all((0..HEADS).map(|_| send_part(&host, head))).await;
    let body = "POST /api/v1/apps/misdeeds/runs HTTP/1.1\r\nhost: localhost\r\n\
                content-type: application/json\r\ncontent-length: 1000\r\n\r\n{\"input\"";
    let bodies = try_join_all((0..BODIES).map(|_| send_part(&host, body))).await?;
    let open = heads.iter().filter(|socket| socket.is_ok()).count() + bodies.len();
    ensure!(open > PER_ADDRESS, "only {open} connections were opened");
    let surplus = (open - PER_ADDRESS) as u64;
    until("connections without a request are closed to make room", || async {
        let closed = host.honest.metric(CLOSED_FOR_ROOM).await? - before;
        anyhow::Ok((closed >= surplus).then_some(()))
    })
    .await?;
    host.honest.goes_on().await?;
    // Another connection of the same address makes room as well.
    let whole = "GET /api/v1/apps HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let code = status(&mut send(&host, whole).await?).await?;
    ensure!(code == 200, "a complete request: {code}");
    Ok(())
}

/// Opens streams of a thread without reading their events, and runs the thread. Meanwhile honest
/// work goes on.
pub(super) async fn silent_streams(host: Arc<Host>) -> Result<()> {
    let start = |count: u32| {
        let input = json!({ "count": count });
        json!({ "graph": "flood_emit", "thread_id": "silent", "input": input, "wait": true })
    };
    let runs = format!("/api/v1/apps/{APP}/runs");
    let (code, run) = host.post(&runs, &start(1)).await?;
    ensure!(code == 200, "{code}: {run}");
    let request = "GET /api/v1/threads/silent/events HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let streams = try_join_all((0..STREAMS).map(|_| async {
        let mut socket = send(&host, request).await?;
        let code = status(&mut socket).await?;
        anyhow::Ok((code, socket))
    }));
    let streams = streams.await?;
    ensure!(streams.iter().all(|(code, _)| *code == 200), "a stream was refused");
    let (code, run) = host.post(&runs, &start(500)).await?;
    ensure!(code == 200 && run["status"] == "completed", "{code}: {run}");
    host.honest.goes_on().await?;
    drop(streams);
    let (code, body) = host.get("/api/v1/threads?limit=1").await?;
    ensure!(code == 200, "{code}: {body}");
    Ok(())
}

/// Opens a WebSocket that sends many frames. The host counts its pings and closes the connection.
pub(super) async fn sockets(host: Arc<Host>) -> Result<()> {
    let request = "GET /threads/01a1ffdc-22ab-744e-a2fc-8bb051a654f8/stream/events HTTP/1.1\r\n\
                   host: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
                   sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let mut socket = send(&host, request).await?;
    let code = status(&mut socket).await.context("no response to the upgrade")?;
    ensure!(code == 101, "the upgrade: {code}");
    // A text frame of two bytes and a ping frame, both masked with zeros.
    let frames =
        [[0x81, 0x82, 0, 0, 0, 0, b'{', b'['], [0x89, 0x82, 0, 0, 0, 0, b'x', b'x']].concat();
    for _ in 0..MESSAGES {
        if socket.write_all(&frames).await.is_err() {
            break;
        }
    }
    // A reset connection is closed, too.
    let _ = socket.read_to_end(&mut Vec::new()).await;
    Ok(())
}

/// Sends requests whose `Host` header names another host.
pub(super) async fn hosts(host: Arc<Host>) -> Result<()> {
    for name in ["127.0.0.1:8931@evil", "evil.example", "localhost:8700@evil.example"] {
        let request = format!("GET /api/v1/threads HTTP/1.1\r\nhost: {name}\r\n\r\n");
        let code = status(&mut send(&host, &request).await?).await?;
        ensure!([400, 421].contains(&code), "host `{name}`: {code}");
    }
    let request = "GET /api/v1/threads HTTP/1.1\r\nhost: localhost\r\nhost: evil\r\n\r\n";
    let code = status(&mut send(&host, request).await?).await?;
    ensure!([400, 421].contains(&code), "two hosts: {code}");
    Ok(())
}

/// Starts runs whose inputs are short enough and have values that take 0.5 GB each. A body is
/// refused for its values, or because the values of the other ones take the memory of the caller.
pub(super) async fn body_numbers(host: Arc<Host>) -> Result<()> {
    let numbers = numbers(NUMBERS_BYTES);
    let start = format!("{{\"graph\":\"honest\",\"input\":{{\"number\":{numbers}}}}}");
    let path = format!("/api/v1/apps/{APP}/runs");
    let refused = (0..NUMBER_BODIES).map(|_| host.post_text(&path, start.clone()));
    for (code, refused) in try_join_all(refused).await? {
        let limit = &refused["details"]["limit"];
        let is_too_large = code == 422 && limit == "json_values_bytes";
        let is_without_memory = code == 503 && refused["code"] == "unavailable";
        ensure!(is_too_large || is_without_memory, "{code}: {refused}");
    }
    Ok(())
}
