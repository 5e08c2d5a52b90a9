//! Properties that hold for all graphs, states and orders of events.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::{
    Just, Strategy, any, prop_assert, prop_assert_eq, prop_assume, prop_oneof, proptest,
};
use proptest::sample::Index;
use serde_json::{Value, json};

use crate::channel::Channel;
use crate::check::{AnyPlugin, check_json, check_toml};
use crate::checkpoint::{ChannelValue, CheckpointSource, Trigger};
use crate::definition::{ChannelDef, GraphDocument};
use crate::event::{Event, TaskFinished, Write};
use crate::graph::Graph;
use crate::id::{ChannelName, TaskId};
use crate::lineage::Lineage;
use crate::plan::{Plan, Task, TaskInput, plan};
use crate::step::{Edit, EditAs, advance, edit};
use crate::testing::{ScriptedResult, at, finish_superstep, node, start, superstep, thread};

const NODES: usize = 6;
const CHANNELS: [(&str, &str); 7] = [
    ("log", "append"),
    ("total", "sum"),
    ("low", "min"),
    ("high", "max"),
    ("facts", "merge"),
    ("some", "any"),
    ("talk", "messages"),
];

fn name(index: usize) -> String {
    format!("n{index}")
}

type Names = BTreeSet<usize>;

fn names(set: Names) -> Vec<String> {
    set.into_iter().map(name).collect()
}

/// Generates a definition with random edges, barriers, branches, error handlers and deferred nodes.
/// Every node declares all nodes as `goto` targets, so that no node is unreachable. The error
/// handler of a node has a greater number than the node.
fn definition() -> impl Strategy<Value = Value> {
    let nodes = || btree_set(0..NODES, 1..3);
    let edges = vec((nodes(), nodes()), 0..6);
    let branches = vec((nodes(), nodes(), nodes(), any::<bool>()), 0..3);
    let habits = vec((any::<bool>(), 0..2 * NODES), NODES);
    (nodes(), edges, branches, habits).prop_map(|(entry, edges, branches, habits)| {
        let all: Vec<String> = (0..NODES).map(name).collect();
        let nodes = habits.into_iter().enumerate().map(|(index, (defer, handler))| {
            let mut node = json!({ "goto": all, "defer": defer && !entry.contains(&index) });
            if handler > index && handler < NODES {
                node["on_error"] = name(handler).into();
            }
            (name(index), node)
        });
        let nodes: BTreeMap<_, _> = nodes.collect();
        let channels =
            CHANNELS.iter().map(|(name, reducer)| (*name, json!({ "reducer": reducer })));
        let edges = edges.into_iter();
        json!({ "graphs": { "g": {
            "entry": names(entry),
            "channels": channels.collect::<BTreeMap<_, _>>(),
            "nodes": nodes,
            "edges": edges.map(edge).collect::<Vec<_>>(),
            "branches": branches.into_iter().enumerate().map(branch).collect::<Vec<_>>(),
        } } })
    })
}

fn edge((from, to): (Names, Names)) -> Value {
    json!({ "from": names(from), "to": names(to) })
}

fn branch((index, (from, one, two, all)): (usize, (Names, Names, Names, bool))) -> Value {
    json!({
        "name": format!("b{index}"),
        "from": names(from),
        "mode": if all { "all" } else { "first" },
        "cases": [
            { "when": "state.total != null && state.total > 3", "to": names(one) },
            { "to": names(two) }
        ]
    })
}

fn built(definition: &Value) -> Graph {
    let graphs = check_json("graph.json", &definition.to_string(), &AnyPlugin);
    graphs.expect("a sound definition").remove(0)
}

/// Returns a function from a task to its result. The result depends only on the seed and the task.
fn act(seed: u8) -> impl Fn(&Task) -> ScriptedResult {
    move |task| {
        let digit = u32::from(task.id.as_str().as_bytes()[0]) + u32::from(seed);
        let number = i64::from(digit % 5);
        let mut did = ScriptedResult::write("log", task.node.to_string());
        for (channel, _) in &CHANNELS[1..4] {
            did.writes.push(((*channel).to_owned(), number.into()));
        }
        did.writes.push(("facts".to_owned(), json!({ task.node.as_str(): number })));
        did.writes.push(("some".to_owned(), task.index.into()));
        did.writes.push(("talk".to_owned(), talk(digit)));
        did.fails = digit.is_multiple_of(4);
        if digit.is_multiple_of(7) {
            did.goto = Some(vec![node(&name(digit as usize % NODES))]);
        }
        if digit.is_multiple_of(3) {
            let send = |input: u32| crate::event::Send {
                node: node(&name(input as usize % NODES)),
                input: json!(input),
                timeout_ms: input.is_multiple_of(2).then_some(u64::from(input)),
            };
            did.sends = vec![send(digit), send(digit), send(digit + 1)];
        }
        did
    }
}

