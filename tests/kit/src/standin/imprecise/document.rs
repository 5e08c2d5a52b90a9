//! Distortions of single values in a JSON response.

use serde_json::{Map, Value, json};

use super::{Draw, Imprecision};
use crate::standin::sample::resolve;

/// Suffixes of the names of fields that hold codes, in lower case.
const CODES: [&str; 10] =
    ["ticker", "symbol", "code", "codes", "id", "ids", "field", "column", "url", "urls"];

/// The name of the field that holds an SQL statement.
const SQL: &str = "sql";

/// Number of characters of a code that are changed, counted from its end.
const CHANGED_CHARS: usize = 4;

/// Labels and their synonyms. Other labels change to upper case, or to lower case if they are in
/// upper case.
const SYNONYMS: [(&str, &str); 12] = [
    ("buy", "purchase"),
    ("sell", "sold"),
    ("operation", "trade"),
    ("holding", "position"),
    ("trade_record", "transaction"),
    ("business_query", "query"),
    ("chat", "chitchat"),
    ("consume", "expense"),
    ("income", "salary"),
    ("day", "days"),
    ("spot", "attraction"),
    ("food", "restaurant"),
];

/// Distorts a JSON response. A response without a suitable value is unchanged.
pub(super) fn distort(
    mut document: Value,
    schema: Option<&Value>,
    kind: Imprecision,
    draw: &mut Draw,
) -> Value {
    let blank = Value::Null;
    let schema = schema.unwrap_or(&blank);
    match kind {
        Imprecision::NumbersAsStrings => quote_numbers(&mut document),
        Imprecision::AdditionalFields => add_fields(&mut document),
        Imprecision::MissingField => remove_field(&mut document, schema, draw),
        Imprecision::WrongCode => {
            let mut places = Vec::new();
            find_codes(&document, "", String::new(), &mut places);
            change(&mut document, &places, draw, |code| match code {
                (SQL, sql) => other_table(sql),
                (_, code) => other_code(code),
            });
        }
        Imprecision::WrongLabel => {
            let mut places = Vec::new();
            find_labels(&document, schema, schema, String::new(), &mut places);
            change(&mut document, &places, draw, |(_, label)| other_label(label));
        }
        Imprecision::Prose | Imprecision::Fenced | Imprecision::CutOff | Imprecision::Empty => {}
    }
    document
}

/// The JSON pointer to a string in a response, and the lower-case name of its field. For a label
/// the name is empty.
type Place = (String, String);

fn change(
    document: &mut Value,
    places: &[Place],
    draw: &mut Draw,
    other: impl Fn((&str, &str)) -> String,
) {
    let Some((pointer, name)) = places.get(draw.below(places.len())) else { return };
    if let Some(Value::String(text)) = document.pointer_mut(pointer) {
        *text = other((name, text));
    }
}

fn find_codes(value: &Value, name: &str, pointer: String, places: &mut Vec<Place>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                find_codes(value, key, step(&pointer, key), places);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                find_codes(item, name, step(&pointer, &index.to_string()), places);
            }
        }
        Value::String(text) => {
            let lower = name.to_lowercase();
            let is_code = lower == SQL || CODES.iter().any(|end| lower.ends_with(end));
            if is_code && text.bytes().any(|byte| byte.is_ascii_alphanumeric()) {
                places.push((pointer, lower));
            }
        }
        _ => {}
    }
}

fn find_labels(
    value: &Value,
    root: &Value,
    schema: &Value,
    pointer: String,
    places: &mut Vec<Place>,
) {
    let schema = resolve(root, schema);
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let property = schema.pointer(&step("/properties", key)).unwrap_or(&Value::Null);
                find_labels(value, root, property, step(&pointer, key), places);
            }
        }
        Value::Array(items) => {
            let of_items = schema.get("items").unwrap_or(&Value::Null);
            for (index, item) in items.iter().enumerate() {
                find_labels(item, root, of_items, step(&pointer, &index.to_string()), places);
            }
        }
        Value::String(_) if schema.get("enum").is_some() => places.push((pointer, String::new())),
        _ => {}
    }
}

fn step(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// Returns a nonexistent code of the same form.
fn other_code(code: &str) -> String {
    let mut left = CHANGED_CHARS;
    let changed = code.chars().rev().map(|character| {
        if left == 0 || !character.is_ascii_alphanumeric() {
            return character;
        }
        left -= 1;
        match character {
            '9' => '0',
            'z' => 'a',
            'Z' => 'A',
            other => char::from(other as u8 + 1),
        }
    });
    let changed: Vec<char> = changed.collect();
    changed.into_iter().rev().collect()
}

/// Replaces the first table of a statement by one that does not exist.
fn other_table(sql: &str) -> String {
    let Some(from) = sql.to_ascii_uppercase().find("FROM ") else { return other_code(sql) };
    let start = from + "FROM ".len();
    let is_name = |character: char| character.is_alphanumeric() || character == '_';
    let length = sql[start..].find(|character| !is_name(character)).unwrap_or(sql.len() - start);
    format!("{}_v2{}", &sql[..start + length], &sql[start + length..])
}

fn other_label(label: &str) -> String {
    if let Some((_, synonym)) = SYNONYMS.iter().find(|(known, _)| *known == label) {
        return (*synonym).to_owned();
    }
    let upper = label.to_uppercase();
    if upper == label { label.to_lowercase() } else { upper }
}

fn quote_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => *value = json!(number.to_string()),
        Value::Array(items) => items.iter_mut().for_each(quote_numbers),
        Value::Object(fields) => fields.values_mut().for_each(quote_numbers),
        _ => {}
    }
}

