//! `wasi:http` of components that import it: a guest can make requests, and the host denies to send
//! them.
//!
//! The runtimes of JavaScript and Python import `wasi:http` whether or not a plugin uses it, so a
//! host without it could not load what their toolchains build. Requests to other hosts go through
//! `wattle:plugin/http`, which has grants and secrets.

use std::sync::Arc;

use http::{Request, Response};
use wasmtime::component::ResourceTable;
use wasmtime_wasi_http::{
    Error, RequestOptions, WasiBody, WasiHttpCtx, WasiHttpCtxView, WasiHttpHooks,
};
use wattle_run::gate::Gate;
use wattle_run::hostcall::log::LogMessage;

/// Maximum size of the headers of one request in memory, in bytes. A guest can hold a thousand
/// requests, and none is sent.
const MAX_FIELDS_BYTES: usize = 16 << 10;

/// Maximum number of bytes of a request's body that the host holds for the guest. Small for the
/// same reason as [`MAX_FIELDS_BYTES`].
const MAX_BODY_BYTES: usize = 32 << 10;

/// Number of writes to a body that the host holds. The implementation of `wasi:http` has a place
/// more than [`WasiHttpHooks::p2_outgoing_body_buffer_chunks`].
const BODY_CHUNKS: usize = 2;

/// The context of `wasi:http` of one guest.
pub(crate) struct DeniedHttp {
    context: WasiHttpCtx,
    hooks: DenyRequests,
}

/// Denies every request.
struct DenyRequests {
    gate: Option<Arc<Gate>>,
    /// Whether the log of the guest says that requests are denied.
    is_logged: bool,
}

/// The end of the transfer of a body.
type Transfer = Box<dyn Future<Output = Result<(), Error>> + Send>;

/// What sending a request results in.
type Exchange = Box<dyn Future<Output = Result<(Response<WasiBody>, Transfer), Error>> + Send>;

impl DeniedHttp {
    /// Creates the context of a guest. The first request that is denied is a message of its gate.
    pub(crate) fn new(gate: Option<Arc<Gate>>) -> Self {
        let mut context = WasiHttpCtx::new();
        context.set_field_size_limit(MAX_FIELDS_BYTES);
        Self { context, hooks: DenyRequests { gate, is_logged: false } }
    }

    /// Returns the view that the implementation of `wasi:http` works with.
    pub(crate) fn view<'a>(&'a mut self, table: &'a mut ResourceTable) -> WasiHttpCtxView<'a> {
        WasiHttpCtxView { hooks: &mut self.hooks, table, ctx: &mut self.context }
    }
}

impl DenyRequests {
    /// Logs the first request. A guest that repeats it would fill the log.
    fn log(&mut self, request: &Request<WasiBody>) {
        let Some(gate) = self.gate.as_ref().filter(|_| !self.is_logged) else { return };
        // The rest of the address may contain a secret.
        let host = request.uri().host().unwrap_or_default();
        let message = format!(
            "the request of `wasi:http` to `{host}` was denied; send it with `wattle:plugin/http`, \
             and grant it by `http` under `[grants.{}]` in wattle.toml",
            gate.caller().plugin
        );
        gate.push_log(LogMessage::new("warn", message));
        self.is_logged = true;
    }
}

impl WasiHttpHooks for DenyRequests {
    fn send_request(
        &mut self,
        request: Request<WasiBody>,
        _options: Option<RequestOptions>,
        _received: Transfer,
    ) -> Exchange {
        self.log(&request);
        Box::new(async { Err(Error::HttpRequestDenied) })
    }

    fn p2_outgoing_body_buffer_chunks(&mut self) -> usize {
        BODY_CHUNKS - 1
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        MAX_BODY_BYTES / BODY_CHUNKS
    }
}
