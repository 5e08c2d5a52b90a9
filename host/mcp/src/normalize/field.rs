//! Drops the fields beside the content of a result that would make `rmcp` discard the whole result.

use serde_json::{Map, Value};

/// Drops fields of a result whose values `rmcp` does not accept. Also drops an empty cursor, which
/// some servers send with the last page: it names no page.
pub(super) fn drop_unreadable_fields(result: &mut Map<String, Value>) {
    let is_list = result.contains_key("tools");
    let is_cacheable = is_list || result.contains_key("supportedVersions");
    result.retain(|name, value| match name.as_str() {
        "_meta" => value.is_object(),
        "resultType" => value.is_string(),
        "nextCursor" if is_list => value.as_str().is_some_and(|cursor| !cursor.is_empty()),
        "ttlMs" if is_cacheable => value.as_i64().is_some_and(|ttl| ttl >= 0),
        "cacheScope" if is_cacheable => matches!(value.as_str(), Some("public" | "private")),
        _ => true,
    });
}

#[cfg(test)]
mod tests {
    use rmcp::model::ListToolsResult;
    use serde_json::json;

    use super::*;

    #[test]
    fn unreadable_field_keeps_the_tools() {
        let fields = ["_meta", "resultType", "nextCursor", "ttlMs", "cacheScope"];
        let others = [json!(null), json!(-1.5), json!("shared"), json!([7]), json!({ "a": 1 })];
        for (name, value) in fields.iter().flat_map(|name| others.iter().map(move |it| (name, it)))
        {
            let tool = json!({ "name": "add", "inputSchema": { "type": "object" } });
            let mut result = Map::from_iter([("tools".to_owned(), json!([tool]))]);
            result.insert((*name).to_owned(), value.clone());
            drop_unreadable_fields(&mut result);
            let list = serde_json::from_value::<ListToolsResult>(Value::Object(result));
            assert_eq!(list.unwrap().tools.len(), 1, "{name} {value}");
        }
    }

    #[test]
    fn readable_fields_are_kept() {
        let list = json!({ "tools": [], "_meta": {}, "resultType": "complete", "nextCursor": "2",
            "ttlMs": 5, "cacheScope": "private" });
        let Value::Object(mut result) = list.clone() else { panic!("{list}") };
        drop_unreadable_fields(&mut result);
        assert_eq!(Value::Object(result), list);
    }
}
