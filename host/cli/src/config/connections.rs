//! `[server.connections]`: limits on the number and time of connections; `[server.tls]`:
//! certificates.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use wattle_graph::definition::HumanDuration;

use crate::config::ConfigProblem;

/// Default maximum number of connections. Each connection needs a file descriptor, and about 100
/// KiB of memory while it sends. Most processes can open a few thousand files, and stores and
/// plugins need some of these.
const DEFAULT_MAX: usize = 4_096;

/// Default maximum number of connections of one address: a quarter of all connections, so that
/// other addresses also get connections. A proxy counts as one address, but needs as many
/// connections as its clients.
const DEFAULT_PER_ADDRESS: usize = 1_024;

/// Default maximum number of concurrent requests on an HTTP/2 connection. RFC 9113 recommends at
/// least 100.
const DEFAULT_STREAMS: u32 = 128;

/// Default timeout of the head of a request, and of the TLS handshake before it. A head fits into a
/// few packets. The timeout is long enough for the loss of several packets.
const DEFAULT_HEAD_TIMEOUT: HumanDuration = HumanDuration::from_ms(15_000);

/// Default timeout of a whole request body. At 28 KB/s, the largest body arrives within this
/// timeout.
const DEFAULT_BODY_TIMEOUT: HumanDuration = HumanDuration::from_ms(600_000);

/// Default timeout without progress of a request body or a response. A mobile network can pause for
/// a few seconds when it changes cells.
const DEFAULT_STALL_TIMEOUT: HumanDuration = HumanDuration::from_ms(30_000);

/// Default timeout of a connection without a request. Common load balancers close idle connections
/// after 60 seconds. With a longer timeout of the server, a load balancer never sends a request on
/// a connection that the server is closing.
const DEFAULT_IDLE_TIMEOUT: HumanDuration = HumanDuration::from_ms(75_000);

/// `[server.connections]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConnectionsConfig {
    /// Maximum number of connections; see `DEFAULT_MAX`.
    pub max: usize,
    /// Maximum number of connections of one address; see `DEFAULT_PER_ADDRESS`.
    pub per_address: usize,
    /// Maximum number of concurrent requests on an HTTP/2 connection; see `DEFAULT_STREAMS`.
    pub streams: u32,
    /// Timeout of the head of a request; see `DEFAULT_HEAD_TIMEOUT`.
    pub head_timeout: HumanDuration,
    /// Timeout of a whole request body; see `DEFAULT_BODY_TIMEOUT`.
    pub body_timeout: HumanDuration,
    /// Timeout without progress; see `DEFAULT_STALL_TIMEOUT`.
    pub stall_timeout: HumanDuration,
    /// Timeout without a request; see `DEFAULT_IDLE_TIMEOUT`.
    pub idle_timeout: HumanDuration,
}

impl Default for ConnectionsConfig {
    fn default() -> Self {
        Self {
            max: DEFAULT_MAX,
            per_address: DEFAULT_PER_ADDRESS,
            streams: DEFAULT_STREAMS,
            head_timeout: DEFAULT_HEAD_TIMEOUT,
            body_timeout: DEFAULT_BODY_TIMEOUT,
            stall_timeout: DEFAULT_STALL_TIMEOUT,
            idle_timeout: DEFAULT_IDLE_TIMEOUT,
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

/// Converts a duration of the configuration.
pub(crate) fn duration(span: HumanDuration) -> Duration {
    Duration::from_millis(span.as_ms())
}

/// `[server.tls]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    /// PEM file with the certificate, followed by the certificates of its issuers up to a known
    /// authority.
    pub cert: PathBuf,
    /// PEM file with the private key.
    pub key: PathBuf,
}
