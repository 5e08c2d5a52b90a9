//! Counts of connections, and of requests and connections that the host rejected or closed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// The reason why the host rejected or closed a connection or a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutReason {
    /// The head of a request did not arrive in time.
    HeadTimeout,
    /// The host shut down before the head of a request was complete.
    Shutdown,
    /// The body of a request did not arrive in time.
    BodyTimeout,
    /// The connection was idle for too long.
    IdleTimeout,
    /// The client did not read a response in time.
    WriteTimeout,
    /// A connection without an open request was closed to accept a new connection.
    Evicted,
    /// The maximum number of connections was reached.
    ConnectionLimit,
    /// The caller or the host reached its maximum number of open requests.
    RequestLimit,
    /// Request bodies exceeded their memory limit.
    BodyMemory,
    /// Responses that were not read exceeded their memory limit.
    ResponseMemory,
    /// A key or an address exceeded its rate limit.
    RateLimit,
    /// The body of a request was larger than one body may be.
    BodySize,
}

/// All reasons with their labels in metrics.
const REASONS: [(CutReason, &str); 12] = [
    (CutReason::HeadTimeout, "head"),
    (CutReason::Shutdown, "stop"),
    (CutReason::BodyTimeout, "body"),
    (CutReason::IdleTimeout, "idle"),
    (CutReason::WriteTimeout, "stalled"),
    (CutReason::Evicted, "room"),
    (CutReason::ConnectionLimit, "connections"),
    (CutReason::RequestLimit, "requests"),
    (CutReason::BodyMemory, "bodies"),
    (CutReason::ResponseMemory, "responses"),
    (CutReason::RateLimit, "rate"),
    (CutReason::BodySize, "size"),
];

/// The last line of metrics in the OpenMetrics format.
const END: &str = "# EOF\n";

impl CutReason {
    /// Returns the value of the metric label `reason`.
    pub fn label(self) -> &'static str {
        REASONS[self as usize].1
    }
}

/// Counts of open connections, and of closed connections and rejected requests.
#[derive(Debug, Default)]
pub struct Traffic {
    connections: AtomicI64,
    cut_counts: [AtomicU64; REASONS.len()],
}

impl Traffic {
    /// Counts an opened connection.
    pub fn opened(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a closed connection.
    pub fn closed(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns the number of open connections.
    pub fn connections(&self) -> i64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Counts a rejected request or a closed connection.
    pub fn count_cut(&self, reason: CutReason) {
        self.cut_counts[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of rejections and closings for a reason.
    pub fn cut_count(&self, reason: CutReason) -> u64 {
        self.cut_counts[reason as usize].load(Ordering::Relaxed)
    }

    /// Returns the numbers of rejections and closings by the label of their reason, without those
    /// that are 0.
    pub fn cuts_by_label(&self) -> BTreeMap<String, u64> {
        let counts = REASONS.map(|(reason, label)| (label.to_owned(), self.cut_count(reason)));
        counts.into_iter().filter(|(_, count)| *count > 0).collect()
    }

    /// Inserts the counts into the text of metrics.
    pub fn insert_into(&self, metrics: &mut String) {
        let open = self.connections();
        let cuts = REASONS.map(|(reason, label)| {
            format!("wattle_http_cut_total{{reason=\"{label}\"}} {}\n", self.cut_count(reason))
        });
        let lines = format!(
            "# HELP wattle_http_connections Open connections.\n\
             # TYPE wattle_http_connections gauge\n\
             wattle_http_connections {open}\n\
             # HELP wattle_http_cut Connections and requests that the host rejected or closed.\n\
             # TYPE wattle_http_cut counter\n{}",
            cuts.concat()
        );
        insert_before_end(metrics, &lines);
    }
}

/// Inserts lines into the text of metrics, before the end of file marker if there is one.
pub(crate) fn insert_before_end(metrics: &mut String, lines: &str) {
    let end = metrics.strip_suffix(END).map_or(metrics.len(), str::len);
    metrics.insert_str(end, lines);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_in_the_order_of_the_reasons() {
        for (index, (reason, label)) in REASONS.into_iter().enumerate() {
            assert_eq!((reason as usize, reason.label()), (index, label));
        }
    }

    #[test]
    fn counts_of_zero_have_no_label() {
        let traffic = Traffic::default();
        traffic.count_cut(CutReason::RateLimit);
        traffic.count_cut(CutReason::RateLimit);
        traffic.count_cut(CutReason::BodySize);
        let counts = [("rate".to_owned(), 2), ("size".to_owned(), 1)];
        assert_eq!(traffic.cuts_by_label(), BTreeMap::from(counts));
    }

    #[test]
    fn counts_are_inserted_before_the_end_of_file_marker() {
        let traffic = Traffic::default();
        traffic.opened();
        traffic.count_cut(CutReason::WriteTimeout);
        let mut text = "a 1\n# EOF\n".to_owned();
        traffic.insert_into(&mut text);
        assert!(text.starts_with("a 1\n# HELP") && text.ends_with("} 0\n# EOF\n"), "{text}");
        assert!(text.contains("wattle_http_connections 1\n"), "{text}");
        assert!(text.contains("wattle_http_cut_total{reason=\"stalled\"} 1\n"), "{text}");
    }
}
