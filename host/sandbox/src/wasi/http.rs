//! `wasi:http` of components that import it. Each request is a host call `http.send` of the plugin,
//! with its grants, its secrets and its journal.
//!
//! A guest sends a request, writes the body, and waits for the response at any later time, so each
//! host call runs concurrently with the guest. A re-executed guest must get the same results: a
//! host call gets its call number when the guest sends the request, responses arrive in the order
//! of the requests, and the guest call ends only after all its host calls.

pub(crate) mod message;

use std::future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use http::{Request, Response};
use serde_json::json;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::coop::unconstrained;
use wasmtime::component::ResourceTable;
use wasmtime_wasi_http::{
    Error, RequestOptions, WasiBody, WasiHttpCtx, WasiHttpCtxView, WasiHttpHooks,
};
use wattle_graph::failure::{Failure, code};
use wattle_run::gate::unwind::{CallError, Unwind};
use wattle_run::gate::{CallTicket, Gate};
use wattle_run::hostcall::log::LogMessage;
use wattle_run::limit;

use crate::concurrent_calls::ConcurrentCalls;
use crate::wasi::http::message::{HeldBytes, NotSent};

/// Maximum size of the headers of one request in memory, in bytes. A guest can hold a thousand
/// requests in memory.
const MAX_FIELDS_BYTES: usize = 16 << 10;

/// Maximum number of bytes of a request's body that the host holds for the guest. The limit is
/// small for the same reason as [`MAX_FIELDS_BYTES`].
const MAX_BODY_BYTES: usize = 32 << 10;

/// Number of writes to a body that the host holds. The implementation of `wasi:http` holds one more
/// than [`WasiHttpHooks::p2_outgoing_body_buffer_chunks`].
const BODY_CHUNKS: usize = 2;

/// Maximum number of requests of a guest that have no response yet. A guest can hold the same
/// number of resources, so only a guest that drops requests before their responses reaches the
/// limit.
const MAX_EXCHANGES: usize = 1_000;

/// `wasi:http` of one guest.
pub(crate) struct GuestHttp {
    context: WasiHttpCtx,
    requests: OutgoingRequests,
}

/// The requests of one guest.
struct OutgoingRequests {
    /// `None` while the guest describes itself, and in a reducer: every request is denied.
    gate: Option<Arc<Gate>>,
    /// The host calls of the requests.
    calls: ConcurrentCalls,
    /// Permits for concurrent host calls of the guest.
    places: Arc<Semaphore>,
    /// Total size of the bodies in memory, in bytes.
    held_bytes: Arc<AtomicU64>,
    newest: Option<NewestRequest>,
    /// True when the guest has ended. A request whose body the guest has not finished is not sent.
    is_over: watch::Sender<bool>,
    /// True once the log of the guest has a message about a denied request. A guest that repeats
    /// the request would otherwise fill the log.
    is_denial_logged: Arc<AtomicBool>,
}

/// The newest request of a guest.
struct NewestRequest {
    /// Number of the first call in the batch of the request.
    batch: u32,
    /// Closes when the guest can take the response, or has dropped the future of the response.
    arrived: oneshot::Receiver<()>,
}

/// The result of a request, as the guest gets it.
type Exchanged = Result<Response<WasiBody>, Error>;

/// The end of the transfer of a body.
type Transfer = Box<dyn Future<Output = Result<(), Error>> + Send>;

/// The future that the implementation of `wasi:http` awaits for a request.
type ExchangeFuture =
    Box<dyn Future<Output = Result<(Response<WasiBody>, Transfer), Error>> + Send>;

impl GuestHttp {
    /// Creates `wasi:http` of a guest. Its requests become host calls in `calls`.
    pub(crate) fn new(gate: Option<Arc<Gate>>, calls: ConcurrentCalls) -> Self {
        let mut context = WasiHttpCtx::new();
        context.set_field_size_limit(MAX_FIELDS_BYTES);
        let requests = OutgoingRequests {
            gate,
            calls,
            places: Arc::new(Semaphore::new(limit::BATCH_CONCURRENCY)),
            held_bytes: Arc::default(),
            newest: None,
            is_over: watch::Sender::new(false),
            is_denial_logged: Arc::default(),
        };
        Self { context, requests }
    }

    /// Returns the view that the implementation of `wasi:http` works with.
    pub(crate) fn view<'a>(&'a mut self, table: &'a mut ResourceTable) -> WasiHttpCtxView<'a> {
        WasiHttpCtxView { hooks: &mut self.requests, table, ctx: &mut self.context }
    }

    /// Marks the guest as ended. A request whose body the guest has not finished is not sent.
    pub(crate) fn end_bodies(&self) {
        self.requests.is_over.send_replace(true);
    }
}

