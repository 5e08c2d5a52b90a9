//! The state that all listeners of a server share: limits, the access of routes, and certificates.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio_rustls::TlsAcceptor;
use wattle_api::guard::access::Access;
use wattle_api::traffic::{CutReason, Traffic};

use super::activity::Timeouts;
use super::cut_log::CutLog;
use super::slots::ConnectionSlots;
use super::tls::{self, Certificates};
use crate::config::{Config, ConnectionsConfig, duration};
use crate::error::Error;

/// The state that all listeners of a server share.
pub(crate) struct ListenState {
    pub(super) config: ConnectionsConfig,
    pub(super) timeouts: Timeouts,
    pub(super) body_timeout: Duration,
    pub(super) traffic: Arc<Traffic>,
    /// The access of each route, which determines the requests that reserved connections accept.
    /// The cell is empty until the router is built.
    pub(super) access: Arc<OnceLock<Arc<Access>>>,
    pub(super) slots: Arc<ConnectionSlots>,
    cut_log: CutLog,
    certificates: Option<Arc<Certificates>>,
    pub(super) tls: Option<TlsAcceptor>,
}

impl ListenState {
    /// Reads the limits and the certificates. The caller sets `access` later, when the router is
    /// built.
    ///
    /// # Errors
    ///
    /// [`Error::Setup`] for certificates that cannot be used.
    pub(crate) fn new(
        config: &Config,
        traffic: Arc<Traffic>,
        access: Arc<OnceLock<Arc<Access>>>,
    ) -> Result<Arc<Self>, Error> {
        let tls = config.server.tls.as_ref();
        let certificates = tls.map(|tls| Certificates::open(tls, &config.base)).transpose()?;
        let tls = certificates.as_ref().map(tls::acceptor).transpose()?;
        let config = config.server.connections;
        let timeouts = Timeouts {
            head: duration(config.head_timeout),
            stall: duration(config.stall_timeout),
            idle: duration(config.idle_timeout),
        };
        Ok(Arc::new(Self {
            config,
            timeouts,
            body_timeout: duration(config.body_timeout),
            slots: ConnectionSlots::new(config.max, config.per_address, traffic.clone()),
            traffic,
            access,
            cut_log: CutLog::default(),
            certificates,
            tls,
        }))
    }

    /// Reloads the certificates when their files change. Never completes.
    pub(crate) async fn reload_certificates(&self) {
        match &self.certificates {
            Some(certificates) => certificates.reload_on_change().await,
            None => std::future::pending().await,
        }
    }

    /// Counts and logs a rejected or closed connection.
    pub(super) fn record_cut(&self, cut: CutReason, from: SocketAddr) {
        self.traffic.count_cut(cut);
        self.cut_log.log(cut, from);
    }
}
