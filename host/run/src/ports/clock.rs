//! Port: time. Tests set and advance the time.

/// The time of the host. Called very often; must not block.
pub trait Clock: Send + Sync {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    fn now_ms(&self) -> i64;

    /// Nanoseconds since an arbitrary fixed point; never decreases.
    fn monotonic_ns(&self) -> u64;

    /// IANA name of the operator's time zone.
    fn time_zone(&self) -> &str;
}
