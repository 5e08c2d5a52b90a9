//! Admission of requests: authentication, scope, rate limit and number of open requests.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::Response;
use futures::{StreamExt as _, stream};
use wattle_graph::failure::code;
use wattle_run::caller_id::CallerId;
use wattle_run::engine::Engine;
use wattle_run::fair_share::Pool;
use wattle_run::reads::{ReadTurns, TurnSpan};

use crate::blob_link::is_link;
use crate::config::ApiConfig;
use crate::guard::access::Access;
use crate::guard::authenticated_key::AuthenticatedKey;
use crate::guard::caller_rate::{CallerIdentity, CallerRateLimit};
use crate::guard::keyring::Keyring;
use crate::guard::limits::{RETRY_AFTER_SECONDS, limit_reached};
use crate::guard::open_requests::{OpenRequests, RequestPermit, too_many_open};
use crate::guard::rate_limiters::{RateLimiters, client_network};
use crate::guard::rejection::Rejection;
use crate::guard::request_key;
use crate::guard::reservation::{
    BodyReservation, ResponsePool, ResponseReservation, total_body_bytes,
};
use crate::guard::revocable_key::RevocableKey;
use crate::guard::scope::KeyScope;
use crate::problem::{Problem, api_code};
use crate::traffic::{CutReason, Traffic};

/// Admits requests. Contains the parts of the API that the guards read, and the state that the
/// guards keep between requests.
pub(crate) struct Admission {
    config: Arc<ApiConfig>,
    engine: Engine,
    traffic: Arc<Traffic>,
    keyring: Arc<Keyring>,
    limiters: Arc<RateLimiters>,
    open: OpenRequests,
    /// Bytes of request bodies in memory.
    bodies: Pool<CallerId>,
    /// Bytes of responses that were not read.
    responses: ResponsePool,
    /// Turns of requests with large states.
    reads: ReadTurns,
}

impl Admission {
    pub(crate) fn new(
        config: Arc<ApiConfig>,
        engine: Engine,
        traffic: Arc<Traffic>,
        keyring: Arc<Keyring>,
    ) -> Self {
        let limits = &config.limits;
        Self {
            limiters: Arc::new(RateLimiters::new(limits)),
            open: OpenRequests::new(limits),
            bodies: Pool::new(total_body_bytes(limits.body_bytes, config.body_limit_bytes)),
            responses: ResponsePool::new(limits.response_bytes),
            reads: ReadTurns::default(),
            config,
            engine,
            traffic,
            keyring,
        }
    }

    pub(super) fn config(&self) -> &ApiConfig {
        &self.config
    }

    /// Admits or rejects a request. An admitted request has its key, user and limits in its
    /// extensions.
    pub(super) async fn admit(
        &self,
        access: &Access,
        request: &mut Request,
    ) -> Result<Admitted, Rejection> {
        let required = access.required(request);
        let Some(scope) = required.scope else {
            return Ok(Admitted { permit: None, reservations: None, reader: None });
        };
        let is_link = is_link(request.method(), request.uri().path());
        let key = self.authenticate(request.headers(), client_network(request), is_link).await?;
        let identity = match &key {
            Some(key) => {
                let checked = self.limiters.check_key(key.id(), key.rate());
                checked.map_err(|delay| self.rate_limited("key", delay))?;
                check_scope(key, scope)?;
                CallerIdentity::Key(key.id().to_owned())
            }
            None => CallerIdentity::Network(self.check_address(client_network(request))?),
        };
        let user = self.config.user_header.as_ref().map(|header| header.read(request));
        let user = user.transpose()?.flatten();
        let record = key.as_ref().and_then(AuthenticatedKey::record);
        let revocable = record.map(|record| {
            RevocableKey::new(self.keyring.clone(), self.engine.clone(), record.digest)
        });
        let rate = key.as_ref().and_then(AuthenticatedKey::rate);
        let caller = identity.caller_id();
        let rate_limit = CallerRateLimit::new(self.limiters.clone(), identity, rate);
        request.extensions_mut().insert(rate_limit);
        let body = BodyReservation::new(&self.bodies, caller, &self.traffic);
        let response = self.responses.reserve(caller, required.share, &self.traffic);
        let response =
            response.map_err(|_| limit_reached("bytes of responses that were not read"))?;
        let permit = self.open.try_acquire(caller, required.share, revocable);
        let permit = permit.map_err(|why| too_many_open(why, &self.traffic))?;
        let extensions = request.extensions_mut();
        extensions.insert(permit.clone());
        extensions.insert(body.clone());
        extensions.insert(response.clone());
        if let Some(user) = user {
            extensions.insert(user);
        }
        if let Some(key) = key {
            if let Some(record) = key.record() {
                let bytes = record.body_limit_bytes.and_then(|bytes| usize::try_from(bytes).ok());
                if let Some(bytes) = bytes {
                    extensions.insert(BodyLimit(bytes));
                }
                self.keyring.record_use(self.engine.ports(), &record.id).await;
            }
            extensions.insert(key);
        }
        let span = if required.only_reads() { TurnSpan::UntilEnd } else { TurnSpan::EachRead };
        let reader = Some(Reader { turns: self.reads.clone(), caller, span });
        Ok(Admitted { permit: Some(permit), reservations: Some((body, response)), reader })
    }

