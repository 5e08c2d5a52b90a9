//! What connections may take that is not configured, in one place.

use std::time::Duration;

/// Connections beyond the configured number that are accepted for the health endpoint and the
/// control plane alone, so that an operator can end what fills the others.
pub(super) const RESERVED: usize = 64;

/// The same for one address: so many that a supervisor and a person find room beside each other.
pub(super) const RESERVED_PER_ADDRESS: usize = 16;

/// Connections without a request that are closed together to make room: closing one at a time would
/// search all connections for each new one.
pub(super) const CLOSED_AT_ONCE: usize = 16;

/// Files that are left to stores, plugins and requests of the host itself, of those that the
/// process may open: one in so many.
pub(super) const FILES_LEFT: usize = 4;

/// Least rate at which a client must take one piece of an answer. It holds beside
/// [`stall_timeout`](crate::config::ConnectionsConfig::stall_timeout), which every byte restarts: a
/// client that takes one byte at a time would never reach that one.
pub(super) const LEAST_BYTES_PER_SECOND: u64 = 1_024;

/// Time between two lines of the log about the same reason for refusing or closing connections.
pub(super) const NOTE_PERIOD: Duration = Duration::from_mins(1);

/// Pause before the next look for connections when the system gave none, as where the process has
/// no files left.
pub(super) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Time for the head of a request that is on its way when the host stops.
pub(super) const STOP_HEAD_TIME: Duration = Duration::from_secs(1);

/// Time for the graceful end (`GOAWAY` in HTTP/2) of a connection that reached a limit.
pub(super) const CLOSE_GRACE: Duration = Duration::from_secs(1);

/// Bytes that a connection of HTTP/1 holds of a head, and of an answer that its client has not
/// taken. All headers must fit; browsers and proxies send less than 16 KiB.
pub(super) const BUFFER_BYTES: usize = 64 << 10;

/// Bytes of all headers of a request of HTTP/2, as RFC 9113 counts them.
pub(super) const HEADER_LIST_BYTES: u32 = 64 << 10;

/// Streams of HTTP/2 that a client has reset and that were not yet looked at. More is an attack
/// ("rapid reset", CVE-2023-44487) and ends the connection.
pub(super) const PENDING_RESETS: usize = 20;

/// Streams that the host reset because the client broke the protocol. More ends the connection
/// (CVE-2025-8671).
pub(super) const LOCAL_RESETS: usize = 128;

/// Bytes that each stream of HTTP/2 holds of an answer that its client has not taken.
pub(super) const STREAM_BUFFER_BYTES: usize = 64 << 10;

/// Silence after which the host sends a `PING` on a connection of HTTP/2 with open streams.
pub(super) const PING_PERIOD: Duration = Duration::from_secs(20);

/// Time for the answer to a `PING`.
pub(super) const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// Pause between two looks whether the files of certificates were replaced.
pub(super) const CERTIFICATE_PERIOD: Duration = Duration::from_secs(1);

/// Bytes of a file with certificates or a key: a chain has some 10 KiB.
pub(super) const CERTIFICATE_BYTES: u64 = 1 << 20;
