//! Searches of threads by all of their fields: conditions, pages and counts.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_graph::id::{AppName, GraphName, ThreadId};

use super::cursor::{decode_cursor, encode_cursor};
use super::{ThreadStatus, ThreadSummary};
use crate::limit::{SEARCH_BYTES, SEARCH_RECORDS};

/// A search of threads, newest update first. All conditions must hold.
#[derive(Clone, Debug)]
pub struct ThreadSearch {
    /// Only threads of this app.
    pub app: Option<AppName>,
    /// Only threads of this graph.
    pub graph: Option<GraphName>,
    /// Only threads with this status. A [stopped](super::ThreadRecord::stopped) thread is idle.
    pub status: Option<ThreadStatus>,
    /// Only threads whose tenant matches.
    pub tenant: TenantFilter,
    /// Only threads whose newest run failed with this code.
    pub failure: Option<String>,
    /// Only threads that contain this text in their id, newest run, app, graph, failure or in a
    /// text of their metadata. Letters match in either case.
    pub text: Option<String>,
    /// Only threads whose metadata contains these values, see
    /// [`json_contains`](crate::metadata::json_contains).
    pub metadata: BTreeMap<String, Value>,
    /// Only threads that were created within these times, milliseconds since 1970.
    pub created_ms: RangeInclusive<i64>,
    /// Only threads whose last update is within these times, milliseconds since 1970.
    pub updated_ms: RangeInclusive<i64>,
    /// Only threads that have not [expired](super::ThreadRecord::is_expired) at this time,
    /// milliseconds since 1970.
    pub unexpired_at_ms: Option<i64>,
    /// Only threads after this position. A count ignores this field.
    pub after: Option<ThreadCursor>,
    /// Maximum number of threads in the page. A count ignores this field.
    pub limit: usize,
    /// What the search may read.
    pub budget: SearchBudget,
}

impl Default for ThreadSearch {
    fn default() -> Self {
        Self {
            app: None,
            graph: None,
            status: None,
            tenant: TenantFilter::Any,
            failure: None,
            text: None,
            metadata: BTreeMap::new(),
            created_ms: Self::ANY_TIME,
            updated_ms: Self::ANY_TIME,
            unexpired_at_ms: None,
            after: None,
            limit: usize::MAX,
            budget: SearchBudget::default(),
        }
    }
}

impl ThreadSearch {
    /// All times.
    pub const ANY_TIME: RangeInclusive<i64> = i64::MIN..=i64::MAX;

    /// Returns true if the search compares texts or metadata, and so reads each record in full.
    #[must_use]
    pub fn reads_contents(&self) -> bool {
        self.text.is_some() || !self.metadata.is_empty()
    }

    /// Returns true if the search has a condition on a field by which stores do not list threads.
    /// Stores list threads by app, status, tenant, expiry and the time of the update. For any other
    /// condition, a store may read the records of many threads until a page is full.
    #[must_use]
    pub fn compares_records(&self) -> bool {
        self.reads_contents()
            || self.graph.is_some()
            || self.failure.is_some()
            || self.created_ms != Self::ANY_TIME
    }
}

/// A condition on the tenant of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TenantFilter {
    /// Matches all threads.
    #[default]
    Any,
    /// Matches threads without a tenant.
    None,
    /// Matches threads of this tenant.
    Named(String),
}

impl TenantFilter {
    /// Creates the filter for a tenant, or for all threads.
    #[must_use]
    pub fn named_or_any(tenant: Option<String>) -> Self {
        tenant.map_or(Self::Any, Self::Named)
    }

    /// Creates the filter for a tenant, or for threads without a tenant.
    #[must_use]
    pub fn named_or_none(tenant: Option<String>) -> Self {
        tenant.map_or(Self::None, Self::Named)
    }

    /// Returns the tenant of the matching threads, if the filter names one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Any | Self::None => None,
            Self::Named(tenant) => Some(tenant),
        }
    }

    /// Returns true if the tenant of a thread matches.
    #[must_use]
    pub fn matches(&self, tenant: Option<&str>) -> bool {
        match self {
            Self::Any => true,
            Self::None => tenant.is_none(),
            Self::Named(name) => tenant == Some(name.as_str()),
        }
    }
}

/// Limits on the records of threads or runs that one search examines. Records that the other
/// conditions exclude do not count. A search examines at least one record, so that every reader
/// makes progress.
#[derive(Clone, Copy, Debug)]
pub struct SearchBudget {
    /// Maximum number of records that are examined.
    pub records: usize,
    /// Maximum size of these records as JSON, in bytes.
    pub bytes: u64,
}

impl Default for SearchBudget {
    fn default() -> Self {
        Self { records: SEARCH_RECORDS, bytes: SEARCH_BYTES }
    }
}

/// The part of a [`SearchBudget`] that a search has not used.
#[derive(Clone, Copy, Debug)]
pub struct RemainingBudget {
    budget: SearchBudget,
    is_untouched: bool,
}

impl RemainingBudget {
    /// Creates the budget of a search that has examined nothing.
    #[must_use]
    pub fn new(budget: SearchBudget) -> Self {
        Self { budget, is_untouched: true }
    }

    /// Deducts a record with `bytes` bytes of JSON. Returns false, and deducts nothing, if the
    /// record exceeds the budget. The first record may have any size.
    #[must_use]
    pub fn take(&mut self, bytes: u64) -> bool {
        let SearchBudget { records, bytes: bytes_left } = &mut self.budget;
        if !self.is_untouched && (*records == 0 || *bytes_left < bytes) {
            return false;
        }
        *records = records.saturating_sub(1);
        *bytes_left = bytes_left.saturating_sub(bytes);
        self.is_untouched = false;
        true
    }
}

