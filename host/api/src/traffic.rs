//! Counts of connections, and of requests and connections that the host refused or ended.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Why the host refused or ended a connection or a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The head of a request did not arrive in time.
    Head,
    /// The head of a request was on its way when the host stopped.
    Stop,
    /// The body of a request did not arrive in time.
    Body,
    /// No request came for a while.
    Idle,
    /// The client did not take an answer in time.
    Stalled,
    /// A connection without a request was closed to make room for a new one.
    Room,
    /// There were too many connections.
    Connections,
    /// There were too many open requests, of the caller or of all.
    Requests,
    /// The bodies of requests needed too much memory.
    Bodies,
}

/// All reasons with their labels.
const CUTS: [(Cut, &str); 9] = [
    (Cut::Head, "head"),
    (Cut::Stop, "stop"),
    (Cut::Body, "body"),
    (Cut::Idle, "idle"),
    (Cut::Stalled, "stalled"),
    (Cut::Room, "room"),
    (Cut::Connections, "connections"),
    (Cut::Requests, "requests"),
    (Cut::Bodies, "bodies"),
];

/// The last line of a text of metrics in the OpenMetrics format.
const END: &str = "# EOF\n";

impl Cut {
    /// The label of the reason in metrics.
    pub fn label(self) -> &'static str {
        CUTS[self as usize].1
    }
}

/// The counts.
#[derive(Debug, Default)]
pub struct Traffic {
    connections: AtomicI64,
    cuts: [AtomicU64; CUTS.len()],
}

impl Traffic {
    /// A connection was opened.
    pub fn opened(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    /// A connection was closed.
    pub fn closed(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    /// Connections that are open.
    pub fn connections(&self) -> i64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Counts a refusal or an end.
    pub fn cut(&self, cut: Cut) {
        self.cuts[cut as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How many there were for a reason.
    pub fn cuts(&self, cut: Cut) -> u64 {
        self.cuts[cut as usize].load(Ordering::Relaxed)
    }

    /// Adds the counts to a text of metrics.
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
    fn reasons_are_in_the_order_of_their_labels() {
        for (index, (cut, label)) in CUTS.into_iter().enumerate() {
            assert_eq!((cut as usize, cut.label()), (index, label));
        }
    }

    #[test]
    fn counts_come_before_the_end_of_the_text() {
        let traffic = Traffic::default();
        traffic.opened();
        traffic.cut(Cut::Stalled);
        let text = traffic.append_to("a 1\n# EOF\n");
        assert!(text.starts_with("a 1\n# HELP") && text.ends_with("} 0\n# EOF\n"), "{text}");
        assert!(text.contains("wattle_http_connections 1\n"), "{text}");
        assert!(text.contains("wattle_http_cut_total{reason=\"stalled\"} 1\n"), "{text}");
    }
}