fn add_fields(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(add_fields),
        Value::Object(fields) => {
            fields.values_mut().for_each(add_fields);
            fields.insert("explanation".to_owned(), json!("derived from the input"));
            fields.insert("certainty".to_owned(), json!("high"));
        }
        _ => {}
    }
}

/// A field with the JSON pointer to its object.
struct Field {
    object: String,
    key: String,
    is_required: bool,
}

/// Removes an optional field, or a required one if there is no optional field.
fn remove_field(document: &mut Value, schema: &Value, draw: &mut Draw) {
    let mut fields = Vec::new();
    find_fields(document, schema, schema, String::new(), &mut fields);
    let optional: Vec<&Field> = fields.iter().filter(|field| !field.is_required).collect();
    let all: Vec<&Field> = fields.iter().collect();
    let choice = if optional.is_empty() { all } else { optional };
    let Some(field) = choice.get(draw.below(choice.len())) else { return };
    if let Some(Value::Object(object)) = document.pointer_mut(&field.object) {
        object.shift_remove(&field.key);
    }
}

fn find_fields(
    value: &Value,
    root: &Value,
    schema: &Value,
    pointer: String,
    found: &mut Vec<Field>,
) {
    let schema = resolve(root, schema);
    match value {
        Value::Object(fields) => {
            found.extend(fields_of(fields, schema, &pointer));
            for (key, value) in fields {
                let property = schema.pointer(&step("/properties", key)).unwrap_or(&Value::Null);
                find_fields(value, root, property, step(&pointer, key), found);
            }
        }
        Value::Array(items) => {
            let of_items = schema.get("items").unwrap_or(&Value::Null);
            for (index, item) in items.iter().enumerate() {
                find_fields(item, root, of_items, step(&pointer, &index.to_string()), found);
            }
        }
        _ => {}
    }
}

fn fields_of(fields: &Map<String, Value>, schema: &Value, pointer: &str) -> Vec<Field> {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |key: &str| required.is_some_and(|names| names.iter().any(|it| it == key));
    let field = |key: &String| Field {
        object: pointer.to_owned(),
        key: key.clone(),
        is_required: is_required(key),
    };
    fields.keys().map(field).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Value {
        json!({"type": "object", "required": ["rows"], "properties": {"rows": {"type": "array",
            "items": {"$ref": "#/$defs/Row"}}}, "$defs": {"Row": {"type": "object",
            "required": ["action", "quantity"], "properties": {"action": {"enum": ["buy", "SELL"]},
            "ticker": {"type": "string"}, "quantity": {"type": "number"}}}}})
    }

    fn bent(document: Value, kind: Imprecision) -> Value {
        distort(document, Some(&schema()), kind, &mut Draw(1))
    }

    fn row() -> Value {
        json!({"rows": [{"action": "buy", "ticker": "0700.HK", "quantity": 100}]})
    }

    #[test]
    fn wrong_codes_have_the_same_form() {
        assert_eq!(bent(row(), Imprecision::WrongCode)["rows"][0]["ticker"], "0711.IL");
        let sql = json!({"sql": "SELECT a FROM orders WHERE b = 1"});
        let expected = json!({"sql": "SELECT a FROM orders_v2 WHERE b = 1"});
        assert_eq!(bent(sql, Imprecision::WrongCode), expected);
        let without = json!({"name": "x", "urls": ["中文"]});
        assert_eq!(bent(without.clone(), Imprecision::WrongCode), without);
    }

    #[test]
    fn labels_are_replaced_by_synonyms_or_change_case() {
        assert_eq!(bent(row(), Imprecision::WrongLabel)["rows"][0]["action"], "purchase");
        let sell = json!({"rows": [{"action": "SELL"}]});
        assert_eq!(bent(sell, Imprecision::WrongLabel)["rows"][0]["action"], "sell");
        let free = json!({"action": "buy"});
        assert_eq!(bent(free.clone(), Imprecision::WrongLabel), free, "without enumeration");
    }

    #[test]
    fn optional_fields_are_removed_first() {
        let expected = json!({"rows": [{"action": "buy", "quantity": 100}]});
        assert_eq!(bent(row(), Imprecision::MissingField), expected);
        let bare = bent(json!({"rows": []}), Imprecision::MissingField);
        assert_eq!(bare, json!({}), "a required field is removed if there is no optional one");
    }

    #[test]
    fn numbers_become_strings_and_fields_are_added() {
        let quoted = bent(row(), Imprecision::NumbersAsStrings);
        assert_eq!(quoted["rows"][0]["quantity"], "100");
        let added = bent(row(), Imprecision::AdditionalFields);
        assert_eq!(added["rows"][0]["certainty"], "high");
        assert_eq!(added["rows"][0]["quantity"], 100);
        assert_eq!(added["certainty"], "high");
    }
}
