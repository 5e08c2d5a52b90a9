//! Ports of a replay. The ports refuse every call, since the journal has the results.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use wattle_graph::failure::{Failure, code};
use wattle_graph::llm::{Completion, CompletionRequest};

use crate::caller_id::CallerId;
use crate::grant::{Grants, SqlRule};
use crate::hostcall::http::{HttpRequest, HttpResponse};
use crate::hostcall::sql::Rows;
use crate::hostcall::sql::SqlValue;
use crate::limit::SqlLimits;
use crate::ports::model::{DeltaSink, RouteInfo};
use crate::ports::observer::NoObserver;
use crate::ports::sql::SqlTransaction;
use crate::ports::tool_server::NoToolServers;
use crate::ports::{BlobLinks, BlobStore, Caller, Clock, Memory, Model, Net, Ports, Sql, Store};

/// Returns the ports of a replay. `store` and `memory` must be empty, and `blobs` is only read.
/// `links` must have the key of the host that ran the thread, if its guests stored links.
pub fn replay_ports(
    store: Arc<dyn Store>,
    memory: Arc<dyn Memory>,
    blobs: Arc<dyn BlobStore>,
    links: BlobLinks,
    clock: Arc<dyn Clock>,
) -> Ports {
    Ports {
        store,
        blobs,
        links,
        memory,
        model: Arc::new(RefusingPort),
        net: Arc::new(RefusingPort),
        sql: Arc::new(RefusingPort),
        tools: Arc::new(NoToolServers),
        clock,
        observer: Arc::new(NoObserver),
    }
}

/// Returns the ports with a clock in the time zone of another host, if that time zone is known.
pub(super) fn in_time_zone(ports: Ports, zone: Option<&str>) -> Ports {
    let Some(zone) = zone else { return ports };
    let clock = Arc::new(ZonedClock { clock: ports.clock, zone: zone.to_owned() });
    Ports { clock, ..ports }
}

/// A clock in the time zone of another host.
struct ZonedClock {
    clock: Arc<dyn Clock>,
    zone: String,
}

impl Clock for ZonedClock {
    fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    fn monotonic_ns(&self) -> u64 {
        self.clock.monotonic_ns()
    }

    fn time_zone(&self) -> &str {
        &self.zone
    }
}

/// A port that refuses every call.
struct RefusingPort;

/// Returns the failure of a call that the journal does not have.
pub(super) fn refused(what: &str) -> Failure {
    Failure::new(code::DENIED, format!("a replay calls no {what}, and the journal has no result"))
}

#[async_trait]
impl Model for RefusingPort {
    fn has_route(&self, _: &Caller, _: &str) -> bool {
        true
    }

    fn route(&self, _: &Caller, _: &str) -> Option<RouteInfo> {
        None
    }

    async fn complete(
        &self,
        _: &Caller,
        _: &CompletionRequest,
        _: &dyn BlobStore,
        _: &dyn DeltaSink,
    ) -> Result<Completion, Failure> {
        Err(refused("model"))
    }

    async fn set_route(&self, _: &Caller, _: &str, _: Value) -> Result<(), Failure> {
        Err(refused("model"))
    }

    async fn get_route(&self, _: &Caller, _: &str) -> Result<Option<Value>, Failure> {
        Err(refused("model"))
    }

    async fn remove_route(&self, _: &Caller, _: &str) -> Result<(), Failure> {
        Err(refused("model"))
    }
}

#[async_trait]
impl Net for RefusingPort {
    async fn send(
        &self,
        _: &Caller,
        _: &Grants,
        _: &HttpRequest,
        _: &dyn BlobStore,
    ) -> Result<HttpResponse, Failure> {
        Err(refused("service"))
    }
}

#[async_trait]
impl Sql for RefusingPort {
    async fn dialect(&self, _: &str) -> Result<&'static str, Failure> {
        Err(refused("database"))
    }

    async fn query(
        &self,
        _: CallerId,
        _: &str,
        _: &SqlRule,
        _: &SqlLimits,
        _: &str,
        _: &[SqlValue],
    ) -> Result<Rows, Failure> {
        Err(refused("database"))
    }

    async fn begin(
        &self,
        _: CallerId,
        _: &str,
        _: &SqlLimits,
    ) -> Result<Box<dyn SqlTransaction>, Failure> {
        Err(refused("database"))
    }
}
