//! Subgraphs, and policies of nodes.

use serde_json::json;

use super::{App, check, problems};
use crate::check::{AnyPlugin, check_toml};
use crate::definition::SubgraphState;
use crate::graph::{Graph, NodeKind};
use crate::id::{ChannelName, Digest, NodeName};
use crate::mermaid::{mermaid, xray};

const NESTED: &str = r#"
[graphs.outer]
entry = "plan"
max_concurrency = 3
defaults = { on_error = "sorry", retry = { attempts = 2 }, timeout = "10s", cache = { ttl = "1h" } }
channels.question = { schema = { type = "string" } }
channels.found = { schema = { type = "array" }, reducer = "append" }
channels.score = {}
[graphs.outer.nodes.plan]
retry = [{ attempts = 5, on = ["timeout"] }, { attempts = 3 }]
timeout = { run = "60s", idle = "5s", refresh = "heartbeat" }
cache = { key = "input.question + string(context)", ttl = "5m" }
on_error = "plan_again"
[graphs.outer.nodes.plan_again]
[graphs.outer.nodes.research]
graph = "inner"
state = "own"
[graphs.outer.nodes.report]
defer = true
[graphs.outer.nodes.sorry]
[[graphs.outer.edges]]
from = "plan"
to = ["research", "report"]

[graphs.inner]
doc = "Looks things up."
entry = "search"
channels.question = { schema = { type = ["string", "null"] } }
channels.found = { reducer = "append" }
channels.own = {}
[graphs.inner.nodes.search]
[graphs.inner.nodes.read]
graph = "deepest"
[[graphs.inner.edges]]
from = "search"
to = "read"

[graphs.deepest]
entry = "read"
channels.found = { reducer = "append" }
nodes.read = {}
"#;

fn app() -> App {
    let writes = |name: &str| json!({ "properties": { name: {} } });
    App::default()
        .with("plan", writes("question"), json!({}))
        .with("plan_again", json!({}), json!({}))
        .with("report", json!({}), json!({}))
        .with("sorry", json!({}), json!({}))
        .with("search", json!({}), writes("own"))
        .with("read", json!({}), writes("found"))
}

fn graphs() -> Vec<Graph> {
    check_toml("graph.toml", NESTED, &app())
        .unwrap_or_else(|_| panic!("{}", problems(NESTED, &app())))
}

#[test]
fn graph_can_run_as_a_node() {
    let graphs = graphs();
    let names: Vec<&str> = graphs.iter().map(|graph| graph.name.as_str()).collect();
    assert_eq!(names, ["deepest", "inner", "outer"]);
    let research = &graphs[2].nodes()["research"];
    let inner = graphs[1].name.clone();
    assert_eq!(research.body, NodeKind::Graph { graph: inner, state: SubgraphState::Own });
    let reads = research.reads.as_deref().into_iter().flatten();
    let reads: Vec<&str> = reads.map(ChannelName::as_str).collect();
    assert_eq!((reads, research.doc.as_str()), (vec!["found", "question"], "Looks things up."));
}

#[test]
fn graph_defaults_apply_to_nodes_without_own_policy() {
    let graphs = graphs();
    let outer = &graphs[2];
    let (plan, report) = (&outer.nodes()["plan"], &outer.nodes()["report"]);
    assert_eq!(outer.max_concurrency(), Some(3));
    assert_eq!((plan.retries.len(), report.retries.len()), (2, 1));
    assert_eq!((plan.timeout.run_ms, plan.timeout.idle_ms), (Some(60_000), Some(5_000)));
    assert_eq!((report.timeout.run_ms, report.timeout.idle_ms), (Some(10_000), None));
    let cache = |name: &str| outer.nodes()[name].cache.clone().unwrap();
    assert_eq!((cache("plan").key.is_some(), cache("plan").ttl_ms), (true, Some(300_000)));
    assert_eq!((cache("report").key.is_some(), cache("report").ttl_ms), (false, Some(3_600_000)));
    let handlers: Vec<Option<&str>> =
        outer.nodes().values().map(|node| node.on_error.as_ref().map(NodeName::as_str)).collect();
    let sorry = Some("sorry");
    assert_eq!(handlers, [Some("plan_again"), sorry, sorry, sorry, None]);
    assert!(report.defer && !plan.defer);
}

