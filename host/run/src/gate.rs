//! The one place that every host call passes: grant, journal, budget, effect, event.
//!
//! There is one gate for each guest call. A gate with a task behind it answers from the journal
//! what the task was answered before; a gate of a web handler has no journal.

pub(crate) mod doubt;
mod journal;
mod model;
mod pieces;
mod runs;
mod site;
pub mod stream;
mod task;
mod tools;
pub mod transaction;
pub mod unwind;

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use serde_json::{Value, json};
use wattle_graph::failure::{Failure, code};

use crate::app::App;
use crate::call::HostCall;
use crate::call::blob;
use crate::call::clock::{Civil, Zoned, from_zone, to_zone};
use crate::call::emit::Emission;
use crate::call::interrupt::Ask;
use crate::call::runs::Runs;
use crate::call::sql::{Executed, SqlValue};
use crate::cancel::Cancel;
use crate::gate::site::Entry;
use crate::gate::transaction::Transaction;
use crate::gate::unwind::{Stop, Unwind};
use crate::grant::Grants;
use crate::json::{check_depth, weight};
use crate::limit::{self, Limits};
use crate::ports::blob::BlobRef;
use crate::ports::{Caller, Ports};

pub(crate) use self::runs::Started;
pub use journal::Journal;
pub(crate) use journal::{PastCalls, Scopes, is_in_doubt};
pub use site::Site;
pub use task::TaskSide;

/// What every guest call of a plugin has, whatever it is for.
#[derive(Clone)]
pub struct Setting {
    /// The world.
    pub ports: Ports,
    /// On whose behalf.
    pub caller: Caller,
    /// What is allowed.
    pub grants: Arc<Grants>,
    /// The app, whose plugins have the tools that others may call.
    pub app: Arc<App>,
    /// Ends the call.
    pub cancel: Cancel,
}

/// The gate of one guest call.
pub struct Gate {
    setting: Setting,
    task: Option<Arc<TaskSide>>,
    runs: Option<Arc<dyn Runs>>,
    /// How many tools the guest is inside of.
    depth: u32,
}

impl Gate {
    /// The gate of one attempt of a task.
    pub fn for_task(setting: Setting, task: TaskSide) -> Self {
        Self { setting, task: Some(Arc::new(task)), runs: None, depth: 0 }
    }

    /// The gate of a web handler, which may use threads and runs.
    pub fn for_web(setting: Setting, runs: Arc<dyn Runs>) -> Self {
        Self { setting, task: None, runs: Some(runs), depth: 0 }
    }

    /// The gate of a tool that a node or a web handler called.
    pub(crate) fn for_tool(setting: Setting, task: Option<Arc<TaskSide>>, depth: u32) -> Self {
        Self { setting, task, runs: None, depth }
    }

    /// On whose behalf the guest runs.
    pub fn caller(&self) -> &Caller {
        &self.setting.caller
    }

    /// Limits of the guest call, for the sandbox.
    pub fn limits(&self) -> &Limits {
        &self.setting.grants.limits
    }

    /// Makes one host call, or answers it from the journal.
    ///
    /// # Errors
    ///
    /// [`Stop::Failure`] for the guest to deal with, [`Stop::Unwind`] if it must end.
    pub async fn call<C: HostCall>(&self, call: C) -> Result<C::Answer, Stop> {
        let number = match &self.task {
            None => 0,
            Some(task) => task.take_numbers(1, self.limits())?,
        };
        self.numbered(number, number, &call).await?.map_err(Stop::Failure)
    }

    /// Makes the host call that has a number, or answers it from the journal.
    async fn numbered<C: HostCall>(
        &self,
        number: u32,
        batch: u32,
        call: &C,
    ) -> Result<Result<C::Answer, Failure>, Unwind> {
        match &self.task {
            None => self.perform(call, None).await,
            Some(task) => task.journaled(self, number, batch, call).await,
        }
    }

