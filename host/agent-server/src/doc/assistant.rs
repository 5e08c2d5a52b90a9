//! An assistant that a client made: a graph with settings, in all of its versions.
//!
//! Two shelves hold it. The newest word on each assistant, which lists read, and under the
//! assistant each of its versions, which never change. The first is the one that counts: hosts that
//! share the documents change it one after the other, each what the one before it left.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use wattle_graph::failure::Failure;
use wattle_project::agent_server::time::iso;
use wattle_run::ports::Ports;
use wattle_run::ports::memory::MemoryScope;

use crate::doc::{Kept, Shelf};
use crate::wire::shape::Assistant;

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

    /// Writes a new one down, durable when this returns. `None` if there is one of its id.
    pub(crate) async fn make(
        self,
        ports: &Ports,
        scope: &MemoryScope,
    ) -> Result<Option<Self>, Failure> {
        let id = self.id.clone();
        let made = assistants(ports, scope.clone()).make(&id, self).await?;
        let Some(made) = made else { return Ok(None) };
        made.doc.keep_version(ports, scope).await?;
        Ok(Some(made.doc))
    }

    /// Writes it down in place of what it was, durable when this returns. `None` if somebody else
    /// has changed or deleted that meanwhile.
    pub(crate) async fn replace(
        self,
        ports: &Ports,
        scope: &MemoryScope,
        old: &Kept<Self>,
    ) -> Result<Option<Self>, Failure> {
        // A crash may have come before it was kept.
        let number = old.doc.used.number;
        let kept: Option<Version> =
            versions(ports, scope.clone(), &self.id).get(&key(number)).await?;
        if kept.as_ref() != Some(&old.doc.used) {
            old.doc.keep_version(ports, scope).await?;
        }
        let new = assistants(ports, scope.clone()).change(old, self).await?;
        let Some(new) = new else { return Ok(None) };
        if new.doc.newest > old.doc.newest {
            new.doc.keep_version(ports, scope).await?;
        }
        Ok(Some(new.doc))
    }

    /// Stores the version in use. The assistant records its number before, so two requests cannot
    /// make two versions of one number.
    async fn keep_version(&self, ports: &Ports, scope: &MemoryScope) -> Result<(), Failure> {
        let versions = versions(ports, scope.clone(), &self.id);
        versions.put(&key(self.used.number), &self.used, None).await
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
        if number == self.used.number {
            return Ok(Some(self.used.clone()));
        }
        versions(ports, scope.clone(), &self.id).get(&key(number)).await
    }

    /// All of its versions, the newest first.
    pub(crate) async fn versions(
        &self,
        ports: &Ports,
        scope: &MemoryScope,
    ) -> Result<Vec<Version>, Failure> {
        let mut all: Vec<Version> = versions(ports, scope.clone(), &self.id).every().await?;
        // One beyond the newest is of an assistant of the same id that was deleted while it was
        // changed, and the one that is used may not be kept yet.
        all.retain(|version| version.number <= self.newest && version.number != self.used.number);
        all.push(self.used.clone());
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
