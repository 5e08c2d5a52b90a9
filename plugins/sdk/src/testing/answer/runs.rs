//! Implements `runs`: records requests, and gets the outcomes of runs from the script. Lists and
//! updates of threads have the semantics of the host.

use std::cmp::Reverse;

use serde_json::{Value, json};

use crate::failure::Failure;
use crate::json::Extra;
use crate::runs::request::REJECT_IF_INTERRUPTED;
use crate::runs::{
    EndedRun, PAGE_EVENTS, Resume, RunRef, Start, Thread, ThreadPage, ThreadSearch, ThreadSummary,
};
use crate::testing::state::{play, with};

/// Maximum number of threads in a page of a list.
const PAGE_THREADS: u32 = 500;

pub(crate) fn start(start: Start) -> Result<RunRef, Failure> {
    let script = with(|state| state.start.clone())?;
    if let Some(script) = script {
        let mut script = script.borrow_mut();
        script(&start)?;
    }
    with(|state| {
        if start.extra.get(REJECT_IF_INTERRUPTED) == Some(&Value::Bool(true)) {
            let thread = start.thread_id.as_ref().and_then(|id| state.threads.get(id));
            reject_if_interrupted(&start.graph, thread)?;
        }
        let number = state.notes.started.len() + state.notes.resumed.len() + 1;
        let thread_id = start.thread_id.clone().unwrap_or_else(|| format!("thread-{number}"));
        state.notes.started.push(start);
        Ok(RunRef { thread_id, run_id: format!("run-{number}") })
    })?
}

fn reject_if_interrupted(graph: &str, thread: Option<&Thread>) -> Result<(), Failure> {
    let is_waiting = |thread: &&Thread| {
        thread.graph == graph && thread.is_interrupted() && !thread.interrupts.is_empty()
    };
    match thread.filter(is_waiting) {
        Some(thread) => {
            let text =
                format!("thread `{}` is interrupted and waits for answers", thread.thread_id);
            Err(Failure::conflict(text).with_details(json!({"reason": "interrupted"})))
        }
        None => Ok(()),
    }
}

pub(crate) fn resume(resume: Resume) -> Result<RunRef, Failure> {
    let script = with(|state| state.resume.clone())?;
    if let Some(script) = script {
        let mut script = script.borrow_mut();
        script(&resume)?;
    }
    with(|state| {
        let number = state.notes.started.len() + state.notes.resumed.len() + 1;
        let thread_id = resume.thread_id.clone();
        state.notes.resumed.push(resume);
        RunRef { thread_id, run_id: format!("run-{number}") }
    })
}

pub(crate) fn wait(run: &RunRef) -> Result<EndedRun, Failure> {
    play(|state| state.run_ends.clone(), run, "FakeHost::run_ends")
}

pub(crate) fn cancel(run: &RunRef) -> Result<(), Failure> {
    with(|state| state.notes.cancelled.push(run.clone()))
}

pub(crate) fn thread(thread_id: &str) -> Result<Option<Thread>, Failure> {
    with(|state| state.threads.get(thread_id).cloned())
}

pub(crate) fn delete_thread(thread_id: &str) -> Result<(), Failure> {
    with(|state| {
        state.threads.remove(thread_id);
    })
}

pub(crate) fn threads(search: ThreadSearch) -> Result<ThreadPage, Failure> {
    let after = search.after.as_deref().map(position).transpose()?;
    let metadata = search.metadata.as_ref().map_or_else(|| Ok(Extra::new()), object)?;
    let text = search.text.unwrap_or_default().to_lowercase();
    let matches = |thread: &Thread| {
        search.graph.as_ref().is_none_or(|graph| *graph == thread.graph)
            && metadata.iter().all(|(name, value)| {
                thread.metadata.get(name).is_some_and(|known| contains(known, value))
            })
            && has_text(thread, &text)
            && after
                .is_none_or(|after| after < (Reverse(thread.updated_ms), thread.thread_id.as_str()))
    };
    with(|state| {
        let mut found: Vec<&Thread> =
            state.threads.values().filter(|thread| matches(thread)).collect();
        // The map has sorted the threads by id, and this sort is stable.
        found.sort_by_key(|thread| Reverse(thread.updated_ms));
        let page = found.len().min(search.limit.clamp(1, PAGE_THREADS) as usize);
        let last = found[..page].last().filter(|_| page < found.len());
        let next = last.map(|thread| format!("{}.{}", thread.updated_ms, thread.thread_id));
        ThreadPage { threads: found[..page].iter().map(|thread| summary(thread)).collect(), next }
    })
}

/// Reads the position of a thread in a list. Positions sort like the threads of the list.
fn position(next: &str) -> Result<(Reverse<i64>, &str), Failure> {
    let parts = next.split_once('.').and_then(|(updated_ms, thread_id)| {
        Some((Reverse(updated_ms.parse::<i64>().ok()?), thread_id))
    });
    parts.ok_or_else(|| Failure::invalid("`after` must be the `next` of another page"))
}

/// Returns true if `known` contains `wanted`. Objects in `known` may have additional fields.
fn contains(known: &Value, wanted: &Value) -> bool {
    match (known, wanted) {
        (Value::Object(known), Value::Object(wanted)) => wanted
            .iter()
            .all(|(name, value)| known.get(name).is_some_and(|known| contains(known, value))),
        _ => known == wanted,
    }
}

/// Returns true if a thread contains a text in lower case.
fn has_text(thread: &Thread, text: &str) -> bool {
    let has = |found: &str| found.to_lowercase().contains(text);
    has(&thread.thread_id)
        || thread.run_id.as_deref().is_some_and(has)
        || has(&thread.graph)
        || any_text(&thread.metadata, &has)
}

