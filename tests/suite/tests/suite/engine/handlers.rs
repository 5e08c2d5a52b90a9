//! Limits of web handlers.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{PluginName, ThreadId};
use wattle_run::app::App;
use wattle_run::caller_id::CallerId;
use wattle_run::gate::unwind::Unwind;
use wattle_run::grant::Grants;
use wattle_run::hostcall::emit::Emission;
use wattle_run::limit::Limits;
use wattle_run::ports::Plugin;
use wattle_run::ports::sandbox::{GuestError, WebRequest};
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
    let limits = Limits { host_call_bytes: 100_000, ..Limits::default() };
    let grants = Grants { llm: ["chat".to_owned()].into(), limits, ..Grants::default() };
    let world = World::new(ONE, plugin());
    let app = app(vec![(handler(), grants)]);
    for (path, limit) in [
        ("/clock", "host_calls"),
        ("/threads", "host_calls"),
        ("/requests", "host_call_bytes"),
        ("/emits", "emitted_events"),
    ] {
        let ended = world.engine.handle_web(&app, get(path), None, CallerId::default()).await;
        let Err(GuestError::Unwound(Unwind::Limit(failure))) = ended else {
            panic!("{path}: {ended:?}");
        };
        assert_eq!(failure.code, code::LIMIT, "{path}: {failure}");
        assert_eq!(failure.details.unwrap()["limit"], limit, "{path}");
    }
}
