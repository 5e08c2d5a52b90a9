//! `[server.connections]`: how many connections there are, and how long they may take;
//! `[server.tls]`: certificates.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use wattle_graph::definition::Span;

use crate::config::read::ConfigProblem;

/// Connections of all addresses. Each holds a file and some 100 KiB while it sends; a process may
/// mostly open a few thousand files, of which stores and plugins need some as well.
const CONNECTIONS: usize = 4_096;

/// Connections of one address: a quarter of all, so that three others still find room. A proxy in
/// front is one address and needs as many as its clients have.
const PER_ADDRESS: usize = 1_024;

/// Requests at once on one HTTP/2 connection: RFC 9113 recommends no fewer than 100.
const STREAMS: u32 = 128;

/// Time for the head of a request, and before it for the handshake of TLS. A head fits a few
/// packets, so this leaves room for several that are lost.
const HEAD_TIMEOUT: Span = Span::from_ms(15_000);

/// Time for the whole body of a request: the largest body at 28 KB/s.
const BODY_TIMEOUT: Span = Span::from_ms(600_000);

/// Time without any progress, of a body that is received and of an answer that is sent. Mobile
/// networks are silent for some seconds when they change cells.
const STALL_TIMEOUT: Span = Span::from_ms(30_000);

/// Time without a request before a connection is closed: more than the 60 seconds after which
/// common load balancers close theirs, so that they do not send on a connection that is just ending.
const IDLE_TIMEOUT: Span = Span::from_ms(75_000);

/// `[server.connections]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConnectionsConfig {
    /// Connections of all addresses; see `CONNECTIONS`.
    pub max: usize,
    /// Connections of one address; see `PER_ADDRESS`.
    pub per_address: usize,
    /// Requests at once on one HTTP/2 connection; see `STREAMS`.
    pub streams: u32,
    /// Time for the head of a request; see `HEAD_TIMEOUT`.
    pub head_timeout: Span,
    /// Time for the whole body of a request; see `BODY_TIMEOUT`.
    pub body_timeout: Span,
    /// Time without progress; see `STALL_TIMEOUT`.
    pub stall_timeout: Span,
    /// Time without a request; see `IDLE_TIMEOUT`.
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
    /// Adds what is wrong with it.
    pub(super) fn check(&self, problems: &mut Vec<ConfigProblem>) {
        let mut refuse_zero = |key: &str, is_zero: bool, hint: &str| {
            if is_zero {
                problems.push(ConfigProblem {
                    key: format!("server.connections.{key}"),
                    message: "with 0 no request would ever be answered".into(),
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

/// A time of the configuration.
pub(crate) fn duration(span: Span) -> Duration {
    Duration::from_millis(span.as_ms())
}

/// `[server.tls]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    /// The file with the certificate and those of the authorities that lead to a known one, in PEM.
    pub cert: PathBuf,
    /// The file with its private key, in PEM.
    pub key: PathBuf,
}
