//! Requests about items of the store, which are documents of the long-term memory.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::RequestError;

/// Separator of the labels in a namespace that is written as a string.
const LABEL_SEPARATOR: char = '.';

/// Milliseconds of a minute.
const MINUTE_MS: f64 = 60_000.0;

/// An item to write.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ItemPut {
    /// Labels of the namespace, from the widest to the narrowest.
    #[schema(min_items = 1)]
    pub namespace: Vec<String>,
    /// Key of the item, unique in the namespace.
    pub key: String,
    /// Value of the item.
    pub value: Map<String, Value>,
    /// Fields for semantic search: `false`, or the names of fields. Has no effect: searches of this
    /// server match words in all fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<Index>,
    /// Minutes until the item expires. By default it does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(exclusive_minimum = 0)]
    pub ttl: Option<f64>,
}

/// Fields for semantic search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Index {
    /// `true` for all fields, `false` for none.
    All(bool),
    /// Names of fields.
    Fields(Vec<String>),
}

impl ItemPut {
    /// Returns the time until the item expires, in milliseconds.
    ///
    /// # Errors
    ///
    /// [`RequestError::Unprocessable`] if the time is infinite or not positive.
    pub fn ttl_ms(&self) -> Result<Option<u64>, RequestError> {
        let Some(minutes) = self.ttl else { return Ok(None) };
        let ms = minutes * MINUTE_MS;
        if !ms.is_finite() || ms < 1.0 {
            return Err(RequestError::Unprocessable(
                "`ttl` must be a positive number of minutes".to_owned(),
            ));
        }
        #[expect(clippy::cast_sign_loss, reason = "the check above rejects negative values")]
        Ok(Some(ms as u64))
    }
}

/// The address of an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ItemPlace)]
pub struct ItemKey {
    /// Labels of the namespace, from the widest to the narrowest.
    #[serde(default)]
    pub namespace: Vec<String>,
    /// Key of the item, unique in the namespace.
    pub key: String,
}

/// A search for items.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct ItemSearch {
    /// Prefix of the namespaces to search.
    pub namespace_prefix: Vec<String>,
    /// Conditions on fields of the value: a field with a value, or with operators such as `$gt`.
    pub filter: Option<Value>,
    /// Maximum number of items. The default is 10.
    pub limit: Option<usize>,
    /// Number of items to skip.
    pub offset: Option<usize>,
    /// Words by which items are ranked.
    pub query: Option<String>,
    /// `false`: the search does not restart the expiry of the items that it finds. The default is
    /// `true`.
    pub refresh_ttl: Option<bool>,
}

/// A search for namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct NamespaceSearch {
    /// Only namespaces with this prefix. `*` matches any label.
    pub prefix: Option<Vec<String>>,
    /// Only namespaces with this suffix. `*` matches any label.
    pub suffix: Option<Vec<String>>,
    /// Maximum number of labels. Longer namespaces are truncated.
    pub max_depth: Option<usize>,
    /// Maximum number of namespaces. The default is 100.
    pub limit: Option<usize>,
    /// Number of namespaces to skip.
    pub offset: Option<usize>,
}

/// Checks the labels of a namespace, or of a prefix or suffix of a namespace.
///
/// # Errors
///
/// [`RequestError::Unprocessable`] for a label that is empty or contains a period.
pub fn check_labels(labels: &[String]) -> Result<(), RequestError> {
    let wrong = labels.iter().find(|label| label.is_empty() || label.contains(LABEL_SEPARATOR));
    match wrong {
        Some(label) if label.is_empty() => {
            Err(RequestError::Unprocessable("a label of a namespace must not be empty".to_owned()))
        }
        Some(label) => Err(RequestError::Unprocessable(format!(
            "the label `{label}` of the namespace must not contain a period, which separates labels"
        ))),
        None => Ok(()),
    }
}

/// Splits a namespace in a string into its labels.
pub fn split_labels(text: &str) -> Vec<String> {
    if text.is_empty() {
        return Vec::new();
    }
    text.split(LABEL_SEPARATOR).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::wire::request::parse;

    #[test]
    fn labels_have_no_periods() {
        let check = |text: &str| check_labels(&split_labels(text)).is_ok();
        assert!(check("") && check("a") && check("a.b c.d"));
        assert!(!check("a..b") && !check(".") && !check("a."));
        assert!(check_labels(&["a.b".to_owned()]).is_err());
    }

    #[test]
    fn item_ttl_is_in_minutes() {
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
    fn item_has_an_object_and_an_optional_index() {
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
