//! Drops the fields that prevent a part of a message from being parsed.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::sanitizer::one_line;

/// Maximum fields that are examined. Further fields are dropped: no part of the protocol has as
/// many. Each field is examined with a [`miniature`], which may have as many values as the part.
const MAX_FIELDS: usize = 50;

/// Maximum names of dropped fields that are returned.
const MAX_NAMES: usize = 10;

/// Maximum items of a list or an object, and characters of a text, in a [`miniature`].
const MINIATURE_SIZE: usize = 20;

/// Removes the fields that prevent a value from being parsed as `T`, and returns the names of the
/// first of them. Returns `None` if a required field prevents it. Fields that are not examined are
/// removed with them.
pub(super) fn drop_unparsable_fields<T: DeserializeOwned>(
    value: &mut Value,
    required: &[&str],
) -> Option<Vec<String>> {
    if T::deserialize(&*value).is_ok() {
        return Some(Vec::new());
    }
    let fields = value.as_object_mut()?;
    let bare = |required_value: fn(&Value) -> Value| -> Map<String, Value> {
        let kept = fields.iter().filter(|(name, _)| required.contains(&name.as_str()));
        kept.map(|(name, value)| (name.clone(), required_value(value))).collect()
    };
    T::deserialize(&Value::Object(bare(Value::clone))).ok()?;
    // Each field is parsed together with the required fields. Their values may be as large as the
    // message, so they are shortened. If the shortened values cannot be parsed, no field can be
    // examined.
    let mut trial = Value::Object(bare(miniature));
    let max_fields = if T::deserialize(&trial).is_ok() { MAX_FIELDS } else { 0 };
    let (mut examined, mut dropped) = (0, Vec::new());
    fields.retain(|name, value| {
        if required.contains(&name.as_str()) {
            return true;
        }
        examined += 1;
        let is_read = examined <= max_fields && is_parsed_with::<T>(&mut trial, name, value);
        if !is_read && dropped.len() < MAX_NAMES {
            dropped.push(one_line(name));
        }
        is_read
    });
    Some(dropped)
}

/// Returns true if the required fields can be parsed together with another field.
fn is_parsed_with<T: DeserializeOwned>(required: &mut Value, name: &str, value: &Value) -> bool {
    required[name] = value.clone();
    let is_parsed = T::deserialize(&*required).is_ok();
    if let Some(fields) = required.as_object_mut() {
        fields.remove(name);
    }
    is_parsed
}

/// Returns a value of the same form with the beginnings of its texts, lists and objects.
fn miniature(value: &Value) -> Value {
    match value {
        Value::String(text) => text.chars().take(MINIATURE_SIZE).collect::<String>().into(),
        Value::Array(items) => items.iter().take(MINIATURE_SIZE).map(miniature).collect(),
        Value::Object(fields) => {
            let first = fields.iter().take(MINIATURE_SIZE);
            first.map(|(name, value)| (name.clone(), miniature(value))).collect()
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{ContentBlock, ElicitationSchema, Tool};
    use serde_json::json;

    use super::*;

    /// With the square of the size, this test takes minutes.
    #[test]
    fn many_fields_beside_a_large_value_are_dropped_in_linear_time() {
        let mut block = json!({ "type": "text", "text": "x".repeat(4 << 20), "_meta": 7 });
        for number in 0..50_000 {
            block[format!("field {number}")] = json!(number);
        }
        let dropped = drop_unparsable_fields::<ContentBlock>(&mut block, &["type", "text"]);
        assert!((1..=MAX_NAMES).contains(&dropped.unwrap().len()));
        assert_eq!(block["text"].as_str().unwrap().len(), 4 << 20);
        assert!(block.as_object().unwrap().len() <= MAX_FIELDS + 2);
    }

    #[test]
    fn fields_beside_a_value_without_a_miniature_are_dropped() {
        let mut question = json!({});
        for number in 0..MINIATURE_SIZE {
            question[format!("x{number}")] = json!(number);
        }
        question["type"] = json!("boolean");
        let bare = json!({ "type": "object", "properties": { "a": question } });
        let mut form = bare.clone();
        for number in 0..2 * MAX_NAMES {
            form[format!("x{number}")] = json!(number);
        }
        form["title"] = json!(7);
        let required = ["type", "properties"];
        let dropped = drop_unparsable_fields::<ElicitationSchema>(&mut form, &required).unwrap();
        assert_eq!((dropped.len(), dropped[0].as_str()), (MAX_NAMES, "x0"));
        assert_eq!(form, bare);
    }

    #[test]
    fn required_values_keep_their_size() {
        let property = |number: usize| (format!("p{number}"), json!({ "type": "string" }));
        let properties: Map<String, Value> = (0..50).map(property).collect();
        let schema = json!({ "type": "object", "properties": properties });
        let mut tool =
            json!({ "name": "a", "inputSchema": schema, "description": 7, "title": "A" });
        let required = ["name", "inputSchema"];
        let dropped = drop_unparsable_fields::<Tool>(&mut tool, &required).unwrap();
        assert_eq!(dropped, ["description"]);
        assert_eq!(tool, json!({ "name": "a", "inputSchema": schema, "title": "A" }));
        let mut other = json!({ "name": 7, "inputSchema": schema });
        assert_eq!(drop_unparsable_fields::<Tool>(&mut other, &required), None);
    }
}
