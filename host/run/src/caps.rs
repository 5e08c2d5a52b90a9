//! What a thread, an app and a tenant may take of the store, as the operator allows it.
//!
//! Caps bound what grows over many runs; limits of one guest call and of one superstep stand in
//! [`crate::limit`] and `wattle_graph::limit`.

use std::collections::BTreeMap;

use serde_json::json;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{AppName, ThreadId};

use crate::limit;

/// The caps of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caps {
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
    /// Bytes of the blobs of an app.
    pub app_blob_bytes: Option<u64>,
    /// Caps of a tenant that has none of its own.
    pub tenant: TenantCaps,
    /// Caps of tenants, in the place of the usual ones.
    pub tenants: BTreeMap<String, TenantCaps>,
}

/// The caps of a tenant; there is none without a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TenantCaps {
    /// Threads that it has.
    pub threads: Option<u64>,
    /// Bytes that its threads take in the store, blobs not counted.
    pub bytes: Option<u64>,
    /// Bytes of the blobs that its threads mention, and that were put for it lately.
    pub blob_bytes: Option<u64>,
}

impl Default for Caps {
    fn default() -> Self {
        Self {
            thread_log_bytes: limit::THREAD_LOG_BYTES,
            thread_questions: limit::THREAD_QUESTIONS,
            thread_blobs: limit::THREAD_BLOBS,
            thread_blob_bytes: limit::THREAD_BLOB_BYTES,
            handler_blob_bytes: limit::HANDLER_BLOB_BYTES,
            app_blob_bytes: None,
            tenant: TenantCaps::default(),
            tenants: BTreeMap::new(),
        }
    }
}

impl Caps {
    /// The caps of a tenant.
    pub(crate) fn of_tenant(&self, tenant: &str) -> &TenantCaps {
        self.tenants.get(tenant).unwrap_or(&self.tenant)
    }
}

/// A cap that was reached: `limit` is its name in `details`, `used` what is taken already.
pub(crate) fn reached(limit: &str, used: u64, allowed: u64, message: String) -> Failure {
    let details = json!({ "limit": limit, "allowed": allowed, "used": used });
    Failure::new(code::LIMIT, message).with_details(details)
}

/// The log of a thread takes as much as it may.
pub(crate) fn log_full(thread: &ThreadId, used: u64, allowed: u64) -> Failure {
    let message = format!(
        "the log of thread `{thread}` takes {used} bytes, and {allowed} are allowed: prune the \
         thread or delete runs of it, go on in another thread, or raise `limits.thread_log` in \
         wattle.toml"
    );
    reached("thread_log_bytes", used, allowed, message)
}

/// A thread mentions as many blobs as it may.
pub(crate) fn thread_blobs_full(thread: &ThreadId, used: u64, allowed: u64) -> Failure {
    let message = format!(
        "thread `{thread}` has {used} blobs, and {allowed} are allowed: put fewer that hold more \
         each, go on in another thread, or raise `limits.thread_blobs` in wattle.toml"
    );
    reached("thread_blobs", used, allowed, message)
}

/// The blobs of a thread take as much as they may.
pub(crate) fn thread_blob_bytes_full(thread: &ThreadId, used: u64, allowed: u64) -> Failure {
    let message = format!(
        "the blobs of thread `{thread}` take {used} bytes, and {allowed} are allowed with this \
         one: keep less, go on in another thread, or raise `limits.thread_blob_bytes` in wattle.toml"
    );
    reached("thread_blob_bytes", used, allowed, message)
}

/// Web handlers of an app put more than a thread mentions.
pub(crate) fn handler_blobs_full(app: &AppName, used: u64, allowed: u64) -> Failure {
    let message = format!(
        "web handlers of app `{app}` put {used} bytes of blobs within an hour, and {allowed} are \
         allowed with this one: put them in a run, or raise `limits.handler_blob_bytes` in \
         wattle.toml"
    );
    reached("handler_blob_bytes", used, allowed, message)
}

/// The blobs of an app take as much as they may.
pub(crate) fn app_blobs_full(app: &AppName, used: u64, allowed: u64) -> Failure {
    let message = format!(
        "the blobs of app `{app}` take {used} bytes, and {allowed} are allowed with this one: \
         delete threads of the app, or raise `limits.app_blob_bytes` in wattle.toml"
    );
    reached("app_blob_bytes", used, allowed, message)
}

/// The blobs of a tenant take as much as they may.
pub(crate) fn tenant_blobs_full(tenant: &str, used: u64, allowed: u64) -> Failure {
    let message = format!(
        "the blobs of tenant `{tenant}` take {used} bytes, and {allowed} are allowed with this \
         one: delete threads of the tenant, or raise its `limits.blob_bytes` in wattle.toml"
    );
    reached("tenant_blob_bytes", used, allowed, message)
}

/// A tenant has as many threads as it may.
pub(crate) fn tenant_threads_full(tenant: &str, used: u64, allowed: u64) -> Failure {
    let message = format!(
        "tenant `{tenant}` has {used} threads, and {allowed} are allowed: delete threads of it, or \
         raise its `limits.threads` in wattle.toml"
    );
    reached("tenant_threads", used, allowed, message)
}

/// The threads of a tenant take as much as they may.
pub(crate) fn tenant_bytes_full(tenant: &str, used: u64, allowed: u64) -> Failure {
    let message = format!(
        "the threads of tenant `{tenant}` take {used} bytes, and {allowed} are allowed: prune or \
         delete threads of it, or raise its `limits.bytes` in wattle.toml"
    );
    reached("tenant_bytes", used, allowed, message)
}

/// A thread has as many open questions as it may.
pub(crate) fn questions_full(thread: &ThreadId, used: u64, allowed: u64) -> Failure {
    let message = format!(
        "thread `{thread}` has {used} open questions, and {allowed} are allowed: ask for several \
         things at once, answer some and go on, or raise `limits.thread_questions` in wattle.toml"
    );
    reached("thread_questions", used, allowed, message)
}
