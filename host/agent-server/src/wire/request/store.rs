//! Documents of the long-term memory: what clients ask for.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::Invalid;

/// Between the labels of a namespace where it is one text.
const LABEL_END: char = '.';

/// Milliseconds of a minute.
const MINUTE_MS: f64 = 60_000.0;

/// A document to be written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ItemPut {
    /// Labels from the widest to the narrowest.
    #[schema(min_items = 1)]
    pub namespace: Vec<String>,
    /// Its key there.
    pub key: String,
    /// The document.
    pub value: Map<String, Value>,
    /// Fields to search by meaning: `false`, or their names. Searches here go by words, in all
    /// fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<Index>,
    /// Minutes that it is kept; for ever without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(exclusive_minimum = 0)]
    pub ttl: Option<f64>,
}

/// Which fields are searched by meaning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Index {
    /// All or none.
    All(bool),
    /// These.
    Fields(Vec<String>),
}

impl ItemPut {
    /// Milliseconds that it is kept.
    ///
    /// # Errors
    ///
    /// [`Invalid::Schema`] for a time that has no end or no beginning.
    pub fn ttl_ms(&self) -> Result<Option<u64>, Invalid> {
        let Some(minutes) = self.ttl else { return Ok(None) };
        let ms = minutes * MINUTE_MS;
        if !ms.is_finite() || ms < 1.0 {
            return Err(Invalid::Schema("`ttl` must be minutes, more than zero".to_owned()));
        }
        #[expect(clippy::cast_sign_loss, reason = "it is more than zero")]
        Ok(Some(ms as u64))
    }
}

/// A document by its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ItemPlace {
    /// Labels from the widest to the narrowest.
    #[serde(default)]
    pub namespace: Vec<String>,
    /// Its key there.
    pub key: String,
}

/// Documents that are looked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct ItemSearch {
    /// Only in namespaces that begin so.
    pub namespace_prefix: Vec<String>,
    /// Fields that must be so.
    pub filter: Option<Value>,
    /// At most so many; ten without it.
    pub limit: Option<usize>,
    /// Skip so many.
    pub offset: Option<usize>,
    /// Words to rank by.
    pub query: Option<String>,
    /// `false`: those that are found live no longer for it. Else they do if they were written so.
    pub refresh_ttl: Option<bool>,
}

/// Namespaces that are looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct NamespaceSearch {
    /// Only those that begin so; `*` stands for any label.
    pub prefix: Option<Vec<String>>,
    /// Only those that end so.
    pub suffix: Option<Vec<String>>,
    /// Cut to so many labels.
    pub max_depth: Option<usize>,
    /// At most so many; a hundred without it.
    pub limit: Option<usize>,
    /// Skip so many.
    pub offset: Option<usize>,
}

/// Checks the labels of a namespace, or of a part of one.
///
/// # Errors
///
/// [`Invalid::Schema`] for one that is empty or has a period.
pub fn check_labels(labels: &[String]) -> Result<(), Invalid> {
    let wrong = labels.iter().find(|label| label.is_empty() || label.contains(LABEL_END));
    match wrong {
        Some(label) if label.is_empty() => {
            Err(Invalid::Schema("labels of a namespace cannot be empty".to_owned()))
        }
        Some(label) => Err(Invalid::Schema(format!(
            "the label `{label}` of the namespace has a period, which separates labels"
        ))),
        None => Ok(()),
    }
}

/// The labels of a namespace that is one text.
pub fn labels_of(text: &str) -> Vec<String> {
    if text.is_empty() {
        return Vec::new();
    }
    text.split(LABEL_END).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::wire::request::parse;

    #[test]
    fn labels_have_no_periods() {
        let check = |text: &str| check_labels(&labels_of(text)).is_ok();
        assert!(check("") && check("a") && check("a.b c.d"));
        assert!(!check("a..b") && !check(".") && !check("a."));
        assert!(check_labels(&["a.b".to_owned()]).is_err());
    }

    #[test]
    fn times_are_minutes() {
        let ttl = |ttl: Value| {
            let text = json!({ "namespace": ["a"], "key": "k", "value": {}, "ttl": ttl });
            parse::<ItemPut>(text.to_string().as_bytes()).unwrap().ttl_ms()
        };
        assert_eq!(ttl(Value::Null), Ok(None));
        assert_eq!(ttl(json!(2)), Ok(Some(120_000)));
        assert_eq!(ttl(json!(0.5)), Ok(Some(30_000)));
        assert!(ttl(json!(0)).is_err() && ttl(json!(-1)).is_err());
    }

    #[test]
    fn documents_are_objects_and_indices_names() {
        for (body, fine) in [
            (json!({ "namespace": ["a"], "key": "k", "value": {}, "index": false }), true),
            (json!({ "namespace": ["a"], "key": "k", "value": {}, "index": ["x"] }), true),
            (json!({ "namespace": ["a"], "key": "k", "value": {}, "index": null }), true),
            (json!({ "namespace": ["a"], "key": "k", "value": 1 }), false),
            (json!({ "namespace": "a", "key": "k", "value": {} }), false),
            (json!({ "namespace": ["a"], "value": {} }), false),
        ] {
            let read = parse::<ItemPut>(body.to_string().as_bytes());
            assert_eq!(read.is_ok(), fine, "{body}");
        }
    }
}
