//! Nodes that use the long-term memory.

use wattle_plugin::memory::{self, Item};
use wattle_plugin::prelude::{Context, Deserialize, Failure, JsonSchema, Serialize, Value, node};

/// Input of `remember` and `forget`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Note {
    /// The namespace of the document.
    pub(crate) namespace: Vec<String>,
    /// The key of the document.
    pub(crate) key: String,
    /// The document.
    #[serde(default)]
    pub(crate) document: Value,
    /// Time until the document expires, in milliseconds. Without it the document does not expire.
    #[serde(default)]
    pub(crate) ttl_ms: Option<u64>,
    /// Whether each read restarts the time until the document expires.
    #[serde(default)]
    pub(crate) refreshed: Option<bool>,
}

/// Output of `remember` and `forget`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Found {
    /// The documents that were read.
    pub(crate) found: Vec<Value>,
}

fn parts(namespace: &[String]) -> Vec<&str> {
    namespace.iter().map(String::as_str).collect()
}

fn found(items: impl IntoIterator<Item = Item>) -> Found {
    Found { found: items.into_iter().map(|item| item.value).collect() }
}

/// Stores a document and reads it.
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

/// Input of `recall`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Wish {
    /// The namespace prefix of the search.
    pub(crate) prefix: Vec<String>,
    /// The filter of the search.
    #[serde(default)]
    pub(crate) filter: Option<Value>,
    /// The query by which the search ranks.
    #[serde(default)]
    pub(crate) words: Option<String>,
}

/// Output of `recall`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Recalled {
    /// The documents of the search.
    pub(crate) found: Vec<Value>,
    /// The namespaces below the prefix.
    pub(crate) namespaces: Vec<Vec<String>>,
}

/// Searches documents and lists namespaces.
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
    fn documents_are_found_until_they_are_deleted() -> Result<(), Failure> {
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
