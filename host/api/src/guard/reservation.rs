//! Bytes of request bodies and of responses that were not read, limited per caller and in total.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::{Body, BodyDataStream, HttpBody as _};
use axum::http::header;
use axum::response::Response;
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use serde_json::json;
use wattle_graph::failure::code;
use wattle_run::caller_id::CallerId;
use wattle_run::fair_share::{Full, Lease, Pool};
use wattle_run::limit::JSON_VALUES_BYTES;

use crate::guard::access::Share;
use crate::guard::limits::{
    INSTALL_BYTES, MAX_ALL_CONTROL_REQUESTS, MIN_LARGEST_BODIES, RESPONSE_RESERVE_BYTES,
    limit_reached, max_body_values_bytes,
};
use crate::problem::Problem;
use crate::response::{SharedBytes, next_chunk};
use crate::traffic::{CutReason, Traffic};

// The values of a body can take at least `JSON_VALUES_BYTES`, so a caller who can have the largest
// body with its values can also have a component that is installed.
const _: () = assert!(INSTALL_BYTES as u64 <= JSON_VALUES_BYTES);

/// Returns the limit for all bodies in total, given the configured limit and that for one body. One
/// caller can have the largest body, with its values.
pub(crate) fn total_body_bytes(configured_bytes: usize, body_limit_bytes: usize) -> usize {
    let values_bytes = max_body_values_bytes(body_limit_bytes) as usize;
    let largest_bytes = body_limit_bytes.saturating_add(values_bytes);
    configured_bytes.max(largest_bytes.saturating_mul(MIN_LARGEST_BODIES))
}

/// The bytes that one request body occupies, until they are released. Stored in the extensions of
/// the request. Clones share one reservation.
#[derive(Clone)]
pub struct BodyReservation(Arc<BodyReservationInner>);

struct BodyReservationInner {
    pool: Pool<CallerId>,
    caller: CallerId,
    traffic: Arc<Traffic>,
    bytes: AtomicUsize,
}

impl BodyReservation {
    /// Creates a reservation of 0 bytes.
    pub(crate) fn new(pool: &Pool<CallerId>, caller: CallerId, traffic: &Arc<Traffic>) -> Self {
        let (pool, traffic) = (pool.clone(), traffic.clone());
        Self(Arc::new(BodyReservationInner { pool, caller, traffic, bytes: AtomicUsize::new(0) }))
    }

    /// Adds bytes to the reservation. If this exceeds the limit, adds no bytes and returns false.
    pub(crate) fn try_grow(&self, bytes: usize) -> bool {
        let BodyReservationInner { pool, caller, traffic, bytes: reserved } = &*self.0;
        let is_reserved = pool.take(caller, bytes, usize::MAX).is_ok();
        if is_reserved {
            reserved.fetch_add(bytes, Ordering::Relaxed);
        } else {
            traffic.count_cut(CutReason::BodyMemory);
        }
        is_reserved
    }

    /// Changes the size of the reservation. If this exceeds the limit, releases all bytes and
    /// returns false.
    pub(crate) fn try_resize(&self, bytes: usize) -> bool {
        let BodyReservationInner { pool, caller, bytes: reserved, .. } = &*self.0;
        // Only the difference changes: bytes that were given back could go to other requests.
        let smaller = |before: usize| (bytes <= before).then_some(bytes);
        let is_reserved = match reserved.fetch_update(Ordering::Relaxed, Ordering::Relaxed, smaller)
        {
            Ok(before) => {
                pool.give(caller, before - bytes);
                true
            }
            Err(before) => self.try_grow(bytes - before),
        };
        if !is_reserved {
            self.release();
        }
        is_reserved
    }

    /// Releases all bytes.
    pub(crate) fn release(&self) {
        self.0.release();
    }

    /// Counts the request as rejected because its body is too large.
    pub(crate) fn count_too_large(&self) {
        self.0.traffic.count_cut(CutReason::BodySize);
    }

