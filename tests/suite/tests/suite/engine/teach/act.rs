//! The actions of a node of an example: sentences that are joined by `, then `.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use wattle_graph::failure::Failure;
use wattle_graph::id::{AppName, GraphName};
use wattle_run::engine::Engine;
use wattle_run::gate::Gate;
use wattle_run::gate::unwind::CallError;
use wattle_run::hostcall::http::HttpRequest;
use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::hostcall::memory::{GetDocument, PutDocument};
use wattle_run::hostcall::runs::{RunOutcome, RunRef, StartRun};
use wattle_run::ports::memory::PutItem;
use wattle_run::ports::sandbox::NodeCall;
use wattle_suite::native::{Answer, NativePlugin};
use wattle_suite::scripted::{get, prompt, said};

use super::script::json_and_rest;

/// The engine on which an example runs, after it was created.
pub(super) type Known = Arc<OnceLock<Engine>>;

/// One sentence.
enum Act {
    Write { channel: String, value: String, replace: bool },
    Go(Vec<String>),
    Send { node: String, value: String, timeout_ms: Option<u64> },
    Model,
    Get(&'static str),
    Pay,
    Ask { payload: String, schema: Option<Value> },
    Fail { code: String, times: AtomicUsize },
    Leave,
    Run { graph: String, input: String },
    Remember(String),
    Recall,
    Drain,
}

/// Creates a plugin named `app` with these nodes, each a name and its sentences.
pub(super) fn plugin(version: &str, nodes: &[(String, String)], known: &Known) -> NativePlugin {
    nodes.iter().fold(NativePlugin::new("app", version), |plugin, (name, text)| {
        let acts: Arc<Vec<Act>> = Arc::new(text.split(", then ").map(act).collect());
        let known = known.clone();
        plugin.node(name, move |call, gate| perform(acts.clone(), call, gate, known.clone()))
    })
}

fn act(text: &str) -> Act {
    let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
    match (verb, rest) {
        ("calls", "the model") => Act::Model,
        ("calls", "the service") => Act::Get("https://example.com/fast"),
        ("calls", "the slow service") => Act::Get("https://example.com/slow"),
        ("pays", "") => Act::Pay,
        ("recalls", "") => Act::Recall,
        ("drains", "its run") => Act::Drain,
        ("leaves", "for the graph above") => Act::Leave,
        ("goes", _) => Act::Go(words(rest.strip_prefix("to "), " and ", text)),
        ("writes" | "puts", _) => write(verb, rest, text),
        ("sends", _) => send(rest, text),
        ("asks", _) => {
            let (payload, schema) = rest.split_once(" as ").unwrap_or((rest, ""));
            Act::Ask { payload: payload.to_owned(), schema: serde_json::from_str(schema).ok() }
        }
        ("fails", _) => fail(rest, text),
        ("runs", _) => {
            let (graph, input) = pair(rest, " on ", text);
            Act::Run { graph, input }
        }
        ("remembers", _) => Act::Remember(rest.to_owned()),
        _ => unknown(text),
    }
}

fn unknown(text: &str) -> ! {
    panic!("no node can do this: {text}")
}

fn pair(text: &str, between: &str, all: &str) -> (String, String) {
    let (before, after) = text.rsplit_once(between).unwrap_or_else(|| unknown(all));
    (before.to_owned(), after.to_owned())
}

fn words(text: Option<&str>, between: &str, all: &str) -> Vec<String> {
    text.unwrap_or_else(|| unknown(all)).split(between).map(str::to_owned).collect()
}

fn write(verb: &str, rest: &str, all: &str) -> Act {
    let replace = verb == "puts";
    let between = if replace { " in place of " } else { " to " };
    let (value, channel) = pair(rest, between, all);
    Act::Write { channel, value, replace }
}

fn send(rest: &str, all: &str) -> Act {
    let (value, target) = pair(rest, " to ", all);
    let (node, within) = target.split_once(" within ").unwrap_or((&target, ""));
    let timeout_ms = within.strip_suffix("ms").and_then(|number| number.parse().ok());
    Act::Send { node: node.to_owned(), value, timeout_ms }
}

fn fail(rest: &str, all: &str) -> Act {
    let rest = rest.strip_prefix("with ").unwrap_or_else(|| unknown(all));
    let (code, times) = match rest.split_once(' ') {
        Some((code, "once")) => (code, 1),
        Some((code, "twice")) => (code, 2),
        None => (rest, usize::MAX),
        _ => unknown(all),
    };
    Act::Fail { code: code.to_owned(), times: AtomicUsize::new(times) }
}

/// The values that sentences can use, and the outcome so far.
struct Scene {
    names: Map<String, Value>,
    outcome: Map<String, Value>,
}

impl Scene {
    fn new(call: &NodeCall) -> Self {
        let names = json!({
            "input": call.input, "step": call.step, "attempt": call.attempt,
            "left": call.remaining_steps, "context": call.context, "error": call.error,
        });
        let Value::Object(names) = names else { unreachable!("it is an object") };
        Self { names, outcome: Map::new() }
    }

    /// Returns a value of a sentence: JSON, in which a text such as `$input.n` is the value of a
    /// name, or a name alone.
    fn value(&self, text: &str) -> Value {
        match json_and_rest(text) {
            Some((value, "")) => self.filled(value),
            _ => self.named(text),
        }
    }

