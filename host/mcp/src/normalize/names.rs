//! Renames fields in snake case to the names that the protocol defines.
//!
//! The models of the Python SDK 2 have fields in snake case, which their aliases rename only if a
//! server asks for that. A failure that is marked with `is_error` would be read as a success.

use serde_json::{Map, Value};

/// Fields of results.
const RESULT_FIELDS: [(&str, &str); 2] =
    [("is_error", "isError"), ("structured_content", "structuredContent")];

/// Fields of lists of tools. A result of a call may have a field of its own with this name.
const LIST_FIELDS: [(&str, &str); 1] = [("next_cursor", "nextCursor")];

/// Fields of tools.
const TOOL_FIELDS: [(&str, &str); 1] = [("input_schema", "inputSchema")];

/// Fields of the annotations of tools.
const ANNOTATION_FIELDS: [(&str, &str); 2] =
    [("read_only_hint", "readOnlyHint"), ("idempotent_hint", "idempotentHint")];

/// Renames the fields of a result.
pub(super) fn rename_in_result(result: &mut Map<String, Value>) {
    rename(result, &RESULT_FIELDS);
    if result.contains_key("tools") {
        rename(result, &LIST_FIELDS);
    }
}

/// Renames the fields of a tool and of its annotations.
pub(super) fn rename_in_tool(tool: &mut Map<String, Value>) {
    rename(tool, &TOOL_FIELDS);
    if let Some(Value::Object(annotations)) = tool.get_mut("annotations") {
        rename(annotations, &ANNOTATION_FIELDS);
    }
}

/// Renames the fields that do not exist under the defined name as well.
fn rename(fields: &mut Map<String, Value>, names: &[(&str, &str)]) {
    for (name, defined) in names {
        if !fields.contains_key(*defined)
            && let Some(value) = fields.remove(*name)
        {
            fields.insert((*defined).to_owned(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_in_snake_case_are_renamed() {
        for (mut result, expected) in [
            (json!({ "content": [], "is_error": true }), json!({ "content": [], "isError": true })),
            (
                json!({ "structured_content": { "n": 1 } }),
                json!({ "structuredContent": { "n": 1 } }),
            ),
            (json!({ "tools": [], "next_cursor": "2" }), json!({ "tools": [], "nextCursor": "2" })),
            (json!({ "rows": [], "next_cursor": "2" }), json!({ "rows": [], "next_cursor": "2" })),
            (
                json!({ "isError": false, "is_error": true }),
                json!({ "isError": false, "is_error": true }),
            ),
        ] {
            rename_in_result(result.as_object_mut().unwrap());
            assert_eq!(result, expected);
        }
        let mut tool = json!({ "name": "a", "input_schema": { "type": "object" },
            "annotations": { "read_only_hint": true } });
        rename_in_tool(tool.as_object_mut().unwrap());
        let expected = json!({ "name": "a", "inputSchema": { "type": "object" },
            "annotations": { "readOnlyHint": true } });
        assert_eq!(tool, expected);
    }
}