    /// Returns the key of a request. Returns `None` if the request has no key and needs no key.
    async fn authenticate(
        &self,
        headers: &HeaderMap,
        address: IpAddr,
        is_link: bool,
    ) -> Result<Option<AuthenticatedKey>, Rejection> {
        match self.find_key(headers).await {
            Ok(found) => Ok(found),
            // A link is sufficient authorization. A link request with an unknown key is treated as
            // a request without a key.
            Err(_) if is_link => Ok(None),
            Err(problem) => {
                // Requests with invalid keys count against the rate limit of their address.
                self.check_address(address)?;
                Err(problem.into())
            }
        }
    }

    async fn find_key(&self, headers: &HeaderMap) -> Result<Option<AuthenticatedKey>, Problem> {
        let config = &self.config;
        if let Some(key) = request_key::find_configured(config, headers) {
            return Ok(Some(key));
        }
        let ports = self.engine.ports();
        let keys = match self.keyring.keys(ports).await {
            Ok(keys) => keys,
            // A host without keys accepts requests without a key. If the memory is unavailable, a
            // handler that needs the memory reports the failure itself.
            Err(_) if self.keyring.had_no_keys() && !request_key::requires_key(config) => {
                return Ok(None);
            }
            Err(failure) => {
                tracing::warn!(%failure, "failed to load API keys");
                let detail = "the API keys cannot be read at the moment; try again";
                return Err(
                    Problem::new(code::UNAVAILABLE, detail).with_retry_after(RETRY_AFTER_SECONDS)
                );
            }
        };
        if let Some(record) =
            request_key::key_digests(headers).find_map(|digest| keys.find(&digest))
        {
            if !record.is_expired(ports.clock.now_ms()) {
                return Ok(Some(AuthenticatedKey::from_record(record)));
            }
            let detail = format!("the key `{}` has expired; request a new one", record.id);
            return Err(key_needed("invalid", detail));
        }
        if keys.is_empty() && !request_key::requires_key(config) {
            return Ok(None);
        }
        let advice = "send a known key as `authorization: Bearer <key>` or `x-api-key: <key>`";
        if request_key::key_digests(headers).next().is_some() {
            return Err(key_needed("invalid", format!("the API key is unknown; {advice}")));
        }
        Err(key_needed("missing", advice))
    }

    fn check_address(&self, address: IpAddr) -> Result<IpAddr, Rejection> {
        let checked = self.limiters.check_address(address);
        checked.map(|()| address).map_err(|delay| self.rate_limited("address", delay))
    }

    /// Counts a request that exceeds a rate limit as rejected, and returns its rejection.
    fn rate_limited(&self, what: &str, delay: Duration) -> Rejection {
        self.traffic.count_cut(CutReason::RateLimit);
        let seconds = delay.as_millis().div_ceil(1_000).max(1);
        let detail = format!("rate limit of this {what} exceeded; retry after {seconds} s");
        Rejection::too_many_requests(detail, delay)
    }
}

/// A request that passed the guards.
pub(super) struct Admitted {
    /// Permit that counts the request as open; `None` if no limits apply to the route.
    permit: Option<RequestPermit>,
    /// Memory of the body and of the response; `None` if no limits apply to the route.
    reservations: Option<(BodyReservation, ResponseReservation)>,
    /// The caller for whom the request reads; `None` if no limits apply to the route.
    reader: Option<Reader>,
}

