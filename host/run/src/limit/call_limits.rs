//! The limits of single calls of a guest: one HTTP exchange and one SQL statement.

use serde::{Deserialize, Serialize};

/// Limits of one outbound HTTP exchange.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetLimits {
    /// Maximum bytes of a response body, which the guest receives in one piece. Default: 8 MiB,
    /// enough for usual JSON responses.
    pub response_bytes: u64,
    /// Maximum bytes of a request body. Default: 8 MiB.
    pub request_bytes: u64,
    /// Time of the whole exchange, including redirects, for a request without its own timeout. Default: 30 s.
    pub timeout_ms: u64,
    /// Maximum timeout that a request may set. Default: 120 s. Some services work while the client waits; work that
    /// takes longer should be polled.
    pub longest_timeout_ms: u64,
    /// Maximum number of redirects that are followed. Default: 5.
    pub redirects: u32,
}

impl Default for NetLimits {
    fn default() -> Self {
        Self {
            response_bytes: 8 << 20,
            request_bytes: 8 << 20,
            timeout_ms: 30_000,
            longest_timeout_ms: 120_000,
            redirects: 5,
        }
    }
}

impl NetLimits {
    /// Returns the smaller value of each limit.
    pub(super) fn min(&self, most: &Self) -> Self {
        Self {
            response_bytes: self.response_bytes.min(most.response_bytes),
            request_bytes: self.request_bytes.min(most.request_bytes),
            timeout_ms: self.timeout_ms.min(most.timeout_ms),
            longest_timeout_ms: self.longest_timeout_ms.min(most.longest_timeout_ms),
            redirects: self.redirects.min(most.redirects),
        }
    }
}

/// Limits of one SQL statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SqlLimits {
    /// Maximum rows. Further rows are dropped, and the result is marked truncated. Default: 10,000.
    pub rows: u64,
    /// Maximum bytes of all values of a result. Further rows are dropped, and the result is marked
    /// as truncated. Default: 8 MiB.
    pub bytes: u64,
    /// Maximum time of one statement, in milliseconds. Default: 30 s.
    pub timeout_ms: u64,
    /// Maximum bytes of the text of a statement. Bounds the recursion of parsers. Default: 256 KiB.
    pub statement_bytes: u64,
}

impl Default for SqlLimits {
    fn default() -> Self {
        Self { rows: 10_000, bytes: 8 << 20, timeout_ms: 30_000, statement_bytes: 256 << 10 }
    }
}

impl SqlLimits {
    /// Returns the smaller value of each limit.
    pub(super) fn min(&self, most: &Self) -> Self {
        Self {
            rows: self.rows.min(most.rows),
            bytes: self.bytes.min(most.bytes),
            timeout_ms: self.timeout_ms.min(most.timeout_ms),
            statement_bytes: self.statement_bytes.min(most.statement_bytes),
        }
    }
}
