//! A tool's result in our words.
//!
//! Only text crosses: it goes into a journal and into a model's conversation. Of everything else a
//! note stays that says what was left out.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;
use wattle_graph::failure::Failure;
use wattle_graph::llm::Part;
use wattle_graph::tool::ToolOutput;
use wattle_run::limit::JSON_DEPTH;

use crate::fault;

/// Base64 writes three bytes as four characters.
const BASE64_CHARS: usize = 4;
const BASE64_BYTES: usize = 3;

/// Takes over a result that is not too large.
pub(crate) fn output(
    server: &str,
    result: CallToolResult,
    output_bytes: usize,
) -> Result<ToolOutput, Failure> {
    let texts: Vec<String> = result.content.iter().map(text).collect();
    let structured = result.structured_content.filter(|value| !value.is_null());
    let size =
        texts.iter().map(String::len).sum::<usize>() + structured.as_ref().map_or(0, json_bytes);
    if size > output_bytes {
        return Err(fault::too_large(server, output_bytes));
    }
    if structured.as_ref().is_some_and(|value| is_deeper(value, JSON_DEPTH)) {
        return Err(fault::too_deep(server));
    }
    let mut content: Vec<Part> = texts.into_iter().map(Part::Text).collect();
    if let (true, Some(structured)) = (content.is_empty(), &structured) {
        content.push(Part::Text(structured.to_string()));
    }
    let is_error = result.is_error.unwrap_or(false);
    Ok(ToolOutput { content, structured, is_error, updates: Vec::new() })
}

fn text(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => left_out("image", &image.data),
        ContentBlock::Audio(audio) => left_out("audio", &audio.data),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { text, .. } => text.clone(),
            ResourceContents::BlobResourceContents { blob, .. } => left_out("resource", blob),
            _ => "[resource left out]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => format!("[resource {}: {}]", link.name, link.uri),
        _ => "[content of an unknown kind left out]".to_owned(),
    }
}

fn left_out(what: &str, base64: &str) -> String {
    let padding = base64.bytes().rev().take_while(|byte| *byte == b'=').count();
    let bytes = (base64.len() / BASE64_CHARS * BASE64_BYTES).saturating_sub(padding);
    format!("[{what} {bytes} bytes left out]")
}

/// Whether a document is nested deeper than so many levels.
fn is_deeper(value: &Value, levels: usize) -> bool {
    match (value, levels.checked_sub(1)) {
        (Value::Array(_) | Value::Object(_), None) => true,
        (Value::Array(items), Some(levels)) => items.iter().any(|it| is_deeper(it, levels)),
        (Value::Object(fields), Some(levels)) => fields.values().any(|it| is_deeper(it, levels)),
        _ => false,
    }
}

fn json_bytes(value: &Value) -> usize {
    value.to_string().len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn taken(result: Value, bytes: usize) -> Result<ToolOutput, String> {
        let result = serde_json::from_value(result).unwrap();
        output("graph", result, bytes).map_err(|failure| failure.code)
    }

    #[test]
    fn texts_stay_and_pictures_are_left_out() {
        let result = json!({
            "content": [
                { "type": "text", "text": "seen" },
                { "type": "image", "data": "aGVsbG8=", "mimeType": "image/png" },
                { "type": "resource", "resource": { "uri": "file:///a", "text": "inside" } },
                { "type": "resource_link", "uri": "file:///b", "name": "b" },
            ],
            "isError": true,
        });
        let output = taken(result, 1000).unwrap();
        let expected = ["seen", "[image 5 bytes left out]", "inside", "[resource b: file:///b]"];
        assert_eq!(output.content, expected.map(|text| Part::Text(text.to_owned())));
        assert!(output.is_error && output.structured.is_none());
    }

    #[test]
    fn data_is_text_as_well_where_there_is_no_other() {
        let output = taken(json!({ "structuredContent": { "n": 1 } }), 1000).unwrap();
        assert_eq!(output.content, [Part::Text(r#"{"n":1}"#.into())]);
        assert_eq!(output.structured, Some(json!({ "n": 1 })));
    }

    #[test]
    fn deep_results_are_refused() {
        let nested = |levels| (1..levels).fold(json!([]), |inner, _| json!([inner]));
        let result = |levels| json!({ "content": [], "structuredContent": nested(levels) });
        assert!(taken(result(JSON_DEPTH), 1_000).is_ok());
        assert_eq!(taken(result(JSON_DEPTH + 1), 1_000), Err("invalid".into()));
    }

    #[test]
    fn large_results_are_refused() {
        let result = json!({ "content": [{ "type": "text", "text": "x".repeat(100) }] });
        assert!(taken(result.clone(), 100).is_ok());
        assert_eq!(taken(result, 99), Err("limit".into()));
    }
}
