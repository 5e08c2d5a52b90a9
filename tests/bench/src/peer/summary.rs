//! The rounds of one measurement, and their median.

use serde::Serialize;

use crate::median;
use crate::order::{Answer, Reads};
use crate::peer::contest::{Contest, Entry};

/// The results of all rounds.
#[derive(Clone, Default)]
pub(crate) struct Figures(Vec<Answer>);

impl Figures {
    /// Adds the result of a round.
    pub(crate) fn push(&mut self, answer: Answer) {
        self.0.push(answer);
    }

    fn median(&self, of: impl Fn(&Answer) -> f64) -> f64 {
        median(&mut self.0.iter().map(of).collect::<Vec<_>>())
    }

    /// Returns name and version of the measured software, or `None` for this program.
    pub(crate) fn version(&self) -> Option<&str> {
        self.0.first()?.version.as_deref()
    }

    fn reads(&self) -> Option<Reads> {
        let all: Vec<Reads> = self.0.iter().filter_map(|answer| answer.reads).collect();
        let of = |part: fn(&Reads) -> f64| median(&mut all.iter().map(part).collect::<Vec<_>>());
        let events: Option<Vec<f64>> = all.iter().map(|reads| reads.events_ms).collect();
        (!all.is_empty()).then(|| Reads {
            page_ms: of(|reads| reads.page_ms),
            all_ms: of(|reads| reads.all_ms),
            latest_ms: of(|reads| reads.latest_ms),
            events_ms: events.map(|mut events| median(&mut events)),
        })
    }
}

/// A row of the table.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    /// The case.
    pub(crate) case: &'static str,
    /// The code that ran the graph.
    pub(crate) side: &'static str,
    /// The store.
    pub(crate) store: &'static str,
    /// Median of the rounds.
    pub(crate) steps_per_second: f64,
    /// The slowest round.
    pub(crate) slowest: f64,
    /// The fastest round.
    pub(crate) fastest: f64,
    /// Peak memory of the process.
    pub(crate) peak_rss_bytes: f64,
    /// Size of the store on disk, for cases with a fixed amount of work.
    pub(crate) stored_bytes: Option<f64>,
    /// Times of reads, for the case `history`.
    pub(crate) reads: Option<Reads>,
}

impl Summary {
    /// Summarizes the rounds. Returns `None` if all of them failed.
    pub(crate) fn new(contest: &Contest, entry: Entry, figures: &Figures) -> Option<Self> {
        let speed = |answer: &Answer| answer.steps as f64 / answer.seconds;
        let mut speeds: Vec<f64> = figures.0.iter().map(speed).collect();
        let steps_per_second = median(&mut speeds);
        let fixed = !contest.timed() && figures.0.iter().all(|a| a.stored_bytes.is_some());
        Some(Self {
            case: contest.name,
            side: entry.side.name(),
            store: entry.store,
            steps_per_second,
            slowest: *speeds.first()?,
            fastest: *speeds.last()?,
            peak_rss_bytes: figures.median(|answer| answer.peak_rss_bytes as f64),
            stored_bytes: fixed
                .then(|| figures.median(|a| a.stored_bytes.unwrap_or_default() as f64)),
            reads: figures.reads(),
        })
    }
}