    /// Makes several host calls at once; answers in the order of the calls. A call that could not
    /// even be read fails in its place.
    ///
    /// # Errors
    ///
    /// [`Unwind`] if the guest must end. Failures of single calls are among the answers.
    pub async fn call_all<C: HostCall>(
        &self,
        calls: Vec<Result<C, Failure>>,
    ) -> Result<Vec<Result<C::Answer, Failure>>, Unwind> {
        if calls.len() > limit::BATCH_CALLS {
            let failure = Failure::new(
                code::LIMIT,
                format!(
                    "a batch of {} calls is larger than the limit of {}",
                    calls.len(),
                    limit::BATCH_CALLS
                ),
            );
            return Ok(calls.iter().map(|_| Err(failure.clone())).collect());
        }
        let first = match &self.task {
            Some(task) => task.take_numbers(calls.len() as u32, self.limits())?,
            None => 0,
        };
        let gate = self;
        let answers = calls
            .into_iter()
            .zip(first..)
            .map(move |(call, number)| gate.one_of_batch(first, number, call));
        let answers: Vec<_> =
            futures::stream::iter(answers).buffered(limit::BATCH_CONCURRENCY).collect().await;
        answers.into_iter().collect()
    }

    async fn one_of_batch<C: HostCall>(
        &self,
        batch: u32,
        number: u32,
        call: Result<C, Failure>,
    ) -> Result<Result<C::Answer, Failure>, Unwind> {
        match call {
            Err(failure) => Ok(Err(failure)),
            Ok(call) => self.numbered(number, batch, &call).await,
        }
    }

