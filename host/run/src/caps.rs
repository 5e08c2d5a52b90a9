//! Caps: bounds of what a thread, an app and a tenant store over many runs.
//!
//! The operator configures caps in `[limits]`. Limits of one guest call and of one superstep are in
//! [`crate::limit`] and `wattle_graph::limit`.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{AppName, ThreadId};
use wattle_graph::json_text;

use crate::limit;

/// The caps of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caps {
    /// See [`limit::RUN_CONTEXT_BYTES`].
    pub run_context_bytes: u64,
    /// See [`limit::THREAD_LOG_BYTES`].
    pub thread_log_bytes: u64,
    /// See [`limit::THREAD_QUESTIONS`].
    pub thread_questions: u64,
    /// See [`limit::THREAD_BLOBS`].
    pub thread_blobs: u64,
    /// See [`limit::THREAD_BLOB_BYTES`].
    pub thread_blob_bytes: u64,
    /// See [`limit::HANDLER_BLOB_BYTES`].
    pub handler_blob_bytes: u64,
    /// Bytes of the blobs of one app. Unlimited if `None`.
    pub app_blob_bytes: Option<u64>,
    /// See [`limit::RUN_FILE_BYTES`].
    pub run_file_bytes: u64,
    /// See [`limit::APP_FILE_BYTES`].
    pub app_file_bytes: u64,
    /// Bytes of the documents in the long-term memory: a cap of the documents without a tenant, and
    /// of the documents of each tenant without a cap of its own. See [`limit::MEMORY_TOTAL_BYTES`].
    pub memory_bytes: u64,
    /// See [`limit::APP_CACHE_BYTES`].
    pub app_cache_bytes: u64,
    /// Caps of a tenant without an entry in `tenants`.
    pub tenant: TenantCaps,
    /// Caps of single tenants, used in place of `tenant`.
    pub tenants: BTreeMap<String, TenantCaps>,
}

/// The caps of a tenant. `None` means unlimited, unless the field says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TenantCaps {
    /// Threads.
    pub threads: Option<u64>,
    /// Bytes of all threads in the store, without blobs.
    pub bytes: Option<u64>,
    /// Bytes of the blobs that the threads mention, and of those that were stored for the tenant
    /// within [`limit::UNMENTIONED_MS`] and that no thread mentions.
    pub blob_bytes: Option<u64>,
    /// Bytes of the documents in the long-term memory. [`Caps::memory_bytes`] if `None`.
    pub memory_bytes: Option<u64>,
}

impl Default for Caps {
    fn default() -> Self {
        Self {
            run_context_bytes: limit::RUN_CONTEXT_BYTES,
            thread_log_bytes: limit::THREAD_LOG_BYTES,
            thread_questions: limit::THREAD_QUESTIONS,
            thread_blobs: limit::THREAD_BLOBS,
            thread_blob_bytes: limit::THREAD_BLOB_BYTES,
            handler_blob_bytes: limit::HANDLER_BLOB_BYTES,
            app_blob_bytes: None,
            run_file_bytes: limit::RUN_FILE_BYTES,
            app_file_bytes: limit::APP_FILE_BYTES,
            memory_bytes: limit::MEMORY_TOTAL_BYTES,
            app_cache_bytes: limit::APP_CACHE_BYTES,
            tenant: TenantCaps::default(),
            tenants: BTreeMap::new(),
        }
    }
}

impl Caps {
    /// Returns the caps of a tenant.
    pub(crate) fn of_tenant(&self, tenant: &str) -> &TenantCaps {
        self.tenants.get(tenant).unwrap_or(&self.tenant)
    }

    /// Returns the cap of the documents of a tenant, or of those without a tenant.
    pub(crate) fn memory_bytes_of(&self, tenant: Option<&str>) -> u64 {
        tenant.and_then(|tenant| self.of_tenant(tenant).memory_bytes).unwrap_or(self.memory_bytes)
    }

    /// Checks the size of a run context.
    ///
    /// # Errors
    ///
    /// `limit` if the context is too large.
    pub(crate) fn check_context_size(&self, context: &Value) -> Result<(), Failure> {
        let allowed = self.run_context_bytes;
        if context.is_null() || json_text::has_at_most(context, allowed) {
            return Ok(());
        }
        let message = format!(
            "the context of the run has more than the limit of {allowed} bytes as JSON: put large \
             values into the input, the long-term memory or a blob, or raise `limits.run_context` \
             in wattle.toml"
        );
        let details =
            json!({ "limit": "run_context_bytes", "field": "context", "allowed": allowed });
        Err(Failure::new(code::LIMIT, message).with_details(details))
    }
}

/// Returns the failure for a cap that is reached. `limit` is the name of the cap in `details`,
/// `used` the current usage.
pub(crate) fn reached(limit: &str, used: u64, allowed: u64, message: String) -> Failure {
    let details = json!({ "limit": limit, "allowed": allowed, "used": used });
    Failure::new(code::LIMIT, message).with_details(details)
}

/// Returns the failure for a thread whose log has reached its cap.
pub(crate) fn log_full(thread: &ThreadId, used: u64, allowed: u64) -> Failure {
    let message = format!(
        "the log of thread `{thread}` takes {used} bytes, and {allowed} are allowed: prune the \
         thread or delete runs of it, continue in another thread, or raise `limits.thread_log` in \
         wattle.toml"
    );
    reached("thread_log_bytes", used, allowed, message)
}

