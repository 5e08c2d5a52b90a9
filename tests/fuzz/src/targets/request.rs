//! Requests of Agent Server clients. The first byte selects the kind of request, the rest is the
//! body. A parsed body is equal after a round trip.

use std::collections::BTreeSet;
use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use wattle_agent_server::wire::command;
use wattle_agent_server::wire::extract::Extract;
use wattle_agent_server::wire::request::{self, Modes, parse};
use wattle_agent_server::wire::schedule::{Schedule, parse_time};
use wattle_graph::id::ThreadId;
use wattle_project::agent_server::id::{EventId, checkpoint_of, namespace_of};
use wattle_project::agent_server::message::{ReadContext, compact, from_wire_all, to_wire_all};
use wattle_run::json::bounded::JsonBudget;

/// The types of bodies.
const KINDS: &[fn(&[u8])] = &[
    run_create,
    state_update,
    cron_create,
    same::<request::ThreadCreate>,
    same::<request::ThreadPatch>,
    same::<request::ThreadSearch>,
    same::<request::ThreadCount>,
    same::<request::ThreadPrune>,
    same::<request::HistoryRequest>,
    same::<request::StateRequest>,
    same::<request::CronPatch>,
    same::<request::CronSearch>,
    same::<request::AssistantCreate>,
    same::<request::AssistantPatch>,
    same::<request::AssistantSearch>,
    same::<request::AssistantCount>,
    same::<request::AssistantLatest>,
    same::<request::AssistantVersions>,
    same::<request::CancelRuns>,
    same::<request::ItemSearch>,
    same::<request::ItemKey>,
    same::<request::NamespaceSearch>,
    item_put,
    commands,
    messages,
    paths,
    words,
];

/// Parses a request.
pub fn run(bytes: &[u8]) {
    let Some((kind, body)) = bytes.split_first() else { return };
    KINDS[usize::from(*kind) % KINDS.len()](body);
}

/// Checks a type whose values survive a round trip.
fn same<T: Serialize + DeserializeOwned + PartialEq + Debug>(body: &[u8]) {
    read::<T>(body);
}

fn read<T: Serialize + DeserializeOwned + PartialEq + Debug>(body: &[u8]) -> Option<T> {
    let read: T = match parse(body) {
        Ok(read) => read,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return None;
        }
    };
    let text = serde_json::to_vec(&read).expect("a request can be written");
    let again: T = parse(&text).unwrap_or_else(|error| panic!("{read:?}: {error}"));
    assert_eq!(read, again);
    Some(read)
}

fn run_create(body: &[u8]) {
    let Some(run) = read::<request::RunCreate>(body) else { return };
    if run.check().is_err() {
        return;
    }
    let _ = Modes::parse(run.stream_mode.as_ref());
    let channels = BTreeSet::from(["messages".to_owned()]);
    let _ = with_context(|context| run.read_input(&channels, context));
    if let Some(command) = run.command() {
        let _ = with_context(|context| command.read_update(&channels, context));
        let _ = with_context(|context| command.read_goto(&channels, context));
    }
    run.run_context();
    run.checkpoint_id();
    run.checkpoint_ns();
}

fn state_update(body: &[u8]) {
    let Some(update) = read::<request::StateUpdate>(body) else { return };
    update.checkpoint_id();
}

fn cron_create(body: &[u8]) {
    let Some(cron) = read::<request::CronCreate>(body) else { return };
    let _ = request::parse_run(&cron.payload());
}

fn item_put(body: &[u8]) {
    let Some(item) = read::<request::ItemPut>(body) else { return };
    let _ = request::check_labels(&item.namespace);
    let _ = item.ttl_ms();
}

fn commands(body: &[u8]) {
    let Ok(command) = command::Command::parse(body, &JsonBudget::default()) else { return };
    let answers = command.params::<command::InputRespond>().map(|it| it.answers());
    drop(answers);
    let _ = command.params::<command::RunStart>().map(|it| (it.is_fork(), it.request(true)));
    let _ = command.params::<command::StateFork>().map(|it| it.request("graph".to_owned()));
    let _ = command.params::<command::Subscribe>().map(|it| it.subscription());
    let _ = command.params::<command::GetState>();
    let _ = command.params::<command::GetTree>();
    let _ = command.params::<command::ListCheckpoints>();
    let _ = command.params::<command::Unsubscribe>();
    let _ = command.params::<command::Reconnect>();
}

/// Messages of clients become messages of the host and are converted back.
fn messages(body: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(body) else { return };
    let Ok(ours) = with_context(|context| from_wire_all(&value, context)) else { return };
    assert!(ours.is_array());
    let mut theirs = to_wire_all(&ours);
    let again = with_context(|context| from_wire_all(&theirs, context));
    assert!(again.is_ok(), "{ours} -> {theirs}");
    compact(&mut theirs);
}

fn paths(body: &[u8]) {
    let Ok(Value::Object(paths)) = serde_json::from_slice(body) else { return };
    let Ok(extract) = Extract::parse(&paths) else { return };
    let document = serde_json::json!({ "values": { "a": [1, { "b": 2 }] }, "metadata": {} });
    let found = extract.apply(&document);
    assert_eq!(found.as_object().map(serde_json::Map::len), Some(paths.len()));
}

/// Parses texts that are not JSON: ids, times, schedules.
fn words(body: &[u8]) {
    let Ok(text) = std::str::from_utf8(body) else { return };
    if let Ok(thread) = ThreadId::new("thread") {
        checkpoint_of(&thread, text);
    }
    namespace_of(text);
    EventId::number_of(text);
    request::split_labels(text);
    parse_time(text);
    let (fields, zone) = text.split_once('|').unwrap_or((text, "UTC"));
    if let Ok(schedule) = Schedule::parse(fields, Some(zone)) {
        let now = 1_700_000_000_000;
        assert!(schedule.next_after(now).is_none_or(|next| next > now), "{text}");
    }
}

/// Calls a function that converts messages.
fn with_context<T>(convert: impl FnOnce(&mut ReadContext<'_>) -> T) -> T {
    let mut count = 0;
    let mut new_id = || {
        count += 1;
        format!("m{count}")
    };
    let budget = JsonBudget::default();
    let parse = |text: &str| budget.parse::<Value>(text).ok();
    convert(&mut ReadContext { new_id: &mut new_id, parse: &parse })
}
