//! Nodes that remember over threads.

use wattle_plugin::memory::{self, Item};
use wattle_plugin::prelude::{Context, Deserialize, Failure, JsonSchema, Serialize, Value, node};

/// A document.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Note {
    /// Its namespace.
    pub(crate) namespace: Vec<String>,
    /// Its key.
    pub(crate) key: String,
    /// The document.
    #[serde(default)]
    pub(crate) document: Value,
    /// How long it is kept.
    #[serde(default)]
    pub(crate) ttl_ms: Option<u64>,
    /// Whether it is kept so long again whenever it is read.
    #[serde(default)]
    pub(crate) refreshed: Option<bool>,
}

/// What was found.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Found {
    /// Documents.
    pub(crate) found: Vec<Value>,
}

fn parts(namespace: &[String]) -> Vec<&str> {
    namespace.iter().map(String::as_str).collect()
}

fn found(items: impl IntoIterator<Item = Item>) -> Found {
    Found { found: items.into_iter().map(|item| item.value).collect() }
}

/// Puts a document and reads it.
#[node]
pub(crate) fn remember(_context: &Context, input: Note) -> Result<Found, Failure> {
    let namespace = parts(&input.namespace);
    match input.ttl_ms {
        Some(ttl_ms) if input.refreshed == Some(true) => {
            memory::put_while_read(&namespace, &input.key, input.document, ttl_ms)?;
        }
        Some(ttl_ms) => memory::put_for(&namespace, &input.key, input.document, ttl_ms)?,
        None => memory::put(&namespace, &input.key, input.document)?,
    }
    Ok(found(memory::get(&namespace, &input.key)?))
}

/// Deletes a document and reads it.
#[node]
pub(crate) fn forget(_context: &Context, input: Note) -> Result<Found, Failure> {
    let namespace = parts(&input.namespace);
    memory::delete(&namespace, &input.key)?;
    Ok(found(memory::get(&namespace, &input.key)?))
}

/// What to look for.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Wish {
    /// Under which namespaces.
    pub(crate) prefix: Vec<String>,
    /// What must hold.
    #[serde(default)]
    pub(crate) filter: Option<Value>,
    /// Words to rank by.
    #[serde(default)]
    pub(crate) words: Option<String>,
}

/// What was found, and where something is.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Recalled {
    /// Documents.
    pub(crate) found: Vec<Value>,
    /// Namespaces.
    pub(crate) namespaces: Vec<Vec<String>>,
}

/// Looks for documents and lists namespaces.
#[node]
pub(crate) fn recall(_context: &Context, input: Wish) -> Result<Recalled, Failure> {
    let prefix = parts(&input.prefix);
    let mut search = memory::Search::under(&prefix);
    search.filter = input.filter;
    search.query = input.words;
    let Found { found } = found(search.run()?);
    Ok(Recalled { found, namespaces: memory::list_namespaces(&prefix, None, 10, 0)? })
}

#[cfg(test)]
mod tests {
    use wattle_plugin::Failure;
    use wattle_plugin::prelude::{Context, json};
    use wattle_plugin::testing::{self, FakeHost};

    use super::{forget, recall, remember};

    #[test]
    fn what_is_remembered_is_recalled_until_it_is_forgotten() -> Result<(), Failure> {
        FakeHost::new().run(|| {
            let context = Context::default();
            let note = json!({"namespace": ["a", "b"], "key": "k", "document": {"text": "tea"}});
            testing::run_node::<remember>(&context, &note)?;
            let wish = json!({"prefix": ["a"], "words": "tea", "filter": {"text": "tea"}});
            let recalled = testing::run_node::<recall>(&context, &wish)?;
            assert_eq!(recalled.update("found"), Some(&json!([{"text": "tea"}])));
            assert_eq!(recalled.update("namespaces"), Some(&json!([["a", "b"]])));
            let forgotten = testing::run_node::<forget>(&context, &note)?;
            assert_eq!(forgotten.update("found"), Some(&json!([])));
            Ok(())
        })
    }
}
