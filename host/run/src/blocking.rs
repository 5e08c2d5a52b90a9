//! Moves long work off the threads that the runtime's tasks share: work on many tasks, on large
//! values and on large schemas.
//!
//! [`block_in_place_in_turn`] runs as many pieces of long work at once as the machine has cores, in
//! fair turns of their owners; see [`crate::meter`]. More pieces at once would not be faster, and
//! each piece takes a thread of the pool on which the store reads and writes.

use std::num::NonZero;
use std::sync::LazyLock;
use std::thread::available_parallelism;

use futures::future::{BoxFuture, Either, Ready, ready};
use serde_json::Value;
use tokio::runtime::{Handle, RuntimeFlavor};
use wattle_graph::checkpoint::{ChannelValue, Checkpoint, Values};
use wattle_graph::event::Write;
use wattle_graph::graph::Graph;
use wattle_graph::limit::SHORT_JSON_BYTES;
use wattle_graph::lineage::Lineage;
use wattle_graph::llm::{Completion, History};

use crate::meter::WorkOwner;
use crate::meter::turns::Turns;
use crate::stop_flag::StopFlag;

/// Minimum number of tasks with which planning or applying a superstep delays other tasks on the
/// same thread.
const MANY_TASKS: usize = 256;

/// Minimum number of JSON values, including nested ones, with which validating them, or evaluating
/// a condition on them, delays other tasks on the same thread. With this number of values, a
/// condition that compares all pairs of values uses its whole budget of steps.
const MANY_VALUES: usize = 1_000;

/// Number of bytes of a string that count as one more JSON value. The time of matching a pattern is
/// proportional to the length of the string.
const TEXT_BYTES: usize = 100;

/// Minimum number of JSON values in schemas, including nested ones, with which compiling them
/// delays other tasks on the same thread. A value takes some microseconds.
const MANY_SCHEMA_VALUES: usize = 200;

/// Minimum product of the calls of a completion and the messages of its conversation with which
/// giving the calls unique ids delays other tasks on the same thread. Among ten thousand messages,
/// the search for one id takes some ten microseconds, and that for any number of ids about a
/// millisecond.
const MANY_CALLED_MESSAGES: usize = 1_000_000;

/// Keywords with patterns. Compiling a pattern can take some ten milliseconds, however short it is.
const PATTERN_KEYWORDS: [&str; 2] = ["pattern", "patternProperties"];

/// Turns for long work on all runtimes of this process.
static TURNS: LazyLock<Turns> = LazyLock::new(|| Turns::new(at_once()));

/// Returns the number of pieces of long work that run at once.
pub(crate) fn at_once() -> usize {
    available_parallelism().map_or(1, NonZero::get)
}

/// Returns true if parsing a document of this size is long work.
pub fn is_long_parse(bytes: usize) -> bool {
    bytes as u64 > SHORT_JSON_BYTES
}

/// Returns true if planning or applying a superstep of this many tasks is long work.
pub(crate) fn are_many_tasks(tasks: usize) -> bool {
    tasks >= MANY_TASKS
}

/// Returns true if work on these values is long. Stops counting at the threshold.
pub fn are_large_values<'v>(values: impl IntoIterator<Item = &'v Value>) -> bool {
    let mut left = MANY_VALUES;
    values.into_iter().any(|value| exhausts(value, &mut left))
}

fn exhausts(value: &Value, left: &mut usize) -> bool {
    let size = if let Value::String(text) = value { 1 + text.len() / TEXT_BYTES } else { 1 };
    *left = left.saturating_sub(size);
    if *left == 0 {
        return true;
    }
    match value {
        Value::Array(items) => items.iter().any(|item| exhausts(item, left)),
        Value::Object(fields) => fields.values().any(|field| exhausts(field, left)),
        _ => false,
    }
}

/// Returns true if converting the messages of a history for a model is long work. `repeated_bytes`
/// returns [`History::repeated_bytes`], which reads all messages. It is not called for a history
/// that is long without them.
pub(crate) fn is_long_history(history: &History, repeated_bytes: impl FnOnce() -> u64) -> bool {
    let is_long = |bytes: u64| bytes > SHORT_JSON_BYTES;
    is_long(history.bytes) || are_large_values(&history.append) || is_long(repeated_bytes())
}