/// A caller, with the turns in which its requests read large states.
struct Reader {
    turns: ReadTurns,
    caller: CallerId,
    span: TurnSpan,
}

impl Admitted {
    /// Runs the handler. For a streamed response, holds the permit until the response is sent, and
    /// counts each frame. For a complete response, holds the reservation instead.
    pub(super) async fn run(self, request: Request, next: Next) -> Result<Response, Rejection> {
        let is_safe = request.method().is_safe();
        let (Some((body, reservation)), Some(reader)) = (self.reservations, self.reader) else {
            return Ok(hold_until_sent(self.permit, next.run(request).await));
        };
        let Reader { turns, caller, span } = &reader;
        let response = turns.scope(*caller, *span, next.run(request)).await;
        // The handler has read the body. The streamed response can take hours longer.
        body.release();
        // A complete response needs memory, but no permit.
        if response.body().size_hint().exact().is_some() {
            return reservation.hold_until_sent(response, is_safe).map_err(Rejection::from);
        }
        let response = reader.stream(response).map(|body| reservation.hold_frames(body));
        Ok(hold_until_sent(self.permit, response))
    }
}

impl Reader {
    /// Returns a response whose stream reads large states in turns of the caller.
    fn stream(self, response: Response) -> Response {
        response.map(|body| {
            let frames = (body.into_data_stream(), self);
            Body::from_stream(stream::unfold(frames, |(mut frames, reader)| async move {
                let Self { turns, caller, .. } = &reader;
                let frame = turns.scope(*caller, TurnSpan::EachRead, frames.next()).await?;
                Some((frame, (frames, reader)))
            }))
        })
    }
}

/// Holds the permit until the body is sent or the key is revoked. The permit of a body that is
/// already complete is released immediately.
fn hold_until_sent(permit: Option<RequestPermit>, response: Response) -> Response {
    let is_complete = response.body().size_hint().exact().is_some();
    let Some(permit) = permit.filter(|_| !is_complete) else { return response };
    response.map(|body| {
        let revoked = Box::pin(async move { permit.revoked().await });
        Body::from_stream(body.into_data_stream().take_until(revoked))
    })
}

/// Body limit of the API key in bytes, in the extensions of the request. WebSocket handlers apply
/// this limit to each message.
#[derive(Clone, Copy, Debug)]
pub struct BodyLimit(pub usize);

fn check_scope(key: &AuthenticatedKey, needed: KeyScope) -> Result<(), Rejection> {
    if key.allows(needed) {
        return Ok(());
    }
    let detail = format!("the key `{}` does not have the scope `{needed}`", key.id());
    let details = serde_json::json!({ "missing_scope": needed });
    Err(Problem::new(code::DENIED, detail).with_details(details).into())
}

/// Creates the problem of a request whose key is `missing` or `invalid`. A client that receives
/// this problem asks its user for a key.
fn key_needed(what: &str, detail: impl Into<String>) -> Problem {
    let details = serde_json::json!({ what: "key" });
    Problem::new(api_code::UNAUTHORIZED, detail).with_details(details)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::access::Share;
    use crate::guard::limits::Limits;

    #[tokio::test]
    async fn stream_counts_as_open_until_it_ends() {
        let requests = OpenRequests::new(&Limits { open: 1, all_open: 100, ..Limits::default() });
        let stream = || requests.try_acquire(CallerId::of_key("a"), Share::Lasting, None);
        let (send, chunks) = tokio::sync::mpsc::channel::<Result<&str, std::io::Error>>(1);
        let chunks = futures::stream::unfold(chunks, |mut chunks| async move {
            Some((chunks.recv().await?, chunks))
        });
        let response = hold_until_sent(stream().ok(), Response::new(Body::from_stream(chunks)));
        let mut chunks = response.into_body().into_data_stream();
        send.send(Ok("chunk")).await.unwrap();
        assert_eq!(chunks.next().await.unwrap().unwrap(), "chunk");
        assert!(stream().is_err());
        drop(chunks);
        assert!(stream().is_ok());

        let _ready = hold_until_sent(stream().ok(), Response::new(Body::from("ready")));
        assert!(stream().is_ok());
    }
}
