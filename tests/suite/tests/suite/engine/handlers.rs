//! Limits of web handlers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{AppName, PluginName, ThreadId};
use wattle_graph::tool::ToolRequest;
use wattle_run::app::App;
use wattle_run::caller_id::CallerId;
use wattle_run::engine::{Engine, EngineConfig};
use wattle_run::gate::unwind::{CallError, Unwind};
use wattle_run::grant::Grants;
use wattle_run::hostcall::emit::Emission;
use wattle_run::hostcall::runs::{ListThreads, RunOutcome, RunService as _};
use wattle_run::limit::Limits;
use wattle_run::ports::Plugin;
use wattle_run::ports::sandbox::{GuestError, WebRequest, WebResponse};
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::prompt;
use wattle_suite::world::{self, World};

const ONE: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.channels.done]
[graphs.one.nodes.work]
plugin = "p"
"#;

/// Returns a plugin whose node does nothing. A test adds the web handler.
fn plugin() -> NativePlugin {
    NativePlugin::new("p", "1").node("work", |_, _| async move { Ok(json!({ "done": true })) })
}

/// Returns an app of plugins. The first one has the web handler.
fn app(plugins: Vec<(NativePlugin, Grants)>) -> Arc<App> {
    let plugins = plugins.into_iter();
    let plugins = plugins.map(|(plugin, grants)| (Arc::new(plugin) as Arc<dyn Plugin>, grants));
    let app = world::app(ONE, plugins.collect());
    Arc::new(App { web: Some(PluginName::new("p").unwrap()), ..app })
}

fn get(path: &str) -> WebRequest {
    WebRequest {
        method: "GET".into(),
        path: path.into(),
        route: path.into(),
        params: Vec::new(),
        query: Vec::new(),
        headers: Vec::new(),
        body: Bytes::new(),
        tenant: None,
    }
}

async fn handle(
    engine: &Engine,
    app: &Arc<App>,
    path: &str,
    caller: CallerId,
) -> Result<WebResponse, GuestError> {
    engine.handle_web(app, get(path), None, caller).await
}