    fn filled(&self, value: Value) -> Value {
        match value {
            Value::String(text) if text.starts_with('$') => self.named(&text[1..]),
            Value::Array(items) => items.into_iter().map(|item| self.filled(item)).collect(),
            Value::Object(fields) => {
                fields.into_iter().map(|(name, value)| (name, self.filled(value))).collect()
            }
            other => other,
        }
    }

    fn named(&self, path: &str) -> Value {
        let mut names = path.split('.');
        let first = names.next().and_then(|name| self.names.get(name));
        let first = first.unwrap_or_else(|| panic!("nothing is named `{path}`")).clone();
        names.fold(first, |value, name| value[name].clone())
    }

    /// Adds a write. Several writes to one channel become a list.
    fn write(&mut self, channel: &str, value: Value) {
        let value = match self.outcome.remove(channel) {
            Some(Value::Array(mut items)) => {
                items.push(value);
                Value::Array(items)
            }
            Some(first) => json!([first, value]),
            None => value,
        };
        self.outcome.insert(channel.to_owned(), value);
    }

    /// Adds an item to `$goto`, `$send` or `$overwrite`.
    fn push(&mut self, word: &str, item: Value) {
        let list = self.outcome.entry(word).or_insert_with(|| json!([]));
        if let Value::Array(items) = list {
            items.push(item);
        }
    }
}

fn perform(
    acts: Arc<Vec<Act>>,
    call: NodeCall,
    gate: Arc<Gate>,
    known: Known,
) -> BoxFuture<'static, Answer> {
    Box::pin(async move {
        let mut scene = Scene::new(&call);
        for act in acts.iter() {
            if let Act::Drain = act {
                let run = RunRef { thread: call.thread.clone(), run: call.run.clone() };
                known.get().expect("a run has an engine").drain(&run).await?;
            } else if let Some(answer) = ask_host(act, &scene, &gate).await? {
                scene.names.insert("answer".into(), answer);
            } else {
                decide(act, &mut scene)?;
            }
        }
        Ok(Value::Object(scene.outcome))
    })
}

/// Performs an action without a host call.
fn decide(act: &Act, scene: &mut Scene) -> Result<(), Failure> {
    match act {
        Act::Write { channel, value, replace } => {
            scene.write(channel, scene.value(value));
            if *replace {
                scene.push("$overwrite", json!(channel));
            }
        }
        Act::Go(nodes) => nodes.iter().for_each(|node| scene.push("$goto", json!(node))),
        Act::Send { node, value, timeout_ms } => {
            let input = scene.value(value);
            let task = json!({ "node": node, "input": input, "timeout_ms": timeout_ms });
            scene.push("$send", task);
        }
        Act::Leave => {
            scene.outcome.insert("$parent".into(), json!(true));
        }
        Act::Fail { code, times } => {
            let left = |left: usize| left.checked_sub(1);
            if times.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left).is_ok() {
                return Err(Failure::new(code.as_str(), "it did not work").retryable());
            }
        }
        _ => {}
    }
    Ok(())
}

/// Makes the host call of an action, or returns `None` if it has none.
async fn ask_host(act: &Act, scene: &Scene, gate: &Gate) -> Result<Option<Value>, CallError> {
    let answer = match act {
        Act::Model => json!(said(&gate.call(prompt("go on")).await?)),
        Act::Get(url) => json!(gate.call(get(url)).await?.status),
        Act::Pay => {
            let post = HttpRequest { method: "POST".into(), ..get("https://example.com/slow-pay") };
            json!(gate.call(post).await?.status)
        }
        Act::Ask { payload, schema } => {
            let payload = scene.value(payload);
            gate.ask(InterruptRequest { payload, response_schema: schema.clone() }).await?
        }
        Act::Run { graph, input } => run(gate, graph, scene.value(input)).await?,
        Act::Remember(value) => {
            let value = json!({ "said": scene.value(value) });
            let (namespace, key) = place();
            let item = PutItem { namespace, key, value, ttl_ms: None, refresh_on_read: false };
            gate.call(PutDocument(item)).await?;
            Value::Null
        }
        Act::Recall => {
            let (namespace, key) = place();
            let found = gate.call(GetDocument { namespace, key }).await?;
            found.map_or(Value::Null, |item| item.value["said"].clone())
        }
        _ => return Ok(None),
    };
    Ok(Some(answer))
}

/// Returns namespace and key of the document that nodes of examples remember.
fn place() -> (Vec<String>, String) {
    (vec!["notes".to_owned()], "note".to_owned())
}

/// Starts a subgraph from a node and waits for its state.
async fn run(gate: &Gate, graph: &str, input: Value) -> Result<Value, CallError> {
    let request = StartRun {
        graph: Some(GraphName::new(graph).expect("a valid name")),
        ..StartRun::new(AppName::new("test").expect("a valid name"), input)
    };
    let started = gate.start_run(request).await?;
    let ended = gate.wait_run(&started).await?;
    match ended.outcome {
        RunOutcome::Failed { failure } => Err(failure.into()),
        _ => Ok(ended.state),
    }
}
