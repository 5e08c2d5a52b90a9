//! Ports with scripted results, which count calls.

use std::collections::{BTreeMap, VecDeque};
use std::iter;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use wattle_graph::failure::{Failure, code};
use wattle_graph::llm::{
    Completion, CompletionRequest, Delta, FinishReason, GeneratedImage, ImageRequest, Message,
    Part, Role, ToolCall, Tries, Usage,
};
use wattle_run::caller_id::CallerId;
use wattle_run::grant::{Grants, SqlRule};
use wattle_run::hostcall::http::{HttpRequest, HttpResponse};
use wattle_run::hostcall::sql::{Executed, Rows, SqlValue};
use wattle_run::limit::SqlLimits;
use wattle_run::ports::model::{DeltaSink, RouteInfo};
use wattle_run::ports::sql::{CommitMarker, SqlTransaction};
use wattle_run::ports::{BlobStore, Caller, Model, Net, Sql};

/// A model whose N-th completion is `answer N`, with the document `{"number": N}` if a request asks
/// for one, and which generates images. A tenant can have routes of its own, which lead to the same
/// model.
#[derive(Default)]
pub struct ScriptedModel {
    calls: AtomicUsize,
    /// Request of the last completion call.
    last_request: Mutex<Option<CompletionRequest>>,
    /// Ids of the tool calls in each completion.
    tool_calls: Mutex<Vec<String>>,
    /// Deltas of the next call; empty for those of its text.
    deltas: Mutex<Vec<Delta>>,
    pictures: AtomicUsize,
    /// Routes of tenants without their keys, by tenant and name.
    own_routes: Mutex<BTreeMap<(Option<String>, String), Value>>,
    hanging: AtomicUsize,
    began: Notify,
    dropped: Arc<Notify>,
    /// True while calls are held.
    holds: watch::Sender<bool>,
    held: watch::Sender<usize>,
}

impl ScriptedModel {
    /// Returns the number of completion calls.
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// Returns the request of the last completion call.
    pub fn last_request(&self) -> Option<CompletionRequest> {
        self.last_request.lock().expect("no panic under the lock").clone()
    }

    /// Returns the number of image calls.
    pub fn pictures(&self) -> usize {
        self.pictures.load(Ordering::SeqCst)
    }

    /// Makes each completion call a tool once for each of these ids.
    pub fn call_tools(&self, ids: &[&str]) {
        let ids = ids.iter().map(|&id| id.to_owned()).collect();
        *self.tool_calls.lock().expect("no panic under the lock") = ids;
    }

    /// Makes the next call emit these deltas in place of those of its text.
    pub fn emit_next(&self, deltas: Vec<Delta>) {
        *self.deltas.lock().expect("no panic under the lock") = deltas;
    }

    /// Makes the next `count` calls emit the delta `answer ` and then hang.
    pub fn hang_next(&self, count: usize) {
        self.hanging.store(count, Ordering::SeqCst);
    }

    /// Waits until a call hangs.
    pub async fn hung(&self) {
        self.began.notified().await;
    }

    /// Waits until a hanging call was dropped.
    pub async fn dropped(&self) {
        self.dropped.notified().await;
    }

    /// Holds all calls until [`ScriptedModel::release`].
    pub fn hold(&self) {
        self.holds.send_replace(true);
    }

    /// Waits until `count` calls are held concurrently.
    ///
    /// # Panics
    ///
    /// Never, because the sender lives as long as the model.
    pub async fn held(&self, count: usize) {
        self.held.subscribe().wait_for(|held| *held >= count).await.expect("the sender lives");
    }

    /// Releases all held calls.
    pub fn release(&self) {
        self.holds.send_replace(false);
    }

    fn take_deltas(&self, call: usize) -> Vec<Delta> {
        let deltas = std::mem::take(&mut *self.deltas.lock().expect("no panic under the lock"));
        if !deltas.is_empty() {
            return deltas;
        }
        ["answer ".to_owned(), call.to_string()].map(|text| Delta::Text { text }).into()
    }

    fn output(&self, call: usize) -> Vec<Part> {
        let ids = self.tool_calls.lock().expect("no panic under the lock").clone();
        let tool_call =
            |id| Part::ToolCall(ToolCall { id, name: "find".to_owned(), arguments: json!({}) });
        let text = Part::Text(format!("answer {call}"));
        iter::once(text).chain(ids.into_iter().map(tool_call)).collect()
    }

    async fn pass(&self) {
        let mut holds = self.holds.subscribe();
        if *holds.borrow() {
            self.held.send_modify(|held| *held += 1);
            // The sender lives as long as this model.
            let _ = holds.wait_for(|holds| !holds).await;
            self.held.send_modify(|held| *held -= 1);
        }
    }

    async fn hang(&self) {
        let taken = self
            .hanging
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if taken.is_ok() {
            let _held = NotifyOnDrop(self.dropped.clone());
            self.began.notify_one();
            std::future::pending::<()>().await;
        }
    }
}

