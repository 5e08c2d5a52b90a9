//! A run whose end is readable before its thread is free.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;
use wattle_api::ApiConfig;
use wattle_graph::event::EventKind;
use wattle_graph::id::ThreadId;
use wattle_kit::layer::{Layer, Layered};
use wattle_run::ports::store::{Batch, Store, Ticket};
use wattle_store::InMemoryStore;

use crate::host::{Host, HostOptions};

/// A store whose readers see the end of a run before the store acknowledges the write of the end.
struct Late {
    below: Arc<dyn Store>,
    holds: watch::Sender<bool>,
}

#[async_trait]
impl Layer for Late {
    fn over(below: Arc<dyn Store>) -> Self {
        Self { below, holds: watch::channel(false).0 }
    }

    fn below(&self) -> &dyn Store {
        &*self.below
    }

    async fn append(&self, thread: &ThreadId, batch: Batch) -> Ticket {
        let is_end = |kind: &EventKind| matches!(kind, EventKind::RunEnded(_));
        let ends = batch.events.iter().any(|event| is_end(&event.kind));
        let ticket = self.below.append(thread, batch).await;
        if !ends {
            return ticket;
        }
        let written = ticket.await;
        let (told, answer) = oneshot::channel();
        let mut holds = self.holds.subscribe();
        tokio::spawn(async move {
            let _ = holds.wait_for(|holds| !holds).await;
            let _ = told.send(written);
        });
        Ticket::waiting(answer, || {})
    }
}

#[tokio::test]
async fn resume_waits_until_the_write_of_the_run_end_is_acknowledged() {
    let store = Arc::new(Layered::<Late>::over(Arc::new(InMemoryStore::new())));
    let options = HostOptions { store: store.clone(), ..HostOptions::default() };
    let host = Host::with_options(ApiConfig::default(), options);
    store.holds.send_replace(true);
    let start = json!({ "graph": "agent", "input": { "value": "v" }, "thread_id": "t" });
    assert_eq!(host.post("/api/v1/apps/test/runs", start).await.status, 202);
    let question = loop {
        let thread = host.get("/api/v1/threads/t").await.ok();
        if thread["status"] == "interrupted" {
            break thread["interrupts"][0]["id"].as_str().unwrap().to_owned();
        }
        tokio::task::yield_now().await;
    };
    let answers = json!({ "answers": { question: "yes" } });
    let resume = host.post("/api/v1/threads/t/resume", answers);
    let mut resume = std::pin::pin!(resume);
    let early = timeout(Duration::from_millis(100), &mut resume).await;
    assert!(early.is_err(), "{early:?}");
    store.holds.send_replace(false);
    assert_eq!(resume.await.status, 202);
}
