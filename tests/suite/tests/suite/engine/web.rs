//! What web handlers read through the engine.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;
use wattle_graph::failure::Failure;
use wattle_graph::id::{PluginName, ThreadId};
use wattle_run::app::App;
use wattle_run::caller_id::CallerId;
use wattle_run::grant::Grants;
use wattle_run::hostcall::emit::Emission;
use wattle_run::hostcall::runs::{RunOutcome, RunService};
use wattle_run::limit;
use wattle_run::ports::sandbox::{WebBody, WebRequest};
use wattle_suite::native::NativePlugin;
use wattle_suite::world::{self, World};

const ONE: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.channels.done]
[graphs.one.nodes.work]
plugin = "p"
"#;

/// Returns a plugin whose node emits more events than a page has. Its web handler responds with the
/// sequence numbers of the events after one, of as many events as the host gives it.
fn plugin() -> NativePlugin {
    NativePlugin::new("p", "1")
        .node("work", |_, gate| async move {
            for number in 0..=limit::PAGE_EVENTS {
                let data = json!(number);
                gate.emit(Emission::Custom { name: "note".into(), data }).await?;
            }
            Ok(json!({ "done": true }))
        })
        .web(|request, gate| async move {
            let number =
                |text: &str| text.parse::<u64>().map_err(|_| Failure::internal("a number"));
            let [(thread, after)] = request.query.as_slice() else {
                return Err(Failure::internal("one parameter").into());
            };
            let thread = ThreadId::new(thread).map_err(|_| Failure::internal("a thread"))?;
            let events = gate.runs()?.events(&thread, number(after)?, usize::MAX).await?;
            Ok(json!(events.iter().map(|event| event.seq).collect::<Vec<_>>()))
        })
}

#[tokio::test]
async fn a_web_handler_reads_the_events_of_a_thread_in_pages() {
    let world = World::new(ONE, plugin());
    let ended = world.run(json!({})).await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
    let thread = ended.run.thread;
    let app = world::app(ONE, vec![(Arc::new(plugin()), Grants::default())]);
    let app = Arc::new(App { web: Some(PluginName::new("p").unwrap()), ..app });
    let mut pages: Vec<Vec<u64>> = Vec::new();
    loop {
        let after = pages.last().and_then(|page| page.last()).copied().unwrap_or_default();
        let request = WebRequest {
            method: "GET".into(),
            path: "/".into(),
            route: "/".into(),
            params: Vec::new(),
            query: vec![(thread.to_string(), after.to_string())],
            headers: Vec::new(),
            body: Bytes::new(),
            tenant: None,
        };
        let response =
            world.engine.handle_web(&app, request, None, CallerId::default()).await.unwrap();
        let WebBody::Bytes(body) = response.body else { panic!("{:?}", response.body) };
        let page: Vec<u64> = serde_json::from_slice(&body).unwrap();
        if page.is_empty() {
            break;
        }
        pages.push(page);
    }
    let all = world.engine.events(&thread, 0, usize::MAX).await.unwrap();
    assert_eq!(pages[0].len(), limit::PAGE_EVENTS);
    assert_eq!(pages.concat(), all.iter().map(|event| event.seq).collect::<Vec<_>>());
}
