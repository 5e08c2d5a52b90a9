//! Changes of JSON values at one location, as unusual services make them.

use serde_json::{Value, json};

/// Returns the locations of all values in a JSON value, as JSON pointers. The first pointer is
/// empty and refers to the whole value.
pub fn places(document: &Value) -> Vec<String> {
    let mut all = Vec::new();
    add_places(document, String::new(), &mut all);
    all
}

fn add_places(value: &Value, place: String, all: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            all.push(place.clone());
            for (index, item) in items.iter().enumerate() {
                add_places(item, format!("{place}/{index}"), all);
            }
        }
        Value::Object(fields) => {
            all.push(place.clone());
            for (name, field) in fields {
                add_places(field, format!("{place}/{name}"), all);
            }
        }
        _ => all.push(place),
    }
}

/// Replaces the value at the JSON pointer `place`. `None` removes a field of an object. For an item
/// of an array, `None` removes all items.
pub fn change(document: &mut Value, place: &str, other: Option<Value>) {
    match (other, place.rsplit_once('/')) {
        (None, Some((parent, name))) => match document.pointer_mut(parent) {
            Some(Value::Object(fields)) => drop(fields.remove(name)),
            Some(Value::Array(items)) => items.clear(),
            _ => {}
        },
        (other, _) => {
            if let Some(value) = document.pointer_mut(place) {
                *value = other.unwrap_or_default();
            }
        }
    }
}

/// Returns the replacements for [`change`]: `None`, and values of every JSON type.
pub fn others() -> Vec<Option<Value>> {
    let values = [
        Value::Null,
        json!(7),
        json!(-1.5),
        json!(true),
        json!("x"),
        json!(""),
        json!([]),
        json!([[], null, 7]),
        json!({}),
        json!({ "type": "x", "text": 7, "index": "0" }),
    ];
    std::iter::once(None).chain(values.map(Some)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_location_can_be_changed() {
        let document = json!({ "a": [1, { "b": 2 }] });
        assert_eq!(places(&document), ["", "/a", "/a/0", "/a/1", "/a/1/b"]);
        let changed = |place: &str, other: Option<Value>| {
            let mut document = document.clone();
            change(&mut document, place, other);
            document
        };
        assert_eq!(changed("/a/1/b", None), json!({ "a": [1, {}] }));
        assert_eq!(changed("/a/0", None), json!({ "a": [] }));
        assert_eq!(changed("/a/0", Some(json!("x"))), json!({ "a": ["x", { "b": 2 }] }));
        assert_eq!(changed("", None), Value::Null);
    }
}
