//! The tool list of a server: when it is requested, and what callers get if that fails.

use std::sync::Arc;

use tokio::time::Instant;
use wattle_graph::failure::{Failure, code};
use wattle_run::ports::sandbox::ToolInfo;

use super::Server;
use super::tool_cache::{ListTimeout, ToolCache};
use crate::calls::MAX_LISTED_BYTES;
use crate::connect::Session;
use crate::running_call::is_stateless;
use crate::tool_list::ToolList;
use crate::unreadable::ResponseTo;
use crate::{failure, tool_list};

/// The timeout divided by this number is the delay before the tool list is requested again from a
/// server that timed out. Every model call needs the list, but does not wait for this request.
const RETRY_DELAY_DIVISOR: u32 = 3;

impl Server {
    /// Returns the tools, from the cache while it is fresh. If the server is unavailable, the
    /// cached tools are returned, so that a call of a tool fails with the reason and not as an
    /// unknown tool. Callers that arrive during the first request wait for its end. If it times
    /// out, they and later callers get the failure without a further wait, while a background task
    /// requests the list again.
    pub(crate) async fn list(self: &Arc<Self>) -> Result<Vec<ToolInfo>, Failure> {
        let mut kept = self.tool_cache.lock().await;
        if let Some(tools) = self.cached_tools(&mut kept) {
            return Ok(tools);
        }
        let failure = match &mut kept.timeout {
            Some(silence) => {
                let now = Instant::now();
                if silence.retry_at <= now {
                    // At this time the request has ended or timed out, so no two requests overlap.
                    silence.retry_at = now + 2 * self.timeout;
                    tokio::spawn(self.clone().refresh_tools());
                }
                silence.failure.clone()
            }
            None => {
                let fetched = self.with_timeout(self.timeout, self.fetch_tools()).await;
                match self.cache_list(&mut kept, fetched) {
                    Ok(()) => {
                        return Ok(kept.list.iter().flat_map(|it| it.tools.clone()).collect());
                    }
                    Err(failure) => failure,
                }
            }
        };
        match &kept.list {
            Some(old) if failure.retryable => {
                tracing::warn!(server = %self.name, %failure, "using an outdated tool list");
                Ok(old.tools.clone())
            }
            _ => Err(failure),
        }
    }

    /// Requests the list again from a server that timed out.
    async fn refresh_tools(self: Arc<Self>) {
        let fetched = self.with_timeout(self.timeout, self.fetch_tools()).await;
        let mut kept = self.tool_cache.lock().await;
        if let Err(failure) = self.cache_list(&mut kept, fetched) {
            tracing::debug!(server = %self.name, %failure, "an MCP server is still unavailable");
        }
    }

    /// Caches a list or a timeout.
    fn cache_list(
        &self,
        kept: &mut ToolCache,
        fetched: Result<ToolList, Failure>,
    ) -> Result<(), Failure> {
        kept.timeout = None;
        match fetched {
            Ok(mut listing) => {
                kept.timeout =
                    listing.timed_out_after.map(|time| self.list_timeout(self.timed_out(time)));
                if let Some(earlier) = kept.list.take().filter(|_| !listing.is_complete) {
                    listing.fill_in(earlier);
                }
                kept.list = Some(listing);
                Ok(())
            }
            Err(failure) => {
                if failure.code == code::TIMEOUT {
                    kept.timeout = Some(self.list_timeout(failure.clone()));
                }
                Err(failure)
            }
        }
    }

    fn list_timeout(&self, failure: Failure) -> ListTimeout {
        ListTimeout { failure, retry_at: Instant::now() + self.timeout / RETRY_DELAY_DIVISOR }
    }

    /// Returns the tools of the cached list. Returns `None` if the list must be requested, because
    /// it has expired or because the server says that it has changed.
    fn cached_tools(&self, cache: &mut ToolCache) -> Option<Vec<ToolInfo>> {
        let listing = cache.list.as_ref()?;
        let is_young = Instant::now() < listing.fresh_until || self.is_reserved();
        let is_changed = listing.generation != self.generation.current();
        let is_fresh = is_young && !(is_changed && cache.refetches.take());
        is_fresh.then(|| listing.tools.clone())
    }

    /// Returns true if the session is reserved for a held call, when the server may be busy.
    fn is_reserved(&self) -> bool {
        let is_reserved = |session: &Arc<Session>| session.service().calls().is_session_reserved();
        self.session.try_lock().is_ok_and(|open| open.as_ref().is_some_and(is_reserved))
    }

    /// Requests all pages of the list. The caller sets the timeout. Later pages time out earlier, so
    /// that the tools of the earlier pages are returned in time, however slow the first page is.
    pub(super) async fn fetch_tools(&self) -> Result<ToolList, Failure> {
        let (began, time) = (Instant::now(), self.timeout / 4 * 3);
        let session = self.session().await?;
        let changes = self.generation.current();
        let (normalizer, subject) = (self.connector.normalizer(), "the list of its tools");
        let (peer, calls) = (session.peer(), session.service().calls());
        let read_page = move |page| calls.list_tools(peer, page);
        // `rmcp` keeps the schemas of all pages in a session of the stateless protocol.
        let listed_before = calls.listed_bytes();
        let is_full =
            || is_stateless(&session) && calls.listed_bytes() - listed_before > MAX_LISTED_BYTES;
        let read = tool_list::fetch(normalizer, read_page, changes, began, time, is_full).await;
        let request = ResponseTo::OtherRequest;
        let (listing, rest) = self.map_request_error(&session, subject, request, read).await?;
        // The session stays open, because it returned the earlier pages.
        if let Err(error) = rest {
            let failure = failure::request_failure(self.connector.sanitizer(), subject, &error);
            normalizer.note(&format!("later pages of the tool list are missing: {failure}"));
        }
        Ok(listing)
    }
}
