//! Events as lines of JSON, as logs and streams contain them. A parsed event is equal after a round
//! trip, and events of any kind in any order can be folded and projected.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::json;
use wattle_graph::check::{AnyPlugin, check_toml};
use wattle_graph::event::Event;
use wattle_graph::graph::Graph;
use wattle_graph::id::{CheckpointId, Digest, Namespace, RunId, ThreadId};
use wattle_graph::lineage::Lineage;
use wattle_graph::plan::plan;
use wattle_graph::step::{CheckpointStamp, accept_input, advance};
use wattle_project::ag_ui::AgUiProjection;
use wattle_project::ai_sdk::AiSdkProjection;
use wattle_project::projection::{EventState, Projection as _};
use wattle_project::transcript::Transcript;

/// Number of events of an input after which a superstep is planned. A plan reads the whole lineage.
const PLANNED: usize = 256;

/// A graph for the events of the input.
const GRAPH: &str = r#"
    [graphs.g]
    entry = ["a", "b"]
    channels.x = { reducer = "append" }
    channels.talk = { reducer = "messages" }
    nodes.a = { on_error = "c" }
    nodes.b = {}
    nodes.c = {}
    edges = [{ from = "b", to = "c" }]
"#;

/// Folds and projects events.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let graph = graph();
    let thread = ThreadId::new("t").expect("the name is valid");
    let root = Namespace::root();
    let first = accept_input(graph, None, &root, &json!({}), &BTreeMap::new(), at(1));
    let first = first.expect("nothing is a valid input");
    let current = EventState { checkpoint: Some(first.clone()), ..EventState::default() };
    let mut lineage = Lineage::new(first);
    let mut transcript = Transcript::new([]);
    let mut messages = AiSdkProjection::new([]);
    let mut shown = AgUiProjection::new(thread.clone(), []);
    let mut planned = 0;
    for line in text.lines() {
        let Ok(event) = serde_json::from_str::<Event>(line) else { continue };
        same_again(&event);
        transcript.apply(&event);
        messages.apply(&event, &EventState::default());
        shown.needs(&event);
        shown.apply(&event, &current);
        lineage.apply(&event);
        if planned < PLANNED {
            planned += 1;
            stands(graph, &thread, &lineage);
        }
    }
}

/// Returns the graph, which is checked only once.
fn graph() -> &'static Graph {
    static CHECKED: OnceLock<Vec<Graph>> = OnceLock::new();
    let check = || check_toml("graph.toml", GRAPH, &AnyPlugin).expect("the graph is valid");
    &CHECKED.get_or_init(check)[0]
}

fn at(id: u64) -> CheckpointStamp {
    CheckpointStamp {
        id: CheckpointId(id),
        run: RunId::new("r").expect("the name is valid"),
        at_ms: 0,
        version: Digest::of(b""),
        parents: BTreeMap::new(),
        tasks: None,
    }
}

fn same_again(event: &Event) {
    let text = serde_json::to_string(event).expect("an event can be written");
    let again: Event =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(*event, again, "{text}");
}

/// Plans and advances at the end of a log, as a run does.
fn stands(graph: &Graph, thread: &ThreadId, lineage: &Lineage) {
    lineage.pending_interrupts();
    plan(graph, thread, lineage, 2);
    // Tasks of another graph are an error here.
    let _ = advance(graph, lineage, &BTreeMap::new(), at(2));
}