/// Notifies when it is dropped.
struct NotifyOnDrop(Arc<Notify>);

impl Drop for NotifyOnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// Returns a request for one image.
pub fn picture(text: &str) -> ImageRequest {
    ImageRequest {
        route: "chat".into(),
        prompt: text.into(),
        count: 1,
        aspect_ratio: None,
        tries: Tries::default(),
    }
}

/// Returns a model request with one user message.
pub fn prompt(text: &str) -> CompletionRequest {
    let messages = vec![Message { role: Role::User, parts: vec![Part::Text(text.into())] }];
    CompletionRequest::new("chat", messages)
}

/// Returns the text of a completion.
pub fn said(completion: &Completion) -> String {
    completion
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

#[async_trait]
impl Model for ScriptedModel {
    fn has_route(&self, _: &Caller, route: &str) -> bool {
        route == "chat"
    }

    fn route(&self, caller: &Caller, route: &str) -> Option<RouteInfo> {
        self.has_route(caller, route).then(|| RouteInfo {
            provider: "scripted".into(),
            model: "scripted".into(),
            has_fallback: false,
            candidates: 1,
        })
    }

    async fn complete(
        &self,
        _: &Caller,
        request: &CompletionRequest,
        _: &dyn BlobStore,
        deltas: &dyn DeltaSink,
    ) -> Result<Completion, Failure> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        *self.last_request.lock().expect("no panic under the lock") = Some(request.clone());
        self.pass().await;
        for delta in self.take_deltas(call) {
            deltas.push(delta);
            tokio::task::yield_now().await;
            self.hang().await;
        }
        Ok(Completion {
            id: None,
            parts: self.output(call),
            structured: request.response_schema.as_ref().map(|_| json!({ "number": call })),
            finish_reason: FinishReason::Stop,
            usage: Usage { input_tokens: Some(3), output_tokens: Some(2), ..Usage::default() },
            model: "scripted".into(),
            attempts: Vec::new(),
        })
    }

    async fn generate_images(
        &self,
        _: &Caller,
        request: &ImageRequest,
        blobs: &dyn BlobStore,
    ) -> Result<Vec<GeneratedImage>, Failure> {
        let call = self.pictures.fetch_add(1, Ordering::SeqCst) + 1;
        let bytes = format!("{} {call}", request.prompt).into();
        Ok(vec![GeneratedImage {
            blob: blobs.put(bytes, "image/png").await?,
            media_type: "image/png".into(),
            provider: "scripted".into(),
            model: "scripted".into(),
            link: String::new(),
        }])
    }

    async fn set_route(
        &self,
        caller: &Caller,
        route: &str,
        mut config: Value,
    ) -> Result<(), Failure> {
        if let Value::Object(fields) = &mut config {
            fields.remove("key");
        }
        let key = (caller.tenant.clone(), route.to_owned());
        self.own_routes.lock().expect("no panic under the lock").insert(key, config);
        Ok(())
    }

    async fn get_route(&self, caller: &Caller, route: &str) -> Result<Option<Value>, Failure> {
        let key = (caller.tenant.clone(), route.to_owned());
        Ok(self.own_routes.lock().expect("no panic under the lock").get(&key).cloned())
    }

    async fn remove_route(&self, caller: &Caller, route: &str) -> Result<(), Failure> {
        let key = (caller.tenant.clone(), route.to_owned());
        self.own_routes.lock().expect("no panic under the lock").remove(&key);
        Ok(())
    }
}

/// An HTTP port that responds with status 200 and the number of the call, unless a failure is
/// queued or the call is to hang.
#[derive(Default)]
pub struct ScriptedNet {
    calls: AtomicUsize,
    failures: Mutex<VecDeque<Failure>>,
    hanging: AtomicUsize,
    arrived: Notify,
}

impl ScriptedNet {
    /// Returns the number of calls.
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// Makes the next call fail.
    pub fn fail_next(&self, failure: Failure) {
        self.failures.lock().expect("no panic under the lock").push_back(failure);
    }

    /// Makes the next `count` calls to a URL with `slow` in it hang.
    pub fn hang_next(&self, count: usize) {
        self.hanging.store(count, Ordering::SeqCst);
    }

    /// Waits until a call hangs.
    pub async fn hung(&self) {
        self.arrived.notified().await;
    }
}

/// Returns a GET request.
pub fn get(url: &str) -> HttpRequest {
    HttpRequest {
        method: "GET".into(),
        url: url.into(),
        headers: Vec::new(),
        body: Default::default(),
        timeout_ms: None,
        idempotency_key: None,
        delay_ms: None,
    }
}

/// Returns a retryable failure.
pub fn unavailable() -> Failure {
    Failure::new(code::UNAVAILABLE, "the service is away").retryable()
}

