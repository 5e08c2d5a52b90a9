//! Changes of JSON values at one location, as unusual services make them.

use serde_json::{Value, json};

/// Private-use character that [`wire`] writes as the first half of a surrogate pair, which no
/// [`Value`] can contain.
const HALF: char = '\u{e83d}';

/// Changes a document at one location and returns the location as a JSON pointer, which is empty
/// for the whole document. Any two numbers select a location and a change: the field is dropped,
/// the value gets another type, a number becomes a text, a text gets half of a character at its
/// start or its end, or the items of an array are doubled or reversed.
pub fn change_one(document: &mut Value, place: usize, variant: usize) -> String {
    let places = places(document);
    let place = places[place % places.len()].clone();
    let variants = document.pointer(&place).map(variants).unwrap_or_default();
    if !variants.is_empty() {
        change(document, &place, variants[variant % variants.len()].clone());
    }
    place
}

/// Returns the JSON of a document. It may contain lone surrogates.
pub fn wire(document: &Value) -> String {
    document.to_string().replace(HALF, "\\ud83d")
}

/// Returns the locations of all values in a JSON value, as JSON pointers. The first pointer is
/// empty and refers to the whole value.
fn places(document: &Value) -> Vec<String> {
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
fn change(document: &mut Value, place: &str, other: Option<Value>) {
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

/// Returns the replacements of a value for [`change`].
fn variants(value: &Value) -> Vec<Option<Value>> {
    let own = match value {
        Value::Number(number) => vec![json!(number.to_string())],
        Value::String(text) => vec![json!(format!("{HALF}{text}")), json!(format!("{text}{HALF}"))],
        Value::Array(items) => {
            let doubled = items.iter().flat_map(|item| [item.clone(), item.clone()]);
            vec![doubled.collect(), items.iter().rev().cloned().collect()]
        }
        Value::Null | Value::Bool(_) | Value::Object(_) => Vec::new(),
    };
    others().into_iter().chain(own.into_iter().map(Some)).collect()
}

/// Returns the replacements that do not depend on the value: `None`, and values of every JSON type.
fn others() -> Vec<Option<Value>> {
    let values = [
        Value::Null,
        json!(7),
        json!(-1.5),
        json!(true),
        json!("x"),
        json!(""),
        json!("3"),
        json!([]),
        json!([[], null, 7]),
        json!({}),
        json!({ "type": "x", "text": 7, "index": "0" }),
    ];
    std::iter::once(None).chain(values.map(Some)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

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

    #[test]
    fn changes_depend_on_the_value() {
        let document = json!({ "a": [1, 2], "b": "é" });
        let mut found = BTreeSet::new();
        for place in 0..5 {
            for variant in 0..20 {
                let mut document = document.clone();
                change_one(&mut document, place, variant);
                found.insert(wire(&document));
            }
        }
        for expected in [
            r#"{"a":["1",2],"b":"é"}"#,
            r#"{"a":[1,1,2,2],"b":"é"}"#,
            r#"{"a":[2,1],"b":"é"}"#,
            r#"{"a":[1,2],"b":"\ud83dé"}"#,
            r#"{"a":[1,2],"b":"é\ud83d"}"#,
            r#"{"a":[1,2]}"#,
        ] {
            assert!(found.contains(expected), "{expected} of {found:?}");
        }
    }
}
