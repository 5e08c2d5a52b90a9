//! Ontologies of the graph service, with the fields that this app reads.

use wattle_plugin::prelude::{Deserialize, JsonSchema, Serialize, Value};

use crate::state::Brief;

/// An ontology: a kind of business object, with the fields of its data.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Ontology {
    pub(crate) code: String,
    pub(crate) name: String,
    pub(crate) description: String,
    /// Name at the data service, if it differs from the code.
    #[serde(alias = "classId", skip_serializing_if = "Option::is_none")]
    pub(crate) class_id: Option<String>,
    pub(crate) attributes: Vec<Attribute>,
    /// Capabilities to choose from. They are read and never written to the state.
    #[serde(skip_serializing)]
    pub(crate) capabilities: Vec<Brief>,
    /// Relations to other ontologies to choose from. They are read and never written to the state.
    #[serde(alias = "objectProperties", skip_serializing)]
    pub(crate) object_properties: Vec<Brief>,
}

/// An attribute, with its field in the data.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Attribute {
    pub(crate) code: String,
    pub(crate) name: String,
    pub(crate) description: String,
    #[serde(alias = "fieldName")]
    pub(crate) field_name: String,
    #[serde(alias = "dataType", skip_serializing_if = "String::is_empty")]
    pub(crate) data_type: String,
}

impl Ontology {
    /// Returns the name at the data service.
    pub(crate) fn class_id(&self) -> &str {
        self.class_id.as_deref().unwrap_or(&self.code)
    }

    /// Returns code, name and description.
    pub(crate) fn brief(&self) -> Brief {
        Brief {
            code: self.code.clone(),
            name: self.name.clone(),
            description: self.description.clone(),
        }
    }

    /// Returns true if the ontology has a capability or an object property.
    pub(crate) fn is_executable(&self) -> bool {
        !self.capabilities.is_empty() || !self.object_properties.is_empty()
    }
}

/// Returns the ontologies at the other end of an object property: its range if `current` is in its
/// domain, otherwise its domain. `current` itself is omitted.
pub(crate) fn reachable(detail: &Value, current: &str) -> Vec<String> {
    let domain = codes(detail.get("domain"));
    let range = codes(detail.get("range"));
    let other_end = if domain.iter().any(|code| code == current) { range } else { domain };
    other_end.into_iter().filter(|code| code != current).collect()
}

/// Returns the codes of ontologies, which are texts or objects with a code, in a list or as a
/// single value.
fn codes(list: Option<&Value>) -> Vec<String> {
    let code = |item: &Value| item.get("code").unwrap_or(item).as_str().map(str::to_owned);
    match list {
        Some(Value::Array(items)) => items.iter().filter_map(code).collect(),
        Some(single) => code(single).into_iter().collect(),
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Value, json};

    use super::{Ontology, reachable};

    #[test]
    fn ontologies_at_the_other_end_are_reachable() {
        let check = |detail: Value, current: &str, expected: &[&str]| {
            assert_eq!(reachable(&detail, current), expected, "{detail} from {current}");
        };
        let places = json!({"domain": ["customer"], "range": ["order", "contract"]});
        check(places.clone(), "customer", &["order", "contract"]);
        check(places, "order", &["customer"]);
        let objects = json!({"domain": [{"code": "a"}], "range": {"code": "b"}});
        check(objects, "a", &["b"]);
        check(json!({"domain": "a", "range": ["a", "b"]}), "a", &["b"]);
        check(json!({"domain": ["a"], "range": ["a"]}), "a", &[]);
        check(json!({}), "a", &[]);
    }

    #[test]
    fn resources_are_not_serialized() {
        let document = json!({"code": "order", "capabilities": [{"code": "c", "steps": [1]}],
            "attributes": [{"code": "a", "fieldName": "amount"}], "classId": "T_ORDER"});
        let ontology: Ontology = serde_json::from_value(document).unwrap();
        assert!(ontology.is_executable());
        assert_eq!(ontology.class_id(), "T_ORDER");
        assert_eq!(ontology.attributes[0].field_name, "amount");
        let carried = serde_json::to_value(&ontology).unwrap();
        assert!(carried.get("capabilities").is_none(), "{carried}");
    }
}