/// The position of a thread in a search. A cursor stays valid while threads change: a thread that
/// is updated meanwhile moves before the cursor, and no other thread is skipped or repeated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadCursor {
    /// Time of the last update, milliseconds since 1970.
    pub updated_ms: i64,
    /// The thread.
    pub thread: ThreadId,
}

impl ThreadCursor {
    /// Returns the key by which lists and searches sort threads: newest update first, and then by
    /// id.
    #[must_use]
    pub fn sort_key(updated_ms: i64, thread: &ThreadId) -> (Reverse<i64>, &ThreadId) {
        (Reverse(updated_ms), thread)
    }

    /// Parses the text of a cursor. Returns `None` if no cursor has this text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (updated_ms, thread) = decode_cursor(text)?;
        Some(Self { updated_ms, thread })
    }
}

/// Writes the cursor as opaque text of letters, digits, `-` and `_`.
impl fmt::Display for ThreadCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&encode_cursor(self.updated_ms, &self.thread))
    }
}

impl From<&ThreadSummary> for ThreadCursor {
    fn from(thread: &ThreadSummary) -> Self {
        Self { updated_ms: thread.updated_ms, thread: thread.id.clone() }
    }
}

/// Orders positions by their [`sort_key`](ThreadCursor::sort_key).
impl Ord for ThreadCursor {
    fn cmp(&self, other: &Self) -> Ordering {
        let other = Self::sort_key(other.updated_ms, &other.thread);
        Self::sort_key(self.updated_ms, &self.thread).cmp(&other)
    }
}

impl PartialOrd for ThreadCursor {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A page of a search. A page may have fewer threads than its limit, or none, although another page
/// follows, because the next match may be beyond the threads that one search examines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadSearchPage {
    /// The threads, newest update first.
    pub items: Vec<ThreadSummary>,
    /// Position after which the search continues; `None` if nothing follows.
    pub next: Option<ThreadCursor>,
}

/// The number of threads that match a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadCounts {
    /// Idle threads.
    pub idle: u64,
    /// Running threads.
    pub running: u64,
    /// Interrupted threads.
    pub interrupted: u64,
    /// Threads whose last run failed.
    pub error: u64,
    /// False if the budget of the search was exhausted, and more threads may match.
    pub is_complete: bool,
}

impl Default for ThreadCounts {
    fn default() -> Self {
        Self { idle: 0, running: 0, interrupted: 0, error: 0, is_complete: true }
    }
}

impl ThreadCounts {
    /// Adds threads with a status.
    pub fn add(&mut self, status: ThreadStatus, threads: u64) {
        let count = match status {
            ThreadStatus::Idle => &mut self.idle,
            ThreadStatus::Running => &mut self.running,
            ThreadStatus::Interrupted => &mut self.interrupted,
            ThreadStatus::Error => &mut self.error,
        };
        *count += threads;
    }

    /// Returns the number of all threads.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.idle + self.running + self.interrupted + self.error
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::*;

    fn cursor(updated_ms: i64, thread: &str) -> ThreadCursor {
        ThreadCursor { updated_ms, thread: ThreadId::new(thread).unwrap() }
    }

    #[test]
    fn conditions_on_fields_by_which_lists_do_not_select_compare_records() {
        let all = ThreadSearch::default;
        for search in [
            all(),
            ThreadSearch { app: Some(AppName::new("shop").unwrap()), ..all() },
            ThreadSearch { status: Some(ThreadStatus::Idle), ..all() },
            ThreadSearch { tenant: TenantFilter::Named("acme".to_owned()), ..all() },
            ThreadSearch { tenant: TenantFilter::None, ..all() },
            ThreadSearch { unexpired_at_ms: Some(1), ..all() },
            ThreadSearch { updated_ms: 0..=1, after: Some(cursor(1, "a")), limit: 1, ..all() },
        ] {
            assert!(!search.compares_records(), "{search:?}");
        }
        for search in [
            ThreadSearch { graph: Some(GraphName::new("main").unwrap()), ..all() },
            ThreadSearch { failure: Some("trap".to_owned()), ..all() },
            ThreadSearch { text: Some("a".to_owned()), ..all() },
            ThreadSearch { metadata: [("a".to_owned(), Value::Null)].into(), ..all() },
            ThreadSearch { created_ms: 0..=i64::MAX, ..all() },
            ThreadSearch { created_ms: i64::MIN..=0, ..all() },
        ] {
            assert!(search.compares_records(), "{search:?}");
        }
    }

    #[test]
    fn cursors_are_ordered_as_threads_are_listed() {
        let mut all = [cursor(5, "c"), cursor(-1, "a"), cursor(9, "z"), cursor(5, "a")];
        all.sort();
        assert_eq!(all, [cursor(9, "z"), cursor(5, "a"), cursor(5, "c"), cursor(-1, "a")]);
    }

    #[test]
    fn texts_that_are_not_cursors_are_rejected() {
        let encoded = |text: &str| URL_SAFE_NO_PAD.encode(text);
        for text in ["", "!", "5.a", &encoded("5"), &encoded("x.a"), &encoded("5."), "MTIuYQ=="] {
            assert_eq!(ThreadCursor::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn thread_cursors_round_trip(updated_ms in any::<i64>(), thread in "[a.\\u{0}%/ 线]{1,9}") {
            let before = cursor(updated_ms, &thread);
            let text = before.to_string();
            prop_assert!(text.chars().all(|it| it.is_ascii_alphanumeric() || "-_".contains(it)));
            prop_assert_eq!(ThreadCursor::parse(&text), Some(before));
        }
    }
}
