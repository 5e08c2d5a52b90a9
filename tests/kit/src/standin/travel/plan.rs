//! Queries for places and images, one for each block in the prompt.

use serde_json::{Map, Value, json};

use super::facts::Facts;
use crate::standin::sample;

/// Returns a geocoder query for each spot.
pub(super) fn queries(facts: &Facts, schema: &Value) -> Value {
    let row = |block: &Map<String, Value>| {
        let Value::Object(row) = json!({"block_id": block["block_id"], "query": title(block)})
        else {
            return Map::new();
        };
        row
    };
    list(facts.of_blocks("title").into_iter().map(row), schema, "spot_queries")
}

/// Returns a search query and a prompt for each block.
pub(super) fn pictures(facts: &Facts, schema: &Value) -> Value {
    let row = |block: &Map<String, Value>| {
        let title = title(block);
        let kind = block.get("type").and_then(Value::as_str).unwrap_or("travel");
        let Value::Object(row) = json!({
            "block_id": block["block_id"],
            "query": format!("{title} {kind}"),
            "prompt": format!("A bright travel photograph of {title}, no text, no people"),
            "alt": format!("View of {title}"),
        }) else {
            return Map::new();
        };
        row
    };
    list(facts.of_blocks("title").into_iter().map(row), schema, "plan")
}

fn title(block: &Map<String, Value>) -> &str {
    block.get("title").and_then(Value::as_str).unwrap_or_default()
}

/// Returns the rows under the name of the list in the schema, in the form of its items.
fn list(rows: impl Iterator<Item = Map<String, Value>>, schema: &Value, usual: &str) -> Value {
    let root = sample::resolve(schema, schema);
    let properties = root.get("properties").and_then(Value::as_object);
    let named = properties
        .into_iter()
        .flatten()
        .find_map(|(name, property)| Some((name, sample::resolve(schema, property).get("items")?)));
    let fit = |row| match named {
        Some((_, items)) => sample::fit(row, schema, items),
        None => row,
    };
    let rows: Vec<Value> = rows.map(|row| Value::Object(fit(row))).collect();
    json!({ named.map_or(usual, |(name, _)| name): rows })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{pictures, queries};
    use crate::standin::travel::facts::Facts;

    #[test]
    fn every_block_has_one_query() {
        let facts = Facts::read(
            r#"[{"block_id": "a", "type": "spot", "title": "Tokyo Tower"},
                {"block_id": "b", "type": "food", "title": "Soup"}]
               {"block_id": "a", "title": "Tokyo Tower"}"#,
        );
        let asked = json!({"spot_queries": [{"block_id": "a", "query": "Tokyo Tower"},
            {"block_id": "b", "query": "Soup"}]});
        assert_eq!(queries(&facts, &json!({})), asked);
        let item = json!({"properties": {"block_id": {}, "query": {}, "prompt": {}, "alt": {}},
            "required": ["block_id", "query", "prompt", "alt"]});
        let schema = json!({"properties": {"items": {"type": "array", "items": item}}});
        let planned = pictures(&facts, &schema);
        assert_eq!(planned["items"][0]["query"], "Tokyo Tower spot");
        assert_eq!(planned["items"].as_array().unwrap().len(), 2);
    }
}
