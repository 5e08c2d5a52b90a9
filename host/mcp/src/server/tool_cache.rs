//! The cached tool list of a server, and how often a change of the list is believed.

use std::time::Duration;

use tokio::time::Instant;
use wattle_graph::failure::Failure;

use crate::tool_list::ToolList;

/// Changes after which the list is requested at once. A session may change its tools a few times,
/// such as after a login.
const BURST_REFETCHES: u32 = 8;

/// Interval at which the list is requested after further changes. Lists are read before every model
/// call, and a server may announce a change whenever its list is requested.
const REFETCH_INTERVAL: Duration = Duration::from_secs(5);

/// Cached tool list of a server.
#[derive(Debug, Default)]
pub(super) struct ToolCache {
    pub(super) list: Option<ToolList>,
    pub(super) timeout: Option<ListTimeout>,
    pub(super) refetches: RefetchBudget,
}

/// A timeout of the tool list or of one of its pages.
#[derive(Debug)]
pub(super) struct ListTimeout {
    pub(super) failure: Failure,
    /// The time at which the list is requested again.
    pub(super) retry_at: Instant,
}

/// The requests that a server may still cause by changes of its list.
#[derive(Debug, Default)]
pub(super) struct RefetchBudget {
    /// The time at which the requests so far would have been sent at the interval.
    due: Option<Instant>,
}

impl RefetchBudget {
    /// Counts a request. Returns false if the cached list must be used in its place.
    pub(super) fn take(&mut self) -> bool {
        let now = Instant::now();
        let due = self.due.map_or(now, |due| due.max(now)) + REFETCH_INTERVAL;
        let is_left = due <= now + REFETCH_INTERVAL * BURST_REFETCHES;
        if is_left {
            self.due = Some(due);
        }
        is_left
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn requests_after_the_burst_have_an_interval() {
        let mut refetches = RefetchBudget::default();
        let mut taken = || (0..100).filter(|_| refetches.take()).count();
        assert_eq!(taken(), BURST_REFETCHES as usize);
        advance(REFETCH_INTERVAL).await;
        assert_eq!(taken(), 1);
        advance(REFETCH_INTERVAL * 100).await;
        assert_eq!(taken(), BURST_REFETCHES as usize);
    }
}
