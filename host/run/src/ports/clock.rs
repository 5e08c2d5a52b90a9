//! Port: time. Tests fix and step it.

/// Time as the host sees it. Called very often; must not block.
pub trait Clock: Send + Sync {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    fn now_ms(&self) -> i64;

    /// Nanoseconds since some fixed point; never goes back.
    fn monotonic_ns(&self) -> u64;

    /// IANA name of the operator's time zone.
    fn time_zone(&self) -> &str;
}
