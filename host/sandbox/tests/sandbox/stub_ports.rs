//! Stub ports for gates. Every port returns `unavailable`, except for a clock that does not advance,
//! a network that delays every exchange, and an empty store.

mod store;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Value, json};
use wattle_graph::event::Event;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{AppName, PluginName, RunId, TaskId, ThreadId};
use wattle_graph::llm::{Completion, CompletionRequest};
use wattle_graph::plan::TaskInput;
use wattle_run::app::{App, PluginGrants};
use wattle_run::caller_id::CallerId;
use wattle_run::gate::{Gate, GuestEnv};
use wattle_run::grant::{Grants, SqlRule};
use wattle_run::hostcall::http::{HttpRequest, HttpResponse};
use wattle_run::hostcall::runs::{
    EndedRun, ListThreads, ResumeRun, RunRef, RunService, StartRun, ThreadView, UpdateThread,
};
use wattle_run::hostcall::sql::{Rows, SqlValue};
use wattle_run::limit::{Limits, SqlLimits};
use wattle_run::ports::blob::{BlobInfo, BlobRef};
use wattle_run::ports::memory::{Item, ListNamespaces, MemoryScope, MemorySearch, PutItem};
use wattle_run::ports::model::{DeltaSink, RouteInfo};
use wattle_run::ports::observer::NoObserver;
use wattle_run::ports::sandbox::NodeCall;
use wattle_run::ports::sql::SqlTransaction;
use wattle_run::ports::store::{ThreadRecord, ThreadSearchPage};
use wattle_run::ports::tool_server::NoToolServers;
use wattle_run::ports::{BlobLinks, BlobStore, Caller, Clock, Memory, Model, Net, Ports, Sql};
use wattle_run::stop_flag::StopFlag;

/// Time of the clock, in milliseconds since 1970.
pub(crate) const NOW_MS: i64 = 1_700_000_000_123;

/// Duration of every HTTP exchange.
pub(crate) const EXCHANGE: Duration = Duration::from_millis(150);

struct StubPorts;

fn unavailable() -> Failure {
    Failure::new(code::UNAVAILABLE, "the stub port returns nothing")
}

/// Returns a model whose calls fail.
pub(crate) fn stub_model() -> Arc<dyn Model> {
    Arc::new(StubPorts)
}

/// Returns the name of the plugin behind every gate.
pub(crate) fn guest() -> PluginName {
    PluginName::new("guest").unwrap()
}

/// Returns an app in which the guest has the given grants.
pub(crate) fn app(grants: Grants) -> App {
    let grants = PluginGrants::from([(guest(), Arc::new(grants))]).into();
    App { grants, ..App::empty(AppName::new("app").unwrap()) }
}

/// Returns a gate of a web handler, which needs no thread.
pub(crate) fn gate(limits: Limits, cancel: StopFlag) -> Arc<Gate> {
    gate_to(stub_model(), app(Grants { limits, ..Grants::default() }), cancel)
}

/// Returns a gate like [`gate`] with the given network.
pub(crate) fn gate_through(net: Arc<dyn Net>, limits: Limits, cancel: StopFlag) -> Arc<Gate> {
    gate_of(stub_model(), net, app(Grants { limits, ..Grants::default() }), cancel)
}

/// Returns a gate of a web handler with the given model and app.
pub(crate) fn gate_to(model: Arc<dyn Model>, app: App, cancel: StopFlag) -> Arc<Gate> {
    gate_of(model, Arc::new(StubPorts), app, cancel)
}

