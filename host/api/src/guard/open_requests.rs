//! Limits on the number of open requests.
//!
//! All requests count, not only streams: the host learns whether a request becomes a stream only
//! from its handler, and then it is too late to reject the request.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;
use wattle_graph::failure::code;
use wattle_run::caller_id::CallerId;
use wattle_run::fair_share::{Full, Pool};

use crate::guard::access::Share;
use crate::guard::limits::{
    LASTING_FRACTION, Limits, MAX_ALL_CONTROL_REQUESTS, MAX_CONTROL_REQUESTS, RETRY_AFTER_SECONDS,
    limit_reached,
};
use crate::guard::revocable_key::RevocableKey;
use crate::problem::Problem;
use crate::traffic::{CutReason, Traffic};

/// The open requests of all callers.
#[derive(Clone)]
pub(crate) struct OpenRequests {
    max_per_caller: usize,
    /// All open requests except control-plane requests, which `control` counts.
    all: Pool<CallerId>,
    /// Streams and waits, which `all` also counts.
    lasting: Pool<CallerId>,
    control: Pool<CallerId>,
}

/// Counts a request as open until the last clone is dropped. Stored in the extensions of the
/// request. A WebSocket handler keeps a clone while its connection is open, and closes the
/// connection when [`RequestPermit::revoked`] completes.
#[derive(Clone)]
pub struct RequestPermit(Arc<PermitInner>);

struct PermitInner {
    caller: CallerId,
    /// No code that can panic runs under this lock.
    share: Mutex<Share>,
    requests: OpenRequests,
    /// The created key of the request, which can be revoked.
    key: Option<RevocableKey>,
}

impl OpenRequests {
    /// Creates the limits for each caller and for all callers.
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            max_per_caller: limits.open,
            all: Pool::new(limits.all_open),
            lasting: Pool::new(lasting_part(limits.all_open)),
            control: Pool::new(MAX_ALL_CONTROL_REQUESTS),
        }
    }

    /// Counts a request as open. Fails if the caller or the host has reached its limit. `key` is
    /// the key of the request if the key can be revoked.
    pub(crate) fn try_acquire(
        &self,
        caller: CallerId,
        share: Share,
        key: Option<RevocableKey>,
    ) -> Result<RequestPermit, Full> {
        match share {
            Share::Control => self.control.take(&caller, 1, MAX_CONTROL_REQUESTS)?,
            Share::Other => self.all.take(&caller, 1, self.max_per_caller)?,
            Share::Lasting => {
                self.lasting.take(&caller, 1, lasting_part(self.max_per_caller))?;
                let taken = self.all.take(&caller, 1, self.max_per_caller);
                taken.inspect_err(|_| self.lasting.give(&caller, 1))?;
            }
        }
        let share = Mutex::new(share);
        Ok(RequestPermit(Arc::new(PermitInner { caller, share, requests: self.clone(), key })))
    }

    fn release(&self, caller: CallerId, share: Share) {
        match share {
            Share::Control => self.control.give(&caller, 1),
            Share::Other => self.all.give(&caller, 1),
            Share::Lasting => {
                self.lasting.give(&caller, 1);
                self.all.give(&caller, 1);
            }
        }
    }
}

/// Returns how many of `requests` open requests may be streams and waits: at least one.
fn lasting_part(requests: usize) -> usize {
    let (part, parts) = LASTING_FRACTION;
    requests.saturating_mul(part).div_ceil(parts)
}

/// Counts a request that exceeds a limit of open requests as rejected, and returns its problem.
pub(super) fn too_many_open(why: Full, traffic: &Traffic) -> Problem {
    traffic.count_cut(CutReason::RequestLimit);
    match why {
        Full::Host => limit_reached("open requests"),
        Full::Caller => {
            let detail = "this caller has too many open requests, including streams and waits; \
                          end some of them";
            let details = json!({ "retry_after_ms": RETRY_AFTER_SECONDS * 1_000 });
            Problem::new(code::RATE_LIMITED, detail)
                .with_details(details)
                .with_retry_after(RETRY_AFTER_SECONDS)
        }
    }
}

impl RequestPermit {
    /// Returns the caller of a request with a permit; the default caller without one.
    pub fn caller_of(permit: Option<&Self>) -> CallerId {
        permit.map(|permit| permit.0.caller).unwrap_or_default()
    }

