//! Settings, pictures, graphs that a node starts, and tenants: the conformance plugin gets the same
//! of them in every language, and the host sees the same events as of the plugin in Rust.

use std::sync::Arc;

use serde_json::{Value, json};
use wattle_graph::id::{GraphName, PluginName};
use wattle_kit::need;
use wattle_kit::needs::LeftOut;
use wattle_run::app::App;
use wattle_run::grant::Grants;
use wattle_run::hostcall::runs::{EndedRun, RunOutcome, RunService, StartRun};
use wattle_run::ports::Plugin;
use wattle_run::ports::sandbox::WebRequest;
use wattle_suite::scripted::NoSql;
use wattle_suite::world::{self, World, questions};

use super::conformance::{GRAPHS, PLUGIN, events, in_rust, respond};
use super::load;

/// The guests besides the one in Rust.
const TWINS: &[&str] = &[
    "conformance-typescript",
    "conformance-starlingmonkey",
    "conformance-python",
    "conformance-c",
];

const TENANT: &str = "acme";

/// Returns the plugin in Rust, and then its twins, each with the name of the guest.
async fn plugins() -> Result<Vec<(&'static str, Arc<dyn Plugin>)>, LeftOut> {
    let mut plugins = vec![("conformance", in_rust().await)];
    for &twin in TWINS {
        plugins.push((twin, load(twin, PLUGIN).await?));
    }
    Ok(plugins)
}

fn grants() -> Grants {
    Grants { tenant_routes: ["chat".to_owned()].into(), ..Grants::default() }
}

fn world(plugin: &Arc<dyn Plugin>) -> World {
    World::with_plugin(GRAPHS, Arc::clone(plugin), Arc::new(NoSql), grants())
}

/// Checks the state in which a run ended, and that its events are those of the first guest.
async fn check(
    (guest, world): (&str, &World),
    ended: &EndedRun,
    state: &Value,
    first: &mut Option<Vec<Value>>,
) {
    assert_eq!((&ended.outcome, &ended.state), (&RunOutcome::Completed, state), "{guest}");
    let events = events(world, ended, None).await;
    assert_eq!(events, *first.get_or_insert_with(|| events.clone()), "{guest}");
}

#[tokio::test]
async fn settings_are_the_same_in_every_language() {
    let state = json!({
        "color": "green",
        "language": "en",
        "missing": "not-found",
        "all": { "color": "green" },
    });
    let mut first = None;
    for (guest, plugin) in need!(plugins().await) {
        let world = world(&plugin);
        let ended = world.run_graph("read_settings", json!({})).await;
        check((guest, &world), &ended, &state, &mut first).await;
    }
}

#[tokio::test]
async fn pictures_are_the_same_in_every_language() {
    let state = json!({
        "prompt": "a cup of tea",
        "picture": {
            "media_type": "image/png",
            "size": 14,
            "start": "a cup",
            "text": "a cup of tea 1",
        },
        "is_linked": true,
        "refused": "invalid",
    });
    let mut first = None;
    for (guest, plugin) in need!(plugins().await) {
        let world = world(&plugin);
        let ended = world.run_graph("draw", json!({ "prompt": "a cup of tea" })).await;
        assert_eq!(world.model.pictures(), 1, "{guest}");
        check((guest, &world), &ended, &state, &mut first).await;
    }
}

/// The last graph asks. With the answer, the node is executed again, and the graphs before it are
/// not.
#[tokio::test]
async fn nodes_start_graphs_in_every_language() {
    let state = json!({
        "text": "two words",
        "outcomes": [
            { "text": "two words", "words": 2 },
            { "code": "sold-out" },
            { "text": "two words", "decision": "call" },
        ],
        "refused": "unsupported",
    });
    let mut first = None;
    for (guest, plugin) in need!(plugins().await) {
        let world = world(&plugin);
        let asked = world.run_graph("delegate", json!({ "text": "two words" })).await;
        assert_eq!(questions(&asked)[0].payload, json!({ "ticket": "two words" }), "{guest}");
        let ended = world.answer(&asked.run.thread, json!(true)).await;
        check((guest, &world), &ended, &state, &mut first).await;
    }
}

#[tokio::test]
async fn nodes_know_their_tenant_in_every_language() {
    let state = json!({ "tenant": TENANT, "refused": "unsupported" });
    let mut first = None;
    for (guest, plugin) in need!(plugins().await) {
        let world = world(&plugin);
        let graph = Some(GraphName::new("whose").unwrap());
        let tenant = Some(TENANT.to_owned());
        let request = StartRun { graph, tenant, ..world.request(None, json!({})) };
        let run = world.engine.start(request).await.unwrap();
        let ended = world.engine.wait(&run).await.unwrap();
        check((guest, &world), &ended, &state, &mut first).await;
    }
}

#[tokio::test]
async fn handlers_set_routes_of_their_tenant_in_every_language() {
    for (guest, plugin) in need!(plugins().await) {
        let world = world(&plugin);
        let app = world::app(GRAPHS, vec![(plugin, grants())]);
        let app = Arc::new(App { web: Some(PluginName::new(PLUGIN).unwrap()), ..app });
        for tenant in [Some(TENANT), None] {
            let response = respond(&world, &app, own_model(tenant)).await;
            let body: Value = serde_json::from_str(response["body"].as_str().unwrap()).unwrap();
            let expected = json!({ "own": { "model": "m" }, "removed": null, "tenant": tenant });
            assert_eq!((&response["status"], body), (&json!(200), expected), "{guest}");
        }
    }
}

/// Returns the request that sets a route.
fn own_model(tenant: Option<&str>) -> WebRequest {
    WebRequest {
        method: "PUT".to_owned(),
        path: "/models/chat".to_owned(),
        route: "/models/{route}".to_owned(),
        params: vec![("route".to_owned(), "chat".to_owned())],
        query: Vec::new(),
        headers: Vec::new(),
        body: r#"{"model":"m","key":"k"}"#.into(),
        tenant: tenant.map(str::to_owned),
    }
}
