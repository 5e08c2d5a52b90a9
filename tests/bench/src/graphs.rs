//! The graphs of the cases, with nodes that do nearly nothing.

use anyhow::{Result, bail};
use serde_json::{Value, json};
use wattle_suite::native::NativePlugin;
use wattle_suite::stored_threads::text;

use crate::order::Order;

/// A graph, its input and its expected result.
pub(crate) struct Case {
    /// The graph `bench`. Its plugin `p` is the one under test; `n` is always native.
    pub(crate) toml: String,
    /// Number of tasks of one run.
    pub(crate) steps: usize,
    /// Input of a run.
    pub(crate) input: Value,
    check: fn(&Value, usize) -> bool,
    expected: usize,
}

impl Case {
    /// Creates a case by its name in the protocol.
    pub(crate) fn new(name: &str, order: &Order) -> Result<Self> {
        Ok(match name {
            "line" => line(order),
            "fan-out" => fan_out(order),
            "loop" | "history" => turns(order),
            "append" => append(order),
            other => bail!("unknown case `{other}`"),
        })
    }

    /// Returns true if the state of a run is the expected one.
    pub(crate) fn holds(&self, state: &Value) -> bool {
        (self.check)(state, self.expected)
    }
}

fn line(order: &Order) -> Case {
    Case {
        toml: line_toml(order.nodes),
        steps: order.nodes,
        input: json!({ "document": document(order.text_bytes) }),
        check: counted,
        expected: order.nodes,
    }
}

/// Returns the definition of a graph with `nodes` nodes in a line, in TOML.
pub(crate) fn line_toml(nodes: usize) -> String {
    let mut text =
        String::from("[graphs.bench]\nentry = \"n0\"\n[graphs.bench.channels.document]\n");
    for node in 0..nodes {
        text.push_str(&format!("[graphs.bench.nodes.n{node}]\nplugin = \"p\"\nnode = \"touch\"\n"));
    }
    for node in 1..nodes {
        let from = node - 1;
        text.push_str(&format!("[[graphs.bench.edges]]\nfrom = \"n{from}\"\nto = \"n{node}\"\n"));
    }
    text
}

fn fan_out(order: &Order) -> Case {
    let toml = r#"
[graphs.bench]
entry = "split"
[graphs.bench.channels]
text_bytes = {}
sends = {}
document = { reducer = "append" }
total = {}
[graphs.bench.nodes]
split = { plugin = "n", goto = ["work"] }
work = { plugin = "p", node = "touch" }
join = { plugin = "n" }
[[graphs.bench.edges]]
from = "work"
to = "join"
"#;
    Case {
        toml: toml.to_owned(),
        steps: order.sends + 2,
        input: json!({ "text_bytes": order.text_bytes, "sends": order.sends }),
        check: |state, expected| state["total"] == json!(expected),
        expected: order.sends,
    }
}

fn turns(order: &Order) -> Case {
    let toml = format!(
        r#"
[graphs.bench]
entry = "touch"
recursion_limit = {limit}
[graphs.bench.channels.document]
[graphs.bench.nodes.touch]
plugin = "p"
[[graphs.bench.branches]]
name = "again"
from = "touch"
cases = [{{ when = "state.document.n < {turns}", to = "touch" }}, {{ to = "END" }}]
"#,
        limit = order.turns + 1,
        turns = order.turns,
    );
    Case {
        toml,
        steps: order.turns,
        input: json!({ "document": document(order.text_bytes) }),
        check: counted,
        expected: order.turns,
    }
}

fn append(order: &Order) -> Case {
    let toml = format!(
        r#"
[graphs.bench]
entry = "add"
recursion_limit = {limit}
[graphs.bench.channels]
text_bytes = {{}}
n = {{}}
log = {{ reducer = "append" }}
[graphs.bench.nodes.add]
plugin = "n"
[[graphs.bench.branches]]
name = "again"
from = "add"
cases = [{{ when = "state.n < {items}", to = "add" }}, {{ to = "END" }}]
"#,
        limit = order.items + 1,
        items = order.items,
    );
    Case {
        toml,
        steps: order.items,
        input: json!({ "text_bytes": order.text_bytes, "n": 0 }),
        check: |state, expected| state["log"].as_array().map_or(0, Vec::len) == expected,
        expected: order.items,
    }
}

fn counted(state: &Value, expected: usize) -> bool {
    state["document"]["n"] == json!(expected)
}

/// Returns a native plugin with the nodes of all cases.
pub(crate) fn native(name: &str) -> NativePlugin {
    NativePlugin::new(name, "1")
        .node("touch", |call, _| async move {
            let mut document = call.input.get("document").into_owned();
            document["n"] = json!(whole(&document["n"]) + 1);
            Ok(json!({ "document": document }))
        })
        .node("split", |call, _| async move {
            let document = document(whole(&call.input.get("text_bytes")));
            let send = json!({ "node": "work", "input": { "document": document } });
            Ok(json!({ "$send": vec![send; whole(&call.input.get("sends"))] }))
        })
        .node("join", |call, _| async move {
            let documents = call.input.get("document").as_array().cloned().unwrap_or_default();
            let total: usize = documents.iter().map(|document| whole(&document["n"])).sum();
            Ok(json!({ "total": total }))
        })
        .node("add", |call, _| async move {
            let n = whole(&call.input.get("n"));
            Ok(json!({ "n": n + 1, "log": text(whole(&call.input.get("text_bytes")), n as u64) }))
        })
}

fn whole(number: &Value) -> usize {
    number.as_u64().unwrap_or_default() as usize
}

/// Returns the document in the state of most cases.
pub(crate) fn document(text_bytes: usize) -> Value {
    json!({ "n": 0, "text": text(text_bytes, 0) })
}
