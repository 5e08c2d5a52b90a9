//! A TCP proxy to a local server that a test delays and breaks.
//!
//! Delayed bytes are not lost: they arrive in order after [`Link::release`], as after a stall of
//! the network. [`Link::half_open`] closes the connections to the server without the client's
//! knowledge. [`Link::turn_away`] closes each new connection after it is accepted, like a proxy
//! without a backend.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::error::Error;

/// Size of a read, in bytes.
const CHUNK_BYTES: usize = 1 << 16;

/// The direction in which bytes are held back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Held {
    /// No direction.
    #[default]
    Nothing,
    /// From client to server: the server does not receive requests.
    Requests,
    /// From server to client: the client does not receive responses.
    Answers,
    /// Both directions.
    Both,
}

impl Held {
    fn holds(self, way: Way) -> bool {
        match self {
            Self::Nothing => false,
            Self::Requests => way == Way::ToServer,
            Self::Answers => way == Way::ToClient,
            Self::Both => true,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    ToServer,
    ToClient,
}

/// The state that a test sets.
#[derive(Clone, Copy, Debug, Default)]
struct Orders {
    held: Held,
    /// Whether new connections are accepted and then closed.
    turns_away: bool,
    /// Number of calls of [`Link::half_open`].
    severed: u64,
    /// Number of times that all connections were closed.
    closed: u64,
}

/// A TCP proxy. See the [module](self).
#[derive(Debug)]
pub struct Link {
    port: u16,
    orders: watch::Sender<Orders>,
}

impl Link {
    /// Starts a proxy to a port of 127.0.0.1. It accepts connections until the runtime ends.
    ///
    /// # Errors
    ///
    /// [`Error::Listen`] if no port is free.
    pub async fn to(server: u16) -> Result<Self, Error> {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let failed = |source| Error::Listen { address: address.to_string(), source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let orders = watch::Sender::new(Orders::default());
        tokio::spawn(accept(listener, server, orders.subscribe()));
        Ok(Self { port, orders })
    }

    /// Returns the port of the proxy on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Holds back bytes of current and new connections until the next call of `hold` or
    /// [`Link::release`].
    pub fn hold(&self, held: Held) {
        self.orders.send_modify(|orders| orders.held = held);
    }

    /// Releases the bytes that were held back.
    pub fn release(&self) {
        self.hold(Held::Nothing);
    }

    /// Closes all connections to the server. The clients' connections stay open, and their bytes
    /// are discarded until [`Link::close`]. New connections are forwarded.
    pub fn half_open(&self) {
        self.orders.send_modify(|orders| orders.severed += 1);
    }

    /// Closes all connections on both sides. New connections are forwarded.
    pub fn close(&self) {
        self.orders.send_modify(|orders| orders.closed += 1);
    }

    /// Closes all connections on both sides. Closes new connections after the first bytes of the
    /// client, until [`Link::admit`].
    pub fn turn_away(&self) {
        self.orders.send_modify(|orders| {
            orders.closed += 1;
            orders.turns_away = true;
        });
    }

    /// Forwards new connections again, after [`Link::turn_away`].
    pub fn admit(&self) {
        self.orders.send_modify(|orders| orders.turns_away = false);
    }
}

async fn accept(listener: TcpListener, server: u16, orders: watch::Receiver<Orders>) {
    while let Ok((client, _)) = listener.accept().await {
        tokio::spawn(connect(client, server, orders.clone()));
    }
}

async fn connect(mut client: TcpStream, server: u16, mut orders: watch::Receiver<Orders>) {
    let born = *orders.borrow_and_update();
    if born.turns_away {
        // Closing a socket with unread bytes would send a reset.
        let _ = client.read(&mut [0; 64]).await;
        return;
    }
    let Ok(server) = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], server))).await else {
        return;
    };
    // `wait_for` fails only after the link is dropped.
    let mut closing = orders.clone();
    let closed = closing.wait_for(|orders| orders.closed != born.closed);
    tokio::select! {
        () = carry_all(client, server, orders, born.severed) => {}
        _ = closed => {}
    }
}

