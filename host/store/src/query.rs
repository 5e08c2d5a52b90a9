//! Decides which threads and checkpoints a query matches. All stores share these rules.

use std::borrow::Cow;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use wattle_graph::checkpoint::{CheckpointMeta, CheckpointSource};
use wattle_graph::id::{AppName, Digest, GraphName, ThreadId};
use wattle_run::metadata::STATELESS_MARKER;
use wattle_run::ports::store::{
    CheckpointQuery, Owner, PinnedVersions, StoreError, ThreadCursor, ThreadKey, ThreadOrder,
    ThreadQuery, ThreadRecord, ThreadStatus, ThreadTtl,
};

/// The selecting fields of a thread record: those that queries compare, and those that searches
/// compare before texts and metadata. A scan does not build the rest of the record.
#[derive(Debug, Deserialize)]
pub(crate) struct ThreadFields {
    pub(crate) id: ThreadId,
    pub(crate) app: AppName,
    pub(crate) graph: GraphName,
    pub(crate) status: ThreadStatus,
    #[serde(default)]
    stopped: bool,
    pub(crate) created_ms: i64,
    pub(crate) updated_ms: i64,
    pub(crate) expires_ms: Option<i64>,
    pub(crate) tenant: Option<String>,
    #[serde(default)]
    pub(crate) failure: Option<FailureCode>,
    #[serde(default)]
    ttl: Option<ThreadTtl>,
    #[serde(default)]
    pruned_ms: Option<i64>,
    #[serde(rename = "metadata", default, deserialize_with = "has_stateless_marker")]
    is_stateless: bool,
}

/// Decodes whether metadata have the marker of stateless runs. Keeps no names and values.
fn has_stateless_marker<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    deserializer.deserialize_map(MarkerVisitor)
}

struct MarkerVisitor;

impl<'de> Visitor<'de> for MarkerVisitor {
    type Value = bool;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut metadata: A) -> Result<bool, A::Error> {
        let mut has_marker = false;
        while let Some((MetadataName(name), IgnoredAny)) = metadata.next_entry()? {
            has_marker |= name == STATELESS_MARKER;
        }
        Ok(has_marker)
    }
}

/// The name of a value in metadata, which is borrowed from the record unless it has escapes.
#[derive(Deserialize)]
struct MetadataName<'a>(#[serde(borrow)] Cow<'a, str>);

/// A failure of which only the code is decoded.
#[derive(Debug, Deserialize)]
pub(crate) struct FailureCode {
    pub(crate) code: String,
}

impl From<&ThreadRecord> for ThreadFields {
    fn from(record: &ThreadRecord) -> Self {
        Self {
            id: record.id.clone(),
            app: record.app.clone(),
            graph: record.graph.clone(),
            status: record.status,
            stopped: record.stopped,
            created_ms: record.created_ms,
            updated_ms: record.updated_ms,
            expires_ms: record.expires_ms,
            tenant: record.tenant.clone(),
            failure: record.failure.as_ref().map(|it| FailureCode { code: it.code.clone() }),
            ttl: record.ttl,
            pruned_ms: record.pruned_ms,
            is_stateless: record.metadata.contains_key(STATELESS_MARKER),
        }
    }
}

impl ThreadFields {
    /// Returns true if the thread counts towards the caps of an owner.
    pub(crate) fn belongs_to(&self, owner: &Owner) -> bool {
        owner.has(&self.id, &self.app, self.tenant.as_deref())
    }

    /// Returns the key of the thread in a list of all threads.
    pub(crate) fn key(&self) -> ThreadKey {
        ThreadKey {
            id: self.id.clone(),
            status: self.status,
            stopped: self.stopped,
            is_stateless: self.is_stateless,
            created_ms: self.created_ms,
            updated_ms: self.updated_ms,
        }
    }

    /// Returns the app and the tenant of the thread.
    pub(crate) fn owner(&self) -> (&AppName, Option<&str>) {
        (&self.app, self.tenant.as_deref())
    }