    /// Counts the bytes of a message that the client has sent after the request, until the result
    /// is dropped. Returns `None` if this exceeds the limit.
    pub fn hold(&self, bytes: usize) -> Option<BodyBytes> {
        let BodyReservationInner { pool, caller, traffic, .. } = &*self.0;
        let held = pool.lease(*caller, bytes, usize::MAX).map(|lease| BodyBytes { _lease: lease });
        held.inspect_err(|_| traffic.count_cut(CutReason::BodyMemory)).ok()
    }
}

impl BodyReservationInner {
    fn release(&self) {
        let bytes = self.bytes.swap(0, Ordering::Relaxed);
        if bytes > 0 {
            self.pool.give(&self.caller, bytes);
        }
    }
}

impl Drop for BodyReservationInner {
    fn drop(&mut self) {
        self.release();
    }
}

/// The memory of a message from a client, such as a command over a WebSocket. It counts as that of
/// request bodies until the value is dropped.
#[must_use]
#[derive(Debug)]
pub struct BodyBytes {
    _lease: Lease<CallerId>,
}

/// The responses of all callers: complete responses, and of streams what their clients have not
/// read.
#[derive(Clone)]
pub(crate) struct ResponsePool {
    max_bytes: usize,
    all: Pool<CallerId>,
    /// Memory that is reserved for the control plane, so that an operator can cancel runs while
    /// unread responses occupy all other memory.
    control: Pool<CallerId>,
}

/// The bytes that the response to one request occupies, from its creation until it is sent. Stored
/// in the extensions of the request. Clones share one reservation.
#[derive(Clone)]
pub struct ResponseReservation(Arc<ResponseReservationInner>);

struct ResponseReservationInner {
    pool: ResponsePool,
    caller: CallerId,
    is_control: bool,
    traffic: Arc<Traffic>,
    /// Bytes in addition to [`RESPONSE_RESERVE_BYTES`].
    bytes: AtomicUsize,
}

/// The bytes of a part of a stream, such as a frame or a message, until they are sent.
#[must_use]
#[derive(Debug)]
pub struct UnreadBytes {
    /// `None` if the bytes fit in the reservation of the request.
    lease: Option<Lease<CallerId>>,
}

/// The error that ends a stream whose next frame does not fit in the memory of unread responses.
#[derive(Debug, thiserror::Error)]
#[error("the unread responses of the caller exceed the limit of bytes")]
struct TooManyUnreadBytes;

impl ResponsePool {
    /// Creates the limit for all responses in total.
    pub(crate) fn new(max_bytes: usize) -> Self {
        let control = Pool::new(MAX_ALL_CONTROL_REQUESTS * RESPONSE_RESERVE_BYTES);
        Self { max_bytes, all: Pool::new(max_bytes), control }
    }

    /// Reserves room for a small response. Fails if the caller's unread responses already take the
    /// caller's share of the memory.
    pub(crate) fn reserve(
        &self,
        caller: CallerId,
        share: Share,
        traffic: &Arc<Traffic>,
    ) -> Result<ResponseReservation, Full> {
        let is_control = share == Share::Control;
        let pool = if is_control { &self.control } else { &self.all };
        let reserved = pool.take(&caller, RESPONSE_RESERVE_BYTES, usize::MAX);
        reserved.inspect_err(|_| traffic.count_cut(CutReason::ResponseMemory))?;
        let (pool, traffic, bytes) = (self.clone(), traffic.clone(), AtomicUsize::new(0));
        let inner = ResponseReservationInner { pool, caller, is_control, traffic, bytes };
        Ok(ResponseReservation(Arc::new(inner)))
    }
}

