//! An assistant that a client made: a graph with settings, in all of its versions.
//!
//! Two shelves hold it. The newest word on each assistant, which lists read, and under the
//! assistant each of its versions, which never change.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use wattle_graph::failure::Failure;
use wattle_run::ports::Ports;
use wattle_run::ports::memory::MemoryScope;

use crate::doc::Shelf;
use crate::wire::shape::Assistant;
use crate::wire::time::iso;

/// An assistant as it stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AssistantDoc {
    /// Its id, a UUID.
    pub(crate) id: String,
    /// When it was made, milliseconds since 1970.
    pub(crate) created_ms: i64,
    /// When it was changed, milliseconds since 1970.
    pub(crate) updated_ms: i64,
    /// The highest version that there is.
    pub(crate) newest: u32,
    /// The version that runs use.
    pub(crate) used: Version,
}

/// One version of an assistant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Version {
    /// From 1.
    pub(crate) number: u32,
    /// When it was made, milliseconds since 1970.
    pub(crate) created_ms: i64,
    /// The id of its graph.
    pub(crate) graph_id: String,
    /// Settings of its runs.
    pub(crate) config: Map<String, Value>,
    /// The context of its runs.
    pub(crate) context: Value,
    /// Free facts.
    pub(crate) metadata: Map<String, Value>,
    /// What people call it.
    pub(crate) name: String,
    /// What it is for.
    pub(crate) description: Option<String>,
}

impl Version {
    /// As clients see it.
    pub(crate) fn shape(&self, assistant: &str) -> Assistant {
        Assistant {
            assistant_id: assistant.to_owned(),
            graph_id: self.graph_id.clone(),
            config: Value::Object(self.config.clone()),
            context: self.context.clone(),
            metadata: self.metadata.clone(),
            name: self.name.clone(),
            created_at: iso(self.created_ms),
            updated_at: iso(self.created_ms),
            version: self.number,
            description: self.description.clone(),
        }
    }
}

impl AssistantDoc {
    /// As clients see it.
    pub(crate) fn shape(&self) -> Assistant {
        Assistant {
            created_at: iso(self.created_ms),
            updated_at: iso(self.updated_ms),
            ..self.used.shape(&self.id)
        }
    }

    /// Writes it down with the version that is used, durable when this returns. The version comes
    /// first: nothing names one that is not there.
    pub(crate) async fn save(&self, ports: &Ports, scope: &MemoryScope) -> Result<(), Failure> {
        let number = key(self.used.number);
        versions(ports, scope.clone(), &self.id).put(&number, &self.used, None).await?;
        assistants(ports, scope.clone()).put(&self.id, self, None).await
    }

    /// Forgets it with its versions.
    pub(crate) async fn forget(&self, ports: &Ports, scope: &MemoryScope) -> Result<(), Failure> {
        assistants(ports, scope.clone()).delete(&self.id).await?;
        versions(ports, scope.clone(), &self.id).clear().await
    }

    /// One of its versions.
    pub(crate) async fn version(
        &self,
        ports: &Ports,
        scope: &MemoryScope,
        number: u32,
    ) -> Result<Option<Version>, Failure> {
        versions(ports, scope.clone(), &self.id).get(&key(number)).await
    }

    /// All of its versions, the newest first.
    pub(crate) async fn versions(
        &self,
        ports: &Ports,
        scope: &MemoryScope,
    ) -> Result<Vec<Version>, Failure> {
        let mut all: Vec<Version> = versions(ports, scope.clone(), &self.id).every().await?;
        // One beyond the newest is of a change that a crash cut off.
        all.retain(|version| version.number <= self.newest);
        all.sort_by_key(|version| std::cmp::Reverse(version.number));
        Ok(all)
    }
}

/// The assistants of a tenant.
pub(crate) fn assistants(ports: &Ports, scope: MemoryScope) -> Shelf<'_> {
    Shelf::new(ports, scope, &["assistants"])
}

fn versions<'p>(ports: &'p Ports, scope: MemoryScope, assistant: &str) -> Shelf<'p> {
    Shelf::new(ports, scope, &["assistant-versions", assistant])
}

fn key(number: u32) -> String {
    number.to_string()
}
