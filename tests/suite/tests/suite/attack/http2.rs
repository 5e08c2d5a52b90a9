//! HTTP/2 frames (RFC 9113) that no library would send.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Frame types.
pub(super) const GOAWAY: u8 = 7;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const CONTINUATION: u8 = 9;

/// The setting of the bytes that the server may send on a stream before the client asks for more.
const INITIAL_WINDOW_SIZE: u16 = 4;

/// Flags of a frame with headers: `END_STREAM` and `END_HEADERS`.
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// The connection preface.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// An HTTP/2 connection without a library, which would follow the protocol.
pub(super) struct Http2(TcpStream);

impl Http2 {
    pub(super) async fn open(address: SocketAddr) -> Self {
        Self::open_with(address, &[]).await
    }

    /// Opens a connection whose client reads no byte of any response.
    pub(super) async fn open_without_window(address: SocketAddr) -> Self {
        let setting = [&INITIAL_WINDOW_SIZE.to_be_bytes()[..], &0_u32.to_be_bytes()].concat();
        Self::open_with(address, &setting).await
    }

    async fn open_with(address: SocketAddr, settings: &[u8]) -> Self {
        let mut socket = TcpStream::connect(address).await.unwrap();
        socket.write_all(PREFACE).await.unwrap();
        let mut http2 = Self(socket);
        http2.frame(SETTINGS, 0, 0, settings).await.unwrap();
        http2
    }

    /// Sends a frame. Returns `None` if the connection is closed.
    async fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Option<()> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let mut frame = length[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        self.0.write_all(&frame).await.ok()
    }

    /// Sends a complete `GET`.
    pub(super) async fn headers(&mut self, stream: u32, path: &str) -> Option<()> {
        let block = block(path);
        self.frame(HEADERS, END_STREAM | END_HEADERS, stream, &block).await
    }

    /// Resets a stream.
    pub(super) async fn reset(&mut self, stream: u32) -> Option<()> {
        let cancel = 8_u32.to_be_bytes();
        self.frame(RST_STREAM, 0, stream, &cancel).await
    }

    /// Sends headers without an end until the server closes the connection.
    pub(super) async fn endless_headers(&mut self, stream: u32) {
        // A header field that is not indexed: `x` with a value of 100 bytes.
        let mut header = vec![0, 1, b'x', 100];
        header.extend([b'y'; 100]);
        let mut sent = self.frame(HEADERS, END_STREAM, stream, &block("/healthz")).await;
        while sent.is_some() {
            sent = self.frame(CONTINUATION, 0, stream, &header).await;
        }
    }

    /// Returns the types of all frames until the server closes the connection.
    pub(super) async fn until_closed(mut self) -> Vec<u8> {
        let mut kinds = Vec::new();
        let all = async {
            let mut head = [0; 9];
            while self.0.read_exact(&mut head).await.is_ok() {
                kinds.push(head[3]);
                let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
                if self.0.read_exact(&mut vec![0; length]).await.is_err() {
                    break;
                }
            }
        };
        timeout(Duration::from_mins(1), all).await.expect("the server closes");
        kinds
    }
}

/// Returns a header block: `:method: GET`, `:scheme: http`, and path and authority with their
/// length.
fn block(path: &str) -> Vec<u8> {
    let mut block = vec![0x82, 0x86, 0x04, path.len() as u8];
    block.extend(path.as_bytes());
    block.extend([0x01, 9]);
    block.extend(b"localhost");
    block
}
