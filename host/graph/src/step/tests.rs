//! Small graphs, run to their end.

use serde_json::{Value, json};

use super::{StepError, accept_input, check_writes, plugin_reductions};
use crate::event::Send;
use crate::graph::Graph;
use crate::id::Namespace;
use crate::plan::{Planned, Task, plan};
use crate::testing::{Did, at, finished, graph, node, ready, run, start, superstep, thread};

/// Runs a graph whose nodes append their names to `log`.
fn check(graph: &Graph, input: &Value, wanted: &[&[&str]]) {
    let log = |task: &Task| Did::write("log", task.node.to_string());
    let (steps, _) = run(graph, input, &log).unwrap();
    assert_eq!(steps, wanted);
}

const CHANNELS: &str = r#"
    channels.log.reducer = "append"
    channels.kind = {}
"#;

fn small(rest: &str) -> Graph {
    graph(&format!("[graphs.g]\n{CHANNELS}\n{rest}"))
}

#[test]
fn a_line_runs_node_by_node() {
    let line = small(
        r#"entry = "a"
        nodes = { a = {}, b = {}, c = {} }
        edges = [{ from = "a", to = "b" }, { from = "b", to = "c" }, { from = "c", to = "END" }]"#,
    );
    check(&line, &json!({}), &[&["a"], &["b"], &["c"]]);
}

#[test]
fn a_branch_takes_the_first_case_that_matches() {
    let routed = small(
        r#"entry = "a"
        nodes = { a = {}, image = {}, text = {}, other = {} }
        [[graphs.g.branches]]
        name = "route"
        from = "a"
        cases = [
            { when = "state.kind == 'image'", to = "image" },
            { when = "state.kind != null", to = "text" },
            { to = ["other", "text"] },
        ]"#,
    );
    check(&routed, &json!({ "kind": "image" }), &[&["a"], &["image"]]);
    check(&routed, &json!({ "kind": "x" }), &[&["a"], &["text"]]);
    check(&routed, &json!({}), &[&["a"], &["other", "text"]]);
}

#[test]
fn a_branch_can_take_every_case_that_matches() {
    let fan = small(
        r#"entry = "a"
        nodes = { a = {}, b = {}, c = {} }
        [[graphs.g.branches]]
        name = "fan"
        from = "a"
        mode = "all"
        cases = [{ when = "state.kind >= 1", to = "b" }, { when = "state.kind >= 2", to = "c" }]"#,
    );
    check(&fan, &json!({ "kind": 0 }), &[&["a"]]);
    check(&fan, &json!({ "kind": 1 }), &[&["a"], &["b"]]);
    check(&fan, &json!({ "kind": 2 }), &[&["a"], &["b", "c"]]);
}

#[test]
fn a_barrier_waits_for_all_of_its_sources() {
    let joined = small(
        r#"entry = ["a", "b"]
        nodes = { a = {}, b = {}, b2 = {}, join = {} }
        edges = [{ from = "b", to = "b2" }, { from = ["a", "b2"], to = "join" }]"#,
    );
    check(&joined, &json!({}), &[&["a", "b"], &["b2"], &["join"]]);
    let mut lineage = start(&joined, &json!({})).unwrap();
    superstep(&joined, &mut lineage, &|_| Did::default()).unwrap();
    assert_eq!(lineage.checkpoint.meta.barriers["a+b2->join"], [node("a")].into());
    superstep(&joined, &mut lineage, &|_| Did::default()).unwrap();
    assert!(lineage.checkpoint.meta.barriers.is_empty());
}

#[test]
fn several_edges_to_a_node_run_it_once() {
    let diamond = small(
        r#"entry = "a"
        nodes = { a = {}, b = {}, c = {}, d = {} }
        edges = [
            { from = "a", to = ["b", "c"] }, { from = "b", to = "d" }, { from = "c", to = "d" },
        ]"#,
    );
    check(&diamond, &json!({}), &[&["a"], &["b", "c"], &["d"]]);
}

#[test]
fn goto_takes_the_place_of_the_edges() {
    let jumping = small(
        r#"entry = "a"
        nodes = { a = { goto = ["c", "END"] }, b = {}, c = {} }
        edges = [{ from = "a", to = "b" }]"#,
    );
    let jump = |targets: &'static [&'static str]| {
        move |task: &Task| match task.node.as_str() {
            "a" => Did { goto: Some(targets.iter().map(|t| node(t)).collect()), ..Did::default() },
            _ => Did::default(),
        }
    };
    assert_eq!(run(&jumping, &json!({}), &jump(&["c"])).unwrap().0, [["a"], ["c"]]);
    assert_eq!(run(&jumping, &json!({}), &jump(&[])).unwrap().0, [["a"]]);
    assert_eq!(run(&jumping, &json!({}), &jump(&["END"])).unwrap().0, [["a"]]);
}

#[test]
fn sends_run_a_node_once_each_with_inputs_of_their_own() {
    let mapped = small(
        r#"entry = "split"
        nodes = { split = { goto = "work" }, work = {}, join = {} }
        edges = [{ from = "work", to = "join" }]"#,
    );
    let act = |task: &Task| match task.node.as_str() {
        "split" => Did {
            sends: (1..=12).map(|n| Send { node: node("work"), input: json!(n) }).collect(),
            ..Did::default()
        },
        "work" => Did::write("log", task.input.as_i64().unwrap() * 10),
        _ => Did::default(),
    };
    let (steps, last) = run(&mapped, &json!({}), &act).unwrap();
    assert_eq!(steps[1].len(), 12);
    assert_eq!(steps[2], ["join"]);
    let wanted: Vec<i64> = (1..=12).map(|n| n * 10).collect();
    assert_eq!(last.state()["log"], json!(wanted), "the order of the sends is kept");
}