/// Returns the failure for a thread that mentions as many blobs as its cap allows.
pub(crate) fn thread_blobs_full(thread: &ThreadId, used: u64, allowed: u64) -> Failure {
    let message = format!(
        "thread `{thread}` has {used} blobs, and {allowed} are allowed: store fewer, larger \
         blobs, continue in another thread, or raise `limits.thread_blobs` in wattle.toml"
    );
    reached("thread_blobs", used, allowed, message)
}

/// Returns the failure for a thread whose blobs would exceed their cap.
pub(crate) fn thread_blob_bytes_full(thread: &ThreadId, used: u64, allowed: u64) -> Failure {
    let message = format!(
        "the blobs of thread `{thread}` take {used} bytes, and with the new blob they would exceed \
         the limit of {allowed}: keep less, continue in another thread, or raise \
         `limits.thread_blob_bytes` in wattle.toml"
    );
    reached("thread_blob_bytes", used, allowed, message)
}

/// Returns the failure for an app whose web handlers would exceed their cap of blobs that no thread
/// mentions.
pub(crate) fn handler_blobs_full(app: &AppName, used: u64, allowed: u64) -> Failure {
    let message = format!(
        "web handlers of app `{app}` stored {used} bytes of blobs within an hour, and with the new \
         blob they would exceed the limit of {allowed}: store blobs in a run, or raise \
         `limits.handler_blob_bytes` in wattle.toml"
    );
    reached("handler_blob_bytes", used, allowed, message)
}

/// Returns the failure for an app whose blobs would exceed their cap.
pub(crate) fn app_blobs_full(app: &AppName, used: u64, allowed: u64) -> Failure {
    let message = format!(
        "the blobs of app `{app}` take {used} bytes, and with the new blob they would exceed the \
         limit of {allowed}: delete threads of the app, or raise `limits.app_blob_bytes` in \
         wattle.toml"
    );
    reached("app_blob_bytes", used, allowed, message)
}

/// Returns the failure for a tenant whose blobs would exceed their cap.
pub(crate) fn tenant_blobs_full(tenant: &str, used: u64, allowed: u64) -> Failure {
    let message = format!(
        "the blobs of tenant `{tenant}` take {used} bytes, and with the new blob they would exceed \
         the limit of {allowed}: delete threads of the tenant, or raise its `limits.blob_bytes` in \
         wattle.toml"
    );
    reached("tenant_blob_bytes", used, allowed, message)
}

/// Returns the failure for a document with which the documents of a tenant, or those without a
/// tenant, would exceed their cap.
pub(crate) fn memory_full(tenant: Option<&str>, used: u64, allowed: u64) -> Failure {
    let (whose, limit, key) = match tenant {
        Some(tenant) => (
            format!("the documents of tenant `{tenant}` in the long-term memory"),
            "tenant_memory_bytes",
            "its `limits.memory_bytes`",
        ),
        None => (
            "the documents without a tenant in the long-term memory".to_owned(),
            "memory_bytes",
            "`limits.memory_bytes`",
        ),
    };
    let message = format!(
        "{whose} take {used} bytes, and with the new document they would exceed the limit of \
         {allowed}: delete documents, give them a time to live, or raise {key} in wattle.toml"
    );
    reached(limit, used, allowed, message)
}

/// Returns the failure for an outcome with which the cache of an app would exceed its cap.
pub(crate) fn app_cache_full(app: &AppName, used: u64, allowed: u64) -> Failure {
    let message = format!(
        "the cached outcomes of app `{app}` take {used} bytes, and with the new outcome they would \
         exceed the limit of {allowed}: clear the cache, give it a `ttl` in the graph, or raise \
         `limits.app_cache_bytes` in wattle.toml"
    );
    reached("app_cache_bytes", used, allowed, message)
}

/// Returns the failure for a tenant that has as many threads as its cap allows.
pub(crate) fn tenant_threads_full(tenant: &str, used: u64, allowed: u64) -> Failure {
    let message = format!(
        "tenant `{tenant}` has {used} threads, and {allowed} are allowed: delete threads of it, or \
         raise its `limits.threads` in wattle.toml"
    );
    reached("tenant_threads", used, allowed, message)
}

/// Returns the failure for a tenant whose threads have reached their cap of bytes.
pub(crate) fn tenant_bytes_full(tenant: &str, used: u64, allowed: u64) -> Failure {
    let message = format!(
        "the threads of tenant `{tenant}` take {used} bytes, and {allowed} are allowed: prune or \
         delete threads of it, or raise its `limits.bytes` in wattle.toml"
    );
    reached("tenant_bytes", used, allowed, message)
}

/// Returns the failure for a thread that has as many pending interrupts as its cap allows.
pub(crate) fn interrupts_full(thread: &ThreadId, used: u64, allowed: u64) -> Failure {
    let message = format!(
        "thread `{thread}` has {used} pending interrupts, and {allowed} are allowed: raise \
         fewer, answer some and resume, or increase `limits.thread_questions` in wattle.toml"
    );
    reached("thread_questions", used, allowed, message)
}

/// Returns the failure for a thread whose pending interrupts would take too much memory.
pub(crate) fn interrupts_too_large(thread: &ThreadId, used: u64, allowed: u64) -> Failure {
    let message = format!(
        "the pending interrupts of thread `{thread}` take {used} bytes in memory, and with the new \
         one they would exceed the limit of {allowed}: raise smaller ones, or answer some and \
         resume"
    );
    reached("thread_question_bytes", used, allowed, message)
}
