//! Outbound HTTP for guests: the adapter for the port `wattle_run::ports::Net`.
//!
//! # Layout
//!
//! * [`outbound`]: [`OutboundHttp`], the port; [`config`]: its settings.
//! * `clients`: the HTTP clients, and the secrets and request rates of all requests.
//! * `exchange`: one request with its redirects; every hop is checked.
//! * `rule`: which rule allows a hop; `request_url`: parses URLs.
//! * `address_class`: classes of network addresses; `resolver`: enforces them during name
//!   resolution.
//! * [`secret`]: replaces placeholders and redacts secrets in responses; also managed tokens, which
//!   the host fetches and renews.
//! * `header`, `body`: headers and bodies of requests and responses.
//! * `rate_limit`: the request rate of each host.
//!
//! # Behavior for guests
//!
//! * Hop-by-hop headers, `host`, `content-length` and `expect` of a request are ignored, since they
//!   belong to the connection of the host.
//! * Bodies are passed unchanged: nothing is decompressed, and no compression is requested.
//! * A secret is percent-encoded in a query and inserted unchanged in headers and text bodies. A
//!   JSON body therefore needs secrets without quotes and backslashes.
//! * The secrets that an exchange used are replaced by `***` in the URL and the headers of its
//!   response, and in its body if that is text and the secret is long enough.

mod address_class;
mod body;
mod clients;
pub mod config;
pub mod error;
mod exchange;
mod header;
pub mod outbound;
mod rate_limit;
mod request_url;
mod resolver;
mod rule;
pub mod secret;

pub use address_class::is_address_allowed;
pub use config::NetConfig;
pub use error::NetError;
pub use outbound::OutboundHttp;
pub use rule::check_request;
pub use secret::{Rejection, Secrets, TokenSource};
