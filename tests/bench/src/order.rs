//! Input and output of a process that measures one case, as JSON. The programs in `peer/` use the
//! same protocol.

use serde::{Deserialize, Serialize};

/// Sizes of a case. They are defined only here, so that all sides use the same ones.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// Folder of an empty file store, or URL of an empty database.
    pub(crate) place: String,
    /// Bursts of runs are repeated until this time is measured. 0 means one burst without a
    /// warm-up.
    pub(crate) seconds: f64,
    /// Number of concurrent lanes.
    pub(crate) lanes: usize,
    /// Number of runs of each lane in one burst, one after the other.
    pub(crate) runs: usize,
    /// Number of nodes of the line.
    pub(crate) nodes: usize,
    /// Size of the text in the state, in bytes.
    pub(crate) text_bytes: usize,
    /// Number of tasks of the fan-out.
    pub(crate) sends: usize,
    /// Number of steps of the loop.
    pub(crate) turns: usize,
    /// Number of appended texts.
    pub(crate) items: usize,
    /// Number of checkpoints in one page of the history.
    pub(crate) page: usize,
    /// Number of reads of a page of checkpoints or events. The median of the reads counts, as for
    /// the following fields.
    pub(crate) page_reads: usize,
    /// Number of reads of the whole history.
    pub(crate) all_reads: usize,
    /// Number of reads of the latest state.
    pub(crate) latest_reads: usize,
}

impl Order {
    /// Creates an order for one run at a time.
    pub(crate) fn new(place: String, seconds: f64) -> Self {
        Self {
            place,
            seconds,
            lanes: 1,
            runs: 1,
            nodes: 10,
            text_bytes: 1_000,
            sends: 100,
            turns: 1_000,
            items: 200,
            page: 20,
            page_reads: 20,
            all_reads: 5,
            latest_reads: 100,
        }
    }
}

/// The result of a measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// Number of executed tasks.
    pub(crate) steps: usize,
    /// Time of their execution, in seconds.
    pub(crate) seconds: f64,
    /// Peak memory of the process.
    pub(crate) peak_rss_bytes: u64,
    /// Size of the store on disk; `None` for a store in memory.
    pub(crate) stored_bytes: Option<u64>,
    /// Times of reads, for the case `history`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reads: Option<Reads>,
    /// Name and version of the measured software; `None` for this program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
}

/// Times of reads of a long thread.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Reads {
    /// A page of the newest checkpoints.
    pub(crate) page_ms: f64,
    /// All checkpoints.
    pub(crate) all_ms: f64,
    /// The latest state.
    pub(crate) latest_ms: f64,
    /// The first page of events, as streams read it; `None` for software without a log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) events_ms: Option<f64>,
}