/// Returns a gate of a web handler with the given model, network and app.
pub(crate) fn gate_of(
    model: Arc<dyn Model>,
    net: Arc<dyn Net>,
    app: App,
    cancel: StopFlag,
) -> Arc<Gate> {
    let ports = Ports {
        store: Arc::new(StubPorts),
        blobs: Arc::new(StubPorts),
        links: BlobLinks::new(b"test"),
        memory: Arc::new(StubPorts),
        model,
        net,
        sql: Arc::new(StubPorts),
        tools: Arc::new(NoToolServers),
        clock: Arc::new(StubPorts),
        observer: Arc::new(NoObserver),
    };
    let owner = CallerId::of_app(&app.name);
    let caller = Caller { app: app.name.clone(), plugin: guest(), tenant: None, owner };
    let grants = app.grants_of(&guest());
    let (app, quotas, schemas) = (Arc::new(app), Arc::default(), Arc::default());
    let ports = Arc::new(ports);
    let setting = GuestEnv { ports, caller, grants, app, cancel, quotas, schemas };
    Arc::new(Gate::for_web(setting, Arc::new(StubPorts)))
}

/// Returns a call of the node `n`.
pub(crate) fn call() -> NodeCall {
    NodeCall {
        node: "n".to_owned(),
        graph: wattle_graph::id::GraphName::new("graph").unwrap(),
        thread: ThreadId::new("thread").unwrap(),
        run: RunId::new("run").unwrap(),
        task: TaskId::new("task").unwrap(),
        step: 0,
        attempt: 1,
        remaining_steps: 10,
        tenant: None,
        context: Arc::default(),
        input: TaskInput::Sent(Arc::new(json!({}))),
        conversation: None,
        config: Arc::default(),
        error: None,
    }
}

impl Clock for StubPorts {
    fn now_ms(&self) -> i64 {
        NOW_MS
    }

    fn monotonic_ns(&self) -> u64 {
        7
    }

    fn time_zone(&self) -> &'static str {
        "UTC"
    }
}

#[async_trait]
impl Net for StubPorts {
    async fn send(
        &self,
        _caller: &Caller,
        _grants: &Grants,
        request: &HttpRequest,
        _blobs: &dyn BlobStore,
    ) -> Result<HttpResponse, Failure> {
        tokio::time::sleep(EXCHANGE).await;
        Ok(HttpResponse {
            status: 200,
            headers: Vec::new(),
            body: Bytes::new(),
            url: request.url.clone(),
        })
    }
}

#[async_trait]
impl Model for StubPorts {
    fn has_route(&self, _caller: &Caller, _route: &str) -> bool {
        false
    }

    fn route(&self, _caller: &Caller, _route: &str) -> Option<RouteInfo> {
        None
    }

    async fn complete(
        &self,
        _caller: &Caller,
        _request: &CompletionRequest,
        _blobs: &dyn BlobStore,
        _deltas: &dyn DeltaSink,
    ) -> Result<Completion, Failure> {
        Err(unavailable())
    }

    async fn set_route(
        &self,
        _caller: &Caller,
        _route: &str,
        _config: Value,
    ) -> Result<(), Failure> {
        Err(unavailable())
    }

    async fn get_route(&self, _caller: &Caller, _route: &str) -> Result<Option<Value>, Failure> {
        Err(unavailable())
    }

    async fn remove_route(&self, _caller: &Caller, _route: &str) -> Result<(), Failure> {
        Err(unavailable())
    }
}

#[async_trait]
impl BlobStore for StubPorts {
    async fn put(&self, _bytes: Bytes, _media_type: &str) -> Result<BlobRef, Failure> {
        Err(unavailable())
    }

    async fn get(
        &self,
        _blob: BlobRef,
        _offset: u64,
        _length: Option<u64>,
    ) -> Result<Bytes, Failure> {
        Err(unavailable())
    }

    async fn stat(&self, _blob: BlobRef) -> Result<BlobInfo, Failure> {
        Err(unavailable())
    }
}

#[async_trait]
impl Memory for StubPorts {
    async fn usage(&self, _scope: &MemoryScope, _prefix: &[String]) -> Result<u64, Failure> {
        Err(unavailable())
    }

    async fn get(
        &self,
        _scope: &MemoryScope,
        _namespace: &[String],
        _key: &str,
        _now_ms: i64,
    ) -> Result<Option<Item>, Failure> {
        Err(unavailable())
    }

