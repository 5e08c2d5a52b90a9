//! Outbound HTTP for guests: the adapter for the port `wattle_run::ports::Net`.
//!
//! # Layout
//!
//! * [`outbound`]: [`OutboundNet`], the port; [`config`]: its settings.
//! * `exchange`: one request with its redirects, every hop checked anew.
//! * `rule`: which rule allows a hop; `target`: addresses as guests write them.
//! * `zone`: which network addresses may be reached; `resolver`: the same at the socket.
//! * [`secret`]: secrets, filled in at the last moment and scrubbed from all that comes back, and
//!   tokens, which are fetched and renewed by the host.
//! * `header`, `payload`: what is taken from and given to guests.
//! * `rate`: how often one host may be asked.
//!
//! # What guests should know
//!
//! * Hop-by-hop headers, `host`, `content-length` and `expect` of a request are ignored: they
//!   belong to the connection, which is the host's.
//! * Bodies come as they are: nothing is decompressed, and nothing compressed is asked for.
//! * A secret is percent-encoded in a query and put into headers and text bodies as it is, so a
//!   JSON body needs secrets without quotes and backslashes.
//! * The values of the secrets that an exchange used are replaced by `***` in the answer's
//!   address, headers and, if it is text and the secret is long enough, body.

pub mod config;
pub mod error;
mod exchange;
mod header;
pub mod outbound;
mod payload;
mod rate;
mod resolver;
mod rule;
pub mod secret;
mod target;
mod zone;

pub use config::NetConfig;
pub use error::NetError;
pub use outbound::OutboundNet;
pub use secret::{Rejection, Secrets, TokenSource};
pub use zone::reachable;
