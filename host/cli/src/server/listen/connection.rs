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

use super::Listening;
use super::activity::Activity;
use super::body::{Taken, Timed};
use super::io::Watched;
use super::limits::{
    BUFFER_BYTES, CLOSE_GRACE, HEADER_LIST_BYTES, LOCAL_RESETS, PENDING_RESETS, PING_PERIOD,
    PING_TIMEOUT, STREAM_BUFFER_BYTES,
};
use super::room::Seat;

/// An accepted connection.
pub(super) struct Connection {
    pub(super) listening: Arc<Listening>,
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
        seat: Seat,
        tls: Option<TlsAcceptor>,
        stopped: impl Future<Output = ()>,
    ) {
        let socket = Watched::new(socket, self.activity.clone(), seat);
        let mut stopped = pin!(stopped);
        let Some(tls) = tls else { return self.speak(socket, stopped).await };
        let accepted = tokio::select! {
            accepted = tls.accept(socket) => accepted,
            cut = self.activity.overdue() => return self.listening.note(cut, self.from),
            () = &mut stopped => return,
        };
        match accepted {
            Ok(socket) => self.speak(socket, stopped).await,
            Err(error) => tracing::debug!(from = %self.from, %error, "a TLS handshake failed"),
        }
    }

    async fn speak<S>(self, socket: S, stopped: Pin<&mut impl Future<Output = ()>>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let builder = self.builder();
        let (activity, listening, from) =
            (self.activity.clone(), self.listening.clone(), self.from);
        let service = service_fn(move |request| self.answer(request));
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
                cut = activity.overdue() => {
                    listening.note(cut, from);
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
            // `Activity` implements this timeout, also for HTTP/2 and TLS handshakes.
            .header_read_timeout(None::<Duration>)
            .max_buf_size(BUFFER_BYTES);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(self.listening.config.streams)
            .max_pending_accept_reset_streams(PENDING_RESETS)
            .max_local_error_reset_streams(LOCAL_RESETS)
            .max_header_list_size(HEADER_LIST_BYTES)
            .max_send_buf_size(STREAM_BUFFER_BYTES)
            .keep_alive_interval(PING_PERIOD)
            .keep_alive_timeout(PING_TIMEOUT);
        builder
    }

    fn answer(
        &self,
        request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response<Taken>, Infallible>> + Send + use<> {
        let underway = self.activity.request(request.version() == Version::HTTP_2);
        let answering = self.pass(request);
        async move { Ok(answering.await.map(|body| Taken::new(body, underway))) }
    }

    /// Returns true if a request is for the health endpoint or the control plane.
    fn is_control(&self, request: &Request<Incoming>) -> bool {
        let access = self.listening.access.get();
        access.is_some_and(|access| access.is_control(request.method(), request.uri().path()))
    }

    fn pass(&self, request: Request<Incoming>) -> impl Future<Output = Response> + Send + use<> {
        let refused = self.is_reserved && !self.is_control(&request);
        let is_http2 = request.version() == Version::HTTP_2;
        let mut request = request.map(|body| self.body(body));
        request.extensions_mut().insert(ConnectInfo(self.from));
        let mut router = self.router.clone();
        let traffic = self.listening.traffic.clone();
        async move {
            if !refused {
                return router.call(request).await.unwrap_or_else(|never| match never {});
            }
            traffic.count_cut(CutReason::ConnectionLimit);
            let mut answer = limit_reached("connections").into_response();
            if !is_http2 {
                let close = HeaderValue::from_static("close");
                answer.headers_mut().insert(header::CONNECTION, close);
            }
            answer
        }
    }

    fn body(&self, body: Incoming) -> Body {
        if body.is_end_stream() {
            return Body::empty();
        }
        let Listening { times, body_time, traffic, .. } = &*self.listening;
        Body::new(Timed::new(body, times.stall, *body_time, traffic.clone()))
    }
}
