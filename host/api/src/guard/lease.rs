//! Bytes of request bodies and of complete responses in memory, limited per caller and in total.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::{Body, HttpBody as _};
use axum::http::header;
use axum::response::Response;
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use serde_json::json;
use wattle_graph::failure::code;
use wattle_run::caller_id::CallerId;
use wattle_run::fair_share::{Full, Pool};

use crate::guard::access::Share;
use crate::guard::limits::{
    ALL_BODY_BYTES, MAX_ALL_CONTROL_REQUESTS, MIN_LARGEST_BODIES, RESPONSE_RESERVE_BYTES, full,
};
use crate::problem::Problem;
use crate::response::{SharedBytes, next_piece};
use crate::traffic::{Cut, Traffic};

/// Returns the limit for all bodies in total, given the limit for one body.
pub(crate) fn body_bytes(body_limit_bytes: usize) -> usize {
    ALL_BODY_BYTES.max(body_limit_bytes.saturating_mul(MIN_LARGEST_BODIES))
}

/// The bytes that one request body occupies, until they are released. Stored in the extensions of
/// the request. Clones share the bytes.
#[derive(Clone)]
pub(crate) struct BodyLease(Arc<Held>);

struct Held {
    pool: Pool<CallerId>,
    caller: CallerId,
    traffic: Arc<Traffic>,
    bytes: AtomicUsize,
}

impl BodyLease {
    /// Creates a lease of 0 bytes.
    pub(crate) fn new(pool: &Pool<CallerId>, caller: CallerId, traffic: &Arc<Traffic>) -> Self {
        let (pool, traffic) = (pool.clone(), traffic.clone());
        Self(Arc::new(Held { pool, caller, traffic, bytes: AtomicUsize::new(0) }))
    }

    /// Adds bytes to the lease. Returns false, and adds none, if the limit does not permit them.
    pub(crate) fn grow(&self, bytes: usize) -> bool {
        let Held { pool, caller, traffic, bytes: held } = &*self.0;
        let is_taken = pool.take(caller, bytes, usize::MAX).is_ok();
        if is_taken {
            held.fetch_add(bytes, Ordering::Relaxed);
        } else {
            traffic.cut(Cut::Bodies);
        }
        is_taken
    }

    /// Replaces the bytes of the lease. Returns false, and holds none, if the limit does not permit
    /// them.
    pub(crate) fn replace(&self, bytes: usize) -> bool {
        self.release();
        self.grow(bytes)
    }

    /// Releases all bytes.
    pub(crate) fn release(&self) {
        self.0.release();
    }
}

impl Held {
    fn release(&self) {
        let bytes = self.bytes.swap(0, Ordering::Relaxed);
        if bytes > 0 {
            self.pool.give(&self.caller, bytes);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.release();
    }
}

/// The complete responses of all callers.
#[derive(Clone)]
pub(crate) struct Responses {
    bytes: usize,
    all: Pool<CallerId>,
    /// Reserves of the control plane. An operator can cancel runs while unread responses take all
    /// other memory.
    control: Pool<CallerId>,
}

/// The bytes that the response to one request occupies from when it is made until it is sent.
/// Stored in the extensions of the request. Clones share the bytes.
#[derive(Clone)]
pub struct ResponseLease(Arc<HeldResponse>);

struct HeldResponse {
    responses: Responses,
    caller: CallerId,
    is_control: bool,
    traffic: Arc<Traffic>,
    /// Bytes in addition to the reserve.
    bytes: AtomicUsize,
}

impl Responses {
    /// Creates the limit for all responses in total.
    pub(crate) fn new(bytes: usize) -> Self {
        let control = Pool::new(MAX_ALL_CONTROL_REQUESTS * RESPONSE_RESERVE_BYTES);
        Self { bytes, all: Pool::new(bytes), control }
    }

