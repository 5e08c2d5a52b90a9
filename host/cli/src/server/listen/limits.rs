//! Limits of connections that are not configurable.

use std::time::Duration;

/// Number of connections in addition to the configured maximum. These connections are accepted only
/// for requests to the health endpoint and the control plane, so that an operator can end the work
/// that occupies the other connections.
pub(super) const RESERVED: usize = 64;

/// Maximum number of reserved connections of one address. The number is sufficient for a supervisor
/// and a person at the same time.
pub(super) const RESERVED_PER_ADDRESS: usize = 16;

/// Maximum number of connections without a request that are closed together for new connections. If
/// only one connection were closed at a time, each new connection would require a search of all
/// connections.
pub(super) const CLOSED_AT_ONCE: usize = 16;

/// The number of files that the process may open, divided by this number, is the number of files
/// that are reserved for stores, plugins and requests of the host itself.
pub(super) const FILES_LEFT: usize = 4;

/// Minimum rate at which a client must read one chunk of a response. This minimum complements
/// [`stall_timeout`](crate::config::ConnectionsConfig::stall_timeout), which every byte restarts: a
/// client that reads single bytes would never exceed that timeout.
pub(super) const LEAST_BYTES_PER_SECOND: u64 = 1_024;

/// Time between two log messages with the same reason for a rejected or closed connection.
pub(super) const NOTE_PERIOD: Duration = Duration::from_mins(1);

/// Pause after a failed `accept`, for example if the process has no file descriptor left.
pub(super) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Time for a partly received head to complete when the host stops.
pub(super) const STOP_HEAD_TIME: Duration = Duration::from_secs(1);

/// Time for the graceful shutdown (`GOAWAY` in HTTP/2) of a connection that exceeded a limit.
pub(super) const CLOSE_GRACE: Duration = Duration::from_secs(1);

/// Size in bytes of an HTTP/1 connection's buffers, for the head of a request and for the response
/// that the client has not read. All headers must fit; browsers and proxies send less than 16 KiB.
pub(super) const BUFFER_BYTES: usize = 64 << 10;

/// Maximum size in bytes of all headers of an HTTP/2 request, as RFC 9113 counts them.
pub(super) const HEADER_LIST_BYTES: u32 = 64 << 10;

/// Maximum number of HTTP/2 streams that a client has reset and the host has not processed yet. A
/// larger number counts as an attack ("rapid reset", CVE-2023-44487) and ends the connection.
pub(super) const PENDING_RESETS: usize = 20;

/// Maximum number of streams that the host has reset because of protocol violations of the client.
/// A larger number ends the connection (CVE-2025-8671).
pub(super) const LOCAL_RESETS: usize = 128;

/// Maximum size in bytes of the unread response that an HTTP/2 stream buffers.
pub(super) const STREAM_BUFFER_BYTES: usize = 64 << 10;

/// Time without a frame after which the host sends a `PING` on an HTTP/2 connection with open
/// streams.
pub(super) const PING_PERIOD: Duration = Duration::from_secs(20);

/// Timeout for the response to a `PING`.
pub(super) const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// Pause between two checks of the certificate files.
pub(super) const CERTIFICATE_PERIOD: Duration = Duration::from_secs(1);

/// Maximum size in bytes of a file with certificates or a key. A chain has about 10 KiB.
pub(super) const CERTIFICATE_BYTES: u64 = 1 << 20;
