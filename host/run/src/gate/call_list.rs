//! The host calls of a guest without a journal, listed for the client that waits for the guest.
//!
//! An entry begins before its call is performed, so that a list also has calls that have not ended.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use wattle_graph::failure::Failure;

/// Maximum number of calls in a list. A person reads the list, and most tools make few calls.
const LISTED_CALLS: usize = 1_000;

/// Maximum number of characters of the summary and of the message of a listed call. The message of
/// a missing grant, with the line to add, is shorter.
const LISTED_CHARS: usize = 2_000;

/// A list of host calls. Clones share the list.
#[derive(Clone, Debug, Default)]
pub struct CallList(Arc<Mutex<Entries>>);

#[derive(Debug, Default)]
struct Entries {
    calls: Vec<ListedCall>,
    omitted: u64,
}

/// A host call in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedCall {
    /// Number of tool calls around the call: 0 for a call of the outermost guest.
    pub depth: u32,
    /// Interface and function, such as `http.send`.
    pub function: &'static str,
    /// One-line description for people.
    pub summary: String,
    /// The end of the call; `None` if the guest ended first.
    pub end: Option<CallEnd>,
}

/// The end of a listed call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallEnd {
    /// Duration of the call.
    pub duration: Duration,
    /// The failure, without details, if the call failed.
    pub failure: Option<Failure>,
}

impl CallList {
    /// Returns the calls in the order in which they began, and the number of further calls that the
    /// list does not have.
    pub fn to_calls(&self) -> (Vec<ListedCall>, u64) {
        let entries = self.entries();
        (entries.calls.clone(), entries.omitted)
    }

    /// Locks the entries. No code that can panic runs under this lock.
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, depth: u32, function: &'static str, summary: &str) -> Option<usize> {
        let mut entries = self.entries();
        if entries.calls.len() >= LISTED_CALLS {
            entries.omitted += 1;
            return None;
        }
        let summary = shortened(summary);
        entries.calls.push(ListedCall { depth, function, summary, end: None });
        Some(entries.calls.len() - 1)
    }

    fn end(&self, index: usize, end: CallEnd) {
        if let Some(call) = self.entries().calls.get_mut(index) {
            call.end = Some(end);
        }
    }
}

/// The entry of a call that has begun.
pub(crate) struct CallListEntry {
    /// The list and the place in it; `None` without a list, or if the list is full.
    place: Option<(CallList, usize)>,
    started: Instant,
}

impl CallListEntry {
    /// Begins an entry, if there is a list.
    pub(crate) fn begin(
        list: Option<&CallList>,
        depth: u32,
        function: &'static str,
        summary: impl FnOnce() -> String,
    ) -> Self {
        let place = list.and_then(|list| {
            let index = list.begin(depth, function, &summary())?;
            Some((list.clone(), index))
        });
        Self { place, started: Instant::now() }
    }

    /// Ends the entry with the failure of the call, if it failed.
    pub(crate) fn end(self, failure: Option<&Failure>) {
        let Some((list, index)) = self.place else { return };
        let failure = failure.map(|failure| Failure {
            message: shortened(&failure.message),
            details: None,
            ..failure.clone()
        });
        list.end(index, CallEnd { duration: self.started.elapsed(), failure });
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(LISTED_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wattle_graph::failure::code;

    use super::*;

    fn begin(list: &CallList, summary: &str) -> CallListEntry {
        CallListEntry::begin(Some(list), 1, "http.send", || summary.to_owned())
    }

    #[test]
    fn calls_are_in_the_order_in_which_they_began() {
        let list = CallList::default();
        let (first, second, _unended) = (begin(&list, "a"), begin(&list, "b"), begin(&list, "c"));
        let failure = Failure::new(code::DENIED, "no").with_details(json!({ "secret": 1 }));
        second.end(Some(&failure));
        first.end(None);
        let (calls, omitted) = list.to_calls();
        let summaries: Vec<&str> = calls.iter().map(|call| call.summary.as_str()).collect();
        assert_eq!((summaries, omitted), (vec!["a", "b", "c"], 0));
        let failures = calls.iter().map(|call| call.end.as_ref().map(|end| end.failure.clone()));
        let expected = [Some(None), Some(Some(Failure::new(code::DENIED, "no"))), None];
        assert_eq!(failures.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn long_lists_and_texts_are_shortened() {
        let list = CallList::default();
        let long = "é".repeat(LISTED_CHARS + 1);
        for _ in 0..LISTED_CALLS + 2 {
            begin(&list, &long).end(Some(&Failure::new(code::INVALID, long.clone())));
        }
        let (calls, omitted) = list.to_calls();
        assert_eq!((calls.len(), omitted), (LISTED_CALLS, 2));
        assert_eq!(calls[0].summary.chars().count(), LISTED_CHARS);
        let failure = calls[0].end.clone().and_then(|end| end.failure);
        assert_eq!(failure.map(|failure| failure.message), Some("é".repeat(LISTED_CHARS)));
    }

    #[test]
    fn without_a_list_no_summary_is_made() {
        CallListEntry::begin(None, 0, "http.send", || panic!("no summary is needed")).end(None);
    }
}
