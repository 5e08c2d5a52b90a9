//! Ports without services, for guests that make no host calls.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use wattle_graph::event::Event;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{AppName, PluginName, ThreadId};
use wattle_model::{ModelConfig, Routes};
use wattle_net::{NetConfig, OutboundHttp, Secrets};
use wattle_run::app::App;
use wattle_run::caller_id::CallerId;
use wattle_run::gate::{Gate, GuestEnv};
use wattle_run::hostcall::runs::{
    EndedRun, ListThreads, ResumeRun, RunRef, RunService, StartRun, ThreadView, UpdateThread,
};
use wattle_run::ports::observer::NoObserver;
use wattle_run::ports::store::{ThreadRecord, ThreadSearchPage};
use wattle_run::ports::tool_server::NoToolServers;
use wattle_run::ports::{BlobLinks, Caller, Clock, Ports};
use wattle_run::stop_flag::StopFlag;
use wattle_sql::Databases;
use wattle_store::{InMemoryBlobs, InMemoryStore, VolatileMemory};

/// Returns a gate for one call.
pub(crate) fn gate() -> Arc<Gate> {
    static PORTS: OnceLock<Arc<Ports>> = OnceLock::new();
    let ports = PORTS.get_or_init(|| Arc::new(ports())).clone();
    let app = App::empty(AppName::new("app").expect("the name is valid"));
    let plugin = PluginName::new("guest").expect("the name is valid");
    let grants = app.grants_of(&plugin);
    let owner = CallerId::of_app(&app.name);
    let caller = Caller { app: app.name.clone(), plugin, tenant: None, owner };
    let (app, cancel) = (Arc::new(app), StopFlag::default());
    let (quotas, schemas) = (Arc::default(), Arc::default());
    let setting = GuestEnv { ports, caller, grants, app, cancel, quotas, schemas };
    Arc::new(Gate::for_web(setting, Arc::new(Nothing)))
}

fn ports() -> Ports {
    let sql = crate::wait(Databases::open(BTreeMap::new(), Path::new("")));
    let model = Routes::new(ModelConfig::default(), &|_| None);
    let net = OutboundHttp::new(&NetConfig::default(), Secrets::default());
    Ports {
        store: Arc::new(InMemoryStore::new()),
        blobs: Arc::new(InMemoryBlobs::new()),
        links: BlobLinks::new(b"fuzz"),
        memory: Arc::new(VolatileMemory::new()),
        model: Arc::new(model.expect("nothing is a valid configuration")),
        net: Arc::new(net.expect("there is a client")),
        sql: Arc::new(sql.expect("there is no database")),
        tools: Arc::new(NoToolServers),
        clock: Arc::new(Nothing),
        observer: Arc::new(NoObserver),
    }
}

/// A clock with a constant time, and an engine without runs.
struct Nothing;

fn nothing<T>() -> Result<T, Failure> {
    Err(Failure::new(code::UNAVAILABLE, "the fuzz targets have no services"))
}

impl Clock for Nothing {
    fn now_ms(&self) -> i64 {
        1_700_000_000_000
    }

    fn monotonic_ns(&self) -> u64 {
        7
    }

    fn time_zone(&self) -> &'static str {
        "UTC"
    }
}

#[async_trait]
impl RunService for Nothing {
    async fn start(&self, _request: StartRun) -> Result<RunRef, Failure> {
        nothing()
    }

    async fn resume(&self, _request: ResumeRun) -> Result<RunRef, Failure> {
        nothing()
    }

    async fn wait(&self, _run: &RunRef) -> Result<EndedRun, Failure> {
        nothing()
    }

    async fn cancel(&self, _run: &RunRef) -> Result<(), Failure> {
        nothing()
    }

    async fn thread(&self, _thread: &ThreadId) -> Result<Option<ThreadView>, Failure> {
        nothing()
    }

    async fn delete_thread(&self, _thread: &ThreadId) -> Result<(), Failure> {
        nothing()
    }

    async fn threads(&self, _list: ListThreads) -> Result<ThreadSearchPage, Failure> {
        nothing()
    }

    async fn update_thread(&self, _update: UpdateThread) -> Result<ThreadRecord, Failure> {
        nothing()
    }

    async fn events(
        &self,
        _thread: &ThreadId,
        _after: u64,
        _limit: usize,
    ) -> Result<Vec<Event>, Failure> {
        nothing()
    }
}
