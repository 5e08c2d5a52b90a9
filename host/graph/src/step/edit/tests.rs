//! Tests of edits, and of the nodes that run after them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Edit, EditAs, edit, empty_checkpoint, first_input};
use crate::checkpoint::{Checkpoint, CheckpointSource};
use crate::error::StepError;
use crate::graph::Graph;
use crate::id::{CheckpointId, Namespace};
use crate::step::edit_reductions;
use crate::testing::{ScriptedResult, at, graph, node, start, superstep, writes};

const PAIR: &str = r#"
    [graphs.g]
    entry = "split"
    channels.log.reducer = "append"
    channels.kind = {}
    nodes = { split = {}, a = {}, b = {}, join = {}, last = { defer = true } }
    edges = [
        { from = "split", to = ["a", "b", "last"] },
        { from = ["a", "b"], to = "join" },
    ]
    [[graphs.g.branches]]
    name = "after"
    from = "join"
    cases = [{ when = "state.kind == 'again'", to = "split" }, { to = "END" }]
"#;

fn as_node(name: &str, channel: &str, value: Value) -> Edit {
    let as_node = EditAs::Node(node(name));
    Edit { as_node, writes: writes(&[(channel.to_owned(), value)]) }
}

fn other(as_node: EditAs, channel: &str, value: Value) -> Edit {
    Edit { as_node, writes: writes(&[(channel.to_owned(), value)]) }
}

fn bare(as_node: EditAs) -> Edit {
    Edit { as_node, writes: Vec::new() }
}

fn apply(graph: &Graph, base: &Checkpoint, edits: &[Edit]) -> Result<Checkpoint, StepError> {
    let made = edit(graph, base, edits, &BTreeMap::new(), at(9))?;
    assert_eq!(
        (made.meta.source, made.meta.parent),
        (CheckpointSource::Update, Some(base.meta.id))
    );
    assert_eq!(made.meta.step, base.meta.step + 1);
    assert!(made.values.keys().eq(made.meta.versions.keys()));
    Ok(made)
}

fn next(checkpoint: &Checkpoint) -> Vec<&str> {
    checkpoint.meta.next.iter().map(|trigger| trigger.node.as_str()).collect()
}

fn waiting(checkpoint: &Checkpoint) -> Vec<&str> {
    checkpoint.meta.deferred.iter().map(|trigger| trigger.node.as_str()).collect()
}

/// Returns the checkpoint after some supersteps.
fn after(graph: &Graph, steps: usize) -> Checkpoint {
    let mut lineage = start(graph, &json!({})).unwrap();
    for _ in 0..steps {
        superstep(graph, &mut lineage, &|task| ScriptedResult::write("log", task.node.to_string()))
            .unwrap();
    }
    lineage.checkpoint
}

#[test]
fn edit_as_a_node_follows_its_edges() {
    let graph = graph(PAIR);
    let base = after(&graph, 1);
    assert_eq!((next(&base), waiting(&base)), (vec!["a", "b"], vec!["last"]));
    let half = apply(&graph, &base, &[as_node("a", "log", json!("mine"))]).unwrap();
    assert_eq!(half.state()["log"], json!(["split", "mine"]));
    assert_eq!(next(&half), ["last"], "only the deferred node is left");
    assert_eq!(half.meta.barriers["a+b->join"], [node("a")].into());
    assert_eq!(half.meta.writers, [node("a")]);
    let whole = apply(&graph, &half, &[as_node("b", "log", json!("too"))]).unwrap();
    assert_eq!(next(&whole), ["join"], "the barrier keeps its first source");
    let again = apply(&graph, &whole, &[as_node("join", "kind", json!("again"))]).unwrap();
    assert_eq!(next(&again), ["split"], "branches see the edited state");
}

#[test]
fn edits_of_one_call_form_one_superstep() {
    let graph = graph(PAIR);
    let base = after(&graph, 1);
    let edits = [as_node("b", "log", json!(1)), as_node("a", "log", json!(2))];
    let made = apply(&graph, &base, &edits).unwrap();
    assert_eq!(next(&made), ["join"]);
    assert_eq!(made.state()["log"], json!(["split", 1, 2]), "in the order given");
    let twice = [as_node("a", "kind", json!(1)), as_node("b", "kind", json!(2))];
    let error = apply(&graph, &base, &twice).unwrap_err();
    assert!(matches!(error, StepError::ConcurrentWrites { .. }), "{error}");
}

#[test]
fn the_only_writer_is_inferred() {
    let graph = graph(PAIR);
    let infer = |base: &Checkpoint| apply(&graph, base, &[other(EditAs::Infer, "log", json!(1))]);
    let fresh = infer(&after(&graph, 0)).unwrap();
    assert_eq!((next(&fresh), fresh.meta.writers.len()), (vec!["split"], 0), "as an input");
    let first = infer(&after(&graph, 1)).unwrap();
    assert_eq!((next(&first), &first.meta.writers), (vec!["a", "b"], &vec![node("split")]));
    let blank = empty_checkpoint(&graph, &Namespace::root(), at(3));
    assert_eq!(next(&infer(&blank).unwrap()), ["split"]);
}

