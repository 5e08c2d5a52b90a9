//! A log that cannot be read: streams of it say so at their end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use serde_json::{Value, json};
use wattle_api::ApiConfig;
use wattle_kit::layer::{Layer, Layered};
use wattle_run::ports::store::{Store, StoreError};
use wattle_store::MemoryStore;

use crate::host::{Host, Parts};

/// A store whose logs cannot be read at times.
struct Damaged {
    below: Arc<dyn Store>,
    is_damaged: AtomicBool,
}

#[async_trait]
impl Layer for Damaged {
    fn over(below: Arc<dyn Store>) -> Self {
        Self { below, is_damaged: AtomicBool::new(false) }
    }

    fn below(&self) -> &dyn Store {
        &*self.below
    }

    async fn reading(&self, read: &'static str) -> Result<(), StoreError> {
        if read == "events" && self.is_damaged.load(Ordering::SeqCst) {
            let what = "event 3 of thread `t`".to_owned();
            return Err(StoreError::Corrupt { what, message: "its checksum differs".to_owned() });
        }
        Ok(())
    }
}

/// The documents of a stream.
fn documents(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter_map(|data| serde_json::from_str(data).ok()).collect()
}

#[tokio::test]
async fn a_stream_whose_log_cannot_be_read_ends_with_an_error() {
    let store = Arc::new(Layered::<Damaged>::over(Arc::new(MemoryStore::new())));
    let parts = Parts { store: store.clone(), ..Parts::default() };
    let host = Host::with_parts(ApiConfig::default(), parts);
    let start = json!({
        "graph": "agent", "input": { "value": "v" }, "thread_id": "t", "wait": true,
    });
    host.post("/api/v1/apps/test/runs", start).await.ok();
    store.is_damaged.store(true, Ordering::SeqCst);
    let path = "/api/v1/threads/t/events?until=idle";

    let own = host.get(path).await;
    let (name, problem) = own.text.split_once('\n').unwrap();
    assert_eq!(name, "event: error");
    let problem: Value = serde_json::from_str(problem.trim_start_matches("data: ").trim()).unwrap();
    assert_eq!((&problem["code"], &problem["status"]), (&json!("broken"), &json!(500)));
    assert!(problem["detail"].as_str().unwrap().contains("checksum"), "{problem}");

    let chat = host.get(&format!("{path}&format=ai-sdk")).await.text;
    assert_eq!(documents(&chat)[0]["type"], "error", "{chat}");
    assert!(chat.ends_with("data: [DONE]\n\n"), "{chat}");

    let agent = host.get(&format!("{path}&format=ag-ui")).await.text;
    let error = &documents(&agent)[0];
    assert_eq!(
        (&error["type"], &error["code"]),
        (&json!("RUN_ERROR"), &json!("broken")),
        "{agent}"
    );
}