/// Returns true if the host refused a handler because others hold as many instances as they may.
fn is_refused(ended: &Result<WebResponse, GuestError>) -> bool {
    match ended {
        Ok(_) => false,
        Err(GuestError::Host(failure)) if failure.code == code::UNAVAILABLE => {
            failure.retryable && failure.details.as_ref().unwrap()["limit"] == "handlers"
        }
        Err(other) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_web_handler_that_loops_over_calls_is_limited_by_name() {
    let handler = || {
        plugin().web(|request, gate| async move {
            let thread = ThreadId::new("t").map_err(|_| Failure::internal("a thread"))?;
            // More calls than any limit allows.
            for _ in 0..100_000 {
                match request.path.as_str() {
                    "/clock" => {
                        gate.now_ms()?;
                    }
                    "/threads" => {
                        gate.thread(&thread).await?;
                    }
                    "/requests" => {
                        gate.call(prompt(&"x".repeat(10_000))).await?;
                    }
                    _ => {
                        let message = "on the way".to_owned();
                        gate.emit(Emission::Progress { message, fraction: None }).await?;
                    }
                }
            }
            Ok(json!({}))
        })
    };
    let limits = Limits { host_call_bytes: 200_000, ..Limits::default() };
    let grants = Grants { llm: ["chat".to_owned()].into(), limits, ..Grants::default() };
    let world = World::new(ONE, plugin());
    let app = app(vec![(handler(), grants)]);
    for (path, limit) in [
        ("/clock", "host_calls"),
        ("/threads", "host_calls"),
        ("/requests", "host_call_bytes"),
        ("/emits", "emitted_events"),
    ] {
        let ended = handle(&world.engine, &app, path, CallerId::default()).await;
        let Err(GuestError::Unwound(Unwind::Limit(failure))) = ended else {
            panic!("{path}: {ended:?}");
        };
        assert_eq!(failure.code, code::LIMIT, "{path}: {failure}");
        assert_eq!(failure.details.unwrap()["limit"], limit, "{path}");
    }
}

#[tokio::test]
async fn a_search_of_threads_counts_as_100_calls() {
    let searches = Arc::<AtomicUsize>::default();
    let found = searches.clone();
    let handler = plugin().web(move |_, gate| {
        let found = found.clone();
        async move {
            let app = AppName::new("test").map_err(|_| Failure::internal("an app"))?;
            let list = ListThreads {
                app,
                tenant: None,
                graph: None,
                text: None,
                metadata: BTreeMap::new(),
                after: None,
                limit: 1,
            };
            for _ in 0..10 {
                gate.threads(list.clone()).await?;
                found.fetch_add(1, Ordering::SeqCst);
            }
            Ok(json!({}))
        }
    });
    let limits = Limits { host_calls: 299, ..Limits::default() };
    let world = World::new(ONE, plugin());
    let app = app(vec![(handler, Grants { limits, ..Grants::default() })]);
    let ended = handle(&world.engine, &app, "/", CallerId::default()).await;
    let Err(GuestError::Unwound(Unwind::Limit(failure))) = ended else { panic!("{ended:?}") };
    assert_eq!(failure.details.unwrap()["limit"], "host_calls");
    assert_eq!(searches.load(Ordering::SeqCst), 2);
}

/// A web handler that waits. `/tool` waits in a tool.
struct Waiting {
    app: Arc<App>,
    begun: watch::Sender<usize>,
    goes_on: watch::Sender<bool>,
}

impl Waiting {
    fn new() -> Self {
        let (begun, goes_on) = (watch::Sender::new(0), watch::Sender::new(false));
        let wait = {
            let (begun, goes_on) = (begun.clone(), goes_on.clone());
            move || {
                let (begun, mut goes_on) = (begun.clone(), goes_on.subscribe());
                async move {
                    begun.send_modify(|begun| *begun += 1);
                    drop(goes_on.wait_for(|goes_on| *goes_on).await);
                    Ok::<_, CallError>(json!({}))
                }
            }
        };
        let wait_in_tool = wait.clone();
        let handler = plugin().web(move |request, gate| {
            let wait = wait();
            async move {
                if request.path != "/tool" {
                    return wait.await;
                }
                let (tool, call_id) = ("wait".to_owned(), String::new());
                let (arguments, timeout_ms, state) = (json!({}), None, None);
                let call = ToolRequest { tool, call_id, arguments, timeout_ms, state };
                Ok(json!(gate.call_tool(call).await?))
            }
        });
        let tools = NativePlugin::new("t", "1").tool("wait", move |_, gate| {
            let wait = wait_in_tool();
            // The gate holds the guest instance.
            async move {
                let _gate = gate;
                wait.await
            }
        });
        let grants = Grants { tools: vec!["t/wait".parse().unwrap()], ..Grants::default() };
        let app = app(vec![(handler, grants), (tools, Grants::default())]);
        Self { app, begun, goes_on }
    }

    /// Waits until `count` handlers and tools wait.
    async fn begun(&self, count: usize) {
        self.begun.subscribe().wait_for(|begun| *begun == count).await.unwrap();
    }

    /// Starts a handler that is to wait.
    fn start(
        &self,
        engine: &Engine,
        path: &'static str,
        caller: CallerId,
    ) -> JoinHandle<Result<WebResponse, GuestError>> {
        let (engine, app) = (engine.clone(), self.app.clone());
        tokio::spawn(async move { handle(&engine, &app, path, caller).await })
    }
}

/// Starts an engine whose web handlers hold four guest instances.
fn engine(world: &World) -> Engine {
    let config = EngineConfig { max_handlers: Some(4), ..EngineConfig::default() };
    Engine::new(world.engine.ports().clone(), world.engine.catalog().clone(), config)
}

#[tokio::test]
async fn waiting_handlers_of_one_caller_leave_instances_for_others() {
    let world = World::new(ONE, plugin());
    let (engine, waiting) = (engine(&world), Waiting::new());
    let (one, other) = (CallerId::of_key("one"), CallerId::of_key("other"));
    let mut handlers: Vec<_> = (0..2).map(|_| waiting.start(&engine, "/", one)).collect();
    waiting.begun(2).await;
    assert!(is_refused(&handle(&engine, &waiting.app, "/", one).await), "half of them");
    handlers.push(waiting.start(&engine, "/", other));
    waiting.begun(3).await;
    assert!(is_refused(&handle(&engine, &waiting.app, "/", other).await), "half of the rest");
    // Runs do not need the instances of handlers.
    let run = engine.start(world.request(None, json!({}))).await.unwrap();
    assert_eq!(engine.wait(&run).await.unwrap().outcome, RunOutcome::Completed);
    waiting.goes_on.send_replace(true);
    for handler in handlers {
        assert_eq!(handler.await.unwrap().unwrap().status, 200);
    }
    assert_eq!(handle(&engine, &waiting.app, "/", one).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_tool_of_a_web_handler_holds_an_instance_of_its_own() {
    let world = World::new(ONE, plugin());
    let (engine, waiting) = (engine(&world), Waiting::new());
    let caller = CallerId::of_key("one");
    let handler = waiting.start(&engine, "/tool", caller);
    waiting.begun(1).await;
    assert!(is_refused(&handle(&engine, &waiting.app, "/", caller).await));
    waiting.goes_on.send_replace(true);
    assert_eq!(handler.await.unwrap().unwrap().status, 200);
    let both = tokio::join!(
        handle(&engine, &waiting.app, "/", caller),
        handle(&engine, &waiting.app, "/", caller),
    );
    assert!(both.0.is_ok() && both.1.is_ok(), "the tool has returned its instance");
}
