//! What web handlers read and change through the engine.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{AppName, PluginName, ThreadId};
use wattle_run::app::App;
use wattle_run::caller_id::CallerId;
use wattle_run::grant::Grants;
use wattle_run::hostcall::emit::Emission;
use wattle_run::hostcall::runs::{
    ListThreads, RunOutcome, RunRef, RunService, StartRun, UpdateThread,
};
use wattle_run::limit;
use wattle_run::ports::sandbox::{GuestError, WebBody, WebRequest};
use wattle_run::ports::store::ThreadCursor;
use wattle_suite::native::NativePlugin;
use wattle_suite::world::{self, World};

const ONE: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.channels.done]
[graphs.one.nodes.work]
plugin = "p"
"#;

/// The parameters of a list without conditions.
const ALL: &[(&str, &str)] = &[];

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

/// Returns a plugin whose web handler lists threads, two in a page, or sets the title of the thread
/// of the path. It requests the threads of another app and another tenant, which the host replaces
/// by those of the request.
fn listing() -> NativePlugin {
    NativePlugin::new("p", "1").node("work", |_, _| async { Ok(json!({ "done": true })) }).web(
        |request, gate| async move {
            let app = AppName::new("other").map_err(|_| Failure::internal("an app"))?;
            let tenant = Some("globex".to_owned());
            let parameters: BTreeMap<String, String> = request.query.into_iter().collect();
            if let Some(id) = request.path.strip_prefix("/threads/") {
                let thread = ThreadId::new(id).map_err(|_| Failure::internal("a thread"))?;
                let (app, metadata) = (Some(app), BTreeMap::from([titled("new")]));
                let update = UpdateThread { thread, app, tenant, metadata, ttl: None };
                gate.update_thread(update).await?;
                return Ok(Value::Null);
            }
            let title = parameters.get("title").map(|title| titled(title));
            let list = ListThreads {
                app,
                tenant,
                graph: None,
                text: parameters.get("text").cloned(),
                metadata: title.into_iter().collect(),
                after: parameters.get("after").and_then(|text| ThreadCursor::parse(text)),
                limit: 2,
            };
            let page = gate.threads(list).await?;
            let ids: Vec<&str> = page.items.iter().map(|thread| thread.id.as_str()).collect();
            Ok(json!({ "ids": ids, "next": page.next.map(|it| it.to_string()) }))
        },
    )
}

fn titled(title: &str) -> (String, Value) {
    ("title".to_owned(), json!(title))
}

/// Returns an app with one plugin, which has the web handler.
fn app(name: &str, plugin: NativePlugin) -> App {
    let app = world::app(ONE, vec![(Arc::new(plugin), Grants::default())]);
    let web = Some(PluginName::new("p").unwrap());
    App { name: AppName::new(name).unwrap(), web, ..app }
}

/// Calls the web handler of an app.
async fn handle(
    world: &World,
    app: &Arc<App>,
    path: &str,
    query: &[(&str, &str)],
    tenant: Option<&str>,
) -> Result<Value, GuestError> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let request = WebRequest {
        method: "GET".into(),
        path: path.into(),
        route: path.into(),
        params: Vec::new(),
        query: query.iter().map(owned).collect(),
        headers: Vec::new(),
        body: Bytes::new(),
        tenant: tenant.map(str::to_owned),
    };
    let response = world.engine.handle_web(app, request, None, CallerId::default()).await?;
    let WebBody::Bytes(body) = response.body else { panic!("{:?}", response.body) };
    Ok(serde_json::from_slice(&body).unwrap())
}