/// Returns true if giving the calls of a completion ids that are unique in the conversation of a
/// history is long work; see [`History::call_ids`].
pub fn are_long_call_ids(history: &History, completion: &Completion) -> bool {
    let calls = completion.tool_calls().count();
    calls.saturating_mul(history.length) >= MANY_CALLED_MESSAGES
}

/// Returns true if validating these values against the schemas of a graph is long work.
pub fn is_long_validation<'v>(graph: &Graph, values: impl IntoIterator<Item = &'v Value>) -> bool {
    graph.has_expensive_schema() || are_large_values(values)
}

/// Returns true if applying a superstep is long work. The work is proportional to the size of the
/// writes, which are validated, and of the values that are read whole: by a reducer, by a
/// condition, or to weigh them for the first time since the store decoded them.
pub(crate) fn is_long_superstep(graph: &Graph, lineage: &Lineage) -> bool {
    let Lineage { checkpoint, finished, .. } = lineage;
    let writes = || finished.values().flat_map(|task| &task.writes);
    let values = &checkpoint.values;
    let combined =
        values_read_by_writes(graph, values, writes().map(|write| write.channel.as_str()));
    let conditions = graph.branches().iter().flat_map(|branch| &branch.cases);
    let conditions = conditions.filter_map(|case| case.when.as_ref());
    let read = conditions.flat_map(|condition| condition.values_read(values));
    let whole = combined.chain(read).flat_map(ChannelValue::items);
    are_many_tasks(finished.len())
        || is_long_validation(graph, whole.chain(writes().map(|write| &write.value)))
}

/// Returns true if applying an input to the state of a checkpoint is long work; see
/// [`is_long_superstep`]. An input triggers the entry nodes without a condition.
pub(crate) fn is_long_input(graph: &Graph, base: Option<&Checkpoint>, input: &Value) -> bool {
    let fields = input.as_object().into_iter().flatten();
    let written = fields.map(|(channel, value)| (channel.as_str(), value));
    are_long_writes(graph, base, &written.collect::<Vec<_>>())
}

/// Returns true if applying the writes of a command to the state of a checkpoint is long work; see
/// [`is_long_input`].
pub(crate) fn is_long_command(graph: &Graph, base: Option<&Checkpoint>, writes: &[Write]) -> bool {
    let written = writes.iter().map(|write| (write.channel.as_str(), &write.value));
    are_long_writes(graph, base, &written.collect::<Vec<_>>())
}

/// Returns true if applying writes to channels is long work.
fn are_long_writes(graph: &Graph, base: Option<&Checkpoint>, written: &[(&str, &Value)]) -> bool {
    let names = || written.iter().map(|(channel, _)| *channel);
    let read =
        base.into_iter().flat_map(|base| values_read_by_writes(graph, &base.values, names()));
    let whole = read.flat_map(ChannelValue::items);
    is_long_validation(graph, whole.chain(written.iter().map(|(_, value)| *value)))
}

/// Returns the values of a state that writes to channels read whole: by a reducer, or to weigh
/// them for the first time since the store decoded them.
fn values_read_by_writes<'v>(
    graph: &'v Graph,
    state: &'v Values,
    written: impl Iterator<Item = &'v str>,
) -> impl Iterator<Item = &'v ChannelValue> {
    let combined = written.filter_map(move |channel| {
        let (channel, value) = (graph.channels().get(channel)?, state.get(channel)?);
        (value.is_weighed() && channel.reducer.reads_whole(value)).then_some(value)
    });
    combined.chain(state.values().filter(|value| !value.is_weighed()))
}

/// Returns true if compiling these schemas is long work. Stops counting at the threshold. A schema
/// with a pattern always counts as large.
pub fn are_large_schemas<'v>(schemas: impl IntoIterator<Item = &'v Value>) -> bool {
    let mut left = MANY_SCHEMA_VALUES;
    schemas.into_iter().any(|schema| has_pattern_or_exhausts(schema, &mut left))
}

fn has_pattern_or_exhausts(schema: &Value, left: &mut usize) -> bool {
    *left = left.saturating_sub(1);
    if *left == 0 {
        return true;
    }
    match schema {
        Value::Array(items) => items.iter().any(|item| has_pattern_or_exhausts(item, left)),
        Value::Object(fields) => {
            PATTERN_KEYWORDS.iter().any(|keyword| fields.contains_key(*keyword))
                || fields.values().any(|field| has_pattern_or_exhausts(field, left))
        }
        _ => false,
    }
}

