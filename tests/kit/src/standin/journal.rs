//! The record of every request, for tests to look at and to wait for.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;

use super::call::Call;

/// Requests kept; a load test would otherwise fill the memory with its own traffic.
const MAX_ENTRIES: usize = 10_000;

/// Longest text kept as it is; longer ones, mostly pictures, are cut and named by digest.
const MAX_TEXT: usize = 4_096;

/// How much of a text that is cut stays to be recognized.
const KEPT_TEXT: usize = 64;

/// Headers and query parameters that carry secrets, in lower case.
const SECRETS: [&str; 8] =
    ["authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie", "apikey", "key", "token"];

/// How far a request got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is being held or worked on.
    Pending,
    /// It was answered.
    Answered,
    /// The client went away before the answer.
    Abandoned,
}

/// One request and what became of it.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// Counts up from 1 in the order of arrival.
    pub id: u64,
    /// When it arrived, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// HTTP method.
    pub method: String,
    /// Path without query.
    pub path: String,
    /// Query parameters, secrets redacted.
    pub query: BTreeMap<String, String>,
    /// Headers, secrets redacted; see [`redact`].
    pub headers: BTreeMap<String, String>,
    /// The body if it was JSON, with long texts cut.
    pub body: Option<Value>,
    /// Size of the body as it was sent.
    pub body_bytes: usize,
    /// The model that was asked.
    pub model: Option<String>,
    /// How far it got.
    pub outcome: Outcome,
    /// The status that was answered.
    pub status: Option<u16>,
    /// The rule that answered, such as `classify` or `massive`.
    pub rule: Option<String>,
    /// The fault that was applied, by its `kind`.
    pub fault: Option<String>,
    /// Time from arrival to answer.
    pub took_ms: Option<u64>,
    /// The client went away in the middle of the answer.
    pub aborted: bool,
}

/// A secret as the journal shows it: the digest lets a test compare without seeing it.
pub fn redact(secret: &str) -> String {
    let digest = blake3::hash(secret.as_bytes()).to_hex();
    format!("redacted:{}", &digest[..16])
}

/// Milliseconds since the Unix epoch by the machine's clock.
#[expect(clippy::disallowed_methods, reason = "stand-ins live in real time")]
pub(super) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_millis() as u64
}

/// All entries and a signal for each change; clones share them.
#[derive(Clone, Debug)]
pub(super) struct Journal {
    entries: Arc<Mutex<VecDeque<Entry>>>,
    changes: watch::Sender<u64>,
}

impl Default for Journal {
    fn default() -> Self {
        Self { entries: Arc::default(), changes: watch::Sender::new(0) }
    }
}

impl Journal {
    /// Notes the arrival of a request.
    pub(super) fn open(&self, call: &Call) -> OpenEntry {
        let mut entries = self.lock();
        let mut id = 0;
        self.changes.send_modify(|changes| {
            *changes += 1;
            id = *changes;
        });
        if entries.len() == MAX_ENTRIES {
            entries.pop_front();
        }
        entries.push_back(entry(id, call));
        OpenEntry { journal: self.clone(), id, since: Instant::now() }
    }

    pub(super) fn list(&self) -> Vec<Entry> {
        self.lock().iter().cloned().collect()
    }

    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    /// Waits until an entry is as wanted; one that is there already counts.
    pub(super) async fn wait_for(&self, wanted: impl Fn(&Entry) -> bool) -> Option<Entry> {
        let mut changes = self.changes.subscribe();
        loop {
            changes.borrow_and_update();
            let found = self.lock().iter().find(|entry| wanted(entry)).cloned();
            if found.is_some() {
                return found;
            }
            changes.changed().await.ok()?;
        }
    }