#[test]
fn two_nodes_cannot_write_one_value() {
    let parallel = small(
        r#"entry = ["a", "b"]
        nodes = { a = {}, b = {} }"#,
    );
    let error = run(&parallel, &json!({}), &|_| Did::write("kind", 1)).unwrap_err();
    insta::assert_snapshot!("concurrent_writes", error);
    assert_eq!(error.to_failure().details.unwrap()["kind"], "concurrent_writes");
    let twice = small("entry = 'a'\nnodes.a = {}");
    let act = |_: &Task| Did {
        writes: vec![("kind".to_owned(), json!(1)), ("kind".to_owned(), json!(2))],
        ..Did::default()
    };
    insta::assert_snapshot!("written_twice", run(&twice, &json!({}), &act).unwrap_err());
}

#[test]
fn ephemeral_values_are_gone_after_a_superstep() {
    let flash = graph(
        r#"[graphs.g]
        entry = "a"
        channels.hint = { reducer = "ephemeral" }
        nodes = { a = {}, b = {}, c = {} }
        edges = [{ from = "a", to = "b" }, { from = "b", to = "c" }]"#,
    );
    let act = |task: &Task| match task.node.as_str() {
        "a" => Did::write("hint", task.input.clone()),
        "b" => {
            assert_eq!(task.input, json!({ "hint": { "hint": 1 } }));
            Did::default()
        }
        _ => {
            assert_eq!(task.input, json!({}));
            Did::default()
        }
    };
    let (_, last) = run(&flash, &json!({ "hint": 1 }), &act).unwrap();
    assert!(last.values.is_empty() && last.meta.versions.is_empty());
}

#[test]
fn input_passes_the_reducers_and_names_its_mistakes() {
    let chat = graph(
        r#"[graphs.g]
        entry = "a"
        channels.log = { reducer = "append", default = ["hello"] }
        channels.kind = { schema = { enum = ["x", "y"] }, default = "x" }
        nodes.a = {}"#,
    );
    let none = std::collections::BTreeMap::new();
    let root = Namespace::root();
    let input = |base, input: Value, id| accept_input(&chat, base, &root, &input, &none, at(id));
    let first = input(None, json!({ "log": "one" }), 1).unwrap();
    assert_eq!(first.state(), json!({ "kind": "x", "log": ["hello", "one"] }));
    let second = input(Some(&first), json!({ "log": ["two"], "kind": "y" }), 5).unwrap();
    assert_eq!(second.state(), json!({ "kind": "y", "log": ["hello", "one", "two"] }));
    assert_eq!((second.meta.step, second.meta.parent), (1, Some(first.meta.id)));
    assert_eq!(second.meta.changed().count(), 2);
    for (bad, part) in [
        (json!({ "lag": 1 }), "no channel `lag`, its channels are `kind`, `log`"),
        (json!([]), "it must be an object"),
        (json!({ "kind": "z" }), "channel `kind` does not accept the value"),
    ] {
        let error = input(None, bad, 1).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn outputs_are_checked_at_once() {
    let strict = graph(
        r#"[graphs.g]
        entry = "a"
        channels.n = { schema = { type = "integer" } }
        nodes.a = {}"#,
    );
    let check = |channel: &str, value: Value, goto: &[&str]| {
        let writes = crate::testing::writes(&[(channel.to_owned(), value)]);
        let goto: Vec<_> = goto.iter().map(|name| node(name)).collect();
        check_writes(&strict, &node("a"), &writes, Some(&goto), &[])
    };
    assert!(check("n", json!(1), &["a", "END"]).is_ok());
    assert!(matches!(check("n", json!("1"), &[]), Err(StepError::InvalidValue { .. })));
    assert!(matches!(check("m", json!(1), &[]), Err(StepError::UnknownChannel { .. })));
    assert!(matches!(check("n", json!(1), &["x"]), Err(StepError::UnknownNode { .. })));
}

#[test]
fn a_plugin_reduces_before_the_step_is_applied() {
    let voted = graph(
        r#"[graphs.g]
        entry = ["a", "b"]
        channels.vote = { reducer = { plugin = "p", reducer = "majority" }, default = 0 }
        nodes = { a = {}, b = {} }"#,
    );
    let mut lineage = start(&voted, &json!({})).unwrap();
    for task in ready(&voted, &lineage) {
        let did = Did::write("vote", task.node.to_string());
        lineage.apply(&finished(&task, lineage.checkpoint.meta.id, did));
    }
    let wanted = plugin_reductions(&voted, &lineage);
    assert_eq!(wanted.len(), 1);
    assert_eq!(
        (&wanted[0].current, &wanted[0].updates),
        (&Some(json!(0)), &vec!["a".into(), "b".into()])
    );
    let reduced = [(wanted[0].channel.clone(), json!("ab"))].into();
    let next = super::advance(&voted, &lineage, &reduced, at(2)).unwrap();
    assert_eq!(next.state(), json!({ "vote": "ab" }));
    let missing = super::advance(&voted, &lineage, &[].into(), at(2));
    assert!(matches!(missing, Err(StepError::Reduce { .. })));
}

#[test]
fn the_recursion_limit_ends_an_endless_loop() {
    let endless = small(
        r#"entry = "a"
        recursion_limit = 3
        nodes.a = {}
        edges = [{ from = "a", to = "a" }]"#,
    );
    let lineage = start(&endless, &json!({})).unwrap();
    assert!(matches!(plan(&endless, &thread(), &lineage, 2), Planned::Tasks { .. }));
    let planned = plan(&endless, &thread(), &lineage, 3);
    assert_eq!(planned, Planned::RecursionLimit { limit: 3 });
}