    /// Reserves room for a small response. Fails if unread responses of the caller take its share.
    pub(crate) fn reserve(
        &self,
        caller: CallerId,
        share: Share,
        traffic: &Arc<Traffic>,
    ) -> Result<ResponseLease, Full> {
        let is_control = share == Share::Control;
        let pool = if is_control { &self.control } else { &self.all };
        let taken = pool.take(&caller, RESPONSE_RESERVE_BYTES, usize::MAX);
        taken.inspect_err(|_| traffic.cut(Cut::Responses))?;
        let (responses, traffic, bytes) = (self.clone(), traffic.clone(), AtomicUsize::new(0));
        let held = HeldResponse { responses, caller, is_control, traffic, bytes };
        Ok(ResponseLease(Arc::new(held)))
    }
}

impl ResponseLease {
    /// Makes room for a response that has this many bytes by now. Returns false if the limit does
    /// not permit them.
    pub fn grow_to(&self, bytes: usize) -> bool {
        let HeldResponse { responses, caller, traffic, bytes: held, .. } = &*self.0;
        let wanted = bytes.saturating_sub(RESPONSE_RESERVE_BYTES);
        let more = wanted.saturating_sub(held.load(Ordering::Relaxed));
        let is_taken = more == 0 || responses.all.take(caller, more, usize::MAX).is_ok();
        if is_taken {
            held.fetch_add(more, Ordering::Relaxed);
        } else {
            traffic.cut(Cut::Responses);
        }
        is_taken
    }

    /// Holds the bytes of a complete response until it is sent. `is_safe` tells whether the request
    /// changes nothing.
    ///
    /// # Errors
    ///
    /// `unavailable` if the limit does not permit the response at the moment; `limit` if it never
    /// does, or if the request must not be repeated.
    pub(super) fn hold(self, response: Response, is_safe: bool) -> Result<Response, Problem> {
        let Some(bytes) = response.body().size_hint().exact().filter(|bytes| *bytes > 0) else {
            return Ok(response);
        };
        let is_shared = response.extensions().get::<SharedBytes>().is_some();
        if !is_shared && !self.grow_to(bytes as usize) {
            return Err(self.0.refuse(bytes as usize, is_safe));
        }
        let (mut parts, body) = response.into_parts();
        // The body of pieces has no length of its own.
        parts.headers.entry(header::CONTENT_LENGTH).or_insert_with(|| bytes.into());
        Ok(Response::from_parts(parts, in_pieces(body, self)))
    }
}

impl fmt::Debug for ResponseLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseLease").field("bytes", &self.0.bytes).finish_non_exhaustive()
    }
}

impl HeldResponse {
    /// Returns the problem for a response that does not fit.
    fn refuse(&self, bytes: usize, is_safe: bool) -> Problem {
        let most = self.responses.bytes.div_ceil(2);
        let hint = if bytes > most {
            "request less at once, or raise `server.limits.response_bytes` in wattle.toml"
        } else if is_safe {
            return full("bytes of responses that were not read");
        } else {
            "the request was carried out; read the responses before, and then its result with \
             another request"
        };
        let detail = format!(
            "the response has {bytes} bytes, and one caller can have at most {most} bytes of \
             responses that it has not read; {hint}"
        );
        let details = json!({ "limit": "response_bytes", "allowed": most });
        Problem::new(code::LIMIT, detail).with_details(details)
    }
}

impl Drop for HeldResponse {
    fn drop(&mut self) {
        let Responses { all, control, .. } = &self.responses;
        let bytes = *self.bytes.get_mut();
        if bytes > 0 {
            all.give(&self.caller, bytes);
        }
        let pool = if self.is_control { control } else { all };
        pool.give(&self.caller, RESPONSE_RESERVE_BYTES);
    }
}

