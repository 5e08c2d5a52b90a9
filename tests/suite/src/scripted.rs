//! Ports that answer from a script and count what they were asked.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use wattle_graph::failure::{Failure, code};
use wattle_graph::llm::{
    Completion, CompletionRequest, Delta, FinishReason, GeneratedImage, ImageRequest, Message,
    Part, Role, Tries, Usage,
};
use wattle_run::grant::{HttpRule, SqlRule};
use wattle_run::hostcall::http::{HttpRequest, HttpResponse};
use wattle_run::hostcall::sql::{Executed, Rows, SqlValue};
use wattle_run::limit::{NetLimits, SqlLimits};
use wattle_run::ports::model::{Deltas, RouteInfo};
use wattle_run::ports::sql::{Marker, SqlTransaction};
use wattle_run::ports::{BlobStore, Caller, Model, Net, Sql};

/// A model that says `answer N` on its N-th call, and makes pictures.
#[derive(Default)]
pub struct ScriptedModel {
    calls: AtomicUsize,
    pictures: AtomicUsize,
    hanging: AtomicUsize,
    began: Notify,
    dropped: Arc<Notify>,
    /// Whether calls are held.
    holds: watch::Sender<bool>,
    held: watch::Sender<usize>,
}

impl ScriptedModel {
    /// How often it was called.
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// How often it was asked for pictures.
    pub fn pictures(&self) -> usize {
        self.pictures.load(Ordering::SeqCst)
    }

    /// The next `count` calls say `answer ` and never go on.
    pub fn hang_next(&self, count: usize) {
        self.hanging.store(count, Ordering::SeqCst);
    }

    /// Waits until a call hangs.
    pub async fn hung(&self) {
        self.began.notified().await;
    }

    /// Waits until a call that hung was given up.
    pub async fn dropped(&self) {
        self.dropped.notified().await;
    }

    /// From now on all calls wait for [`ScriptedModel::release`].
    pub fn hold(&self) {
        self.holds.send_replace(true);
    }

    /// Waits until so many calls are held at once.
    ///
    /// # Panics
    ///
    /// Never: the count lives as long as the model.
    pub async fn held(&self, count: usize) {
        self.held.subscribe().wait_for(|held| *held >= count).await.expect("it lives");
    }

    /// Lets all calls go on.
    pub fn release(&self) {
        self.holds.send_replace(false);
    }

    async fn pass(&self) {
        let mut holds = self.holds.subscribe();
        if *holds.borrow() {
            self.held.send_modify(|held| *held += 1);
            // The other end lives as long as this model.
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

/// Tells of its end.
struct NotifyOnDrop(Arc<Notify>);

impl Drop for NotifyOnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// A request for one picture.
pub fn picture(text: &str) -> ImageRequest {
    ImageRequest {
        route: "chat".into(),
        prompt: text.into(),
        count: 1,
        aspect_ratio: None,
        tries: Tries::default(),
    }
}

/// A model call with one user message.
pub fn prompt(text: &str) -> CompletionRequest {
    let messages = vec![Message { role: Role::User, parts: vec![Part::Text(text.into())] }];
    CompletionRequest::new("chat", messages)
}

/// What a model said.
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
        _: &CompletionRequest,
        _: &dyn BlobStore,
        deltas: &dyn Deltas,
    ) -> Result<Completion, Failure> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        self.pass().await;
        for text in ["answer ", &call.to_string()] {
            deltas.push(Delta::Text { text: text.into() });
            tokio::task::yield_now().await;
            self.hang().await;
        }
        Ok(Completion {
            id: None,
            parts: vec![Part::Text(format!("answer {call}"))],
            structured: None,
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
}

/// An HTTP port. It answers 200 with its call number, unless a failure is queued or it is told
/// to hang.
#[derive(Default)]
pub struct ScriptedNet {
    calls: AtomicUsize,
    failures: Mutex<VecDeque<Failure>>,
    hanging: AtomicUsize,
    arrived: Notify,
}

impl ScriptedNet {
    /// How often it was called.
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// The next call fails like this.
    pub fn fail_next(&self, failure: Failure) {
        self.failures.lock().expect("no panic under the lock").push_back(failure);
    }

    /// The next `count` calls to an address with `slow` in it never answer.
    pub fn hang_next(&self, count: usize) {
        self.hanging.store(count, Ordering::SeqCst);
    }

    /// Waits until a call hangs.
    pub async fn hung(&self) {
        self.arrived.notified().await;
    }
}

/// A GET request.
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

/// A failure that a retry may cure.
pub fn unavailable() -> Failure {
    Failure::new(code::UNAVAILABLE, "the service is away").retryable()
}

#[async_trait]
impl Net for ScriptedNet {
    async fn send(
        &self,
        _: &Caller,
        _: &[HttpRule],
        _: &NetLimits,
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
        database: &str,
        _: &SqlLimits,
    ) -> Result<Box<dyn SqlTransaction>, Failure> {
        Err(no_database(database))
    }
}

/// Databases whose first transaction goes wrong.
pub struct OddSql {
    inner: Arc<dyn Sql>,
    odd: Odd,
    begun: AtomicUsize,
    committed: Arc<Notify>,
    due: Arc<Notify>,
}

/// What goes wrong with the first transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Odd {
    /// Its commit is made and never answered, as if the host died right behind it.
    Lost,
    /// Its commit is never answered, and made when the next transaction is about to begin.
    Late,
    /// It cannot begin.
    Away,
}

impl OddSql {
    /// Something goes wrong with the first transaction of `inner`.
    pub fn new(inner: Arc<dyn Sql>, odd: Odd) -> Self {
        let (committed, due) = (Arc::default(), Arc::default());
        Self { inner, odd, begun: AtomicUsize::new(0), committed, due }
    }

    /// Waits until a commit was made whose answer is lost.
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
        database: &str,
        rule: &SqlRule,
        limits: &SqlLimits,
        statement: &str,
        parameters: &[SqlValue],
    ) -> Result<Rows, Failure> {
        self.inner.query(database, rule, limits, statement, parameters).await
    }

    async fn begin(
        &self,
        database: &str,
        limits: &SqlLimits,
    ) -> Result<Box<dyn SqlTransaction>, Failure> {
        if self.begun.fetch_add(1, Ordering::SeqCst) > 0 {
            self.due.notify_one();
            return self.inner.begin(database, limits).await;
        }
        if self.odd == Odd::Away {
            return Err(unavailable());
        }
        let inner = self.inner.begin(database, limits).await?;
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
    async fn claim(&mut self, key: &str) -> Result<Option<Value>, Failure> {
        self.inner.claim(key).await
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

    async fn commit(self: Box<Self>, marker: Option<&Marker>) -> Result<(), Failure> {
        let Self { inner, odd, committed, due } = *self;
        let marker = marker.cloned();
        // The receiver may have given up.
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