/// Returns the ids of a list, with `|` between pages.
async fn pages(
    world: &World,
    app: &Arc<App>,
    query: &[(&str, &str)],
    tenant: Option<&str>,
) -> String {
    let (mut pages, mut after) = (Vec::new(), None::<String>);
    loop {
        let position = after.iter().map(|after| ("after", after.as_str()));
        let query: Vec<(&str, &str)> = query.iter().copied().chain(position).collect();
        let page = handle(world, app, "/threads", &query, tenant).await.unwrap();
        let ids: Vec<&str> =
            page["ids"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
        pages.push(ids.join(" "));
        after = page["next"].as_str().map(str::to_owned);
        if after.is_none() {
            return pages.join(" | ");
        }
    }
}

/// Creates threads of two apps and three tenants, each with a run, and returns the world and the
/// app `test`. The title of thread `a1` is `Order a1`.
async fn threads_of_tenants() -> (World, Arc<App>) {
    let world = World::new(ONE, listing());
    world.engine.catalog().install(app("other", listing()));
    for (id, name, tenant) in [
        ("a1", "test", Some("acme")),
        ("a2", "test", Some("acme")),
        ("a3", "test", Some("acme")),
        ("g1", "test", Some("globex")),
        ("n1", "test", None),
        ("o1", "other", Some("acme")),
    ] {
        let thread = ThreadId::new(id).unwrap();
        let run = world.engine.start(StartRun {
            app: AppName::new(name).unwrap(),
            tenant: tenant.map(str::to_owned),
            metadata: BTreeMap::from([titled(&format!("Order {id}"))]),
            ..world.request(Some(&thread), json!({}))
        });
        let run: RunRef = run.await.unwrap();
        assert_eq!(world.engine.wait(&run).await.unwrap().outcome, RunOutcome::Completed);
        world.clock.advance_ms(1_000);
    }
    (world, Arc::new(app("test", listing())))
}

#[tokio::test]
async fn a_web_handler_reads_the_events_of_a_thread_in_pages() {
    let world = World::new(ONE, plugin());
    let ended = world.run(json!({})).await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
    let thread = ended.run.thread;
    let app = Arc::new(app("test", plugin()));
    let mut pages: Vec<Vec<u64>> = Vec::new();
    loop {
        let after: u64 = pages.last().and_then(|page| page.last()).copied().unwrap_or_default();
        let after = after.to_string();
        let page = handle(&world, &app, "/", &[(thread.as_str(), &after)], None).await.unwrap();
        let page: Vec<u64> = serde_json::from_value(page).unwrap();
        if page.is_empty() {
            break;
        }
        pages.push(page);
    }
    let all = world.engine.events(&thread, 0, usize::MAX).await.unwrap();
    assert_eq!(pages[0].len(), limit::PAGE_EVENTS);
    assert_eq!(pages.concat(), all.iter().map(|event| event.seq).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_web_handler_lists_the_threads_of_its_app_and_tenant() {
    let (world, app) = threads_of_tenants().await;
    for (tenant, query, expected) in [
        (Some("acme"), ALL, "a3 a2 | a1"),
        (Some("globex"), ALL, "g1"),
        (Some("nobody"), ALL, ""),
        (None, ALL, "n1"),
        (Some("acme"), &[("title", "Order a2")], "a2"),
        (Some("acme"), &[("text", "ORDER A1")], "a1"),
        (Some("acme"), &[("text", "order o1")], ""),
        (Some("acme"), &[("title", "Order g1")], ""),
    ] {
        let found = pages(&world, &app, query, tenant).await;
        assert_eq!(found, expected, "{tenant:?} {query:?}");
    }
}

#[tokio::test]
async fn a_web_handler_updates_the_threads_of_its_app_and_tenant() {
    let (world, app) = threads_of_tenants().await;
    for (id, tenant, is_found) in [
        ("a1", Some("acme"), true),
        ("n1", None, true),
        // All tenants can read a thread without a tenant, and none can list or update it.
        ("n1", Some("acme"), false),
        ("a2", Some("globex"), false),
        ("a2", None, false),
        ("g1", Some("acme"), false),
        ("o1", Some("acme"), false),
        ("nobody", Some("acme"), false),
    ] {
        let updated = handle(&world, &app, &format!("/threads/{id}"), ALL, tenant).await;
        match updated {
            Ok(_) => assert!(is_found, "{id} {tenant:?}"),
            Err(GuestError::Failure(failure)) => {
                assert_eq!((failure.code.as_str(), is_found), (code::NOT_FOUND, false), "{id}");
            }
            Err(other) => panic!("{id}: {other:?}"),
        }
    }
    for (id, title) in
        [("a1", "new"), ("n1", "new"), ("a2", "Order a2"), ("g1", "Order g1"), ("o1", "Order o1")]
    {
        let thread = world.engine.thread(&ThreadId::new(id).unwrap()).await.unwrap().unwrap();
        assert_eq!(thread.metadata, BTreeMap::from([titled(title)]));
    }
    let found = pages(&world, &app, ALL, Some("acme")).await;
    assert_eq!(found, "a1 a3 | a2", "an update moves a thread to the beginning of the list");
}
