//! Files of an app and of its operator: `app.toml`, `streams/*.toml` and `wattle.toml`. A rejected
//! file has an error with a message, and an accepted stream accepts any event.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use wattle::config;
use wattle::load::manifest::Manifest;
use wattle_graph::event::Event;
use wattle_graph::mapping::{
    EventContext, ProjectionBudget, RunFileProjector, RunInfo, StreamProjection, StreamProjector,
};

/// Parses a text as each of the files.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Manifest::parse(text) {
        Ok(manifest) => files(&manifest),
        Err(error) => assert!(!error.is_empty()),
    }
    match StreamProjection::parse(text) {
        Ok(mapping) => streamed(mapping),
        Err(error) => assert!(!error.is_empty()),
    }
    if let Err(error) = config::parse(text, Path::new("base")) {
        assert!(!error.to_string().is_empty());
    }
}

fn subject() -> RunInfo {
    let thread = json!({ "id": "t", "context": { "user": "ada" } });
    RunInfo { app: json!("app"), thread, run: json!({ "id": "r" }), settings: json!({}) }
}

/// Returns one event of each kind that mappings select.
fn events() -> Vec<Event> {
    let kinds = json!([
        { "type": "run_started", "reason": "input" },
        { "type": "custom", "task": "t", "node": "n", "name": "note", "data": { "a": [1, "x"] } },
        { "type": "task_failed", "task": "t", "node": "n", "attempt": 1, "fault": "failure",
          "failure": { "code": "invalid", "message": "m", "retryable": false } },
        { "type": "run_ended", "status": "completed" },
    ]);
    let kinds = kinds.as_array().into_iter().flatten().enumerate();
    let event = |(index, kind): (usize, &Value)| {
        let mut event = json!({ "seq": index + 1, "at_ms": index, "run": "r" });
        let fields = event.as_object_mut().expect("it is an object");
        fields.extend(kind.as_object().cloned().unwrap_or_default());
        serde_json::from_value(event).ok()
    };
    kinds.filter_map(event).collect()
}

fn streamed(mapping: StreamProjection) {
    let mut stream = StreamProjector::new(Arc::new(mapping), subject());
    let state = json!({ "a": 1 });
    for event in events() {
        let moment = EventContext { time: "2025-01-15T10:30:45+08:00", state: &state };
        stream.wants_state(&event);
        if let Err(exceeded) = stream.apply(&event, moment, &mut ProjectionBudget::default()) {
            assert!(!exceeded.message.is_empty());
        }
    }
}

fn files(manifest: &Manifest) {
    let (subject, state) = (subject(), json!({ "a": 1 }));
    for mapping in manifest.files.values() {
        let mut files = RunFileProjector::new(mapping, &subject);
        for event in events() {
            let moment = EventContext { time: "2025-01-15T10:30:45+08:00", state: &state };
            let budget = &mut ProjectionBudget::default();
            if let Ok(Some(made)) = files.apply(&event, moment, "20250115T103045.000", budget) {
                let parts: Vec<&str> = made.path.split('/').collect();
                let is_safe = |part: &&str| !part.is_empty() && *part != "." && *part != "..";
                assert!(parts.iter().all(is_safe), "{}", made.path);
            }
        }
    }
}
