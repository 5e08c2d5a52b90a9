//! Searches of the runs of all threads: conditions, pages and counts.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use serde_json::Value;
use wattle_graph::event::RunStatus;
use wattle_graph::id::{AppName, GraphName, RunId};

use super::cursor::{decode_cursor, encode_cursor};
use super::{RunSummary, SearchBudget};

/// A search of runs, newest request first. All conditions must hold.
#[derive(Clone, Debug)]
pub struct RunSearch {
    /// Only runs of threads of this app.
    pub app: Option<AppName>,
    /// Only runs of threads of this graph.
    pub graph: Option<GraphName>,
    /// Only runs with this status.
    pub status: Option<RunStatus>,
    /// Only runs of threads of this tenant.
    pub tenant: Option<String>,
    /// Only runs that failed with this code.
    pub failure: Option<String>,
    /// Only runs that contain this text in their id, thread, app, graph or failure. Letters match
    /// in either case.
    pub text: Option<String>,
    /// Only runs of threads whose metadata contains these values, see
    /// [`json_contains`](crate::metadata::json_contains). A run has no metadata of its own.
    pub metadata: BTreeMap<String, Value>,
    /// Only runs that were requested within these times, milliseconds since 1970.
    pub created_ms: RangeInclusive<i64>,
    /// Only runs of threads that have not [expired](super::ThreadRecord::is_expired) at this time,
    /// milliseconds since 1970.
    pub unexpired_at_ms: Option<i64>,
    /// Only runs after this position. A count ignores this field.
    pub after: Option<RunCursor>,
    /// Maximum number of runs in the page. A count ignores this field.
    pub limit: usize,
    /// What the search may read.
    pub budget: SearchBudget,
}

impl Default for RunSearch {
    fn default() -> Self {
        Self {
            app: None,
            graph: None,
            status: None,
            tenant: None,
            failure: None,
            text: None,
            metadata: BTreeMap::new(),
            created_ms: Self::ANY_TIME,
            unexpired_at_ms: None,
            after: None,
            limit: usize::MAX,
            budget: SearchBudget::default(),
        }
    }
}

impl RunSearch {
    /// All times.
    pub const ANY_TIME: RangeInclusive<i64> = i64::MIN..=i64::MAX;

    /// Returns true if the search compares texts or metadata, and so reads each record in full.
    #[must_use]
    pub fn reads_contents(&self) -> bool {
        self.text.is_some() || !self.metadata.is_empty()
    }

    /// Returns true if the search has a condition on a field by which stores do not list runs.
    /// Stores list runs by the app, the tenant and the expiry of their threads. For any other
    /// condition, a store may read the records of many runs until a page is full.
    #[must_use]
    pub fn compares_records(&self) -> bool {
        self.reads_contents()
            || self.graph.is_some()
            || self.status.is_some()
            || self.failure.is_some()
            || self.created_ms != Self::ANY_TIME
    }
}

/// The position of a run in the searches of one store. A cursor stays valid while runs are added:
/// a new run comes before the cursor, and no other run is skipped or repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunCursor {
    /// The time of the request, in milliseconds since 1970. A store that numbers the requests of
    /// all hosts has the number of the request instead. A larger number is a later request.
    pub position: i64,
    /// The run.
    pub run: RunId,
}

impl RunCursor {
    /// Parses the text of a cursor. Returns `None` if no cursor has this text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (position, run) = decode_cursor(text)?;
        Some(Self { position, run })
    }
}

/// Writes the cursor as opaque text of letters, digits, `-` and `_`.
impl fmt::Display for RunCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&encode_cursor(self.position, &self.run))
    }
}

/// Orders positions as searches list runs: latest request first. Of requests at the same time, the
/// greatest id comes first, because the ids that the engine makes increase.
impl Ord for RunCursor {
    fn cmp(&self, other: &Self) -> Ordering {
        Reverse((self.position, &self.run)).cmp(&Reverse((other.position, &other.run)))
    }
}

impl PartialOrd for RunCursor {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A run that a search found, with what its thread says about it.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundRun {
    /// The run.
    pub run: RunSummary,
    /// App of the thread.
    pub app: AppName,
    /// Graph of the thread.
    pub graph: GraphName,
    /// Tenant that owns the thread.
    pub tenant: Option<String>,
}

impl FoundRun {
    /// Returns the approximate size in memory, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        (size_of::<Self>() - size_of::<RunSummary>()) as u64 + self.run.memory_bytes()
    }
}