#[test]
fn ambiguous_edits_name_the_candidates() {
    let graph = graph(PAIR);
    let infer = [other(EditAs::Infer, "log", json!(1))];
    let error = apply(&graph, &after(&graph, 2), &infer).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the node that the edit writes as is ambiguous: name one of `a`, `b`"
    );
    assert_eq!(error.to_failure().details.unwrap()["candidates"], json!(["a", "b"]));
    // Older hosts did not record the writers of a checkpoint.
    let mut old = after(&graph, 1);
    old.meta.writers.clear();
    let error = apply(&graph, &old, &infer).unwrap_err();
    let StepError::AmbiguousEdit { candidates } = error else { panic!("{error}") };
    assert_eq!(candidates.len(), graph.nodes().len());
}

#[test]
fn edit_as_the_end_clears_all_triggers() {
    let graph = graph(PAIR);
    let base = after(&graph, 1);
    let ended = apply(&graph, &base, &[bare(EditAs::End)]).unwrap();
    assert_eq!((next(&ended).len(), waiting(&ended).len()), (0, 0));
    assert_eq!((ended.state(), &ended.meta.writers), (base.state(), &base.meta.writers));
}

#[test]
fn edit_as_a_copy_changes_nothing() {
    let graph = graph(PAIR);
    let base = after(&graph, 1);
    let copy = apply(&graph, &base, &[bare(EditAs::Copy)]).unwrap();
    assert_eq!((next(&copy), waiting(&copy)), (next(&base), waiting(&base)));
    assert_eq!((&copy.values, &copy.meta.versions), (&base.values, &base.meta.versions));
    assert_eq!((copy.meta.id, copy.meta.written_channels().count()), (CheckpointId(9), 0));
}

#[test]
fn edit_as_an_input_applies_reducers() {
    let graph = graph(PAIR);
    let base = after(&graph, 2);
    let made = apply(&graph, &base, &[other(EditAs::Input, "log", json!("new"))]).unwrap();
    assert_eq!(made.state()["log"], json!(["split", "a", "b", "new"]));
    assert_eq!(next(&made), ["split"]);
}

#[test]
fn edit_as_the_input_of_a_run_has_its_source() {
    let graph = graph(PAIR);
    let base = after(&graph, 2);
    let edits = [other(EditAs::RunInput, "log", json!("new"))];
    let made = edit(&graph, &base, &edits, &BTreeMap::new(), at(9)).unwrap();
    assert_eq!(made.state()["log"], json!(["split", "a", "b", "new"]));
    assert_eq!(next(&made), ["split"]);
    let meta = &made.meta;
    assert_eq!((meta.source, meta.parent), (CheckpointSource::Input, Some(base.meta.id)));
}

#[test]
fn input_makes_the_first_checkpoint_of_a_thread() {
    let graph = graph(PAIR);
    for (author, source) in [
        (EditAs::Input, CheckpointSource::Update),
        (EditAs::Infer, CheckpointSource::Update),
        (EditAs::RunInput, CheckpointSource::Input),
    ] {
        let input = other(author, "log", json!("new"));
        assert!(input.is_first_input());
        let made = first_input(&graph, &input, &BTreeMap::new(), at(9)).unwrap();
        assert_eq!(made.state()["log"], json!(["new"]));
        assert_eq!(next(&made), ["split"]);
        assert_eq!((made.meta.source, made.meta.parent, made.meta.step), (source, None, 0));
    }
    for author in [EditAs::Node(node("a")), EditAs::End, EditAs::Copy] {
        assert!(!bare(author).is_first_input());
    }
    let unknown = other(EditAs::RunInput, "x", json!(1));
    let error = first_input(&graph, &unknown, &BTreeMap::new(), at(9)).unwrap_err();
    assert!(error.to_string().contains("graph `g` has no channel `x`"), "{error}");
}

#[test]
fn invalid_edits_are_rejected() {
    let graph = graph(PAIR);
    let base = after(&graph, 1);
    for (edits, part) in [
        (vec![], "there is nothing to apply"),
        (vec![as_node("x", "log", json!(1))], "graph `g` has no node `x`, its nodes are `a`"),
        (vec![as_node("a", "x", json!(1))], "node `a` wrote channel `x`"),
        (vec![other(EditAs::Input, "x", json!(1))], "graph `g` has no channel `x`"),
        (vec![other(EditAs::End, "log", json!(1))], "cannot have writes"),
        (vec![other(EditAs::Copy, "log", json!(1))], "cannot have writes"),
        (vec![as_node("a", "log", json!(1)), bare(EditAs::Copy)], "must be the only edit"),
    ] {
        let error = apply(&graph, &base, &edits).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn plugin_reducers_apply_to_edits() {
    let graph = graph(
        r#"[graphs.g]
        entry = "a"
        channels.vote = { reducer = { plugin = "p", reducer = "majority" }, default = 0 }
        nodes.a = {}"#,
    );
    let base = after_nothing(&graph);
    let edits = [as_node("a", "vote", json!(1)), as_node("a", "vote", json!(2))];
    let wanted = edit_reductions(&graph, &base, &edits);
    assert_eq!(wanted.len(), 1);
    assert_eq!((&wanted[0].current, wanted[0].updates.len()), (&Some(json!(0)), 2));
    let reduced = [(wanted[0].channel.clone(), json!(2))].into();
    assert_eq!(edit(&graph, &base, &edits, &reduced, at(9)).unwrap().state()["vote"], json!(2));
}

fn after_nothing(graph: &Graph) -> Checkpoint {
    start(graph, &json!({})).unwrap().checkpoint
}
