//! Outbound HTTP for guests: the adapter for the port `wattle_run::ports::Net`.
//!
//! # Layout
//!
//! * [`outbound`]: [`OutboundHttp`], the adapter; [`config`]: its settings.
//! * `clients`: the HTTP clients, and the secrets and request rates of all requests.
//! * `exchange`: one request with its redirects, and the checks of every hop.
//! * `rule`: which rule allows a hop; `request_url`: parses URLs.
//! * `address_class`: classes of network addresses; `resolver`: resolves names to allowed addresses
//!   only.
//! * [`secret`]: replaces placeholders, redacts secrets in responses, and fetches and renews
//!   managed tokens.
//! * `header`, `body`: headers and bodies of requests and responses.
//! * `rate_limit`: the request rate of each host, and the turns of callers that wait for it.
//!
//! # Behavior for guests
//!
//! * Hop-by-hop headers, `host`, `content-length` and `expect` of a request are ignored, since they
//!   belong to the connection of the host.
//! * Bodies are passed unchanged: nothing is decompressed, and no compression is requested.
//! * A secret is percent-encoded in a query and inserted unchanged in headers and text bodies. A
//!   secret in a JSON body therefore must not contain a quote or a backslash.
//! * The host replaces the secrets of an exchange by `***` in the URL and the headers of the
//!   response. In a response body that is UTF-8, the host replaces secrets of at least 8 bytes.

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
