//! Bodies of the native API. The first byte selects the type of the body, the rest is the body. A
//! rejected body has a message, and an accepted one is equal after a round trip if the host can
//! write it.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use wattle_api::body::parse;
use wattle_api::document::{key, memory, run, time_travel};
use wattle_api::native::{maintenance, open_calls};
use wattle_graph::failure::{Failure, code};
use wattle_project::ag_ui::inward::{self, Pending, RunAgentInput};
use wattle_run::limit::MEMORY_RESULTS;
use wattle_run::ports::memory::{MemorySearch, PutItem, parse_filter};
use wattle_run::ports::store::RunOptions;

/// The types of bodies.
const KINDS: &[fn(&[u8])] = &[
    start,
    same::<run::ResumeDocument>,
    same::<time_travel::EditsDocument>,
    same::<time_travel::ForkDocument>,
    same::<key::NewKeyDocument>,
    only::<open_calls::SettleDocument>,
    only::<maintenance::MigrateDocument>,
    only::<maintenance::CopyDocument>,
    only::<maintenance::PruneDocument>,
    put_memory,
    search_memory,
    ag_ui,
];

/// Parses a body.
pub fn run(bytes: &[u8]) {
    let Some((kind, body)) = bytes.split_first() else { return };
    KINDS[usize::from(*kind) % KINDS.len()](body);
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Option<T> {
    match parse(body) {
        Ok(read) => Some(read),
        Err(problem) => {
            assert_eq!(problem.code, code::INVALID, "{}", problem.detail);
            assert!(!problem.detail.is_empty());
            None
        }
    }
}

fn only<T: DeserializeOwned>(body: &[u8]) {
    read::<T>(body);
}

/// Checks a type whose values survive a round trip.
fn same<T: Serialize + DeserializeOwned>(body: &[u8]) {
    round_trip::<T>(body);
}

fn round_trip<T: Serialize + DeserializeOwned>(body: &[u8]) -> Option<T> {
    let read = read::<T>(body)?;
    let value = |read: &T| serde_json::to_value(read).expect("a body can be written");
    let text = serde_json::to_vec(&read).expect("a body can be written");
    let again: T = parse(&text).unwrap_or_else(|problem| panic!("{}", problem.detail));
    assert_eq!(value(&read), value(&again));
    Some(read)
}

fn start(body: &[u8]) {
    let Some(start) = round_trip::<run::StartDocument>(body) else { return };
    drop(RunOptions::from(start.options));
}

fn put_memory(body: &[u8]) {
    let Some(put) = read::<memory::PutMemoryDocument>(body) else { return };
    checked(PutItem::from(put).check());
}

fn search_memory(body: &[u8]) {
    let Some(wanted) = read::<memory::MemorySearchDocument>(body) else { return };
    let filter = match wanted.filter.as_ref().map(parse_filter).transpose() {
        Ok(filter) => filter.unwrap_or_default(),
        Err(failure) => return checked(Err(failure)),
    };
    let fields = wanted.filter.as_ref().and_then(Value::as_object).map_or(0, count);
    assert!(filter.len() <= fields, "{} conditions of {fields} fields", filter.len());
    let (prefix, query, offset) = (wanted.prefix, wanted.query, wanted.offset);
    let limit = wanted.limit.unwrap_or(MEMORY_RESULTS);
    checked(MemorySearch { prefix, filter, query, limit, offset, peek: false }.check());
}

/// Reads a request of an AG-UI client for a new thread, and then for the thread that it made.
fn ag_ui(body: &[u8]) {
    let Some(input) = read::<RunAgentInput>(body) else { return };
    inward::tool_call_ids(&input.messages);
    let entries = input.resume.as_deref().unwrap_or_default();
    let ids = entries.iter().map(|entry| entry.interrupt_id.as_str());
    let pending: Vec<Pending<'_>> =
        ids.map(|id| Pending { id, response_schema: Some(&input.state) }).collect();
    // An entry that does not fit is the fault of the client.
    let _ = inward::answers(entries, &pending, false);
    let parse = |text: &str| serde_json::from_str::<Value>(text).ok();
    let Ok(new) = inward::new_messages(&input.messages, None, &parse) else { return };
    assert!(new.len() <= input.messages.len());
    let again = inward::new_messages(&input.messages, Some(&new), &parse);
    let again = again.expect("they were converted");
    let is_result = |message: &Value| message["role"] == "tool";
    assert!(again.iter().all(is_result), "only the result of a call can be new again");
}

/// Returns the number of fields of a filter, with those of its operators.
fn count(fields: &serde_json::Map<String, Value>) -> usize {
    let inner = |value: &Value| value.as_object().map_or(1, |inner| inner.len().max(1));
    fields.values().map(inner).sum()
}

/// Checks that a refusal is the fault of the client.
fn checked(checked: Result<(), Failure>) {
    if let Err(failure) = checked {
        assert!(matches!(failure.code.as_str(), code::INVALID | code::LIMIT), "{failure}");
    }
}