/// A page of a search. A page may have fewer runs than its limit, or none, although another page
/// follows, because the next match may be beyond the runs that one search examines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunSearchPage {
    /// The runs, newest request first.
    pub items: Vec<FoundRun>,
    /// Position after which the search continues; `None` if nothing follows.
    pub next: Option<RunCursor>,
}

/// The number of runs that match a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunCounts {
    /// Pending runs.
    pub pending: u64,
    /// Running runs.
    pub running: u64,
    /// Completed runs.
    pub completed: u64,
    /// Interrupted runs.
    pub interrupted: u64,
    /// Failed runs.
    pub failed: u64,
    /// Cancelled runs.
    pub cancelled: u64,
    /// False if the budget of the search was exhausted, and more runs may match.
    pub is_complete: bool,
}

impl Default for RunCounts {
    fn default() -> Self {
        Self {
            pending: 0,
            running: 0,
            completed: 0,
            interrupted: 0,
            failed: 0,
            cancelled: 0,
            is_complete: true,
        }
    }
}

impl RunCounts {
    /// Adds a run with a status.
    pub fn add(&mut self, status: RunStatus) {
        let count = match status {
            RunStatus::Pending => &mut self.pending,
            RunStatus::Running => &mut self.running,
            RunStatus::Completed => &mut self.completed,
            RunStatus::Interrupted => &mut self.interrupted,
            RunStatus::Failed => &mut self.failed,
            RunStatus::Cancelled => &mut self.cancelled,
        };
        *count += 1;
    }

    /// Returns the number of all runs.
    #[must_use]
    pub fn total(&self) -> u64 {
        let Self { pending, running, completed, interrupted, failed, cancelled, .. } = self;
        pending + running + completed + interrupted + failed + cancelled
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::*;

    fn cursor(position: i64, run: &str) -> RunCursor {
        RunCursor { position, run: RunId::new(run).unwrap() }
    }

    #[test]
    fn conditions_on_fields_by_which_lists_do_not_select_compare_records() {
        let all = RunSearch::default;
        for search in [
            all(),
            RunSearch { app: Some(AppName::new("shop").unwrap()), ..all() },
            RunSearch { tenant: Some("acme".to_owned()), ..all() },
            RunSearch { unexpired_at_ms: Some(1), ..all() },
            RunSearch { after: Some(cursor(1, "a")), limit: 1, ..all() },
        ] {
            assert!(!search.compares_records(), "{search:?}");
        }
        for search in [
            RunSearch { graph: Some(GraphName::new("main").unwrap()), ..all() },
            RunSearch { status: Some(RunStatus::Failed), ..all() },
            RunSearch { failure: Some("trap".to_owned()), ..all() },
            RunSearch { text: Some("a".to_owned()), ..all() },
            RunSearch { metadata: [("a".to_owned(), Value::Null)].into(), ..all() },
            RunSearch { created_ms: 0..=i64::MAX, ..all() },
            RunSearch { created_ms: i64::MIN..=0, ..all() },
        ] {
            assert!(search.compares_records(), "{search:?}");
        }
    }

    #[test]
    fn cursors_are_ordered_as_runs_are_listed() {
        let mut all = [cursor(5, "c"), cursor(-1, "a"), cursor(9, "z"), cursor(5, "a")];
        all.sort();
        assert_eq!(all, [cursor(9, "z"), cursor(5, "c"), cursor(5, "a"), cursor(-1, "a")]);
    }

    #[test]
    fn texts_that_are_not_cursors_are_rejected() {
        let encoded = |text: &str| URL_SAFE_NO_PAD.encode(text);
        for text in ["", "!", "5.a", &encoded("5"), &encoded("x.a"), &encoded("5."), "MTIuYQ=="] {
            assert_eq!(RunCursor::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn run_cursors_round_trip(position in any::<i64>(), run in "[a.\\u{0}%/ 线]{1,9}") {
            let before = cursor(position, &run);
            let text = before.to_string();
            prop_assert!(text.chars().all(|it| it.is_ascii_alphanumeric() || "-_".contains(it)));
            prop_assert_eq!(RunCursor::parse(&text), Some(before));
        }
    }
}