impl ResponseReservation {
    /// Grows the reservation to the number of bytes that the response has so far. Returns false if
    /// this exceeds the limit.
    pub fn try_grow_to(&self, bytes: usize) -> bool {
        let ResponseReservationInner { pool, caller, traffic, bytes: reserved, .. } = &*self.0;
        let needed = bytes.saturating_sub(RESPONSE_RESERVE_BYTES);
        let more = needed.saturating_sub(reserved.load(Ordering::Relaxed));
        let is_reserved = more == 0 || pool.all.take(caller, more, usize::MAX).is_ok();
        if is_reserved {
            reserved.fetch_add(more, Ordering::Relaxed);
        } else {
            traffic.count_cut(CutReason::ResponseMemory);
        }
        is_reserved
    }

    /// Counts the bytes of a part of a stream until the result is dropped. Returns `None` if this
    /// exceeds the limit.
    pub fn hold(&self, bytes: usize) -> Option<UnreadBytes> {
        let ResponseReservationInner { pool, caller, traffic, .. } = &*self.0;
        let more = bytes.saturating_sub(RESPONSE_RESERVE_BYTES);
        let lease = (more > 0).then(|| pool.all.lease(*caller, more, usize::MAX)).transpose();
        let held = lease.map(|lease| UnreadBytes { lease });
        held.inspect_err(|_| traffic.count_cut(CutReason::ResponseMemory)).ok()
    }

    /// Grows the reservation to the bytes of a part that it [holds](Self::hold). The bytes count
    /// all the time, so other responses of the caller cannot take their place.
    pub fn keep(&self, part: UnreadBytes) {
        let Some(lease) = part.lease else { return };
        let more = lease.amount().saturating_sub(self.0.bytes.load(Ordering::Relaxed));
        self.0.bytes.fetch_add(lease.keep(more), Ordering::Relaxed);
    }

    /// Returns the body of a stream. A frame occupies memory of the pool until the connection
    /// requests the next one. A frame that exceeds the limit ends the stream with an error, so that
    /// the client knows that it is incomplete.
    pub(super) fn hold_frames(self, body: Body) -> Body {
        let frames = UnreadFrames {
            frames: body.into_data_stream(),
            rest: Bytes::new(),
            unread: None,
            reservation: self,
        };
        Body::from_stream(stream::unfold(frames, |mut frames| async move {
            let chunk = frames.next().await?;
            Some((chunk, frames))
        }))
    }

    /// Holds the bytes of a complete response until it is sent. `is_safe` is true for a request
    /// that changes nothing.
    ///
    /// # Errors
    ///
    /// `unavailable` if the limit does not permit the response at the moment; `limit` if the limit
    /// never permits the response, or if the request must not be repeated.
    pub(super) fn hold_until_sent(
        self,
        response: Response,
        is_safe: bool,
    ) -> Result<Response, Problem> {
        let Some(bytes) = response.body().size_hint().exact().filter(|bytes| *bytes > 0) else {
            return Ok(response);
        };
        let is_shared = response.extensions().get::<SharedBytes>().is_some();
        if !is_shared && !self.try_grow_to(bytes as usize) {
            return Err(self.0.too_large_problem(bytes as usize, is_safe));
        }
        let (mut parts, body) = response.into_parts();
        // The length of a body in chunks is unknown to the server, so the header gives the length.
        parts.headers.entry(header::CONTENT_LENGTH).or_insert_with(|| bytes.into());
        Ok(Response::from_parts(parts, in_chunks(body, self)))
    }
}

impl fmt::Debug for ResponseReservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseReservation").field("bytes", &self.0.bytes).finish_non_exhaustive()
    }
}

impl ResponseReservationInner {
    /// Creates the problem for a response that exceeds the limit.
    fn too_large_problem(&self, bytes: usize, is_safe: bool) -> Problem {
        let max_bytes = self.pool.max_bytes.div_ceil(2);
        let hint = if bytes > max_bytes {
            "request less at once, or raise `server.limits.response_bytes` in wattle.toml"
        } else if is_safe {
            return limit_reached("bytes of responses that were not read");
        } else {
            "the request was carried out; read the other responses first, and then get its result \
             with another request"
        };
        let detail = format!(
            "the response has {bytes} bytes, and one caller can have at most {max_bytes} bytes of \
             responses that it has not read; {hint}"
        );
        let details = json!({ "limit": "response_bytes", "allowed": max_bytes });
        Problem::new(code::LIMIT, detail).with_details(details)
    }
}

