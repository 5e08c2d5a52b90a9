//! Long-term memory: documents that outlive threads.
//!
//! All calls are idempotent. Reads are journaled, so a re-executed node receives the same
//! documents. A put or delete that a crash interrupted is repeated with the same key and document.
//! The repetition overwrites what another writer stored under the key meanwhile, as any later put
//! does.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use wattle_graph::failure::Failure;

use crate::grant::{Grants, MemoryAccess};
use crate::hostcall::HostCall;
use crate::ports::Caller;
use crate::ports::memory::{self, Item, ListNamespaces, PutItem};

/// Reads one document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GetDocument {
    /// Namespace of the document.
    pub namespace: Vec<String>,
    /// Key of the document.
    pub key: String,
}

impl HostCall for GetDocument {
    type Output = Option<Item>;
    const FUNCTION: &'static str = "memory.get";

    fn summary(&self) -> String {
        summary_of(&self.namespace, &self.key)
    }

    fn check_allowed(&self, grants: &Grants, caller: &Caller) -> Result<(), Failure> {
        check_grant(grants, caller, &self.namespace, MemoryAccess::Read)
    }
}

/// Writes one document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PutDocument(pub PutItem);

impl HostCall for PutDocument {
    type Output = ();
    const FUNCTION: &'static str = "memory.put";

    fn summary(&self) -> String {
        summary_of(&self.0.namespace, &self.0.key)
    }

    fn check_allowed(&self, grants: &Grants, caller: &Caller) -> Result<(), Failure> {
        check_grant(grants, caller, &self.0.namespace, MemoryAccess::ReadWrite)
    }
}

/// Deletes one document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeleteDocument {
    /// Namespace of the document.
    pub namespace: Vec<String>,
    /// Key of the document.
    pub key: String,
}

impl HostCall for DeleteDocument {
    type Output = ();
    const FUNCTION: &'static str = "memory.delete";

    fn summary(&self) -> String {
        summary_of(&self.namespace, &self.key)
    }

    fn check_allowed(&self, grants: &Grants, caller: &Caller) -> Result<(), Failure> {
        check_grant(grants, caller, &self.namespace, MemoryAccess::ReadWrite)
    }
}

/// Searches documents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SearchDocuments(pub memory::MemorySearch);

impl HostCall for SearchDocuments {
    type Output = Vec<Item>;
    const FUNCTION: &'static str = "memory.search";

    fn summary(&self) -> String {
        let query = self.0.query.as_deref().unwrap_or_default();
        let query: String = query.chars().take(SHOWN_CHARS).collect();
        format!("{} {query}", short_path(&self.0.prefix)).trim_end().to_owned()
    }

    fn check_allowed(&self, grants: &Grants, caller: &Caller) -> Result<(), Failure> {
        check_grant(grants, caller, &self.0.prefix, MemoryAccess::Read)
    }
}

/// Lists namespaces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ListMemoryNamespaces(pub ListNamespaces);

impl HostCall for ListMemoryNamespaces {
    type Output = Vec<Vec<String>>;
    const FUNCTION: &'static str = "memory.list-namespaces";

    fn summary(&self) -> String {
        short_path(&self.0.prefix)
    }

    fn check_allowed(&self, grants: &Grants, caller: &Caller) -> Result<(), Failure> {
        check_grant(grants, caller, &self.0.prefix, MemoryAccess::Read)
    }
}

/// Maximum number of characters of a path or query in a summary.
const SHOWN_CHARS: usize = 80;

fn short_path(namespace: &[String]) -> String {
    namespace.join("/").chars().take(SHOWN_CHARS).collect()
}

fn summary_of(namespace: &[String], key: &str) -> String {
    format!("{} {}", short_path(namespace), key.chars().take(SHOWN_CHARS).collect::<String>())
}

/// Checks that the grants allow access to all namespaces that start with `prefix`.
fn check_grant(
    grants: &Grants,
    caller: &Caller,
    prefix: &[String],
    access: MemoryAccess,
) -> Result<(), Failure> {
    let allows = |grants: &Grants| {
        grants.memory.iter().any(|rule| rule.access >= access && rule.covers(prefix))
    };
    if allows(grants) {
        return Ok(());
    }
    let (verb, word) = match access {
        MemoryAccess::Read => ("read", "read"),
        MemoryAccess::ReadWrite => ("write", "read-write"),
    };
    let shown: Value = prefix
        .iter()
        .take(SHOWN_PARTS)
        .map(|part| short_path(std::slice::from_ref(part)))
        .collect();
    let what = format!("may not {verb} the memory under `{shown}`");
    let change = format!("add `memory = [{{ namespace = {shown}, access = \"{word}\" }}]`");
    let denial = grants.denial(caller, &what, &change, allows);
    Err(denial.with_details(json!({ "namespace": shown })))
}

/// Maximum number of namespace parts that a failure shows. A grant for these first parts covers all
/// longer namespaces.
const SHOWN_PARTS: usize = 4;

#[cfg(test)]
mod tests {
    use wattle_graph::id::{AppName, PluginName};

    use super::*;
    use crate::caller_id::CallerId;
    use crate::grant::MemoryRule;

    fn parts(parts: &[&str]) -> Vec<String> {
        parts.iter().map(|&part| part.to_owned()).collect()
    }

    fn allowed(call: &impl HostCall) -> Result<(), String> {
        let rule = |namespace: &[&str], access| MemoryRule { namespace: parts(namespace), access };
        let grants = Grants {
            memory: vec![
                rule(&["facts"], MemoryAccess::Read),
                rule(&["users", "*", "notes"], MemoryAccess::ReadWrite),
            ],
            ..Grants::default()
        };
        let caller = Caller {
            app: AppName::new("app").unwrap(),
            plugin: PluginName::new("agent").unwrap(),
            tenant: None,
            owner: CallerId::default(),
        };
        call.check_allowed(&grants, &caller).map_err(|failure| failure.message)
    }

    fn get(namespace: &[&str]) -> GetDocument {
        GetDocument { namespace: parts(namespace), key: "k".into() }
    }

    fn delete(namespace: &[&str]) -> DeleteDocument {
        DeleteDocument { namespace: parts(namespace), key: "k".into() }
    }

    #[test]
    fn ungranted_call_is_denied_with_the_line_to_add() {
        assert_eq!(allowed(&get(&["facts", "x"])), Ok(()));
        assert_eq!(allowed(&get(&["users", "42", "notes"])), Ok(()));
        assert_eq!(allowed(&delete(&["users", "42", "notes", "old"])), Ok(()));
        let denied = allowed(&delete(&["facts"])).unwrap_err();
        let line = r#"`memory = [{ namespace = ["facts"], access = "read-write" }]`"#;
        assert!(denied.contains(line) && denied.contains("[grants.\"app/agent\"]"), "{denied}");
        assert!(allowed(&get(&["users", "42"])).is_err());
    }

    #[test]
    fn memory_list_needs_a_grant_for_the_whole_prefix() {
        let list = |prefix: &[&str]| {
            let prefix = parts(prefix);
            ListMemoryNamespaces(ListNamespaces { prefix, limit: 10, ..ListNamespaces::default() })
        };
        assert_eq!(allowed(&list(&["facts"])), Ok(()));
        assert_eq!(allowed(&list(&["users", "*", "notes"])), Ok(()));
        for prefix in [&[][..], &["*"], &["users"]] {
            assert!(allowed(&list(prefix)).is_err(), "{prefix:?}");
        }
    }
}