/// Runs a closure. If `is_long` is true, waits for a turn of the owner first, and if the runtime
/// has several threads, the other tasks of the current thread move to another thread meanwhile. The
/// closure does not run if the future is dropped while it waits.
///
/// Short work runs before this function returns. So the futures of callers contain only the result,
/// and not the closure with the data that it owns: most work is short, and these futures are moved
/// for each task and each host call.
///
/// A caller may hold locks: a turn ends without waiting for anything.
pub fn block_in_place_in_turn<'w, T: 'w>(
    owner: impl Into<WorkOwner>,
    is_long: bool,
    work: impl FnOnce() -> T + Send + 'w,
) -> Either<Ready<T>, BoxFuture<'w, T>> {
    if !is_long {
        return Either::Left(ready(work()));
    }
    let turn = TURNS.take(owner.into());
    Either::Right(Box::pin(async move {
        let _turn = turn.await;
        block_in_place(work)
    }))
}

/// Runs a closure like [`block_in_place_in_turn`], for a run that can be cancelled. Returns `None`
/// if the run is cancelled while the closure waits for a turn.
pub(crate) async fn block_in_place_unless_cancelled<T>(
    owner: impl Into<WorkOwner>,
    is_long: bool,
    cancel: &StopFlag,
    work: impl FnOnce() -> T + Send,
) -> Option<T> {
    tokio::select! {
        biased;
        done = block_in_place_in_turn(owner, is_long, work) => Some(done),
        () = cancel.wait() => None,
    }
}

/// Runs a closure like [`block_in_place_in_turn`], but does not wait for a turn. For callers that
/// cannot wait.
pub(crate) fn block_in_place_if<T>(is_long: bool, work: impl FnOnce() -> T) -> T {
    if is_long { block_in_place(work) } else { work() }
}

/// Runs a closure that is long work, and does not wait for a turn. If the runtime has several
/// threads, the other tasks of the current thread move to another thread meanwhile.
pub fn block_in_place<T>(work: impl FnOnce() -> T) -> T {
    let can_move = Handle::try_current()
        .is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
    if can_move { tokio::task::block_in_place(work) } else { work() }
}