/// Copies bytes in both directions until one side ends. After [`Link::half_open`], discards the
/// client's bytes.
async fn carry_all(
    client: TcpStream,
    server: TcpStream,
    mut orders: watch::Receiver<Orders>,
    severed: u64,
) {
    let (mut requests, mut to_client) = client.into_split();
    {
        let (mut answers, mut to_server) = server.into_split();
        let (held, holding) = (orders.clone(), orders.clone());
        tokio::select! {
            () = carry(&mut requests, &mut to_server, Way::ToServer, held) => return,
            () = carry(&mut answers, &mut to_client, Way::ToClient, holding) => return,
            lost = orders.wait_for(|orders| orders.severed != severed) => {
                if lost.is_err() {
                    return;
                }
            }
        }
    }
    let mut nowhere = vec![0; CHUNK_BYTES];
    while requests.read(&mut nowhere).await.is_ok_and(|read| read > 0) {}
}

async fn carry(
    from: &mut OwnedReadHalf,
    to: &mut OwnedWriteHalf,
    way: Way,
    mut orders: watch::Receiver<Orders>,
) {
    let mut bytes = vec![0; CHUNK_BYTES];
    loop {
        let read = from.read(&mut bytes).await.unwrap_or(0);
        // The end of a stream is held back, too.
        if orders.wait_for(|orders| !orders.held.holds(way)).await.is_err() || read == 0 {
            return;
        }
        if to.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Far longer than a delivery on loopback takes. A client that receives nothing for this long
    /// shows that bytes are held back.
    const SILENCE: Duration = Duration::from_millis(200);

    /// Returns a link to an echo server, and a client of the link.
    async fn linked() -> (Link, TcpStream) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let link = Link::to(listener.local_addr().unwrap().port()).await.unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut from, mut to) = stream.into_split();
                    tokio::io::copy(&mut from, &mut to).await
                });
            }
        });
        let client = TcpStream::connect(("127.0.0.1", link.port())).await.unwrap();
        (link, client)
    }

    async fn say(client: &mut TcpStream, text: &str) {
        client.write_all(text.as_bytes()).await.unwrap();
    }

    async fn hear(client: &mut TcpStream, bytes: usize) -> String {
        let mut heard = vec![0; bytes];
        client.read_exact(&mut heard).await.unwrap();
        String::from_utf8(heard).unwrap()
    }

    async fn hears_nothing(client: &mut TcpStream) -> bool {
        let mut byte = [0];
        tokio::time::timeout(SILENCE, client.peek(&mut byte)).await.is_err()
    }

    #[tokio::test]
    async fn held_bytes_arrive_in_order() {
        let (link, mut client) = linked().await;
        for held in [Held::Requests, Held::Answers, Held::Both] {
            link.hold(held);
            say(&mut client, "one ").await;
            assert!(hears_nothing(&mut client).await, "{held:?}");
            say(&mut client, "two").await;
            link.release();
            assert_eq!(hear(&mut client, 7).await, "one two");
        }
    }

    #[tokio::test]
    async fn connections_are_closed_until_clients_are_admitted() {
        let (link, mut client) = linked().await;
        say(&mut client, "one").await;
        assert_eq!(hear(&mut client, 3).await, "one");
        link.turn_away();
        assert!(matches!(client.read(&mut [0]).await, Ok(0) | Err(_)));
        let mut other = TcpStream::connect(("127.0.0.1", link.port())).await.unwrap();
        say(&mut other, "two").await;
        assert_eq!(other.read(&mut [0]).await.unwrap(), 0);
        link.admit();
        let mut other = TcpStream::connect(("127.0.0.1", link.port())).await.unwrap();
        say(&mut other, "three").await;
        assert_eq!(hear(&mut other, 5).await, "three");
    }

    #[tokio::test]
    async fn the_client_of_a_half_open_connection_receives_nothing_until_the_link_closes_it() {
        let (link, mut client) = linked().await;
        say(&mut client, "one").await;
        assert_eq!(hear(&mut client, 3).await, "one");
        link.half_open();
        say(&mut client, "two").await;
        assert!(hears_nothing(&mut client).await);
        let mut other = TcpStream::connect(("127.0.0.1", link.port())).await.unwrap();
        say(&mut other, "new").await;
        assert_eq!(hear(&mut other, 3).await, "new");
        link.close();
        // The client receives the end of the stream or a connection reset, depending on the
        // operating system.
        assert!(matches!(client.read(&mut [0]).await, Ok(0) | Err(_)));
    }
}
