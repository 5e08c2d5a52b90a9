//! A proxy that breaks connections immediately before or after a commit, and counts the bytes that
//! the server sends.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

/// Text that marks a statement. The fault of the next commit also applies to a marked statement.
pub(crate) const FAULT_MARKER: &str = "fault marker";

/// The fault of the next commit.
#[derive(Clone, Copy)]
pub(crate) enum CommitFault {
    /// The commit reaches the server, and the reply is lost.
    ReplyLost = 1,
    /// The commit does not reach the server.
    CommitLost = 2,
}

/// A proxy that forwards all bytes until a fault.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    fault: Arc<AtomicU8>,
    /// Number of connections that are still to be accepted and closed.
    closed: Arc<AtomicU8>,
    /// Bytes that the server has sent.
    sent: Arc<AtomicU64>,
}

impl Proxy {
    /// Starts a proxy for a local port. The proxy ends with the runtime.
    pub(crate) async fn start(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let fault = Arc::new(AtomicU8::new(0));
        let closed = Arc::new(AtomicU8::new(0));
        let sent = Arc::new(AtomicU64::new(0));
        let number = listener.local_addr().unwrap().port();
        let proxy =
            Self { port: number, fault: fault.clone(), closed: closed.clone(), sent: sent.clone() };
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let one_less = |left: u8| left.checked_sub(1);
                if closed.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok() {
                    // Reads first, since closing a connection with unread bytes would reset it.
                    let _ = client.read(&mut [0; 64]).await;
                    continue;
                }
                let server = SocketAddr::from(([127, 0, 0, 1], port));
                let server = TcpStream::connect(server).await.unwrap();
                tokio::spawn(forward(client, server, fault.clone(), sent.clone()));
            }
        });
        proxy
    }

    /// Sets the fault of the next commit.
    pub(crate) fn next(&self, fault: CommitFault) {
        self.fault.store(fault as u8, Ordering::SeqCst);
    }

    /// Accepts and closes the next connections, as a proxy without a server does.
    pub(crate) fn close_next(&self, connections: u8) {
        self.closed.store(connections, Ordering::SeqCst);
    }

    /// Returns the number of connections that are still to be closed.
    pub(crate) fn to_close(&self) -> u8 {
        self.closed.load(Ordering::SeqCst)
    }

    /// Returns true if the fault has occurred.
    pub(crate) fn has_fired(&self) -> bool {
        self.fault.load(Ordering::SeqCst) == 0
    }

    /// Returns the number of bytes that the server has sent.
    pub(crate) fn sent_bytes(&self) -> u64 {
        self.sent.load(Ordering::SeqCst)
    }
}

async fn forward(client: TcpStream, server: TcpStream, fault: Arc<AtomicU8>, sent: Arc<AtomicU64>) {
    let ((mut client, to_client), (mut replies, mut to_server)) =
        (client.into_split(), server.into_split());
    let mut back = tokio::spawn(async move { copy(&mut replies, to_client, &sent).await });
    let mut bytes = vec![0; 1 << 16];
    loop {
        let read = tokio::select! {
            read = client.read(&mut bytes) => read.unwrap_or(0),
            _ = &mut back => 0,
        };
        if read == 0 {
            break;
        }
        let has = |word: &[u8]| bytes[..read].windows(word.len()).any(|found| found == word);
        let is_commit = has(b"COMMIT\0") || has(FAULT_MARKER.as_bytes());
        let fault = if is_commit { fault.swap(0, Ordering::SeqCst) } else { 0 };
        if fault != 0 {
            // From now on, the client receives no bytes.
            back.abort();
        }
        if fault == CommitFault::CommitLost as u8
            || to_server.write_all(&bytes[..read]).await.is_err()
        {
            break;
        }
        if fault != 0 {
            break;
        }
    }
    back.abort();
}

async fn copy(from: &mut OwnedReadHalf, mut to: OwnedWriteHalf, sent: &AtomicU64) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(read @ 1..) = from.read(&mut bytes).await {
        sent.fetch_add(read as u64, Ordering::SeqCst);
        if to.write_all(&bytes[..read]).await.is_err() {
            break;
        }
    }
}