    /// Returns the status by which a query finds the thread.
    fn listed_status(&self, query: &ThreadQuery) -> ThreadStatus {
        if self.stopped && query.stopped_as_interrupted {
            ThreadStatus::Interrupted
        } else {
            self.status
        }
    }

    /// Returns when the TTL of the thread ends; see [`ThreadRecord::ttl_ends_ms`].
    fn ttl_ends_ms(&self) -> Option<i64> {
        let is_done = self.pruned_ms.is_some_and(|pruned| pruned >= self.updated_ms);
        self.ttl
            .filter(|_| !is_done)
            .map(|ttl| self.updated_ms.saturating_add_unsigned(ttl.after_ms))
    }
}

/// The version to which a record pins its thread.
#[derive(Debug, Deserialize)]
pub(crate) struct Pin {
    app: AppName,
    version: Digest,
}

/// Adds the version of one record. If the record is damaged, marks `pinned` as incomplete.
pub(crate) fn add_pin(pinned: &mut PinnedVersions, pin: Result<Pin, StoreError>) {
    match pin {
        Ok(Pin { app, version }) => drop(pinned.versions.insert((app, version))),
        Err(error) => {
            tracing::error!(%error, "cannot read to which version a damaged thread is pinned");
            pinned.is_complete = false;
        }
    }
}

/// Returns matching threads in the order of a query and from its offset on, each with the value
/// that `matching` has for the thread.
pub(crate) fn sort_and_skip<T>(
    query: &ThreadQuery,
    mut matching: Vec<(ThreadFields, T)>,
) -> impl Iterator<Item = (ThreadId, T)> {
    let by_update = ThreadCursor::sort_key;
    matching.sort_by(|(a, _), (b, _)| match query.order {
        ThreadOrder::Update => by_update(a.updated_ms, &a.id).cmp(&by_update(b.updated_ms, &b.id)),
        ThreadOrder::Id => a.id.cmp(&b.id),
    });
    let listed = matching.into_iter().skip(query.offset);
    listed.map(|(fields, known)| (fields.id, known))
}

/// Returns true if a thread meets all conditions of a query. The offset and the limit of the query
/// are ignored.
pub(crate) fn thread_matches(query: &ThreadQuery, thread: &ThreadFields) -> bool {
    query.app.as_ref().is_none_or(|app| *app == thread.app)
        && query.status.is_none_or(|status| status == thread.listed_status(query))
        && query.tenant.as_ref().is_none_or(|tenant| thread.tenant.as_ref() == Some(tenant))
        && query.expires_by_ms.is_none_or(|by| thread.expires_ms.is_some_and(|at| at <= by))
        && query.unexpired_at_ms.is_none_or(|at| !thread.status.has_expired(thread.expires_ms, at))
        && query.ttl_ended_by_ms.is_none_or(|by| thread.ttl_ends_ms().is_some_and(|at| at <= by))
        && query.after.as_ref().is_none_or(|after| thread.id > *after)
}

/// Returns true if a checkpoint matches a query, apart from its limit.
pub(crate) fn checkpoint_matches(query: &CheckpointQuery, meta: &CheckpointMeta) -> bool {
    query.namespace.as_ref().is_none_or(|namespace| *namespace == meta.namespace)
        && query.before.is_none_or(|before| meta.id < before)
        && query.filter.iter().all(|(key, wanted)| field_eq(meta, key, wanted))
}

/// Compares a field of a checkpoint with a value. A key that is not the name of a field selects the
/// metadata under exactly this key.
fn field_eq(meta: &CheckpointMeta, key: &str, wanted: &Value) -> bool {
    match key {
        "source" => wanted.as_str() == Some(source_name(meta.source)),
        "step" => wanted.as_u64() == Some(u64::from(meta.step)),
        "run" => wanted.as_str() == Some(meta.run.as_str()),
        key => meta.metadata.get(key) == Some(wanted),
    }
}

fn source_name(source: CheckpointSource) -> &'static str {
    match source {
        CheckpointSource::Input => "input",
        CheckpointSource::Loop => "loop",
        CheckpointSource::Update => "update",
        CheckpointSource::Fork => "fork",
    }
}