impl OutgoingRequests {
    /// Begins the host call of a request, which runs concurrently with the guest. Returns a future
    /// of the response.
    fn start(
        &mut self,
        gate: Arc<Gate>,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
    ) -> Result<ExchangeFuture, Unwind> {
        if self.calls.len() >= MAX_EXCHANGES {
            return Err(Unwind::Limit(too_many_requests()));
        }
        let under_way = self.newest.take().and_then(NewestRequest::under_way);
        let ticket = gate.begin_call(under_way.as_ref().map(|newest| newest.batch))?;
        let (arrives, arrived) = oneshot::channel::<()>();
        self.newest = Some(NewestRequest { batch: ticket.batch(), arrived });
        let (responds, response) = oneshot::channel();
        let exchange = Exchange {
            gate,
            ticket,
            request,
            options,
            places: self.places.clone(),
            held_bytes: self.held_bytes.clone(),
            is_over: self.is_over.subscribe(),
            is_denial_logged: self.is_denial_logged.clone(),
        };
        self.calls.push(async move {
            let exchanged = exchange.run().await;
            // The guest may have dropped the future of the response.
            exchanged.map(|exchanged| drop(responds.send(exchanged)))
        });
        Ok(Box::new(async move {
            let exchanged: Result<Exchanged, _> = response.await;
            if let Some(newest) = under_way {
                // An error means that the guest dropped the response to the previous request.
                let _ = newest.arrived.await;
            }
            let response = exchanged.unwrap_or_else(|_| Err(lost()))?;
            let transfer = async move {
                drop(arrives);
                Ok::<_, Error>(())
            };
            Ok((response, Box::new(transfer) as Transfer))
        }))
    }
}

impl NewestRequest {
    /// Returns the request if its response has not arrived yet, else `None`.
    fn under_way(mut self) -> Option<Self> {
        matches!(self.arrived.try_recv(), Err(TryRecvError::Empty)).then_some(self)
    }
}

/// The call of one request.
struct Exchange {
    gate: Arc<Gate>,
    ticket: CallTicket,
    request: Request<WasiBody>,
    options: Option<RequestOptions>,
    places: Arc<Semaphore>,
    held_bytes: Arc<AtomicU64>,
    is_over: watch::Receiver<bool>,
    is_denial_logged: Arc<AtomicBool>,
}

impl Exchange {
    /// Waits for the body and then for a permit of `places`, and makes the call. A request whose
    /// body is incomplete holds no permit, because the guest can write the bodies of many requests
    /// in turn.
    async fn run(self) -> Result<Exchanged, Unwind> {
        let Self { gate, ticket, request, options, places, .. } = self;
        let (mut is_over, is_denial_logged) = (self.is_over, self.is_denial_logged);
        // All host calls of the guest together may have this number of bytes. If the bodies had
        // more, a host call would end the guest anyway.
        let allowed_at_once = gate.limits().host_call_bytes;
        let mut held = HeldBytes::new(self.held_bytes, allowed_at_once);
        let allowed = gate.limits().net.request_bytes;
        let guest_ended = async {
            // An error means that the guest is being dropped, and this call with it.
            let _ = is_over.wait_for(|is_over| *is_over).await;
        };
        // A complete body is collected in one poll, even if the task has used up its cooperative
        // budget.
        let collected = unconstrained(message::into_call(request, options, allowed, &mut held));
        let call = tokio::select! {
            biased;
            call = collected => call,
            () = guest_ended => Err(NotSent::Error(Error::HttpProtocolError)),
        };
        let call = match call {
            Ok(call) => call,
            Err(NotSent::Error(error)) => return Ok(Err(error)),
            Err(NotSent::HeldBytes) => return Err(Unwind::Limit(too_many_bytes(allowed_at_once))),
        };
        // This fails only if the semaphore is closed, which never happens.
        let _place = places.acquire().await;
        match ticket.call(call).await {
            Ok(response) => Ok(message::into_response(response)),
            Err(CallError::Unwind(reason)) => Err(reason),
            Err(CallError::Failure(failure)) => {
                let is_denied = failure.code == code::DENIED;
                if is_denied && !is_denial_logged.swap(true, Ordering::Relaxed) {
                    // The error code for the guest has no message, but the message of this failure
                    // names the grant to add.
                    gate.push_log(LogMessage::new("warn", failure.message.clone()));
                }
                Ok(Err(message::into_error(failure)))
            }
        }
    }
}

impl WasiHttpHooks for OutgoingRequests {
    fn send_request(
        &mut self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _received: Transfer,
    ) -> ExchangeFuture {
        let Some(gate) = self.gate.clone() else {
            return Box::new(future::ready(Err(Error::HttpRequestDenied)));
        };
        self.start(gate, request, options).unwrap_or_else(|reason| {
            self.calls.unwind(reason);
            Box::new(future::pending())
        })
    }

    /// The client of the host sets the header.
    fn set_host_header(&mut self) -> bool {
        false
    }

    fn p2_outgoing_body_buffer_chunks(&mut self) -> usize {
        BODY_CHUNKS - 1
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        MAX_BODY_BYTES / BODY_CHUNKS
    }
}

fn too_many_requests() -> Failure {
    let text = format!(
        "the plugin has {MAX_EXCHANGES} requests of `wasi:http` without a response; wait for \
         responses before the next requests"
    );
    let details = json!({ "limit": "wasi_http_requests", "allowed": MAX_EXCHANGES });
    Failure::new(code::LIMIT, text).with_details(details)
}

fn too_many_bytes(allowed: u64) -> Failure {
    let text = format!(
        "the requests of `wasi:http` that wait for their turn have bodies of more than {allowed} \
         bytes; wait for responses before the next requests"
    );
    let details = json!({ "limit": "host_call_bytes", "allowed": allowed });
    Failure::new(code::LIMIT, text).with_details(details)
}

/// Returns the error of a request whose host call unwinds the guest. The guest ends before it reads
/// the error. It must never read the error, since a later execution with the same journal would not
/// get this error.
fn lost() -> Error {
    Error::InternalError(Some("the host lost the request".to_owned()))
}
