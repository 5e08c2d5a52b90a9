//! The socket of a connection, which records reads and blocked writes.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::activity::Activity;
use super::slots::Slot;

/// A socket that records its reads and blocked writes in [`Activity`].
pub(super) struct TrackedSocket {
    socket: TcpStream,
    activity: Arc<Activity>,
    is_blocked: bool,
    /// Slot of the connection. The slot stays occupied until the socket is closed, even after an
    /// upgrade to a WebSocket.
    _slot: Slot,
}

impl TrackedSocket {
    pub(super) fn new(socket: TcpStream, activity: Arc<Activity>, slot: Slot) -> Self {
        Self { socket, activity, is_blocked: false, _slot: slot }
    }

    fn record_write(&mut self, written: &Poll<io::Result<usize>>) {
        let is_blocked = written.is_pending();
        if is_blocked != self.is_blocked {
            self.is_blocked = is_blocked;
            self.activity.writes(is_blocked);
        }
    }
}

impl AsyncRead for TrackedSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.socket).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.activity.read();
        }
        read
    }
}

impl AsyncWrite for TrackedSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(cx, buf);
        self.record_write(&written);
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(cx, bufs);
        self.record_write(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }
}
