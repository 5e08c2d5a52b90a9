//! The order to a process that measures one case, and its answer: the same JSON for ours and for the
//! programs in `peer/`.

use serde::{Deserialize, Serialize};

/// Sizes of a case. They stand here only, so that all sides do the same.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// Folder of an empty file store, or address of an empty database.
    pub(crate) place: String,
    /// Bursts of runs are repeated until so much time is measured. 0 is one burst without warm-up.
    pub(crate) seconds: f64,
    /// Runs at once.
    pub(crate) lanes: usize,
    /// Runs of each lane in one burst, one after the other.
    pub(crate) runs: usize,
    /// Nodes of the line.
    pub(crate) nodes: usize,
    /// Bytes of the text in the state.
    pub(crate) text_bytes: usize,
    /// Tasks of the fan-out.
    pub(crate) sends: usize,
    /// Steps of the loop.
    pub(crate) turns: usize,
    /// Texts that are appended.
    pub(crate) items: usize,
    /// Checkpoints of one page of the history.
    pub(crate) page: usize,
    /// How often a page is read; the median counts, here and below.
    pub(crate) page_reads: usize,
    /// How often the whole history is read.
    pub(crate) all_reads: usize,
    /// How often the latest state is read.
    pub(crate) latest_reads: usize,
}

impl Order {
    /// An order for one run at a time.
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

/// What was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// Tasks that ran.
    pub(crate) steps: usize,
    /// In so much time.
    pub(crate) seconds: f64,
    /// The most memory that the process had.
    pub(crate) peak_rss_bytes: u64,
    /// What the store takes on disk; none if it is in memory.
    pub(crate) stored_bytes: Option<u64>,
    /// How long reads take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reads: Option<Reads>,
    /// What was measured, for people; nothing if it is this program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
}

/// How long reads of a long thread take.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Reads {
    /// The newest checkpoints.
    pub(crate) page_ms: f64,
    /// All of them.
    pub(crate) all_ms: f64,
    /// The latest state.
    pub(crate) latest_ms: f64,
}
