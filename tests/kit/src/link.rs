//! A link to a server of this machine that a test holds up, breaks, and lets go.
//!
//! Bytes that are held back are not lost: they arrive in order once the link is released, as after a
//! stall of the network. A link that is half open has lost its server, and the client does not hear
//! of it. A link that turns clients away accepts and closes, as a proxy does without a server behind
//! it.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::error::Error;

/// Bytes that are carried at once.
const CHUNK_BYTES: usize = 1 << 16;

/// Which bytes are held back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Held {
    /// None.
    #[default]
    Nothing,
    /// Those of the client: the server does not hear what it is asked.
    Requests,
    /// Those of the server: the client does not hear what became of it.
    Answers,
    /// All.
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

/// What is to become of the connections.
#[derive(Clone, Copy, Debug, Default)]
struct Orders {
    held: Held,
    /// Whether new connections are accepted and closed.
    turns_away: bool,
    /// How often all connections lost their server.
    severed: u64,
    /// How often all connections were closed on both sides.
    closed: u64,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Link {
    port: u16,
    orders: watch::Sender<Orders>,
}

impl Link {
    /// A link to a port of 127.0.0.1. It carries new connections while the runtime lives.
    ///
    /// # Errors
    ///
    /// [`Error::Listen`] if the machine has no free port.
    pub async fn to(server: u16) -> Result<Self, Error> {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let failed = |source| Error::Listen { address: address.to_string(), source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let orders = watch::Sender::new(Orders::default());
        tokio::spawn(accept(listener, server, orders.subscribe()));
        Ok(Self { port, orders })
    }

    /// The port on 127.0.0.1 at which the link begins.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Holds bytes back, also those of new connections, until the next order.
    pub fn hold(&self, held: Held) {
        self.orders.send_modify(|orders| orders.held = held);
    }

    /// Lets go of what was held back.
    pub fn release(&self) {
        self.hold(Held::Nothing);
    }

    /// All connections lose their server. What the client sends goes nowhere from now on, until
    /// [`Link::close`]; new connections work.
    pub fn half_open(&self) {
        self.orders.send_modify(|orders| orders.severed += 1);
    }

    /// Closes all connections on both sides; new ones work.
    pub fn close(&self) {
        self.orders.send_modify(|orders| orders.closed += 1);
    }

    /// Closes all connections on both sides, and new ones when their client has said something, until
    /// [`Link::admit`].
    pub fn turn_away(&self) {
        self.orders.send_modify(|orders| {
            orders.closed += 1;
            orders.turns_away = true;
        });
    }

    /// New connections work again.
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
        // A close with unread bytes would be a reset.
        let _ = client.read(&mut [0; 64]).await;
        return;
    }
    let Ok(server) = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], server))).await else {
        return;
    };
    // An error means that the link itself is gone.
    let mut closing = orders.clone();
    let closed = closing.wait_for(|orders| orders.closed != born.closed);
    tokio::select! {
        () = carry_all(client, server, orders, born.severed) => {}
        _ = closed => {}
    }
}

/// Carries both ways, until either side ends; then swallows what a client without a server sends.
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
        // An end is news as well, so it is held back like bytes.
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

    /// Far above what loopback takes: it only shows that nothing comes.
    const SILENCE: Duration = Duration::from_millis(200);

    /// A server that answers what it hears, with its link and a client of it.
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
    async fn what_was_held_back_arrives_in_order() {
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
    async fn a_client_that_is_turned_away_hears_an_end_until_clients_are_admitted() {
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
    async fn a_client_of_a_half_open_link_hears_nothing_until_it_is_closed() {
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
        // An end or a reset, as the system has it.
        assert!(matches!(client.read(&mut [0]).await, Ok(0) | Err(_)));
    }
}