    /// Checks the grant and makes the call, unless the run is cancelled meanwhile.
    async fn perform<C: HostCall>(
        &self,
        call: &C,
        entry: Option<Entry<'_>>,
    ) -> Result<Result<C::Answer, Failure>, Unwind> {
        let Setting { caller, grants, cancel, .. } = &self.setting;
        if let Err(denied) = call.allowed(grants, caller) {
            return Ok(Err(denied));
        }
        let site = Site::new(self, entry);
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Unwind::Cancelled),
            answer = call.perform(&site) => match answer {
                Ok(answer) => Ok(Ok(answer)),
                Err(Stop::Failure(failure)) => Ok(Err(failure)),
                Err(Stop::Unwind(unwind)) => Err(unwind),
            },
        }
    }

    /// Reads part of a blob. Not journaled: a reference always names the same bytes.
    ///
    /// # Errors
    ///
    /// `invalid` if it is no reference, and those of the blob store.
    pub async fn blob_get(
        &self,
        blob: &str,
        offset: u64,
        length: Option<u64>,
    ) -> Result<Bytes, Stop> {
        let blob = self.blob_ref(blob)?;
        if let Some(task) = &self.task {
            task.count_bytes(length.unwrap_or(0), self.limits())?;
        }
        Ok(self.setting.ports.blobs.get(blob, offset, length).await?)
    }

    /// The path under which the host serves a blob to the caller's tenant. Not journaled: the
    /// same blob always has the same path. The blob must exist.
    ///
    /// # Errors
    ///
    /// As [`Gate::blob_stat`].
    pub async fn blob_link(&self, blob: &str) -> Result<String, Stop> {
        let info = self.blob_stat(blob).await?;
        Ok(self.setting.ports.links.path(self.caller().tenant.as_deref(), info.blob))
    }

    /// What is known of a blob.
    ///
    /// # Errors
    ///
    /// `invalid` if it is no reference, and those of the blob store.
    pub async fn blob_stat(&self, blob: &str) -> Result<crate::ports::blob::BlobInfo, Stop> {
        let blob = self.blob_ref(blob)?;
        self.call(blob::Stat { blob }).await
    }

    #[expect(clippy::unused_self, reason = "reads as a question to the gate")]
    fn blob_ref(&self, text: &str) -> Result<BlobRef, Failure> {
        BlobRef::parse(text).ok_or_else(|| {
            Failure::new(
                code::INVALID,
                format!("`{text}` is not a blob reference; one is `blob:` and 64 hex digits"),
            )
        })
    }

    /// Asks a person.
    ///
    /// # Errors
    ///
    /// [`Unwind::Suspended`] as long as there is no answer; `unsupported` in a web handler.
    pub async fn ask(&self, question: Ask) -> Result<Value, Stop> {
        match &self.task {
            Some(task) => {
                check_depth("the question", &question.payload)?;
                check_depth("the response schema", &json!(question.response_schema))?;
                Ok(task.ask(question, self.limits()).await?)
            }
            None => Err(Failure::new(
                code::UNSUPPORTED,
                "a web handler cannot ask a question; start a run whose node asks it",
            )
            .into()),
        }
    }

    /// Starts a transaction.
    ///
    /// # Errors
    ///
    /// `denied` without a read-write grant, and those of the database.
    pub async fn begin(&self, database: &str) -> Result<Transaction, Stop> {
        transaction::begin(&self.setting, self.task.as_ref(), database).await
    }

    /// Runs one statement that writes, in a transaction of its own.
    ///
    /// # Errors
    ///
    /// As [`Gate::begin`], and those of the statement.
    pub async fn execute(
        &self,
        database: &str,
        text: &str,
        parameters: Vec<SqlValue>,
    ) -> Result<Executed, Stop> {
        let mut transaction = self.begin(database).await?;
        let executed = transaction.execute(text, parameters).await?;
        transaction.commit().await?;
        Ok(executed)
    }

    /// Answers at once, from the journal if the task was answered before.
    fn at_once(
        &self,
        function: &'static str,
        request: Value,
        answer: impl FnOnce() -> Result<Value, Failure>,
    ) -> Result<Value, Stop> {
        match &self.task {
            None => answer().map_err(Stop::Failure),
            Some(task) => {
                task.at_once(self.limits(), function, request, answer)?.map_err(Stop::Failure)
            }
        }
    }

    /// The same for calls that cannot fail.
    fn always<T: serde::de::DeserializeOwned + Default>(
        &self,
        function: &'static str,
        request: Value,
        answer: impl FnOnce() -> Value,
    ) -> Result<T, Unwind> {
        match self.at_once(function, request, || Ok(answer())) {
            Ok(value) => Ok(serde_json::from_value(value).unwrap_or_default()),
            Err(Stop::Unwind(unwind)) => Err(unwind),
            Err(Stop::Failure(failure)) => Err(Unwind::Log(failure)),
        }
    }

    /// Milliseconds since 1970.
    ///
    /// # Errors
    ///
    /// [`Unwind`] if the guest must end.
    pub fn now_ms(&self) -> Result<i64, Unwind> {
        self.always("clock.now", Value::Null, || json!(self.setting.ports.clock.now_ms()))
    }

    /// Nanoseconds that never go back.
    ///
    /// # Errors
    ///
    /// [`Unwind`] if the guest must end.
    pub fn monotonic_ns(&self) -> Result<u64, Unwind> {
        let clock = &self.setting.ports.clock;
        self.always("clock.monotonic", Value::Null, || json!(clock.monotonic_ns()))
    }

    /// The operator's time zone.
    ///
    /// # Errors
    ///
    /// [`Unwind`] if the guest must end.
    pub fn time_zone(&self) -> Result<String, Unwind> {
        self.always("clock.time-zone", Value::Null, || json!(self.setting.ports.clock.time_zone()))
    }

    /// Civil time of an instant.
    ///
    /// # Errors
    ///
    /// `invalid` for an unknown zone or an instant out of range.
    pub fn to_zone(&self, unix_ms: i64, zone: Option<&str>) -> Result<Zoned, Stop> {
        let zone = zone.unwrap_or_else(|| self.setting.ports.clock.time_zone());
        let value = self.at_once("clock.to-zone", json!([unix_ms, zone]), || {
            to_zone(unix_ms, zone).map(|zoned| json!(zoned))
        })?;
        decode("clock.to-zone", value)
    }

    /// Instant of a civil time.
    ///
    /// # Errors
    ///
    /// `invalid` for an unknown zone or a date that does not exist.
    pub fn from_zone(&self, civil: Civil, zone: Option<&str>) -> Result<i64, Stop> {
        let zone = zone.unwrap_or_else(|| self.setting.ports.clock.time_zone());
        let value = self.at_once("clock.from-zone", json!([civil, zone]), || {
            from_zone(civil, zone).map(|unix_ms| json!(unix_ms))
        })?;
        decode("clock.from-zone", value)
    }

    /// Random bytes, at most [`limit::RANDOM_BYTES`].
    ///
    /// # Errors
    ///
    /// [`Unwind`] if the guest must end.
    pub fn random(&self, length: u32) -> Result<Vec<u8>, Unwind> {
        let length = length.min(limit::RANDOM_BYTES);
        self.always("random.bytes", json!(length), || json!(random_bytes(length)))
    }

    /// Emits an event of the guest's own.
    ///
    /// # Errors
    ///
    /// `invalid` for a bad name, `limit` if it is too large.
    pub async fn emit(&self, emission: Emission) -> Result<(), Stop> {
        check_emission(&emission)?;
        match &self.task {
            Some(task) => Ok(task.emit(emission, self.limits()).await?),
            None => {
                tracing::info!(app = %self.caller().app, ?emission, "event of a web handler");
                Ok(())
            }
        }
    }

    /// Writes a message for the operator. Levels: `trace` to `error`, `stdout`, `stderr`.
    pub fn log(&self, level: &str, message: &str, fields: Value) {
        let message: String = message.chars().take(limit::EVENT_BYTES / 4).collect();
        let Caller { app, plugin, .. } = self.caller();
        match level {
            "error" => tracing::error!(%app, %plugin, %fields, "{message}"),
            "warn" => tracing::warn!(%app, %plugin, %fields, "{message}"),
            "trace" | "debug" => tracing::debug!(%app, %plugin, %fields, "{message}"),
            _ => tracing::info!(%app, %plugin, %fields, level, "{message}"),
        }
        if let Some(task) = &self.task {
            task.log(level, message, fields);
        }
    }

    /// All settings of the app, an object.
    pub fn settings(&self) -> &Value {
        &self.setting.app.settings
    }

    /// Threads and runs of the app.
    ///
    /// # Errors
    ///
    /// `unsupported` inside a node.
    pub fn runs(&self) -> Result<&dyn Runs, Failure> {
        self.runs.as_deref().ok_or_else(|| {
            Failure::new(
                code::UNSUPPORTED,
                "a node works on its own thread alone, so that what it does can be repeated after \
                 a crash; it can start a graph of its app and wait for it, a web handler can do \
                 the rest",
            )
            .with_details(json!({ "feature": "runs inside a node" }))
        })
    }

    /// A part of the contract that is not there yet.
    pub fn unsupported(&self, feature: &str) -> Failure {
        tracing::debug!(plugin = %self.caller().plugin, feature, "unsupported host call");
        Failure::unsupported(feature)
    }
}