/// Returns a message: a new one, one that replaces another, or one that removes all messages before
/// it.
fn talk(digit: u32) -> Value {
    let message = json!({ "id": format!("m{}", digit % 5), "role": "user", "content": digit });
    if digit.is_multiple_of(11) {
        json!([{ "role": "remove", "id": "__remove_all__" }, message])
    } else {
        message
    }
}

/// Returns a lineage after some supersteps, with the events that finish the next one.
fn mid_run(graph: &Graph, seed: u8, steps: u8) -> (Lineage, Vec<Event>) {
    let mut lineage = start(graph, &json!({})).unwrap();
    for _ in 0..steps {
        if lineage.checkpoint.meta.next.is_empty() {
            break;
        }
        superstep(graph, &mut lineage, &act(seed)).unwrap();
    }
    let events = finish_superstep(graph, &mut lineage.clone(), &act(seed)).unwrap();
    (lineage, events)
}

/// Returns the writes of tasks as edits, without gotos and sends.
fn as_edits(lineage: &Lineage) -> Vec<Edit> {
    let mut tasks: Vec<&TaskFinished> = lineage.finished.values().map(Arc::as_ref).collect();
    tasks.sort_by_key(|task| (&task.node, task.index));
    let edit = |task: &TaskFinished| {
        let as_node = EditAs::Node(task.node.clone());
        Edit { as_node, writes: task.writes.clone() }
    };
    tasks.into_iter().map(edit).collect()
}

fn fold(lineage: &Lineage, events: &[Event]) -> Lineage {
    let mut lineage = lineage.clone();
    for event in events {
        lineage.apply(event);
    }
    lineage
}

fn shuffled<T: Clone>(items: &[T], picks: &[Index]) -> Vec<T> {
    let mut items = items.to_vec();
    for (place, pick) in picks.iter().enumerate().take(items.len()) {
        let other = pick.index(items.len());
        items.swap(place, other);
    }
    items
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i16>().prop_map(Value::from),
        "[a-zA-Z.*]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let key = prop_oneof![
            Just("graphs"),
            Just("entry"),
            Just("nodes"),
            Just("channels"),
            Just("edges"),
            Just("branches"),
            Just("cases"),
            Just("from"),
            Just("to"),
            Just("when"),
            Just("schema"),
            Just("reducer"),
            Just("default"),
            Just("retry"),
            Just("a"),
        ];
        let fields = vec((key, inner.clone()), 0..4).prop_map(|fields| {
            Value::Object(fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
        });
        prop_oneof![vec(inner, 0..4).prop_map(Value::from), fields]
    })
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![any::<i32>().prop_map(Value::from), (-1e6..1e6).prop_map(|n: f64| json!(n))]
}

/// Generates a value of a channel, with any characters in its texts.
fn channel_value() -> impl Strategy<Value = Value> {
    prop_oneof![json_value(), number(), any::<String>().prop_map(|text| json!([{ "a": text }]))]
}

fn reduce(reducer: &str, current: &Value, writes: &[Value]) -> Value {
    let def: ChannelDef = serde_json::from_value(json!({ "reducer": reducer })).unwrap();
    let name = ChannelName::new("c").unwrap();
    let channel = Channel::new(name.clone(), &def).unwrap();
    let writes: Vec<Write> = writes
        .iter()
        .map(|value| Write { channel: name.clone(), value: value.clone(), overwrite: false })
        .collect();
    let writes: Vec<&Write> = writes.iter().collect();
    channel.reduce(Some(current), &writes).unwrap()
}

