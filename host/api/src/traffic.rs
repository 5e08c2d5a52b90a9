//! Counts of connections, and of requests and connections that the host rejected or closed.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// The reason why the host rejected or closed a connection or a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The head of a request did not arrive in time.
    Head,
    /// The host shut down before the head of a request was complete.
    Stop,
    /// The body of a request did not arrive in time.
    Body,
    /// The connection was idle for too long.
    Idle,
    /// The client did not read a response in time.
    Stalled,
    /// A connection without an open request was closed to accept a new connection.
    Room,
    /// The maximum number of connections was reached.
    Connections,
    /// The caller or the host reached its maximum number of open requests.
    Requests,
    /// Request bodies exceeded their memory limit.
    Bodies,
    /// Responses that were not read exceeded their memory limit.
    Responses,
}

/// All reasons with their labels in metrics.
const CUTS: [(Cut, &str); 10] = [
    (Cut::Head, "head"),
    (Cut::Stop, "stop"),
    (Cut::Body, "body"),
    (Cut::Idle, "idle"),
    (Cut::Stalled, "stalled"),
    (Cut::Room, "room"),
    (Cut::Connections, "connections"),
    (Cut::Requests, "requests"),
    (Cut::Bodies, "bodies"),
    (Cut::Responses, "responses"),
];

/// The last line of metrics in the OpenMetrics format.
const END: &str = "# EOF\n";

impl Cut {
    /// Returns the value of the metric label `reason`.
    pub fn label(self) -> &'static str {
        CUTS[self as usize].1
    }
}

/// Counts of connections and of closed or rejected ones.
#[derive(Debug, Default)]
pub struct Traffic {
    connections: AtomicI64,
    cuts: [AtomicU64; CUTS.len()],
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
    pub fn cut(&self, cut: Cut) {
        self.cuts[cut as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of rejections and closings for a reason.
    pub fn cuts(&self, cut: Cut) -> u64 {
        self.cuts[cut as usize].load(Ordering::Relaxed)
    }

    /// Inserts the counts into the text of metrics.
    pub fn append_to(&self, metrics: &str) -> String {
        let open = self.connections();
        let cuts = CUTS.map(|(cut, label)| {
            format!("wattle_http_cut_total{{reason=\"{label}\"}} {}\n", self.cuts(cut))
        });
        let before = metrics.strip_suffix(END).unwrap_or(metrics);
        let end = if metrics.ends_with(END) { END } else { "" };
        format!(
            "{before}# HELP wattle_http_connections Open connections.\n\
             # TYPE wattle_http_connections gauge\n\
             wattle_http_connections {open}\n\
             # HELP wattle_http_cut Connections and requests that the host refused or ended.\n\
             # TYPE wattle_http_cut counter\n{}{end}",
            cuts.concat()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_in_the_order_of_the_reasons() {
        for (index, (cut, label)) in CUTS.into_iter().enumerate() {
            assert_eq!((cut as usize, cut.label()), (index, label));
        }
    }

    #[test]
    fn counts_are_inserted_before_the_end_of_file_marker() {
        let traffic = Traffic::default();
        traffic.opened();
        traffic.cut(Cut::Stalled);
        let text = traffic.append_to("a 1\n# EOF\n");
        assert!(text.starts_with("a 1\n# HELP") && text.ends_with("} 0\n# EOF\n"), "{text}");
        assert!(text.contains("wattle_http_connections 1\n"), "{text}");
        assert!(text.contains("wattle_http_cut_total{reason=\"stalled\"} 1\n"), "{text}");
    }
}
