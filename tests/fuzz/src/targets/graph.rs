//! `graph.toml`, also as JSON. A rejected file has problems with line numbers of the file. An
//! accepted graph can be planned and drawn, and is equal after a round trip through JSON.

use std::collections::BTreeMap;

use serde_json::json;
use wattle_graph::check::{AnyPlugin, Problem, check_json, check_toml};
use wattle_graph::definition::GraphDocument;
use wattle_graph::graph::Graph;
use wattle_graph::id::{CheckpointId, Digest, Namespace, RunId, ThreadId};
use wattle_graph::lineage::Lineage;
use wattle_graph::mermaid::mermaid;
use wattle_graph::plan::{Plan, plan};
use wattle_graph::step::{CheckpointStamp, accept_input};

/// Checks a file in both forms.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for checked in [check_toml("graph.toml", text, &AnyPlugin), check_json("g", text, &AnyPlugin)] {
        match checked {
            Ok(graphs) => accepted(&graphs),
            Err(problems) => refused(text, &problems),
        }
    }
}

fn refused(text: &str, problems: &[Problem]) {
    assert!(!problems.is_empty(), "rejected without a problem");
    let lines = text.split('\n').count();
    for problem in problems {
        assert!(!problem.message.is_empty(), "a problem without a message: {problem:?}");
        let line = problem.line.map_or(1, |line| line as usize);
        assert!((1..=lines).contains(&line), "the file has {lines} lines: {problem:?}");
    }
}

fn accepted(graphs: &[Graph]) {
    for graph in graphs {
        assert!(!mermaid(graph).is_empty());
        planned(graph);
    }
    let definitions = graphs.iter().map(|graph| (graph.name.clone(), graph.definition().clone()));
    let document = GraphDocument { graphs: definitions.collect() };
    let text = serde_json::to_string(&document).expect("a definition can be written");
    let again = check_json("graph.json", &text, &AnyPlugin);
    let again = again.unwrap_or_else(|problems| panic!("{text} is rejected: {problems:?}"));
    let digests = |graphs: &[Graph]| graphs.iter().map(|it| it.digest).collect::<Vec<_>>();
    assert_eq!(digests(graphs), digests(&again), "{text}");
}

/// Plans the first superstep.
fn planned(graph: &Graph) {
    let at = CheckpointStamp {
        id: CheckpointId(1),
        run: RunId::new("run").expect("the name is valid"),
        at_ms: 0,
        version: Digest::of(b""),
        parents: BTreeMap::new(),
        tasks: None,
    };
    let root = Namespace::root();
    // The default of a channel may need the reducer of a plugin, and no plugin is loaded.
    let Ok(first) = accept_input(graph, None, &root, &json!({}), &BTreeMap::new(), at) else {
        return;
    };
    let thread = ThreadId::new("thread").expect("the name is valid");
    let Plan::Tasks { all, runnable, waiting } = plan(graph, &thread, &Lineage::new(first), 1)
    else {
        panic!("a graph without a first superstep was accepted")
    };
    assert!(waiting.is_empty() && all.len() == runnable.len() && !runnable.is_empty());
}