impl Drop for ResponseReservationInner {
    fn drop(&mut self) {
        let ResponsePool { all, control, .. } = &self.pool;
        let bytes = *self.bytes.get_mut();
        if bytes > 0 {
            all.give(&self.caller, bytes);
        }
        let pool = if self.is_control { control } else { all };
        pool.give(&self.caller, RESPONSE_RESERVE_BYTES);
    }
}

/// The frames of a stream. A large frame is sent in small chunks: a connection keeps the memory of
/// a frame until it has sent all of it.
struct UnreadFrames {
    frames: BodyDataStream,
    /// The part of the last frame that was not requested.
    rest: Bytes,
    /// The bytes of the last frame.
    unread: Option<UnreadBytes>,
    reservation: ResponseReservation,
}

impl UnreadFrames {
    async fn next(&mut self) -> Option<Result<Bytes, axum::Error>> {
        if let Some(chunk) = next_chunk(&mut self.rest) {
            return Some(Ok(chunk));
        }
        self.unread = None;
        let frame = match self.frames.next().await? {
            Ok(frame) if frame.len() <= RESPONSE_RESERVE_BYTES => return Some(Ok(frame)),
            Ok(frame) => frame,
            Err(error) => return Some(Err(error)),
        };
        self.unread = self.reservation.hold(frame.len());
        if self.unread.is_none() {
            tracing::warn!(
                bytes = frame.len(),
                "a stream ends, because its caller has as many bytes of unread responses as \
                 `server.limits.response_bytes` allows"
            );
            return Some(Err(axum::Error::new(TooManyUnreadBytes)));
        }
        self.rest = frame;
        next_chunk(&mut self.rest).map(Ok)
    }
}