/// Sends a body in small pieces, and releases the lease after the last one.
fn in_pieces(body: Body, lease: ResponseLease) -> Body {
    let sending = (body.into_data_stream(), Bytes::new(), lease);
    Body::from_stream(stream::unfold(sending, |(mut frames, mut rest, lease)| async move {
        loop {
            if let Some(piece) = next_piece(&mut rest) {
                return Some((Ok(piece), (frames, rest, lease)));
            }
            match frames.next().await? {
                Ok(bytes) => rest = bytes,
                Err(error) => return Some((Err(error), (frames, rest, lease))),
            }
        }
    }))
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;

    use super::*;

    fn reserve(responses: &Responses, id: &str, share: Share) -> Result<ResponseLease, Full> {
        responses.reserve(CallerId::of_key(id), share, &Arc::default())
    }

    fn lease(responses: &Responses, id: &str) -> ResponseLease {
        reserve(responses, id, Share::Other).unwrap()
    }

    fn response(bytes: usize) -> Response {
        Response::new(Body::from(vec![b'x'; bytes]))
    }

    #[tokio::test]
    async fn complete_response_is_in_the_pool_until_it_is_sent() {
        let responses = Responses::new(1 << 20);
        let large = lease(&responses, "a").hold(response(500_000), true).unwrap();
        assert_eq!(large.headers()[header::CONTENT_LENGTH], "500000");
        let mut pieces = large.into_body().into_data_stream();
        let (first, second) = (pieces.next().await.unwrap().unwrap(), lease(&responses, "a"));
        assert!(first.len() < 100_000 && !second.grow_to(100_000));
        assert!(lease(&responses, "b").grow_to(200_000), "another caller has a share");
        let rest: Vec<Bytes> = pieces.by_ref().map(Result::unwrap).collect().await;
        assert_eq!(first.len() + rest.iter().map(Bytes::len).sum::<usize>(), 500_000);
        assert!(second.grow_to(500_000));
        drop(second);
        let abandoned = lease(&responses, "a").hold(response(500_000), true).unwrap();
        drop(abandoned);
        assert!(lease(&responses, "a").grow_to(500_000));
    }

    #[test]
    fn caller_without_room_is_rejected_before_its_request() {
        let responses = Responses::new(1 << 20);
        let unread = lease(&responses, "a");
        assert!(unread.grow_to(1 << 19));
        assert_eq!(reserve(&responses, "a", Share::Other).err(), Some(Full::Host));
        let control: Vec<_> =
            (0..10).map(|_| reserve(&responses, "a", Share::Control).unwrap()).collect();
        assert!(!control[0].grow_to(100_000), "only small responses have room of their own");
        assert!(reserve(&responses, "b", Share::Other).is_ok());
        drop(unread);
        assert!(control[0].grow_to(100_000));
        assert!(reserve(&responses, "a", Share::Other).is_ok());
    }

    #[test]
    fn response_that_does_not_fit_tells_whether_to_repeat_the_request() {
        let responses = Responses::new(1 << 20);
        let hold = |bytes, is_safe| lease(&responses, "a").hold(response(bytes), is_safe);
        let _unread = hold(400_000, true).unwrap();
        let busy = hold(400_000, true).unwrap_err();
        assert_eq!((busy.status, busy.retry_after.is_some()), (503, true));
        for (bytes, is_safe, hint) in
            [(400_000, false, "was carried out"), (600_000, true, "response_bytes")]
        {
            let refused = hold(bytes, is_safe).unwrap_err();
            assert_eq!((refused.status, refused.retry_after), (422, None));
            assert!(refused.detail.contains(hint), "{}", refused.detail);
            assert_eq!(refused.details.as_ref().unwrap()["limit"], "response_bytes");
        }
        let mut shared = response(600_000);
        shared.extensions_mut().insert(SharedBytes);
        let sent = lease(&responses, "a").hold(shared, true).unwrap();
        assert_eq!(sent.status(), StatusCode::OK);
    }

    #[test]
    fn one_caller_cannot_take_all_body_memory() {
        let pool = Pool::new(100);
        let [one, other] = ["a", "b"].map(CallerId::of_key);
        let lease = |caller| BodyLease::new(&pool, caller, &Arc::default());
        let large = lease(one);
        assert!(large.grow(30) && large.grow(20) && !large.grow(1));
        assert!(!lease(one).grow(1), "the limit is per caller, not per request");
        let small = lease(other);
        assert!(small.grow(25));
        large.release();
        assert!(small.grow(25));
        drop(small);
        assert!(large.grow(50));
        assert!(large.replace(10) && lease(other).grow(45));
        assert!(!large.replace(51) && lease(other).grow(50), "it holds nothing");
    }

    #[test]
    fn limit_of_all_bodies_fits_several_large_ones() {
        assert_eq!(body_bytes(16 << 20), 256 << 20);
        assert_eq!(body_bytes(1 << 30), 4 << 30);
    }
}
