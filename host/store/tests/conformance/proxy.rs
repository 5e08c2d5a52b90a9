//! A way to a server that breaks at the worst moment: around a commit.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

/// What a statement has in it that is to be met by its fate as a commit is.
pub(crate) const MARK: &str = "meets its fate";

/// What happens to the next commit.
#[derive(Clone, Copy)]
pub(crate) enum Fate {
    /// It reaches the server, and the answer is lost.
    Unheard = 1,
    /// It does not reach the server.
    Lost = 2,
}

/// Hands everything on, until it is told not to.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    fate: Arc<AtomicU8>,
    /// Connections that are still to be accepted and closed.
    closed: Arc<AtomicU8>,
}

impl Proxy {
    /// Starts in front of a port of this machine; ends with the runtime.
    pub(crate) async fn start(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let fate = Arc::new(AtomicU8::new(0));
        let closed = Arc::new(AtomicU8::new(0));
        let number = listener.local_addr().unwrap().port();
        let proxy = Self { port: number, fate: fate.clone(), closed: closed.clone() };
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let one_less = |left: u8| left.checked_sub(1);
                if closed.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok() {
                    // A close with unread bytes would be a reset.
                    let _ = client.read(&mut [0; 64]).await;
                    continue;
                }
                let server = SocketAddr::from(([127, 0, 0, 1], port));
                let server = TcpStream::connect(server).await.unwrap();
                tokio::spawn(hand_on(client, server, fate.clone()));
            }
        });
        proxy
    }

    /// Decides on the next commit.
    pub(crate) fn next(&self, fate: Fate) {
        self.fate.store(fate as u8, Ordering::SeqCst);
    }

    /// Accepts and closes the next connections, as a proxy does without a server behind it.
    pub(crate) fn close_next(&self, connections: u8) {
        self.closed.store(connections, Ordering::SeqCst);
    }

    /// Connections that are still to be closed.
    pub(crate) fn to_close(&self) -> u8 {
        self.closed.load(Ordering::SeqCst)
    }

    /// Whether that commit came.
    pub(crate) fn has_met_its_fate(&self) -> bool {
        self.fate.load(Ordering::SeqCst) == 0
    }
}

async fn hand_on(client: TcpStream, server: TcpStream, fate: Arc<AtomicU8>) {
    let ((mut client, to_client), (mut answers, mut to_server)) =
        (client.into_split(), server.into_split());
    let mut back = tokio::spawn(async move { copy(&mut answers, to_client).await });
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
        let is_commit = has(b"COMMIT\0") || has(MARK.as_bytes());
        let fate = if is_commit { fate.swap(0, Ordering::SeqCst) } else { 0 };
        if fate != 0 {
            // From here on the client hears nothing any more.
            back.abort();
        }
        if fate == Fate::Lost as u8 || to_server.write_all(&bytes[..read]).await.is_err() {
            break;
        }
        if fate != 0 {
            break;
        }
    }
    back.abort();
}

async fn copy(from: &mut OwnedReadHalf, mut to: OwnedWriteHalf) {
    let _ = tokio::io::copy(from, &mut to).await;
}