    /// From now on, counts a control-plane request against the limits of other requests. A handler
    /// calls this method if the request needs much work, so that the control plane has room for
    /// other requests in the meantime.
    ///
    /// # Errors
    ///
    /// `rate-limited` or `unavailable` if the caller or the host has reached its limit of other
    /// requests. `traffic` counts the rejection, and the request remains a control-plane request.
    pub fn leave_control(&self, traffic: &Traffic) -> Result<(), Problem> {
        let PermitInner { caller, share, requests, .. } = &*self.0;
        let mut share = share.lock().unwrap_or_else(PoisonError::into_inner);
        if *share == Share::Control {
            let taken = requests.all.take(caller, 1, requests.max_per_caller);
            taken.map_err(|why| too_many_open(why, traffic))?;
            requests.control.give(caller, 1);
            *share = Share::Other;
        }
        Ok(())
    }

    /// Returns true if the key of the request is revoked or expired.
    pub async fn is_revoked(&self) -> bool {
        match &self.0.key {
            Some(key) => key.is_revoked().await,
            None => false,
        }
    }

    /// Waits until the key of the request is revoked or expires. Never completes if the request has
    /// no revocable key.
    pub async fn revoked(&self) {
        match &self.0.key {
            Some(key) => key.revoked().await,
            None => std::future::pending().await,
        }
    }
}

impl Drop for PermitInner {
    fn drop(&mut self) {
        let share = *self.share.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.requests.release(self.caller, share);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(open: usize, all_open: usize) -> OpenRequests {
        OpenRequests::new(&Limits { open, all_open, ..Limits::default() })
    }

    fn acquire(requests: &OpenRequests, id: &str, share: Share) -> Result<RequestPermit, Full> {
        requests.try_acquire(CallerId::of_key(id), share, None)
    }

    #[test]
    fn open_requests_of_a_caller_are_limited() {
        let requests = requests(2, 100);
        let first = acquire(&requests, "a", Share::Other).unwrap();
        let clone = first.clone();
        let _second = acquire(&requests, "a", Share::Lasting).unwrap();
        assert_eq!(acquire(&requests, "a", Share::Other).err(), Some(Full::Caller));
        assert!(acquire(&requests, "b", Share::Other).is_ok());
        drop(first);
        assert!(acquire(&requests, "a", Share::Other).is_err(), "a clone holds the permit");
        drop(clone);
        assert!(acquire(&requests, "a", Share::Other).is_ok());
    }

    #[test]
    fn streams_leave_room_for_other_requests() {
        let requests = requests(8, 100);
        let streams: Vec<_> =
            std::iter::from_fn(|| acquire(&requests, "a", Share::Lasting).ok()).collect();
        assert_eq!(streams.len(), 6);
        let others: Vec<_> =
            std::iter::from_fn(|| acquire(&requests, "a", Share::Other).ok()).collect();
        assert_eq!(others.len(), 2);
        drop(others);
        assert_eq!(acquire(&requests, "a", Share::Lasting).err(), Some(Full::Caller));
    }

    #[test]
    fn one_caller_cannot_take_all_open_requests() {
        let requests = requests(100, 8);
        let all = |id: &str| -> Vec<_> {
            std::iter::from_fn(|| acquire(&requests, id, Share::Other).ok()).collect()
        };
        let (first, second) = (all("a"), all("b"));
        assert_eq!((first.len(), second.len()), (4, 2));
        assert_eq!(acquire(&requests, "a", Share::Other).err(), Some(Full::Host));
        let control: Vec<_> =
            std::iter::from_fn(|| acquire(&requests, "a", Share::Control).ok()).collect();
        assert_eq!(control.len(), MAX_CONTROL_REQUESTS, "the control plane has limits of its own");
    }

    #[test]
    fn request_that_leaves_the_control_plane_counts_as_other_request() {
        let (requests, traffic) = (requests(1, 100), Traffic::default());
        let other = acquire(&requests, "a", Share::Other).unwrap();
        let control: Vec<_> = (0..MAX_CONTROL_REQUESTS)
            .map(|_| acquire(&requests, "a", Share::Control).unwrap())
            .collect();
        let problem = control[0].leave_control(&traffic).unwrap_err();
        assert_eq!((problem.status, problem.retry_after), (429, Some(RETRY_AFTER_SECONDS)));
        assert_eq!(traffic.cut_count(CutReason::RequestLimit), 1);
        assert!(acquire(&requests, "a", Share::Control).is_err(), "it counts as before");
        drop(other);
        for _ in 0..2 {
            control[0].leave_control(&traffic).unwrap();
        }
        assert_eq!(traffic.cut_count(CutReason::RequestLimit), 1);
        assert!(acquire(&requests, "a", Share::Other).is_err());
        let _further = acquire(&requests, "a", Share::Control).unwrap();
        drop(control);
        assert!(acquire(&requests, "a", Share::Other).is_ok());
    }
}
