//! `[server.connections]`: limits on the number and time of connections; `[server.tls]`:
//! certificates.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use wattle_graph::definition::Span;

use crate::config::read::ConfigProblem;

/// Default maximum number of connections. Each needs a file descriptor, and some 100 KiB while it
/// sends. Most processes can open a few thousand files, and stores and plugins need some of them.
const CONNECTIONS: usize = 4_096;

/// Default maximum number of connections of one address: a quarter of all, so that three others get
/// connections as well. A proxy is one address, and needs as many connections as its clients have.
const PER_ADDRESS: usize = 1_024;

/// Default maximum number of concurrent requests on an HTTP/2 connection. RFC 9113 recommends at
/// least 100.
const STREAMS: u32 = 128;

/// Default timeout of the head of a request, and of the TLS handshake before it. A head fits into a
/// few packets, so several of them can be lost.
const HEAD_TIMEOUT: Span = Span::from_ms(15_000);

/// Default timeout of a whole request body: the largest body at 28 KB/s.
const BODY_TIMEOUT: Span = Span::from_ms(600_000);

/// Default timeout without progress of a request body or a response. Mobile networks pause for some
/// seconds when they change cells.
const STALL_TIMEOUT: Span = Span::from_ms(30_000);

/// Default timeout of a connection without a request. Common load balancers close their connections
/// after 60 seconds, so that they never send on a connection that is just ending.
const IDLE_TIMEOUT: Span = Span::from_ms(75_000);

/// `[server.connections]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConnectionsConfig {
    /// Maximum number of connections; see `CONNECTIONS`.
    pub max: usize,
    /// Maximum number of connections of one address; see `PER_ADDRESS`.
    pub per_address: usize,
    /// Maximum number of concurrent requests on an HTTP/2 connection; see `STREAMS`.
    pub streams: u32,
    /// Timeout of the head of a request; see `HEAD_TIMEOUT`.
    pub head_timeout: Span,
    /// Timeout of a whole request body; see `BODY_TIMEOUT`.
    pub body_timeout: Span,
    /// Timeout without progress; see `STALL_TIMEOUT`.
    pub stall_timeout: Span,
    /// Timeout without a request; see `IDLE_TIMEOUT`.
    pub idle_timeout: Span,
}

impl Default for ConnectionsConfig {
    fn default() -> Self {
        Self {
            max: CONNECTIONS,
            per_address: PER_ADDRESS,
            streams: STREAMS,
            head_timeout: HEAD_TIMEOUT,
            body_timeout: BODY_TIMEOUT,
            stall_timeout: STALL_TIMEOUT,
            idle_timeout: IDLE_TIMEOUT,
        }
    }
}

impl ConnectionsConfig {
    /// Adds the problems of the section.
    pub(super) fn check(&self, problems: &mut Vec<ConfigProblem>) {
        let mut refuse_zero = |key: &str, is_zero: bool, hint: &str| {
            if is_zero {
                problems.push(ConfigProblem {
                    key: format!("server.connections.{key}"),
                    message: "with 0, no request would be served".into(),
                    hint: Some(hint.to_owned()),
                });
            }
        };
        let number = "leave it out for the default";
        refuse_zero("max", self.max == 0, number);
        refuse_zero("per_address", self.per_address == 0, number);
        refuse_zero("streams", self.streams == 0, number);
        for (key, span) in [
            ("head_timeout", self.head_timeout),
            ("body_timeout", self.body_timeout),
            ("stall_timeout", self.stall_timeout),
            ("idle_timeout", self.idle_timeout),
        ] {
            refuse_zero(key, span.as_ms() == 0, "write a time such as `30s`");
        }
    }
}

/// Converts a time of the configuration.
pub(crate) fn duration(span: Span) -> Duration {
    Duration::from_millis(span.as_ms())
}

/// `[server.tls]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    /// File with the certificate, followed by those of the issuers up to a known authority, in PEM.
    pub cert: PathBuf,
    /// File with the private key, in PEM.
    pub key: PathBuf,
}
