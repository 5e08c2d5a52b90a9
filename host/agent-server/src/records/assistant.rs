//! An assistant that a client created: a graph with settings, in all of its versions.
//!
//! Two collections store an assistant. One collection contains the current record of each
//! assistant, which lists read. The other collection contains the versions, which never change. The
//! current record is authoritative. Hosts that share the store change the current record by
//! compare-and-swap, so each change is based on the previous change.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use wattle_graph::failure::Failure;
use wattle_project::agent_server::time::format_time_with_micros;
use wattle_run::ports::Ports;
use wattle_run::ports::memory::MemoryScope;

use crate::records::{Collection, Versioned};
use crate::wire::response::Assistant;

/// The current record of an assistant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AssistantRecord {
    /// Id of the assistant, a UUID.
    pub(crate) id: String,
    /// Creation time, in milliseconds since 1970.
    pub(crate) created_ms: i64,
    /// Time of the last change, in milliseconds since 1970.
    pub(crate) updated_ms: i64,
    /// The highest version number.
    pub(crate) newest: u32,
    /// The version that runs use.
    pub(crate) used: AssistantVersion,
}

/// One version of an assistant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AssistantVersion {
    /// Number of the version, from 1.
    pub(crate) number: u32,
    /// Creation time, in milliseconds since 1970.
    pub(crate) created_ms: i64,
    /// Id of the graph that runs of the assistant execute.
    pub(crate) graph_id: String,
    /// Default settings of runs.
    pub(crate) config: Map<String, Value>,
    /// Default context of runs.
    pub(crate) context: Value,
    /// Arbitrary metadata.
    pub(crate) metadata: Map<String, Value>,
    /// Display name.
    pub(crate) name: String,
    /// Human-readable description.
    pub(crate) description: Option<String>,
}

impl AssistantVersion {
    /// Describes the version for clients, as JSON.
    pub(crate) fn to_body(&self, assistant: &str) -> Assistant {
        Assistant {
            assistant_id: assistant.to_owned(),
            graph_id: self.graph_id.clone(),
            config: Value::Object(self.config.clone()),
            context: self.context.clone(),
            metadata: self.metadata.clone(),
            name: self.name.clone(),
            created_at: format_time_with_micros(self.created_ms),
            updated_at: format_time_with_micros(self.created_ms),
            version: self.number,
            description: self.description.clone(),
        }
    }
}

impl AssistantRecord {
    /// Describes the assistant for clients, as JSON.
    pub(crate) fn to_body(&self) -> Assistant {
        Assistant {
            created_at: format_time_with_micros(self.created_ms),
            updated_at: format_time_with_micros(self.updated_ms),
            ..self.used.to_body(&self.id)
        }
    }

    /// Inserts a new assistant. The assistant is durable when this method returns. Returns `None`
    /// if the id exists.
    pub(crate) async fn insert(
        self,
        ports: &Ports,
        scope: &MemoryScope,
    ) -> Result<Option<Self>, Failure> {
        let id = self.id.clone();
        let made = assistant_records(ports, scope.clone()).insert(&id, self).await?;
        let Some(made) = made else { return Ok(None) };
        made.value.save_version(ports, scope).await?;
        Ok(Some(made.value))
    }

    /// Replaces the stored assistant. The change is durable when this method returns. Returns
    /// `None` if the assistant was changed or deleted since it was read.
    pub(crate) async fn replace(
        self,
        ports: &Ports,
        scope: &MemoryScope,
        old: &Versioned<Self>,
    ) -> Result<Option<Self>, Failure> {
        // After a crash, the old record may name a version that was not stored. Store that version
        // before the record is replaced.
        let number = old.value.used.number;
        let saved: Option<AssistantVersion> =
            version_records(ports, scope.clone(), &self.id).get(&version_key(number)).await?;
        if saved.as_ref() != Some(&old.value.used) {
            old.value.save_version(ports, scope).await?;
        }
        let new = assistant_records(ports, scope.clone()).replace(old, self).await?;
        let Some(new) = new else { return Ok(None) };
        if new.value.newest > old.value.newest {
            new.value.save_version(ports, scope).await?;
        }
        Ok(Some(new.value))
    }

    /// Stores the version in use. The record of the assistant is written before the version, so
    /// that two requests cannot create two versions with the same number.
    async fn save_version(&self, ports: &Ports, scope: &MemoryScope) -> Result<(), Failure> {
        let versions = version_records(ports, scope.clone(), &self.id);
        versions.put(&version_key(self.used.number), &self.used, None).await
    }

    /// Deletes the assistant with its versions.
    pub(crate) async fn delete(&self, ports: &Ports, scope: &MemoryScope) -> Result<(), Failure> {
        assistant_records(ports, scope.clone()).delete(&self.id).await?;
        version_records(ports, scope.clone(), &self.id).delete_all().await
    }

    /// Reads one version.
    pub(crate) async fn version(
        &self,
        ports: &Ports,
        scope: &MemoryScope,
        number: u32,
    ) -> Result<Option<AssistantVersion>, Failure> {
        if number == self.used.number {
            return Ok(Some(self.used.clone()));
        }
        version_records(ports, scope.clone(), &self.id).get(&version_key(number)).await
    }

    /// Lists all versions, newest first.
    pub(crate) async fn versions(
        &self,
        ports: &Ports,
        scope: &MemoryScope,
    ) -> Result<Vec<AssistantVersion>, Failure> {
        let mut all: Vec<AssistantVersion> =
            version_records(ports, scope.clone(), &self.id).list().await?;
        // A version above `newest` is from a deleted assistant with the same id: a concurrent
        // change stored the version after the deletion. The version in use is added from the
        // record, because it may not be stored yet.
        all.retain(|version| version.number <= self.newest && version.number != self.used.number);
        all.push(self.used.clone());
        all.sort_by_key(|version| std::cmp::Reverse(version.number));
        Ok(all)
    }
}

/// Returns the collection of the assistants of a tenant.
pub(crate) fn assistant_records(ports: &Ports, scope: MemoryScope) -> Collection<'_> {
    Collection::new(ports, scope, &["assistants"])
}

fn version_records<'p>(ports: &'p Ports, scope: MemoryScope, assistant: &str) -> Collection<'p> {
    Collection::new(ports, scope, &["assistant-versions", assistant])
}

fn version_key(number: u32) -> String {
    number.to_string()
}