/// Holds all turns until the result is dropped, so that long work waits. Only one test holds the
/// turns at a time: two tests that each hold some turns would wait for one another.
#[cfg(test)]
pub(crate) async fn hold_all_turns()
-> (Vec<crate::meter::turns::Turn>, tokio::sync::MutexGuard<'static, ()>) {
    static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let alone = ALONE.lock().await;
    let owner = WorkOwner::Server("a test".into());
    let mut turns = Vec::new();
    while turns.len() < at_once() {
        turns.extend(TURNS.take(owner.clone()).await);
    }
    (turns, alone)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::pin::pin;
    use std::sync::mpsc::channel;

    use futures::poll;
    use serde_json::{Map, json};
    use wattle_graph::check::{AnyPlugin, check_toml};
    use wattle_graph::event::TaskFinished;
    use wattle_graph::id::{ChannelName, CheckpointId, Digest, Namespace, RunId};
    use wattle_graph::llm::CompletionRequest;
    use wattle_graph::step::{CheckpointStamp, accept_input};

    use super::*;
    use crate::caller_id::CallerId;

    #[test]
    fn nested_values_and_bytes_of_strings_count_as_large_values() {
        let numbers = |count: usize| json!({ "list": (0..count).collect::<Vec<_>>() });
        assert!(!are_large_values([&json!(null), &json!("short"), &numbers(900)]));
        assert!(are_large_values([&numbers(1_000)]));
        assert!(are_large_values([&numbers(600), &numbers(600)]));
        assert!(are_large_values([&json!("x".repeat(200_000))]));
    }

    #[test]
    fn a_history_is_long_by_its_list_further_messages_or_repeated_results() {
        let said = |bytes: usize| json!({ "role": "user", "content": "x".repeat(bytes) });
        let asked = |id: &str| {
            let call = json!({ "id": id, "name": "add", "arguments": {} });
            json!({ "role": "assistant", "content": "", "tool_calls": [call] })
        };
        let is_long = |list: &[Value], append: &[Value]| {
            let reference = json!({ "channel": "m", "at": 0, "append": append });
            let reference = serde_json::from_value(reference).unwrap();
            let request = CompletionRequest::new("chat", Vec::new());
            let list = list.iter().cloned().collect();
            let request = request.with_history(reference, list).unwrap();
            let history = request.history.unwrap();
            is_long_history(&history, || history.repeated_bytes())
        };
        assert!(!is_long(&[said(100_000)], &[said(50_000)]));
        assert!(is_long(&[said(300_000)], &[]));
        assert!(is_long(&[said(10)], &[said(200_000)]));
        let result = json!({ "role": "tool", "tool_call_id": "a", "content": "x".repeat(100_000) });
        let talk = |ids: [&str; 4]| ids.map(asked).into_iter().chain([result.clone()]);
        let repeated: Vec<Value> = talk(["a"; 4]).collect();
        assert!(is_long(&repeated, &[]));
        assert!(is_long(&repeated[1..], &repeated[..1]));
        let once: Vec<Value> = talk(["a", "b", "c", "d"]).collect();
        assert!(!is_long(&once, &[]));
    }

    #[test]
    fn ids_of_many_calls_in_a_long_conversation_take_long() {
        let is_long = |messages: usize, calls: usize| {
            let reference = serde_json::from_value(json!({ "channel": "m", "at": 0 })).unwrap();
            let list = (0..messages).map(|n| json!(n)).collect();
            let request = CompletionRequest::new("chat", Vec::new()).with_history(reference, list);
            let call = json!({ "tool_call": { "id": "a", "name": "add", "arguments": {} } });
            let completion = json!({
                "parts": vec![call; calls], "finish_reason": "tool_calls", "usage": {},
                "model": "small",
            });
            let completion = serde_json::from_value(completion).unwrap();
            are_long_call_ids(&request.unwrap().history.unwrap(), &completion)
        };
        assert!(!is_long(20_000, 0) && !is_long(20_000, 3) && !is_long(200, 100));
        assert!(is_long(20_000, 64));
    }

    #[test]
    fn schemas_are_large_if_they_have_many_values_or_a_pattern() {
        let fields = |count: usize| json!({ "enum": (0..count).collect::<Vec<_>>() });
        assert!(!are_large_schemas([&json!(true), &fields(150)]));
        assert!(are_large_schemas([&fields(200)]));
        assert!(are_large_schemas([&fields(150), &fields(150)]));
        assert!(are_large_schemas([&json!({ "items": { "pattern": "^a$" } })]));
        assert!(are_large_schemas([&json!({ "patternProperties": { "^a$": true } })]));
    }

    /// Returns a lineage whose only task has written one item to every channel.
    fn written(graph: &Graph, state: &Value) -> Lineage {
        let first = CheckpointStamp {
            id: CheckpointId(1),
            run: RunId::new("r").unwrap(),
            at_ms: 0,
            version: Digest::of(b"code"),
            parents: BTreeMap::new(),
            tasks: None,
        };
        let (root, none) = (Namespace::root(), BTreeMap::new());
        let mut lineage =
            Lineage::new(accept_input(graph, None, &root, state, &none, first).unwrap());
        let write = |name: &ChannelName| json!({ "channel": name, "value": { "id": "1" } });
        let finished = json!({
            "task": "t", "node": "a", "base": 1, "duration_us": 0,
            "writes": graph.channels().keys().map(write).collect::<Vec<_>>(),
        });
        let finished: TaskFinished = serde_json::from_value(finished).unwrap();
        lineage.finished.insert(finished.task.clone(), finished.into());
        lineage
    }

    #[test]
    fn a_superstep_is_long_work_if_it_reads_large_values() {
        let graph = |channels: &str, rest: &str| {
            let text = format!(
                "[graphs.g]\nentry = 'a'\nnodes.a = {{}}\n{rest}\n[graphs.g.channels]\n{channels}"
            );
            check_toml("graph.toml", &text, &AnyPlugin).unwrap().remove(0)
        };
        let list: Vec<Value> = (0..2_000).map(|n| json!({ "id": n.to_string() })).collect();
        let lists = "log.reducer = 'append'\nmessages.reducer = 'messages'\nlast = {}";
        let state = json!({ "log": list, "messages": list, "last": list });
        let plain = graph(lists, "");
        let mut lineage = written(&plain, &state);
        assert!(!is_long_superstep(&plain, &lineage), "no item is read");
        let condition = "branches = [{ name = 'b', from = 'a', mode = 'all', cases = \
                         [{ when = 'size(state.log) > 1', to = 'END' }] }]";
        assert!(is_long_superstep(&graph(lists, condition), &lineage));
        // The values are as a store returns them.
        for value in lineage.checkpoint.values.values_mut() {
            *value = value.value().into_owned().into();
        }
        assert!(is_long_superstep(&plain, &lineage));
        let is_long = |lineage: &Lineage, input: Value| {
            let written = |(name, value): (&String, &Value)| Write {
                channel: ChannelName::new(name.as_str()).unwrap(),
                value: value.clone(),
                overwrite: false,
            };
            let writes: Vec<Write> = input.as_object().unwrap().iter().map(written).collect();
            let base = Some(&lineage.checkpoint);
            let is_long = is_long_input(&plain, base, &input);
            assert_eq!(is_long_command(&plain, base, &writes), is_long);
            is_long
        };
        assert!(is_long(&lineage, json!({ "last": 1 })));
        // The values are as the state cache returns them.
        for value in lineage.checkpoint.values.values() {
            value.weight();
        }
        assert!(is_long_superstep(&plain, &lineage), "the ids of all messages are read");
        assert!(is_long(&lineage, json!({ "messages": { "id": "1" } })));
        assert!(!is_long(&lineage, json!({ "log": 1, "last": 1 })));

        let merged = graph("facts.reducer = 'merge'", "");
        let facts: Map<String, Value> = (0..2_000).map(|n| (n.to_string(), json!(n))).collect();
        assert!(is_long_superstep(&merged, &written(&merged, &json!({ "facts": facts }))));
        assert!(!is_long_superstep(&merged, &written(&merged, &json!({ "facts": { "a": 1 } }))));
    }

    /// The spawned task needs the only thread of the runtime while the closure waits for the task.
    #[test]
    fn long_work_does_not_block_other_tasks() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build();
        let runtime = runtime.expect("a runtime");
        let work = runtime.spawn(async {
            let (tell, told) = channel();
            tokio::spawn(async move { tell.send(7) });
            block_in_place(|| told.recv())
        });
        assert_eq!(runtime.block_on(work).expect("it ends"), Ok(7));
        let work = runtime.spawn(async {
            let (tell, told) = channel();
            tokio::spawn(async move { tell.send(7) });
            block_in_place_in_turn(CallerId::default(), true, move || told.recv()).await
        });
        assert_eq!(runtime.block_on(work).expect("it ends"), Ok(7));
        assert_eq!(block_in_place(|| 8), 8, "outside of a runtime");
    }

    #[test]
    fn only_short_work_runs_before_it_is_awaited() {
        for (is_long, expected) in [(false, true), (true, false)] {
            let mut has_run = false;
            drop(block_in_place_in_turn(CallerId::default(), is_long, || has_run = true));
            assert_eq!(has_run, expected);
        }
    }

    #[tokio::test]
    async fn only_long_work_waits_for_a_turn() {
        let held = hold_all_turns().await;
        let work = |is_long| block_in_place_in_turn(CallerId::default(), is_long, || 7);
        let mut waiting = pin!(work(true));
        assert!(poll!(waiting.as_mut()).is_pending());
        assert_eq!(work(false).await, 7);
        drop(held);
        assert_eq!(waiting.await, 7);
    }

    #[tokio::test]
    async fn long_work_of_a_cancelled_run_does_not_begin() {
        let (cancel, owner) = (StopFlag::default(), CallerId::default());
        let work = |is_long| block_in_place_unless_cancelled(owner, is_long, &cancel, || 7);
        let held = hold_all_turns().await;
        let mut waiting = pin!(work(true));
        assert!(poll!(waiting.as_mut()).is_pending());
        cancel.set();
        assert_eq!(waiting.await, None);
        assert_eq!(work(false).await, Some(7), "short work does not wait");
        drop(held);
    }
}