proptest! {
    #[test]
    fn completion_order_of_tasks_does_not_matter(
        definition in definition(),
        seed in any::<u8>(),
        steps in 0_u8..5,
        picks in vec(any::<Index>(), 0..20),
    ) {
        let graph = built(&definition);
        let (lineage, events) = mid_run(&graph, seed, steps);
        let one = advance(&graph, &fold(&lineage, &events), &BTreeMap::new(), at(99)).unwrap();
        let shuffled = shuffled(&events, &picks);
        let other = advance(&graph, &fold(&lineage, &shuffled), &BTreeMap::new(), at(99)).unwrap();
        prop_assert_eq!(one, other);
    }

    #[test]
    fn resumed_fold_equals_uninterrupted_fold(
        definition in definition(), seed in any::<u8>(), steps in 0_u8..5, cut in any::<Index>(),
    ) {
        let graph = built(&definition);
        let (lineage, events) = mid_run(&graph, seed, steps);
        let whole = fold(&lineage, &events);
        let cut = cut.index(events.len() + 1);
        let resumed = fold(&fold(&lineage, &events[..cut]), &events[cut..]);
        prop_assert_eq!(&resumed, &whole);
        let again = fold(&whole, &events);
        prop_assert_eq!(&again, &whole, "a second application of events changes nothing");
        let stored = serde_json::to_string(&events).unwrap();
        let read: Vec<Event> = serde_json::from_str(&stored).unwrap();
        prop_assert_eq!(fold(&lineage, &read), whole);
    }

    #[test]
    fn plan_lists_every_unfinished_task_once(
        definition in definition(), seed in any::<u8>(), steps in 0_u8..5, cut in any::<Index>(),
    ) {
        let graph = built(&definition);
        let (lineage, events) = mid_run(&graph, seed, steps);
        let lineage = fold(&lineage, &events[..cut.index(events.len() + 1)]);
        if let Plan::Tasks { all, runnable, waiting } = plan(&graph, &thread(), &lineage, 1) {
            let pending = runnable.iter().all(|task| !lineage.failed.contains_key(&task.id));
            prop_assert!(pending, "handled tasks do not run");
            let mut distinct: Vec<&TaskId> = all.iter().collect();
            distinct.sort();
            distinct.dedup();
            prop_assert_eq!(distinct.len(), all.len());
            prop_assert!(waiting.is_empty());
            prop_assert!(runnable.iter().all(|task| !lineage.finished.contains_key(&task.id)));
            prop_assert_eq!(runnable.len() + lineage.finished.len(), all.len());
            let own = runnable.iter().filter(|task| task.handles.is_none());
            let planned: Vec<_> = own.map(|task| (&task.node, task.index)).collect();
            prop_assert!(planned.is_sorted());
        }
    }

    #[test]
    fn edit_as_nodes_equals_a_superstep(
        definition in definition(), seed in any::<u8>(), steps in 0_u8..5,
    ) {
        let graph = built(&definition);
        let (lineage, events) = mid_run(&graph, seed, steps);
        let mut lineage = fold(&lineage, &events);
        for task in lineage.finished.values_mut().map(Arc::make_mut) {
            (task.goto, task.sends) = (None, Vec::new());
        }
        let edits = as_edits(&lineage);
        prop_assume!(!edits.is_empty());
        let none = BTreeMap::new();
        let edited = edit(&graph, &lineage.checkpoint, &edits, &none, at(99)).unwrap();
        let mut run = advance(&graph, &lineage, &none, at(99)).unwrap();
        run.meta.source = CheckpointSource::Update;
        prop_assert_eq!(&edited.list_deltas, &run.list_deltas);
        prop_assert_eq!(edited, run);
    }

    #[test]
    fn list_deltas_rebuild_the_values(
        definition in definition(), seed in any::<u8>(), steps in 0_u8..8,
    ) {
        let graph = built(&definition);
        let mut lineage = start(&graph, &json!({ "log": ["first"], "talk": [] })).unwrap();
        let mut known = BTreeMap::new();
        for _ in 0..=steps {
            let checkpoint = &lineage.checkpoint;
            for (channel, version) in &checkpoint.meta.versions {
                let value = checkpoint.values[channel].clone();
                known.entry((channel.clone(), *version)).or_insert(value);
            }
            for (channel, tail) in &checkpoint.list_deltas {
                let items = |value: &ChannelValue| {
                    let (list, length) = (value.list()?, tail.prefix_len as usize);
                    list.tail(length)?;
                    Some(list.iter().take(length).cloned().collect::<Vec<_>>())
                };
                let before = items(&known[&(channel.clone(), tail.base)]);
                prop_assert!(before.is_some());
                prop_assert_eq!(before, items(&checkpoint.values[channel]));
            }
            if checkpoint.meta.next.is_empty() {
                break;
            }
            superstep(&graph, &mut lineage, &act(seed)).unwrap();
        }
    }

    #[test]
    fn deferred_triggers_are_never_lost(
        definition in definition(), seed in any::<u8>(), steps in 0_u8..6,
    ) {
        let graph = built(&definition);
        let (lineage, _) = mid_run(&graph, seed, steps);
        let meta = &lineage.checkpoint.meta;
        prop_assert!(meta.deferred.iter().all(|trigger| graph.nodes()[&trigger.node].defer));
        prop_assert!(!meta.next.is_empty() || meta.deferred.is_empty());
        let waits = |trigger: &Trigger| graph.nodes()[&trigger.node].defer;
        let mixed = meta.next.iter().any(waits) && !meta.next.iter().all(waits);
        prop_assert!(!mixed, "deferred nodes run once nothing else is triggered");
    }

    #[test]
    fn every_value_has_a_version(
        definition in definition(), seed in any::<u8>(), steps in 0_u8..6,
    ) {
        let graph = built(&definition);
        let (lineage, _) = mid_run(&graph, seed, steps);
        let checkpoint = &lineage.checkpoint;
        prop_assert!(checkpoint.values.keys().eq(checkpoint.meta.versions.keys()));
        let next = checkpoint.meta.next.iter();
        let order: Vec<_> = next.map(|trigger| (&trigger.node, trigger.input.is_some())).collect();
        prop_assert!(order.is_sorted());
    }

    #[test]
    fn task_input_has_only_the_channels_that_the_node_reads(
        state in btree_map("[a-eé_][a-eé.-]{0,2}", channel_value(), 0..6),
        others in btree_set("[a-eé_][a-eé.-]{0,2}", 0..6),
        read in option::of(vec(any::<bool>(), 6)),
    ) {
        let channel = |name: &String| ChannelName::new(name).unwrap();
        let reads = read.map(|read| {
            let known = state.keys().zip(read).filter(|(_, is_read)| *is_read);
            known.map(|(name, _)| name.clone()).chain(others).collect::<BTreeSet<_>>()
        });
        let part = match &reads {
            None => json!(state),
            Some(reads) => reads
                .iter()
                .filter_map(|name| Some((name.clone(), state.get(name)?.clone())))
                .collect(),
        };
        let values = state.iter().map(|(name, value)| (channel(name), value.clone().into()));
        let input = TaskInput::State {
            values: values.collect(),
            reads: reads.map(|reads| Arc::new(reads.iter().map(channel).collect())),
        };
        let sent = TaskInput::Sent(Arc::new(part.clone()));
        for input in [input, sent] {
            prop_assert_eq!(serde_json::to_string(&input).unwrap(), part.to_string());
            prop_assert_eq!(input.to_value().to_string(), part.to_string());
            for name in state.keys() {
                prop_assert_eq!(&*input.get(name), &part[name]);
            }
        }
    }

    #[test]
    fn numbers_and_disjoint_objects_commute(
        current in any::<i32>(),
        numbers in vec(number(), 1..8),
        picks in vec(any::<Index>(), 8),
    ) {
        let other = shuffled(&numbers, &picks);
        for reducer in ["sum", "min", "max"] {
            let current = json!(current);
            prop_assert_eq!(reduce(reducer, &current, &numbers), reduce(reducer, &current, &other));
        }
        let objects: Vec<Value> =
            numbers.iter().enumerate().map(|(key, n)| json!({ key.to_string(): n })).collect();
        let current = json!({ "x": 1 });
        prop_assert_eq!(
            reduce("merge", &current, &objects),
            reduce("merge", &current, &shuffled(&objects, &picks))
        );
    }

    #[test]
    fn definitions_round_trip(definition in definition()) {
        let document: GraphDocument = serde_json::from_value(definition.clone()).unwrap();
        let written = serde_json::to_string(&document).unwrap();
        let read: GraphDocument = serde_json::from_str(&written).unwrap();
        prop_assert_eq!(&read, &document);
        prop_assert_eq!(serde_json::to_string(&read).unwrap(), written.clone());
        let digest = built(&definition).digest;
        prop_assert_eq!(check_json("graph.json", &written, &AnyPlugin).unwrap()[0].digest, digest);
        let text = toml::to_string(&document).unwrap();
        prop_assert_eq!(check_toml("graph.toml", &text, &AnyPlugin).unwrap()[0].digest, digest);
    }

    #[test]
    fn check_of_arbitrary_text_never_panics(text in "\\PC{0,80}", document in json_value()) {
        let _ = check_toml("graph.toml", &text, &AnyPlugin);
        let _ = check_json("graph.json", &text, &AnyPlugin);
        let nested = json!({ "graphs": { "h": document.clone(), "g": {
            "entry": "a",
            "nodes": { "a": document.clone() },
            "channels": { "a": document.clone() },
            "edges": document.clone(),
            "branches": [document.clone()]
        } } });
        for document in [document, nested] {
            let _ = check_json("graph.json", &document.to_string(), &AnyPlugin);
            if let Ok(text) = toml::to_string(&document) {
                let _ = check_toml("graph.toml", &text, &AnyPlugin);
            }
        }
    }
}