/// Sends a body in small chunks, and releases the reservation after the last one.
fn in_chunks(body: Body, reservation: ResponseReservation) -> Body {
    let sending = (body.into_data_stream(), Bytes::new(), reservation);
    Body::from_stream(stream::unfold(sending, |(mut frames, mut rest, reservation)| async move {
        loop {
            if let Some(chunk) = next_chunk(&mut rest) {
                return Some((Ok(chunk), (frames, rest, reservation)));
            }
            match frames.next().await? {
                Ok(bytes) => rest = bytes,
                Err(error) => return Some((Err(error), (frames, rest, reservation))),
            }
        }
    }))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use axum::body::to_bytes;
    use axum::http::StatusCode;

    use super::*;
    use crate::guard::limits::ALL_BODY_BYTES;

    fn reserve(
        responses: &ResponsePool,
        id: &str,
        share: Share,
    ) -> Result<ResponseReservation, Full> {
        responses.reserve(CallerId::of_key(id), share, &Arc::default())
    }

    fn reservation(responses: &ResponsePool, id: &str) -> ResponseReservation {
        reserve(responses, id, Share::Other).unwrap()
    }

    fn response(bytes: usize) -> Response {
        Response::new(Body::from(vec![b'x'; bytes]))
    }

    #[tokio::test]
    async fn response_uses_memory_of_the_pool_until_its_body_is_sent() {
        let responses = ResponsePool::new(1 << 20);
        let large = reservation(&responses, "a").hold_until_sent(response(500_000), true).unwrap();
        assert_eq!(large.headers()[header::CONTENT_LENGTH], "500000");
        let mut chunks = large.into_body().into_data_stream();
        let (first, second) = (chunks.next().await.unwrap().unwrap(), reservation(&responses, "a"));
        assert!(first.len() < 100_000 && !second.try_grow_to(100_000));
        assert!(reservation(&responses, "b").try_grow_to(200_000), "another caller has a share");
        let rest: Vec<Bytes> = chunks.by_ref().map(Result::unwrap).collect().await;
        assert_eq!(first.len() + rest.iter().map(Bytes::len).sum::<usize>(), 500_000);
        assert!(second.try_grow_to(500_000));
        drop(second);
        let abandoned =
            reservation(&responses, "a").hold_until_sent(response(500_000), true).unwrap();
        drop(abandoned);
        assert!(reservation(&responses, "a").try_grow_to(500_000));
    }

    #[test]
    fn kept_part_counts_until_its_reservation_is_dropped() {
        let responses = ResponsePool::new(1 << 20);
        let [connection, other] = ["a", "a"].map(|id| reservation(&responses, id));
        connection.keep(connection.hold(400_000).unwrap());
        assert!(other.hold(200_000).is_none());
        assert!(connection.try_grow_to(400_000), "the bytes are counted once");
        // The reservation has more bytes already than this part.
        connection.keep(connection.hold(100_000).unwrap());
        connection.keep(connection.hold(10).unwrap());
        assert!(other.hold(100_000).is_some());
        drop(connection);
        assert!(other.hold(400_000).is_some());
    }

    /// Returns a stream of frames of the given sizes.
    fn frames(sizes: &[usize]) -> Body {
        let frames: Vec<Result<Vec<u8>, Infallible>> =
            sizes.iter().map(|bytes| Ok(vec![b'x'; *bytes])).collect();
        Body::from_stream(stream::iter(frames))
    }

    #[tokio::test]
    async fn frame_uses_memory_of_the_pool_until_the_next_one_is_requested() {
        let responses = ResponsePool::new(1 << 20);
        let body = reservation(&responses, "a").hold_frames(frames(&[400_000, 10, 400_000, 7]));
        let mut chunks = body.into_data_stream();
        let other = reservation(&responses, "a");
        let mut received = 0;
        while received < 400_000 {
            assert_eq!(other.hold(200_000).is_some(), received == 0, "{received}");
            let chunk = chunks.next().await.unwrap().unwrap();
            assert!(chunk.len() <= RESPONSE_RESERVE_BYTES, "{}", chunk.len());
            received += chunk.len();
        }
        assert_eq!(chunks.next().await.unwrap().unwrap().len(), 10);
        assert!(other.hold(400_000).is_some(), "a small frame needs no memory");
        let rest: Vec<Bytes> = chunks.map(Result::unwrap).collect().await;
        assert_eq!(rest.iter().map(Bytes::len).sum::<usize>(), 400_007);
        assert!(other.hold(400_000).is_some());
    }

    #[tokio::test]
    async fn frame_that_exceeds_the_limit_ends_its_stream_with_an_error() {
        let (responses, traffic) = (ResponsePool::new(1 << 20), Arc::<Traffic>::default());
        let reserve =
            || responses.reserve(CallerId::of_key("a"), Share::Lasting, &traffic).unwrap();
        let unread = reserve();
        let held = unread.hold(400_000).unwrap();
        let body = reserve().hold_frames(frames(&[10, 200_000]));
        let mut chunks = body.into_data_stream();
        assert_eq!(chunks.next().await.unwrap().unwrap().len(), 10);
        assert!(chunks.next().await.unwrap().is_err());
        assert_eq!(traffic.cut_count(CutReason::ResponseMemory), 1);
        drop((held, chunks));
        let body = reserve().hold_frames(frames(&[10, 200_000]));
        assert_eq!(to_bytes(body, usize::MAX).await.unwrap().len(), 200_010);
    }

    #[test]
    fn caller_without_room_is_rejected_before_its_request() {
        let responses = ResponsePool::new(1 << 20);
        let unread = reservation(&responses, "a");
        assert!(unread.try_grow_to(1 << 19));
        assert_eq!(reserve(&responses, "a", Share::Other).err(), Some(Full::Host));
        let control: Vec<_> =
            (0..10).map(|_| reserve(&responses, "a", Share::Control).unwrap()).collect();
        assert!(!control[0].try_grow_to(100_000), "only small responses have room of their own");
        assert!(reserve(&responses, "b", Share::Other).is_ok());
        drop(unread);
        assert!(control[0].try_grow_to(100_000));
        assert!(reserve(&responses, "a", Share::Other).is_ok());
    }

    #[test]
    fn error_for_a_rejected_response_says_whether_the_client_can_retry() {
        let responses = ResponsePool::new(1 << 20);
        let hold =
            |bytes, is_safe| reservation(&responses, "a").hold_until_sent(response(bytes), is_safe);
        let _unread = hold(400_000, true).unwrap();
        let busy = hold(400_000, true).unwrap_err();
        assert_eq!((busy.status, busy.retry_after.is_some()), (503, true));
        for (bytes, is_safe, hint) in
            [(400_000, false, "was carried out"), (600_000, true, "response_bytes")]
        {
            let problem = hold(bytes, is_safe).unwrap_err();
            assert_eq!((problem.status, problem.retry_after), (422, None));
            assert!(problem.detail.contains(hint), "{}", problem.detail);
            assert_eq!(problem.details.as_ref().unwrap()["limit"], "response_bytes");
        }
        let mut shared = response(600_000);
        shared.extensions_mut().insert(SharedBytes);
        let sent = reservation(&responses, "a").hold_until_sent(shared, true).unwrap();
        assert_eq!(sent.status(), StatusCode::OK);
    }

    #[test]
    fn one_caller_cannot_take_all_body_memory() {
        let pool = Pool::new(100);
        let [one, other] = ["a", "b"].map(CallerId::of_key);
        let reservation = |caller| BodyReservation::new(&pool, caller, &Arc::default());
        let large = reservation(one);
        assert!(large.try_grow(30) && large.try_grow(20) && !large.try_grow(1));
        assert!(!reservation(one).try_grow(1), "the limit is per caller, not per request");
        let small = reservation(other);
        assert!(small.try_grow(25));
        large.release();
        assert!(small.try_grow(25));
        drop(small);
        assert!(large.try_grow(50));
        assert!(large.try_resize(10) && reservation(other).try_grow(45));
        assert!(!large.try_resize(51) && reservation(other).try_grow(50), "it holds nothing");
        let command = reservation(one).hold(50).unwrap();
        assert!(!large.try_grow(1) && large.hold(1).is_none());
        drop(command);
        assert!(large.hold(50).is_some());
    }

    #[test]
    fn reservation_that_shrinks_is_kept_when_another_caller_comes() {
        let pool = Pool::new(100);
        let [one, other] = ["a", "b"].map(CallerId::of_key);
        let reservation = |caller| BodyReservation::new(&pool, caller, &Arc::default());
        let (large, small) = (reservation(one), reservation(other));
        assert!(large.try_grow(50) && small.try_grow(25));
        // The caller could take only 38 anew, half of what the other one leaves.
        assert!(large.try_resize(50) && large.try_resize(45));
        assert!(small.try_grow(3) && !small.try_grow(1), "half of the 55 that the first leaves");
        assert!(!large.try_resize(46) && small.try_grow(22), "the first holds nothing");
    }

    #[test]
    fn one_caller_can_have_the_largest_body_with_its_values() {
        const MIB: usize = 1 << 20;
        assert_eq!(total_body_bytes(ALL_BODY_BYTES, 16 * MIB), ALL_BODY_BYTES);
        for limit_bytes in [1, 16 * MIB, 64 * MIB, 1 << 30] {
            let pool = Pool::new(total_body_bytes(0, limit_bytes));
            let body = BodyReservation::new(&pool, CallerId::of_key("a"), &Arc::default());
            assert!(body.try_grow(limit_bytes + max_body_values_bytes(limit_bytes) as usize));
        }
    }
}