    fn change(&self, id: u64, change: impl FnOnce(&mut Entry)) {
        let mut entries = self.lock();
        if let Some(entry) = entries.iter_mut().rev().find(|entry| entry.id == id) {
            change(entry);
        }
        drop(entries);
        self.changes.send_modify(|_| {});
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request under way. Dropped without an answer, it was abandoned by its client.
#[derive(Debug)]
pub(super) struct OpenEntry {
    journal: Journal,
    id: u64,
    since: Instant,
}

impl OpenEntry {
    pub(super) fn note_fault(&self, kind: Option<String>) {
        self.journal.change(self.id, |entry| entry.fault = kind);
    }

    /// Notes the answer. What comes back notes whether it is heard to its end.
    pub(super) fn answered(self, status: u16, rule: &str) -> Delivery {
        let took_ms = self.since.elapsed().as_millis() as u64;
        self.journal.change(self.id, |entry| {
            entry.outcome = Outcome::Answered;
            entry.status = Some(status);
            entry.rule = Some(rule.to_owned());
            entry.took_ms = Some(took_ms);
        });
        Delivery { journal: self.journal.clone(), id: self.id, ended: false }
    }
}

/// An answer on its way. Dropped before its end, it was aborted by the client.
#[derive(Debug)]
pub(super) struct Delivery {
    journal: Journal,
    id: u64,
    ended: bool,
}

impl Delivery {
    /// Nothing more is sent.
    pub(super) fn end(&mut self) {
        self.ended = true;
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if !self.ended {
            self.journal.change(self.id, |entry| entry.aborted = true);
        }
    }
}

impl Drop for OpenEntry {
    fn drop(&mut self) {
        self.journal.change(self.id, |entry| {
            if entry.outcome == Outcome::Pending {
                entry.outcome = Outcome::Abandoned;
            }
        });
    }
}

fn entry(id: u64, call: &Call) -> Entry {
    let header = |(name, value): (&axum::http::HeaderName, &axum::http::HeaderValue)| {
        (name.to_string(), shown(name.as_str(), &String::from_utf8_lossy(value.as_bytes())))
    };
    Entry {
        id,
        at_ms: now_ms(),
        method: call.method.clone(),
        path: call.path.clone(),
        query: call.query.iter().map(|(key, value)| (key.clone(), shown(key, value))).collect(),
        headers: call.headers.iter().map(header).collect(),
        body: call.json.clone().map(shortened),
        body_bytes: call.body.len(),
        model: call.model.clone(),
        outcome: Outcome::Pending,
        status: None,
        rule: None,
        fault: None,
        took_ms: None,
        aborted: false,
    }
}

fn shown(name: &str, value: &str) -> String {
    if SECRETS.contains(&name.to_ascii_lowercase().as_str()) {
        redact(value)
    } else {
        value.to_owned()
    }
}

/// The same document with long texts cut; their digest tells them apart.
fn shortened(value: Value) -> Value {
    match value {
        Value::String(text) if text.len() > MAX_TEXT => {
            let start: String = text.chars().take(KEPT_TEXT).collect();
            let digest = blake3::hash(text.as_bytes()).to_hex();
            Value::String(format!("{start}... {} bytes, blake3 {digest}", text.len()))
        }
        Value::Array(items) => items.into_iter().map(shortened).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(key, value)| (key, shortened(value))).collect()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Journal, Outcome, redact};
    use crate::standin::call::Call;

    #[test]
    fn entries_hide_secrets_and_cut_long_texts() {
        let mut call = Call::sample("POST", "/echo", &json!({"data": "x".repeat(10_000)}));
        call.headers.insert("authorization", "Bearer sk-1".parse().unwrap());
        call.query.push(("apiKey".to_owned(), "k-1".to_owned()));
        let journal = Journal::default();
        drop(journal.open(&call));
        let entry = &journal.list()[0];
        assert_eq!(entry.headers["authorization"], redact("Bearer sk-1"));
        assert_eq!(entry.query["apiKey"], redact("k-1"));
        let shown = serde_json::to_string(entry).unwrap();
        assert!(!shown.contains("sk-1") && !shown.contains("k-1"), "{shown}");
        assert!(shown.len() < 1_000, "{shown}");
        assert_eq!(entry.outcome, Outcome::Abandoned);
    }

    #[test]
    fn answers_are_noted() {
        let journal = Journal::default();
        journal.open(&Call::sample("GET", "/echo", &json!(null))).answered(200, "echo").end();
        let entry = &journal.list()[0];
        assert_eq!((entry.outcome, entry.status), (Outcome::Answered, Some(200)));
        assert_eq!(entry.rule.as_deref(), Some("echo"));
        assert!(!entry.aborted);
        drop(journal.open(&Call::sample("GET", "/echo", &json!(null))).answered(200, "echo"));
        assert!(journal.list()[1].aborted);
    }
}
