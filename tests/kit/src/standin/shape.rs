//! Detects the kind of response that a request expects, from its schema or from its prompt.

use serde_json::Value;

use super::{question::Question, sample::resolve};

/// The kinds of responses that have a rule.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    /// `{type, confidence, reason}` with one of these labels.
    Classify { labels: Vec<String> },
    /// `{operations: [...]}`
    Operations,
    /// `{holdings: [...]}`
    Holdings,
    /// A list of securities that match a name.
    Lookup,
    /// JSON of an unknown schema.
    Other,
    /// Plain text.
    Text,
}

/// Maximum number of positions in a prompt at which the search tries to parse a schema. Prompts
/// with more braces contain examples.
const MAX_SCHEMA_STARTS: usize = 64;

/// The labels of both vocabularies.
const LABELS: [&str; 2] = ["operation", "holding"];
const LEGACY_LABELS: [&str; 2] = ["trade_record", "position"];

/// Returns the kind of response, and the schema of the request or of its prompt.
pub(super) fn wanted(question: &Question) -> (Shape, Option<Value>) {
    let prompt = question.all_text();
    if let Some(schema) = question.schema.clone().or_else(|| schema_in(&prompt)) {
        return (of_schema(&schema), Some(schema));
    }
    (of_prompt(&prompt), None)
}

fn of_schema(schema: &Value) -> Shape {
    let root = resolve(schema, schema);
    let property = |name: &str| root.pointer(&format!("/properties/{name}"));
    if property("operations").is_some() {
        Shape::Operations
    } else if property("holdings").is_some() {
        Shape::Holdings
    } else if let (Some(label), Some(_)) = (property("type"), property("confidence")) {
        Shape::Classify { labels: labels_of(resolve(schema, label)) }
    } else if schema.to_string().contains("primaryExchange") {
        Shape::Lookup
    } else {
        Shape::Other
    }
}

fn labels_of(schema: &Value) -> Vec<String> {
    let listed = schema.get("enum").and_then(Value::as_array);
    let labels: Vec<String> = listed
        .into_iter()
        .flatten()
        .filter_map(|label| label.as_str().map(str::to_owned))
        .collect();
    if labels.is_empty() { owned(LABELS) } else { labels }
}

fn owned(labels: [&str; 2]) -> Vec<String> {
    labels.iter().chain(&["unknown"]).map(|label| (*label).to_owned()).collect()
}

/// Detects the kind of response without a schema. The prompt must mention JSON and the names of
/// fields.
fn of_prompt(prompt: &str) -> Shape {
    let has = |word: &str| prompt.contains(word);
    if !prompt.to_lowercase().contains("json") {
        return Shape::Text;
    }
    if has("primaryExchange") || has("nameCN") {
        Shape::Lookup
    } else if has("confidence") {
        let legacy = LEGACY_LABELS.iter().all(|label| has(label));
        Shape::Classify { labels: owned(if legacy { LEGACY_LABELS } else { LABELS }) }
    } else if has("\"operations\"") || has("`operations`") {
        Shape::Operations
    } else if has("\"holdings\"") || has("`holdings`") {
        Shape::Holdings
    } else {
        Shape::Text
    }
}

/// Finds a JSON Schema in a prompt, where clients write it for models without schema support.
fn schema_in(prompt: &str) -> Option<Value> {
    prompt.match_indices('{').take(MAX_SCHEMA_STARTS).find_map(|(at, _)| {
        let mut documents = serde_json::Deserializer::from_str(&prompt[at..]).into_iter::<Value>();
        let document = documents.next()?.ok()?;
        let is_schema = document.get("type").is_some()
            && (document.get("properties").is_some() || document.get("items").is_some());
        is_schema.then_some(document)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Shape, wanted};
    use crate::standin::question::Question;

    fn labels(names: &[&str]) -> Shape {
        Shape::Classify { labels: names.iter().map(|name| (*name).to_owned()).collect() }
    }

    #[test]
    fn schemas_determine_the_kind() {
        let check = |schema: serde_json::Value, shape: Shape| {
            let question = Question { schema: Some(schema.clone()), ..Question::default() };
            assert_eq!(wanted(&question).0, shape, "{schema}");
        };
        let list = json!({"type": "array", "items": {}});
        check(json!({"properties": {"operations": list}}), Shape::Operations);
        check(json!({"properties": {"holdings": list}}), Shape::Holdings);
        check(
            json!({"properties": {
                "type": {"type": "string", "enum": ["trade_record", "position", "unknown"]},
                "confidence": {}, "reason": {}
            }}),
            labels(&["trade_record", "position", "unknown"]),
        );
        check(
            json!({"properties": {"type": {"$ref": "#/$defs/T"}, "confidence": {}},
                   "$defs": {"T": {"enum": ["operation", "holding", "unknown"]}}}),
            labels(&["operation", "holding", "unknown"]),
        );
        check(
            json!({"type": "array", "items": {"properties": {"primaryExchange": {}}}}),
            Shape::Lookup,
        );
        check(json!({"properties": {"title": {}}}), Shape::Other);
    }

    #[test]
    fn prompts_determine_the_kind() {
        let check = |system: &str, shape: Shape| {
            let question = Question { system: system.to_owned(), ..Question::default() };
            assert_eq!(wanted(&question).0, shape, "{system}");
        };
        check("You are kind.", Shape::Text);
        check("Return JSON: ticker, name, nameCN, primaryExchange", Shape::Lookup);
        check(
            "Return JSON with type, confidence, reason",
            labels(&["operation", "holding", "unknown"]),
        );
        check(
            "JSON: type is trade_record or position, confidence 0..1",
            labels(&["trade_record", "position", "unknown"]),
        );
        check(
            r#"Follow {x} this: {"type":"object","properties":{"holdings":{"type":"array"}}} now"#,
            Shape::Holdings,
        );
    }
}