#[async_trait]
impl Net for ScriptedNet {
    async fn send(
        &self,
        _: &Caller,
        _: &Grants,
        request: &HttpRequest,
        _: &dyn BlobStore,
    ) -> Result<HttpResponse, Failure> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        let hang = request.url.contains("slow")
            && self
                .hanging
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
                .is_ok();
        if hang {
            self.arrived.notify_one();
            std::future::pending::<()>().await;
        }
        let failure = self.failures.lock().expect("no panic under the lock").pop_front();
        match failure {
            Some(failure) => Err(failure),
            None => Ok(HttpResponse {
                status: 200,
                headers: Vec::new(),
                body: json!({ "call": call }).to_string().into(),
                url: request.url.clone(),
            }),
        }
    }
}

/// A SQL port without databases.
pub struct NoSql;

fn no_database(database: &str) -> Failure {
    Failure::new(code::NOT_FOUND, format!("there is no database `{database}`"))
}

#[async_trait]
impl Sql for NoSql {
    async fn dialect(&self, database: &str) -> Result<&'static str, Failure> {
        Err(no_database(database))
    }

    async fn query(
        &self,
        _: CallerId,
        database: &str,
        _: &SqlRule,
        _: &SqlLimits,
        _: &str,
        _: &[SqlValue],
    ) -> Result<Rows, Failure> {
        Err(no_database(database))
    }

    async fn begin(
        &self,
        _: CallerId,
        database: &str,
        _: &SqlLimits,
    ) -> Result<Box<dyn SqlTransaction>, Failure> {
        Err(no_database(database))
    }
}

/// Databases whose first transaction fails in a selected way.
pub struct OddSql {
    inner: Arc<dyn Sql>,
    odd: Odd,
    begun: AtomicUsize,
    committed: Arc<Notify>,
    due: Arc<Notify>,
}

/// The failure of the first transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Odd {
    /// The commit is made, and its result is lost, as if the host died directly after it.
    Lost,
    /// The commit is not made until the next transaction is about to begin, and its result is lost.
    Late,
    /// The transaction cannot begin.
    Away,
}

impl OddSql {
    /// Wraps `inner`, so that its first transaction fails.
    pub fn new(inner: Arc<dyn Sql>, odd: Odd) -> Self {
        let (committed, due) = (Arc::default(), Arc::default());
        Self { inner, odd, begun: AtomicUsize::new(0), committed, due }
    }

    /// Waits until a commit was made whose result is lost.
    pub async fn lost(&self) {
        self.committed.notified().await;
    }
}

#[async_trait]
impl Sql for OddSql {
    async fn dialect(&self, database: &str) -> Result<&'static str, Failure> {
        self.inner.dialect(database).await
    }

    async fn query(
        &self,
        owner: CallerId,
        database: &str,
        rule: &SqlRule,
        limits: &SqlLimits,
        statement: &str,
        parameters: &[SqlValue],
    ) -> Result<Rows, Failure> {
        self.inner.query(owner, database, rule, limits, statement, parameters).await
    }

    async fn begin(
        &self,
        owner: CallerId,
        database: &str,
        limits: &SqlLimits,
    ) -> Result<Box<dyn SqlTransaction>, Failure> {
        if self.begun.fetch_add(1, Ordering::SeqCst) > 0 {
            self.due.notify_one();
            return self.inner.begin(owner, database, limits).await;
        }
        if self.odd == Odd::Away {
            return Err(unavailable());
        }
        let inner = self.inner.begin(owner, database, limits).await?;
        let (committed, due) = (self.committed.clone(), self.due.clone());
        Ok(Box::new(OddTransaction { inner, odd: self.odd, committed, due }))
    }
}

struct OddTransaction {
    inner: Box<dyn SqlTransaction>,
    odd: Odd,
    committed: Arc<Notify>,
    due: Arc<Notify>,
}

#[async_trait]
impl SqlTransaction for OddTransaction {
    async fn claim_marker(&mut self, key: &str) -> Result<Option<Value>, Failure> {
        self.inner.claim_marker(key).await
    }

    async fn query(&mut self, statement: &str, parameters: &[SqlValue]) -> Result<Rows, Failure> {
        self.inner.query(statement, parameters).await
    }

    async fn execute(
        &mut self,
        statement: &str,
        parameters: &[SqlValue],
    ) -> Result<Executed, Failure> {
        self.inner.execute(statement, parameters).await
    }

    async fn commit(self: Box<Self>, marker: Option<&CommitMarker>) -> Result<(), Failure> {
        let Self { inner, odd, committed, due } = *self;
        let marker = marker.cloned();
        // The caller may be dropped before the commit is made.
        tokio::spawn(async move {
            if odd == Odd::Late {
                due.notified().await;
            }
            inner.commit(marker.as_ref()).await.expect("the commit is made");
            committed.notify_one();
        });
        std::future::pending().await
    }

    async fn rollback(self: Box<Self>) -> Result<(), Failure> {
        self.inner.rollback().await
    }
}
