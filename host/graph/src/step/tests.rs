//! Tests that run small graphs to their end.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    CheckpointStamp, StepError, accept_input, check_input, check_writes, plugin_reductions,
};
use crate::checkpoint::{ChannelValue, Checkpoint, CheckpointSource};
use crate::event::{Checkpointed, EventKind, Send, SubgraphEnd};
use crate::graph::Graph;
use crate::id::{CheckpointId, Namespace};
use crate::plan::{Plan, Task, plan};
use crate::testing::{
    ScriptedResult, at, costly_graph, costly_values, finished, graph, node, ready, run, start,
    superstep, thread,
};

/// Runs a graph whose nodes append their names to `log`.
fn check(graph: &Graph, input: &Value, wanted: &[&[&str]]) {
    let log = |task: &Task| ScriptedResult::write("log", task.node.to_string());
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
fn linear_graph_runs_node_by_node() {
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
fn the_event_of_a_checkpoint_names_the_cases_that_were_taken() {
    let routed = small(
        r#"entry = "a"
        nodes = { a = {}, b = {}, c = {} }
        edges = [{ from = "b", to = "c" }]
        [[graphs.g.branches]]
        name = "route"
        from = "a"
        cases = [{ when = "state.kind == 0", to = "b" }, { to = ["b", "END"] }]
        [[graphs.g.branches]]
        name = "fan"
        from = ["a", "c"]
        mode = "all"
        cases = [{ when = "state.kind >= 1", to = "b" }, { when = "state.kind >= 2", to = "END" }]"#,
    );
    let taken = |checkpoint: &Checkpoint| -> Vec<(String, u32)> {
        let cases = Checkpointed::from(checkpoint).taken.into_iter();
        cases.map(|taken| (taken.branch, taken.case)).collect()
    };
    let case = |branch: &str, index: u32| (branch.to_owned(), index);
    for (kind, expected) in [
        (0, vec![case("route", 0)]),
        (1, vec![case("route", 1), case("fan", 0)]),
        (2, vec![case("route", 1), case("fan", 0), case("fan", 1)]),
    ] {
        let mut lineage = start(&routed, &json!({ "kind": kind })).unwrap();
        assert!(taken(&lineage.checkpoint).is_empty(), "an input takes no branch");
        superstep(&routed, &mut lineage, &|_| ScriptedResult::default()).unwrap();
        assert_eq!(taken(&lineage.checkpoint), expected, "{kind}");
        superstep(&routed, &mut lineage, &|_| ScriptedResult::default()).unwrap();
        assert!(taken(&lineage.checkpoint).is_empty(), "no branch begins at `b`");
    }
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
    superstep(&joined, &mut lineage, &|_| ScriptedResult::default()).unwrap();
    assert_eq!(lineage.checkpoint.meta.barriers["a+b2->join"], [node("a")].into());
    superstep(&joined, &mut lineage, &|_| ScriptedResult::default()).unwrap();
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
fn goto_replaces_the_edges() {
    let jumping = small(
        r#"entry = "a"
        nodes = { a = { goto = ["c", "END"] }, b = {}, c = {} }
        edges = [{ from = "a", to = "b" }]"#,
    );
    let jump = |targets: &'static [&'static str]| {
        move |task: &Task| match task.node.as_str() {
            "a" => ScriptedResult {
                goto: Some(targets.iter().map(|t| node(t)).collect()),
                ..ScriptedResult::default()
            },
            _ => ScriptedResult::default(),
        }
    };
    assert_eq!(run(&jumping, &json!({}), &jump(&["c"])).unwrap().0, [["a"], ["c"]]);
    assert_eq!(run(&jumping, &json!({}), &jump(&[])).unwrap().0, [["a"]]);
    assert_eq!(run(&jumping, &json!({}), &jump(&["END"])).unwrap().0, [["a"]]);
}

#[test]
fn each_send_runs_the_node_with_its_own_input() {
    let mapped = small(
        r#"entry = "split"
        nodes = { split = { goto = "work" }, work = {}, join = {} }
        edges = [{ from = "work", to = "join" }]"#,
    );
    let act = |task: &Task| match task.node.as_str() {
        "split" => ScriptedResult {
            sends: (1..=12)
                .map(|n| Send { node: node("work"), input: json!(n), timeout_ms: None })
                .collect(),
            ..ScriptedResult::default()
        },
        "work" => {
            let number = task.own_input.as_deref().and_then(Value::as_i64);
            ScriptedResult::write("log", number.unwrap() * 10)
        }
        _ => ScriptedResult::default(),
    };
    let (steps, last) = run(&mapped, &json!({}), &act).unwrap();
    assert_eq!(steps[1].len(), 12);
    assert_eq!(steps[2], ["join"]);
    let wanted: Vec<i64> = (1..=12).map(|n| n * 10).collect();
    assert_eq!(last.state()["log"], json!(wanted), "the order of the sends is kept");
}

#[test]
fn concurrent_writes_to_one_value_are_rejected() {
    let parallel = small(
        r#"entry = ["a", "b"]
        nodes = { a = {}, b = {} }"#,
    );
    let error = run(&parallel, &json!({}), &|_| ScriptedResult::write("kind", 1)).unwrap_err();
    insta::assert_snapshot!("concurrent_writes", error);
    assert_eq!(error.to_failure().details.unwrap()["kind"], "concurrent_writes");
    let twice = small("entry = 'a'\nnodes.a = {}");
    let act = |_: &Task| ScriptedResult {
        writes: vec![("kind".to_owned(), json!(1)), ("kind".to_owned(), json!(2))],
        ..ScriptedResult::default()
    };
    insta::assert_snapshot!("written_twice", run(&twice, &json!({}), &act).unwrap_err());
}

#[test]
fn ephemeral_values_last_for_one_superstep() {
    let flash = graph(
        r#"[graphs.g]
        entry = "a"
        channels.hint = { reducer = "ephemeral" }
        nodes = { a = {}, b = {}, c = {} }
        edges = [{ from = "a", to = "b" }, { from = "b", to = "c" }]"#,
    );
    let mut lineage = start(&flash, &json!({ "hint": 1 })).unwrap();
    let mut inputs = Vec::new();
    for _ in 0..3 {
        let task = ready(&flash, &lineage).remove(0);
        let input = task.input(&flash, &lineage.checkpoint.values).to_value();
        let act = |task: &Task| match task.node.as_str() {
            "a" => ScriptedResult::write("hint", input.clone()),
            _ => ScriptedResult::default(),
        };
        superstep(&flash, &mut lineage, &act).unwrap();
        inputs.push(input);
    }
    assert_eq!(inputs, [json!({ "hint": 1 }), json!({ "hint": { "hint": 1 } }), json!({})]);
    let last = &lineage.checkpoint;
    assert!(last.values.is_empty() && last.meta.versions.is_empty());
}

#[test]
fn input_applies_reducers_and_reports_mistakes() {
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
    assert_eq!(second.meta.written_channels().count(), 2);
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
fn task_outputs_are_checked_before_the_superstep() {
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
fn validations_of_one_outcome_or_input_share_a_budget_of_steps() {
    let costly = costly_graph();
    let outcome = |count: usize| {
        let writes = crate::testing::writes(&costly_values(count));
        check_writes(&costly, &node("a"), &writes, None, &[])
    };
    let input = |count: usize| {
        let fields: serde_json::Map<String, Value> = costly_values(count).into_iter().collect();
        check_input(&costly, &Value::Object(fields))
    };
    for check in [&outcome as &dyn Fn(usize) -> Result<(), StepError>, &input] {
        assert_eq!(check(2), Ok(()));
        let error = check(20).unwrap_err();
        assert!(matches!(&error, StepError::Limit(it) if it.limit == "schema_steps"), "{error}");
    }
}

#[test]
fn results_of_plugin_reducers_are_applied_with_the_superstep() {
    let voted = graph(
        r#"[graphs.g]
        entry = ["a", "b"]
        channels.vote = { reducer = { plugin = "p", reducer = "majority" }, default = 0 }
        nodes = { a = {}, b = {} }"#,
    );
    let mut lineage = start(&voted, &json!({})).unwrap();
    for task in ready(&voted, &lineage) {
        let did = ScriptedResult::write("vote", task.node.to_string());
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
fn two_overwrites_of_a_plugin_channel_are_an_error() {
    let voted = graph(
        r#"[graphs.g]
        entry = ["a", "b", "c"]
        channels.vote = { reducer = { plugin = "p", reducer = "majority" }, default = 0 }
        nodes = { a = {}, b = {}, c = {} }"#,
    );
    let mut lineage = start(&voted, &json!({})).unwrap();
    for task in ready(&voted, &lineage) {
        let did = ScriptedResult::write("vote", task.node.to_string());
        let mut event = finished(&task, lineage.checkpoint.meta.id, did);
        if let EventKind::TaskFinished(finished) = &mut event.kind {
            Arc::make_mut(finished).writes[0].overwrite = task.node != node("c");
        }
        lineage.apply(&event);
    }
    // There is a result that could be applied, because the plain write also calls the plugin.
    let wanted = plugin_reductions(&voted, &lineage);
    assert_eq!((wanted.len(), &wanted[0].updates), (1, &vec!["c".into()]));
    let channel = wanted[0].channel.clone();
    let reduced = [(channel.clone(), json!("bc"))].into();
    let nodes = vec![node("a"), node("b")];
    assert_eq!(
        super::advance(&voted, &lineage, &reduced, at(2)),
        Err(StepError::DoubleOverwrite { channel, nodes })
    );
}

#[test]
fn deferred_node_runs_once_nothing_else_is_triggered() {
    let late = small(
        r#"entry = ["a", "z"]
        nodes = { a = {}, b = {}, c = {}, z = { defer = true }, y = { defer = true }, end = {} }
        edges = [
            { from = "a", to = ["b", "z"] }, { from = "b", to = ["c", "y"] },
            { from = "c", to = "z" }, { from = ["y", "z"], to = "end" },
        ]"#,
    );
    check(&late, &json!({}), &[&["a"], &["b"], &["c"], &["y", "z"], &["end"]]);
}

#[test]
fn sends_to_a_deferred_node_run_together() {
    let mapped = small(
        r#"entry = "a"
        nodes = { a = { goto = "late" }, b = {}, late = { defer = true } }
        edges = [{ from = "a", to = ["b", "late"] }, { from = "b", to = "late" }]"#,
    );
    let send = |n: i64| Send { node: node("late"), input: json!(n), timeout_ms: Some(7) };
    let act = |task: &Task| match (task.node.as_str(), task.timeout_ms) {
        ("a", _) => ScriptedResult { sends: vec![send(1)], ..ScriptedResult::default() },
        ("b", _) => ScriptedResult { sends: vec![send(2)], ..ScriptedResult::default() },
        (_, timeout) => ScriptedResult::write("log", json!([[task.own_input, timeout]])),
    };
    let (steps, last) = run(&mapped, &json!({}), &act).unwrap();
    assert_eq!(steps, [vec!["a"], vec!["b"], vec!["late"; 3]]);
    let log = &last.state()["log"];
    assert_eq!(log, &json!([[null, null], [1, 7], [2, 7]]));
}

#[test]
fn reducers_report_the_unchanged_prefix() {
    let talk = graph(
        r#"[graphs.g]
        entry = "a"
        channels.log = { reducer = "append", default = ["zero"] }
        channels.messages.reducer = "messages"
        channels.kind = {}
        nodes.a.goto = "END"
        edges = [{ from = "a", to = "a" }]"#,
    );
    let message = |id: &str, text: &str| json!({ "id": id, "role": "user", "content": text });
    let input = json!({ "log": ["one"], "messages": [message("a", "1"), message("b", "2")] });
    let mut lineage = start(&talk, &input).unwrap();
    assert!(lineage.checkpoint.list_deltas.is_empty(), "there is nothing before a first input");
    let mut step = |writes: Vec<(&str, Value)>| {
        let writes = writes.into_iter().map(|(name, value)| (name.to_owned(), value));
        let did = ScriptedResult { writes: writes.collect(), ..ScriptedResult::default() };
        let before = lineage.checkpoint.meta.id;
        superstep(&talk, &mut lineage, &|_| did.clone()).unwrap();
        let tails = lineage.checkpoint.list_deltas.iter();
        assert!(tails.clone().all(|(_, tail)| tail.base <= before));
        tails
            .map(|(name, tail)| (name.to_string(), tail.base.0, tail.prefix_len))
            .collect::<Vec<_>>()
    };
    let tail = |name: &str, base, keep| (name.to_owned(), base, keep);
    assert_eq!(step(vec![("log", json!("two")), ("kind", json!([1]))]), [tail("log", 1, 2)]);
    assert_eq!(step(vec![("messages", message("c", "3"))]), [tail("messages", 1, 2)]);
    assert_eq!(step(vec![("log", json!(["x"]))]), [tail("log", 2, 3)]);
    let changed = vec![("messages", json!([message("d", "4"), message("b", "new")]))];
    assert_eq!(step(changed), [tail("messages", 3, 1)]);
    let removed = vec![("messages", json!({ "role": "remove", "id": "b" }))];
    assert_eq!(step(removed), [tail("messages", 5, 1)]);
    assert_eq!(step(vec![("messages", json!({ "role": "remove", "id": "__remove_all__" }))]), []);
}

#[test]
fn a_superstep_copies_only_the_items_that_it_changes() {
    let talk = graph(
        r#"[graphs.g]
        entry = "a"
        channels.log.reducer = "append"
        channels.messages.reducer = "messages"
        channels.kind = {}
        nodes.a.goto = "END"
        edges = [{ from = "a", to = "a" }]"#,
    );
    for length in [10, 2_000] {
        let messages: Vec<Value> = (0..length).map(|n| json!({ "id": n.to_string() })).collect();
        let input = json!({ "log": messages, "messages": messages, "kind": messages });
        let mut lineage = start(&talk, &input).unwrap();
        let before = lineage.checkpoint.values.clone();
        let did = ScriptedResult {
            writes: vec![
                ("log".to_owned(), json!("one")),
                ("messages".to_owned(), json!([{ "id": "3", "content": "new" }, {}])),
            ],
            ..ScriptedResult::default()
        };
        superstep(&talk, &mut lineage, &|_| did.clone()).unwrap();
        let copied = |name: &str| {
            let new = lineage.checkpoint.values[name].list().unwrap();
            new.unshared_with(before[name].list().unwrap())
        };
        assert_eq!((copied("log"), copied("messages"), copied("kind")), (1, 2, 0), "{length}");
        assert!(lineage.checkpoint.values.values().all(ChannelValue::is_weighed));
    }
}

#[test]
fn overwrite_of_a_list_makes_no_list_delta() {
    let listed = small("entry = 'a'\nnodes.a = {}");
    let mut lineage = start(&listed, &json!({ "log": [1, 2] })).unwrap();
    let task = ready(&listed, &lineage).remove(0);
    let mut event =
        finished(&task, lineage.checkpoint.meta.id, ScriptedResult::write("log", json!([1, 2])));
    if let EventKind::TaskFinished(finished) = &mut event.kind {
        Arc::make_mut(finished).writes[0].overwrite = true;
    }
    lineage.apply(&event);
    assert!(super::advance(&listed, &lineage, &[].into(), at(2)).unwrap().list_deltas.is_empty());
}

#[test]
fn checkpoint_records_subgraphs_that_keep_their_state() {
    let outer = small(
        "entry = ['a', 'b']\nnodes = { a = {}, b = {}, c = {} }\nedges = [{ from = 'a', to = 'c' }]",
    );
    let mut lineage = start(&outer, &json!({})).unwrap();
    for (task, persists) in ready(&outer, &lineage).iter().zip([true, false]) {
        let mut event = finished(task, lineage.checkpoint.meta.id, ScriptedResult::default());
        if let EventKind::TaskFinished(finished) = &mut event.kind {
            let namespace = Namespace::root().for_node(&task.node);
            let checkpoint = Some(CheckpointId(7));
            let finished = Arc::make_mut(finished);
            finished.child = Some(SubgraphEnd { namespace, checkpoint, persists });
        }
        lineage.apply(&event);
    }
    let parents: BTreeMap<_, _> = [(Namespace::root(), CheckpointId(1))].into();
    let position = CheckpointStamp { parents: parents.clone(), ..at(8) };
    let next = super::advance(&outer, &lineage, &[].into(), position).unwrap();
    let kept = [(Namespace::root().for_node(&node("a")), CheckpointId(7))].into();
    assert_eq!((&next.meta.subgraph_checkpoints, &next.meta.parent_graphs), (&kept, &parents));
    assert_eq!(next.meta.writers, [node("a"), node("b")]);
    let forked = super::fork(&next, at(9));
    assert_eq!(
        (forked.meta.subgraph_checkpoints, forked.meta.source),
        (kept, CheckpointSource::Fork)
    );
}

#[test]
fn the_recursion_limit_ends_an_endless_loop() {
    let endless = small(
        r#"entry = "a"
        recursion_limit = 3
        nodes.a.goto = "END"
        edges = [{ from = "a", to = "a" }]"#,
    );
    let lineage = start(&endless, &json!({})).unwrap();
    assert!(matches!(plan(&endless, &thread(), &lineage, 1), Plan::Tasks { .. }));
    assert_eq!(plan(&endless, &thread(), &lineage, 0), Plan::RecursionLimitReached);
}