    async fn peek(
        &self,
        _scope: &MemoryScope,
        _namespace: &[String],
        _key: &str,
        _now_ms: i64,
    ) -> Result<Option<Item>, Failure> {
        Err(unavailable())
    }

    async fn put(&self, _scope: &MemoryScope, _item: PutItem, _now: i64) -> Result<(), Failure> {
        Err(unavailable())
    }

    async fn compare_and_set(
        &self,
        _scope: &MemoryScope,
        _known: Option<&Value>,
        _item: PutItem,
        _now_ms: i64,
    ) -> Result<bool, Failure> {
        Err(unavailable())
    }

    async fn compare_and_delete(
        &self,
        _scope: &MemoryScope,
        _namespace: &[String],
        _key: &str,
        _known: &Value,
        _now_ms: i64,
    ) -> Result<bool, Failure> {
        Err(unavailable())
    }

    async fn list(
        &self,
        _scope: &MemoryScope,
        _namespace: &[String],
        _after: &str,
        _limit: usize,
        _now_ms: i64,
    ) -> Result<Vec<Item>, Failure> {
        Err(unavailable())
    }

    async fn delete(
        &self,
        _scope: &MemoryScope,
        _namespace: &[String],
        _key: &str,
    ) -> Result<(), Failure> {
        Err(unavailable())
    }

    async fn search(
        &self,
        _scope: &MemoryScope,
        _search: &MemorySearch,
        _now_ms: i64,
    ) -> Result<Vec<Item>, Failure> {
        Err(unavailable())
    }

    async fn namespaces(
        &self,
        _scope: &MemoryScope,
        _list: &ListNamespaces,
        _now_ms: i64,
    ) -> Result<Vec<Vec<String>>, Failure> {
        Err(unavailable())
    }

    async fn clear(&self, _scope: &MemoryScope, _prefix: &[String]) -> Result<usize, Failure> {
        Err(unavailable())
    }

    async fn sweep(&self, _now_ms: i64) -> Result<usize, Failure> {
        Err(unavailable())
    }
}

#[async_trait]
impl Sql for StubPorts {
    async fn dialect(&self, _database: &str) -> Result<&'static str, Failure> {
        Err(unavailable())
    }

    async fn query(
        &self,
        _owner: CallerId,
        _database: &str,
        _rule: &SqlRule,
        _limits: &SqlLimits,
        _statement: &str,
        _parameters: &[SqlValue],
    ) -> Result<Rows, Failure> {
        Err(unavailable())
    }

    async fn begin(
        &self,
        _owner: CallerId,
        _database: &str,
        _limits: &SqlLimits,
    ) -> Result<Box<dyn SqlTransaction>, Failure> {
        Err(unavailable())
    }
}

#[async_trait]
impl RunService for StubPorts {
    async fn start(&self, _request: StartRun) -> Result<RunRef, Failure> {
        Err(unavailable())
    }

    async fn resume(&self, _request: ResumeRun) -> Result<RunRef, Failure> {
        Err(unavailable())
    }

    async fn wait(&self, _run: &RunRef) -> Result<EndedRun, Failure> {
        Err(unavailable())
    }

    async fn cancel(&self, _run: &RunRef) -> Result<(), Failure> {
        Err(unavailable())
    }

    async fn thread(&self, _thread: &ThreadId) -> Result<Option<ThreadView>, Failure> {
        Err(unavailable())
    }

    async fn delete_thread(&self, _thread: &ThreadId) -> Result<(), Failure> {
        Err(unavailable())
    }

    async fn threads(&self, _list: ListThreads) -> Result<ThreadSearchPage, Failure> {
        Err(unavailable())
    }

    async fn update_thread(&self, _update: UpdateThread) -> Result<ThreadRecord, Failure> {
        Err(unavailable())
    }

    async fn events(
        &self,
        _thread: &ThreadId,
        _after: u64,
        _limit: usize,
    ) -> Result<Vec<Event>, Failure> {
        Err(unavailable())
    }
}