#[test]
fn digest_of_a_graph_covers_its_subgraphs() {
    let digests = |text: &str| -> Vec<Digest> {
        let graphs = check_toml("graph.toml", text, &AnyPlugin).unwrap();
        graphs.iter().map(|graph| graph.digest).collect()
    };
    let (before, after) =
        (digests(NESTED), digests(&NESTED.replace("nodes.read = {}", "nodes.read.doc = 'x'")));
    assert!(before.iter().zip(&after).all(|(before, after)| before != after));
    let outer = digests(&NESTED.replace("max_concurrency = 3", "max_concurrency = 4"));
    assert_eq!((&before[..2], before[2] == outer[2]), (&outer[..2], false));
}

#[test]
fn definitions_of_older_hosts_keep_their_digests() {
    let text = r#"
        [graphs.g]
        entry = "a"
        interrupt_ttl = "1800s"
        channels.log = { reducer = "append" }
        nodes.a = { timeout = "60s", retry = { attempts = 3 } }
    "#;
    let canonical = r#"{"graph":{"channels":{"log":{"reducer":"append"}},"entry":["a"],"interrupt_ttl":"30m","nodes":{"a":{"retry":{"attempts":3},"timeout":"1m"}}},"name":"g"}"#;
    let graph = check_toml("graph.toml", text, &AnyPlugin).unwrap().remove(0);
    assert_eq!(graph.digest, Digest::of(canonical.as_bytes()));
}

#[test]
fn diagram_with_xray_shows_subgraphs() {
    let graphs = graphs();
    insta::assert_snapshot!("closed", mermaid(&graphs[2]));
    let find = |name: &crate::id::GraphName| graphs.iter().find(|graph| graph.name == *name);
    insta::assert_snapshot!("opened", xray(&graphs[2], &find));
}

#[test]
fn subgraphs_must_fit_their_parent_graph() {
    let text = r#"
[graphs.outer]
entry = ["a", "b", "c", "d", "e"]
channels.text = { schema = { type = "string" } }
channels.list = { reducer = "append" }
channels.any = { reducer = "any" }
nodes.a = { graph = "missing" }
nodes.b = { graph = "other", plugin = "app", node = "x", with = {}, state = "none" }
nodes.c = { graph = "stranger" }
nodes.d = { state = "own" }
nodes.e = { graph = "twin" }
[graphs.other]
entry = "a"
channels.text = { schema = { type = "integer" } }
channels.list = {}
channels.any = {}
nodes.a = {}
[graphs.stranger]
entry = "a"
channels.mine = {}
nodes.a = {}
[graphs.twin]
entry = "a"
channels.any = { reducer = "any" }
nodes.a = { graph = "twin" }
nodes.b = { graph = "triplet" }
edges = [{ from = "a", to = "b" }]
[graphs.triplet]
entry = "a"
channels.any = { reducer = "any" }
nodes.a = { graph = "twin" }
"#;
    check("subgraphs", text, &AnyPlugin);
}

#[test]
fn subgraphs_count_as_concurrent_writers() {
    let text = r#"
[graphs.outer]
entry = ["one", "two"]
channels.found = {}
channels.other = {}
nodes.one = { graph = "inner" }
nodes.two = { graph = "inner" }
[graphs.inner]
entry = "read"
channels.found = {}
channels.other = {}
nodes.read = {}
"#;
    check("writers", text, &app());
}

#[test]
fn deferred_nodes_are_not_concurrent_writers() {
    let text = r#"
[graphs.g]
entry = ["read", "late"]
channels.found = {}
nodes.read = {}
nodes.late = { node = "read", defer = true }
"#;
    assert_eq!(problems(text, &app()), "no problems");
}

#[test]
fn invalid_policies_are_reported() {
    let text = r#"
[graphs.g]
entry = ["a", "late"]
max_concurrency = 0
defaults = { on_error = "gone", timeout = { idle = "0s" }, retry = [{ attempts = 0 }, {}] }
[graphs.g.nodes.a]
timeout = { run = "1s", idle = "2s" }
retry = [{ attempts = 2 }, { factor = 0.5 }]
cache = { key = "state.x", ttl = "0s" }
on_error = "a"
[graphs.g.nodes.late]
on_error = "b"
[graphs.g.nodes.b]
on_error = "c"
[graphs.g.nodes.c]
on_error = "b"
cache = { key = "input." }
timeout = { run = "0s" }
[graphs.h]
entry = "late"
[graphs.h.nodes.late]
defer = true
"#;
    check("policies", text, &AnyPlugin);
}

#[test]
fn invalid_fields_of_policies_are_reported() {
    let text = r#"
[graphs.g]
entry = "a"
[graphs.g.nodes.a]
timeout = { run = "1s", idel = "1s" }
retry = [{ attempts = 2 }, { atempts = 2 }]
state = "shared"
cache = "1h"
"#;
    check("fields", text, &AnyPlugin);
}
