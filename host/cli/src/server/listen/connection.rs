//! One connection: HTTP/1 or HTTP/2, with or without TLS, until it ends or exceeds a limit.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::http::{HeaderValue, Version, header};
use axum::response::{IntoResponse as _, Response};
use futures::FutureExt as _;
use hyper::body::{Body as _, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tower::Service as _;
use wattle_api::guard::limits::limit_reached;
use wattle_api::traffic::CutReason;

use super::activity::Activity;
use super::body::{TimedBody, TrackedBody};
use super::limits::{
    BUFFER_BYTES, CLOSE_GRACE, HEADER_LIST_BYTES, LOCAL_RESETS, PENDING_RESETS, PING_PERIOD,
    PING_TIMEOUT, STREAM_BUFFER_BYTES,
};
use super::listen_state::ListenState;
use super::slots::Slot;
use super::socket::TrackedSocket;

/// An accepted connection.
pub(super) struct Connection {
    pub(super) listen_state: Arc<ListenState>,
    pub(super) router: Router,
    pub(super) from: SocketAddr,
    pub(super) activity: Arc<Activity>,
    pub(super) is_reserved: bool,
}

impl Connection {
    /// Serves requests. When `stopped` completes, the connection ends after its open requests.
    pub(super) async fn serve(
        self,
        socket: TcpStream,
        slot: Slot,
        tls: Option<TlsAcceptor>,
        stopped: impl Future<Output = ()>,
    ) {
        let socket = TrackedSocket::new(socket, self.activity.clone(), slot);
        let mut stopped = pin!(stopped);
        let Some(tls) = tls else { return self.serve_http(socket, stopped).await };
        let accepted = tokio::select! {
            accepted = tls.accept(socket) => accepted,
            cut = self.activity.wait_for_timeout() => {
                return self.listen_state.record_cut(cut, self.from);
            }
            () = &mut stopped => return,
        };
        match accepted {
            Ok(socket) => self.serve_http(socket, stopped).await,
            Err(error) => tracing::debug!(from = %self.from, %error, "a TLS handshake failed"),
        }
    }

    async fn serve_http<S>(self, socket: S, stopped: Pin<&mut impl Future<Output = ()>>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let builder = self.builder();
        let (activity, listen_state, from) =
            (self.activity.clone(), self.listen_state.clone(), self.from);
        let service = service_fn(move |request| self.respond(request));
        let connection = builder.serve_connection_with_upgrades(TokioIo::new(socket), service);
        let mut connection = pin!(connection);
        let mut stopped = stopped.fuse();
        loop {
            tokio::select! {
                ended = connection.as_mut() => {
                    match ended {
                        // The connection was closed or upgraded.
                        Ok(()) => activity.upgraded(),
                        Err(error) => tracing::debug!(%from, %error, "a connection failed"),
                    }
                    return;
                }
                cut = activity.wait_for_timeout() => {
                    listen_state.record_cut(cut, from);
                    if cut == CutReason::IdleTimeout {
                        connection.as_mut().graceful_shutdown();
                        let _ = tokio::time::timeout(CLOSE_GRACE, connection).await;
                    }
                    return;
                }
                () = &mut stopped => {
                    activity.stop();
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    }

    fn builder(&self) -> Builder<TokioExecutor> {
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            // The timeout of the library is disabled, because `Activity` implements this timeout
            // for HTTP/1, HTTP/2 and TLS handshakes.
            .header_read_timeout(None::<Duration>)
            .max_buf_size(BUFFER_BYTES);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(self.listen_state.config.streams)
            .max_pending_accept_reset_streams(PENDING_RESETS)
            .max_local_error_reset_streams(LOCAL_RESETS)
            .max_header_list_size(HEADER_LIST_BYTES)
            .max_send_buf_size(STREAM_BUFFER_BYTES)
            .keep_alive_interval(PING_PERIOD)
            .keep_alive_timeout(PING_TIMEOUT);
        builder
    }

    fn respond(
        &self,
        request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response<TrackedBody>, Infallible>> + Send + use<> {
        let open_request = self.activity.request(request.version() == Version::HTTP_2);
        let response = self.route(request);
        async move { Ok(response.await.map(|body| TrackedBody::new(body, open_request))) }
    }

    /// Returns true if a request is for the health endpoint or the control plane.
    fn is_control(&self, request: &Request<Incoming>) -> bool {
        let access = self.listen_state.access.get();
        access.is_some_and(|access| access.is_control(request.method(), request.uri().path()))
    }

    fn route(&self, request: Request<Incoming>) -> impl Future<Output = Response> + Send + use<> {
        let refused = self.is_reserved && !self.is_control(&request);
        let is_http2 = request.version() == Version::HTTP_2;
        let mut request = request.map(|body| self.body(body));
        request.extensions_mut().insert(ConnectInfo(self.from));
        let mut router = self.router.clone();
        let traffic = self.listen_state.traffic.clone();
        async move {
            if !refused {
                return router.call(request).await.unwrap_or_else(|never| match never {});
            }
            traffic.count_cut(CutReason::ConnectionLimit);
            let mut response = limit_reached("connections").into_response();
            if !is_http2 {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(header::CONNECTION, close);
            }
            response
        }
    }

    fn body(&self, body: Incoming) -> Body {
        if body.is_end_stream() {
            return Body::empty();
        }
        let ListenState { timeouts, body_timeout, traffic, .. } = &*self.listen_state;
        Body::new(TimedBody::new(body, timeouts.stall, *body_timeout, traffic.clone()))
    }
}