/// Returns true if a condition holds for any string in a value.
fn any_text(value: &Value, has: &impl Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => has(text),
        Value::Array(items) => items.iter().any(|item| any_text(item, has)),
        Value::Object(fields) => fields.values().any(|value| any_text(value, has)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn summary(thread: &Thread) -> ThreadSummary {
    ThreadSummary {
        thread_id: thread.thread_id.clone(),
        graph: thread.graph.clone(),
        status: thread.status.clone(),
        run_id: thread.run_id.clone(),
        created_ms: thread.created_ms,
        updated_ms: thread.updated_ms,
        metadata: thread.metadata.clone(),
        extra: Extra::new(),
    }
}

pub(crate) fn update_thread(thread_id: &str, metadata: Value) -> Result<(), Failure> {
    let Value::Object(added) = metadata else {
        return Err(Failure::invalid("`metadata` is not a JSON object"));
    };
    with(|state| {
        let now_ms = state.now_ms;
        let thread = state.threads.get_mut(thread_id).ok_or_else(|| {
            Failure::not_found(format!("there is no thread `{thread_id}`, or it has expired"))
        })?;
        let mut all = object(&thread.metadata)?;
        all.extend(added);
        thread.metadata = Value::Object(all);
        thread.updated_ms = now_ms;
        Ok(())
    })?
}

/// Returns the fields of metadata. `null` has none.
fn object(metadata: &Value) -> Result<Extra, Failure> {
    match metadata {
        Value::Null => Ok(Extra::new()),
        Value::Object(fields) => Ok(fields.clone()),
        _ => Err(Failure::invalid("`metadata` is not a JSON object")),
    }
}

pub(crate) fn events(thread_id: &str, after: u64, limit: u32) -> Result<Vec<Value>, Failure> {
    with(|state| {
        let mut own = state.events.iter().filter(|(thread, _)| thread == thread_id).peekable();
        if own.peek().is_none() && !state.threads.contains_key(thread_id) {
            return Err(Failure::not_found(format!("there is no thread `{thread_id}`")));
        }
        let limit = limit.min(PAGE_EVENTS) as usize;
        Ok(own.map(|(_, event)| event.clone()).skip(after as usize).take(limit).collect())
    })?
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::failure::code;
    use crate::runs::{self, Thread, ThreadSearch};
    use crate::testing::FakeHost;

    /// A host with three threads, of which `b` and `c` were updated at the same time.
    fn host() -> FakeHost {
        let thread = |id: &str, graph: &str, updated_ms: i64, metadata: Value| Thread {
            updated_ms,
            metadata,
            ..Thread::new(id, graph, "idle", json!({}))
        };
        FakeHost::new()
            .thread(thread("a", "notes", 1, json!({"title": "Tea", "of": {"id": 7, "new": true}})))
            .thread(thread("b", "notes", 5, json!({"title": "Coffee"})))
            .thread(thread("c", "other", 5, json!({})))
    }

    fn ids(search: ThreadSearch) -> String {
        let page = host().run(|| search.run()).unwrap();
        page.threads.iter().map(|thread| thread.thread_id.as_str()).collect()
    }

    #[test]
    fn conditions_select_threads() {
        let all = ThreadSearch::all;
        for (search, expected) in [
            (all(), "bca"),
            (all().graph("notes"), "ba"),
            (all().text("TEA"), "a"),
            (all().text("other"), "c"),
            (all().text("b"), "b"),
            (all().metadata(json!({"of": {"id": 7}})), "a"),
            (all().metadata(json!({"of": 7})), ""),
            (all().metadata(json!(null)), "bca"),
            (all().limit(0), "b"),
        ] {
            assert_eq!(ids(search.clone()), expected, "{search:?}");
        }
    }

    #[test]
    fn pages_follow_one_another() {
        for limit in 1..=3 {
            let (mut found, mut search) = (String::new(), ThreadSearch::all().limit(limit));
            loop {
                let page = host().run(|| search.clone().run()).unwrap();
                found.extend(page.threads.iter().map(|thread| thread.thread_id.as_str()));
                let Some(next) = page.next else { break };
                search = search.after(next);
            }
            assert_eq!(found, "bca", "{limit}");
        }
    }

    #[test]
    fn updated_thread_comes_first() {
        let host = host();
        host.run(|| {
            runs::update_thread("a", json!({"title": "Green tea"})).unwrap();
            let thread = &ThreadSearch::all().run().unwrap().threads[0];
            let metadata = json!({"title": "Green tea", "of": {"id": 7, "new": true}});
            assert_eq!((thread.thread_id.as_str(), &thread.metadata), ("a", &metadata));
            let missing = runs::update_thread("nobody", json!({})).unwrap_err();
            assert_eq!(missing.code, code::NOT_FOUND);
        });
    }

    #[test]
    fn thread_without_metadata_can_get_some() {
        let thread = Thread { metadata: json!(null), ..Thread::new("t", "g", "idle", json!({})) };
        FakeHost::new().thread(thread).run(|| {
            runs::update_thread("t", json!({"title": "Tea"})).unwrap();
            assert_eq!(runs::thread("t").unwrap().unwrap().metadata, json!({"title": "Tea"}));
        });
    }

    #[test]
    fn invalid_requests_are_refused() {
        let invalid = [ThreadSearch::all().after("x"), ThreadSearch::all().metadata("x")];
        for search in invalid {
            let failure = host().run(|| search.run()).unwrap_err();
            assert_eq!(failure.code, code::INVALID);
        }
        for metadata in [Value::Null, "x".into()] {
            let failure = host().run(|| runs::update_thread("a", metadata)).unwrap_err();
            assert_eq!(failure.code, code::INVALID);
        }
    }
}