/// A journaled answer in its type. It was written by the same code, so a mismatch is a fault.
fn decode<T: serde::de::DeserializeOwned>(function: &str, value: Value) -> Result<T, Stop> {
    serde_json::from_value(value).map_err(|error| {
        Stop::Failure(Failure::internal(format!("journaled answer of {function}: {error}")))
    })
}

/// Random bytes of the operating system, by way of random UUIDs: 122 bits in 16 bytes each, so
/// two are folded into one.
fn random_bytes(length: u32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length as usize + 32);
    while bytes.len() < length as usize {
        let (one, two) = (uuid::Uuid::new_v4(), uuid::Uuid::new_v4());
        let seed = [one.as_bytes().as_slice(), two.as_bytes().as_slice()].concat();
        bytes.extend_from_slice(blake3::hash(&seed).as_bytes());
    }
    bytes.truncate(length as usize);
    bytes
}

/// Longest name of an emitted event, as the contract says.
const EVENT_NAME_BYTES: usize = 64;

fn check_emission(emission: &Emission) -> Result<(), Failure> {
    let size = match emission {
        Emission::Custom { name, data } => {
            let good = (1..=EVENT_NAME_BYTES).contains(&name.len())
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b));
            if !good {
                return Err(Failure::new(
                    code::INVALID,
                    format!("`{name}` is no event name; use 1 to 64 of `[a-zA-Z0-9_.-]`"),
                ));
            }
            check_depth("the event", data)?;
            weight(data) as usize
        }
        Emission::Progress { message, .. } => message.len(),
    };
    if size <= limit::EVENT_BYTES {
        return Ok(());
    }
    Err(Failure::new(
        code::LIMIT,
        format!("an event of {size} bytes is larger than the limit of {}", limit::EVENT_BYTES),
    ))
}
