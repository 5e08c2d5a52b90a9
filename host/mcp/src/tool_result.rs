//! Converts tool results of the protocol to [`ToolOutput`].
//!
//! Only text is kept, because the journal and the conversation of a model contain the result. A
//! note replaces all other content, also where a text or the structured content encodes it. The
//! images of a result follow the texts as data URLs; the caller stores them as the blobs that the
//! notes name.

use rmcp::model::{CallToolResult, ContentBlock, CustomResult, ResourceContents, ServerResult};
use serde_json::{Map, Value};
use wattle_graph::failure::Failure;
use wattle_graph::json_text;
use wattle_graph::llm::Part;
use wattle_graph::tool::ToolOutput;
use wattle_run::blocking::{are_large_values, is_long_parse};
use wattle_run::limit::JSON_DEPTH;

use crate::encoded::{Images, replace_in_document, replace_in_text};
use crate::failure;
use crate::same_json::is_json_of;

/// Bytes that a content block counts for besides its text or data.
const BLOCK_BYTES: usize = 32;

/// Returns true if converting a result is long work.
pub(crate) fn is_long(result: &CallToolResult) -> bool {
    let blocks = result.content.iter();
    let bytes: usize = blocks.map(|block| BLOCK_BYTES + block_bytes(block)).sum();
    is_long_parse(bytes) || are_large_values(&result.structured_content)
}

/// Converts a result. A result above the limit is truncated. The call does not fail, since the tool
/// has run and a failure would suggest another call.
pub(crate) fn to_tool_output(
    server: &str,
    result: CallToolResult,
    output_bytes: usize,
) -> Result<ToolOutput, Failure> {
    let mut images = Images::default();
    let blocks = result.content.iter();
    let mut texts: Vec<String> = blocks.map(|block| block_text(block, &mut images)).collect();
    let mut structured = result.structured_content.filter(|value| !value.is_null());
    if structured.as_ref().is_some_and(|it| !json_text::is_within_depth(it, JSON_DEPTH)) {
        return Err(failure::too_deep(server));
    }
    // Servers often also send the structured content as text; a model needs the content once. The
    // texts are compared as they were sent, with encoded files.
    let is_repeated = structured.as_ref().is_some_and(|it| show_content(&texts, it));
    texts = texts.into_iter().map(|text| replace_in_text(text, &mut images)).collect();
    if let Some(document) = &mut structured {
        replace_in_document(document, &mut images);
        if !is_repeated {
            texts.push(document.to_string());
        }
    }
    if let Some(bytes) = structured.as_ref().map(json_bytes).filter(|bytes| *bytes > output_bytes) {
        tracing::warn!(
            server,
            bytes,
            limit = output_bytes,
            "structured content exceeds the output limit and is left out"
        );
        structured = None;
    }
    truncate(server, &mut texts, output_bytes);
    let images = images.into_images().map(Part::Image);
    let content = texts.into_iter().map(Part::Text).chain(images).collect();
    let is_error = result.is_error.unwrap_or(false);
    Ok(ToolOutput { content, structured, is_error, updates: Vec::new() })
}

/// Returns true if converting a result that the protocol does not define is long work.
pub(crate) fn is_long_undefined(result: &ServerResult) -> bool {
    match result {
        ServerResult::CustomResult(CustomResult(document)) => are_large_values([document]),
        _ => true,
    }
}

/// Converts a result that the protocol does not define to a text or to its JSON. The call does not
/// fail, since the tool has run. Returns `None` if the result says that the call is incomplete.
pub(crate) fn from_undefined_result(result: &ServerResult) -> Option<CallToolResult> {
    let mut document = serde_json::to_value(result).ok()?;
    if let Some(fields) = document.as_object_mut() {
        fields.remove("_meta");
        if fields.remove("resultType").is_some_and(|kind| kind != "complete") {
            return None;
        }
    }
    let is_empty = document.is_null() || document.as_object().is_some_and(Map::is_empty);
    let text = match document {
        Value::String(text) => text,
        other => other.to_string(),
    };
    let content = if is_empty { Vec::new() } else { vec![ContentBlock::text(text)] };
    Some(CallToolResult::success(content))
}

/// Field in which servers wrap a result that is no object. The Python SDK and FastMCP do.
const WRAPPING_FIELD: &str = "result";

/// Returns true if the texts show the whole structured content: a text is the JSON of the content,
/// or the content wraps a value that the texts show. A text in which the values of the content
/// occur does not count, because the text may mean other values by them.
fn show_content(texts: &[String], document: &Value) -> bool {
    let fields = document.as_object().filter(|fields| fields.len() == 1);
    let wrapped = fields.and_then(|fields| fields.get(WRAPPING_FIELD));
    texts.iter().any(|text| is_json_of(text, document))
        || wrapped.is_some_and(|value| show_value(texts, value))
}

/// Returns true if a text is a value, or the texts are the items of a list, in order.
fn show_value(texts: &[String], value: &Value) -> bool {
    let items = value.as_array().filter(|items| !items.is_empty() && items.len() == texts.len());
    texts.iter().any(|text| is_text_of(text, value))
        || items.is_some_and(|items| texts.iter().zip(items).all(|(text, it)| is_text_of(text, it)))
}

/// Returns true if a text is a string, or the JSON of a value.
fn is_text_of(text: &str, value: &Value) -> bool {
    value.as_str() == Some(text) || is_json_of(text, value)
}

/// Truncates the texts to `output_bytes` bytes in total, and appends a note about the truncation.
fn truncate(server: &str, texts: &mut Vec<String>, output_bytes: usize) {
    let bytes: usize = texts.iter().map(String::len).sum();
    if bytes <= output_bytes {
        return;
    }
    let mut room = output_bytes;
    texts.retain_mut(|text| {
        text.truncate(text.floor_char_boundary(room));
        room -= text.len();
        !text.is_empty()
    });
    texts.push(format!(
        "[cut after {output_bytes} of {bytes} bytes; ask for less, or raise `output` under \
         `[mcp.{server}]`]"
    ));
}

fn block_text(block: &ContentBlock, images: &mut Images) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => images.note("image", &image.data),
        ContentBlock::Audio(audio) => images.note("audio", &audio.data),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { text, .. } => text.clone(),
            ResourceContents::BlobResourceContents { blob, .. } => images.note("resource", blob),
            _ => "[resource left out]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => format!("[resource {}: {}]", link.name, link.uri),
        _ => "[content of an unknown kind left out]".to_owned(),
    }
}

/// Returns the size of the text or data that [`block_text`] reads, in bytes.
fn block_bytes(block: &ContentBlock) -> usize {
    match block {
        ContentBlock::Text(text) => text.text.len(),
        ContentBlock::Image(image) => image.data.len(),
        ContentBlock::Audio(audio) => audio.data.len(),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { text, .. } => text.len(),
            ResourceContents::BlobResourceContents { blob, .. } => blob.len(),
            _ => 0,
        },
        ContentBlock::ResourceLink(link) => link.name.len() + link.uri.len(),
        _ => 0,
    }
}

fn json_bytes(value: &Value) -> usize {
    // A value that cannot be serialized counts as too large.
    json_text::length(value).map_or(usize::MAX, |bytes| bytes as usize)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn taken(result: Value, bytes: usize) -> Result<ToolOutput, String> {
        let result = serde_json::from_value(result).unwrap();
        to_tool_output("graph", result, bytes).map_err(|failure| failure.code)
    }

    #[test]
    fn texts_are_kept_and_images_omitted() {
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
    fn structured_content_without_text_becomes_text() {
        let output = taken(json!({ "structuredContent": { "n": 1 } }), 1000).unwrap();
        assert_eq!(output.content, [Part::Text(r#"{"n":1}"#.into())]);
        assert_eq!(output.structured, Some(json!({ "n": 1 })));
    }

    #[test]
    fn undefined_results_become_text() {
        for (result, text) in [
            (json!("three"), Some("three")),
            (json!({ "toolResult": 3 }), Some(r#"{"toolResult":3}"#)),
            (json!({}), None),
            (json!({ "resultType": "complete", "_meta": { "a": 1 } }), None),
            (json!(null), None),
        ] {
            let read =
                from_undefined_result(&serde_json::from_value(result.clone()).unwrap()).unwrap();
            let output = to_tool_output("graph", read, 1_000).unwrap();
            let expected: Vec<Part> =
                text.map(|text| Part::Text(text.into())).into_iter().collect();
            assert_eq!((output.content, output.is_error), (expected, false), "{result}");
        }
        let open = json!({ "resultType": "input_required", "inputRequests": [] });
        assert!(from_undefined_result(&serde_json::from_value(open).unwrap()).is_none());
    }

    #[test]
    fn results_with_many_values_blocks_or_bytes_are_long_work() {
        let is_long = |result: Value| is_long(&serde_json::from_value(result).unwrap());
        let text = |bytes: usize| json!({ "type": "text", "text": "x".repeat(bytes) });
        assert!(!is_long(json!({ "content": [text(1_000)], "structuredContent": { "n": 1 } })));
        assert!(is_long(json!({ "content": [text(1 << 20)] })));
        assert!(is_long(json!({ "content": vec![text(0); 10_000] })));
        assert!(is_long(json!({ "content": [], "structuredContent": vec![0; 1_000] })));
        let is_long = |result: Value| is_long_undefined(&serde_json::from_value(result).unwrap());
        assert!(!is_long(json!({ "toolResult": 3 })));
        assert!(is_long(json!({ "toolResult": vec![0; 1_000] })));
    }

    #[test]
    fn results_that_are_nested_too_deeply_are_refused() {
        let nested = |levels| (1..levels).fold(json!([]), |inner, _| json!([inner]));
        let result = |levels| json!({ "content": [], "structuredContent": nested(levels) });
        assert!(taken(result(JSON_DEPTH), 1_000).is_ok());
        assert_eq!(taken(result(JSON_DEPTH + 1), 1_000), Err("invalid".into()));
    }

    #[test]
    fn large_results_are_truncated() {
        let result = json!({ "content": [{ "type": "text", "text": "x".repeat(100) },
            { "type": "text", "text": "more" }] });
        assert_eq!(taken(result.clone(), 104).unwrap().content.len(), 2);
        let cut = taken(result, 99).unwrap();
        let [Part::Text(text), Part::Text(note)] = cut.content.as_slice() else {
            panic!("{cut:?}")
        };
        assert_eq!(text.len(), 99);
        assert!(note.contains("99 of 104 bytes") && note.contains("`[mcp.graph]`"), "{note}");
        // A text and a document with the same content are counted once.
        let document = json!({ "x": "y".repeat(50) });
        let both = json!({ "content": [{ "type": "text", "text": document.to_string() }],
            "structuredContent": document });
        let both = taken(both, 60).unwrap();
        assert_eq!((both.content.len(), both.structured), (1, Some(document)));
    }

    #[test]
    fn structured_content_missing_in_the_text_is_appended() {
        for (texts, document, count) in [
            (json!(["short"]), json!({ "total": 42 }), 2),
            (json!(["{\"total\": 42}"]), json!({ "total": 42 }), 1),
            (json!(["Here it is:", "{\"total\": 42}"]), json!({ "total": 42 }), 2),
            // A value that is wrapped in `result`.
            (json!(["42"]), json!({ "result": 42 }), 1),
            (json!(["true"]), json!({ "result": true }), 1),
            (json!(["three"]), json!({ "result": "three" }), 1),
            (json!(["[1, 2]"]), json!({ "result": [1, 2] }), 1),
            (json!(["a", "b"]), json!({ "result": ["a", "b"] }), 2),
            (json!(["{\"a\": 1}", "2"]), json!({ "result": [{ "a": 1 }, 2] }), 2),
            (json!(["a", "b"]), json!({ "result": ["a", "c"] }), 3),
            (json!(["b", "a"]), json!({ "result": ["a", "b"] }), 3),
            (json!(["none"]), json!({ "result": [] }), 2),
            (json!([]), json!({ "result": [] }), 1),
            (json!(["3"]), json!({ "result": 3, "unit": "ms" }), 2),
            // Texts in which the values only occur.
            (json!(["Analysis finished."]), json!({ "grade": "A" }), 2),
            (json!(["booked"]), json!({ "status": "ok" }), 2),
            (json!(["done"]), json!({ "rows": [] }), 2),
            (json!(["done"]), json!({ "price": null }), 2),
            (json!(["It is true."]), json!({ "granted": true }), 2),
            (json!(["Completed in 42 ms"]), json!({ "total": 42 }), 2),
            (json!(["The sum is 3. Done."]), json!({ "sum": 3, "note": null }), 2),
            (json!(["42"]), json!({ "total": 42 }), 2),
        ] {
            let blocks: Value = texts
                .as_array()
                .unwrap()
                .iter()
                .map(|text| json!({ "type": "text", "text": text }))
                .collect();
            let result = json!({ "content": blocks, "structuredContent": document });
            assert_eq!(taken(result, 1_000).unwrap().content.len(), count, "{texts} {document}");
        }
    }

    #[test]
    fn encoded_files_are_omitted_once() {
        let picture = json!({ "mimeType": "image/png", "data": "aGVsbG8=" });
        let document = json!({ "chart": picture, "url": "data:image/gif;base64,aGk=" });
        let alone = json!({ "structuredContent": document });
        let text = json!({ "type": "text", "text": format!("{document:#}") });
        let repeated = json!({ "content": [text], "structuredContent": document });
        for result in [alone, repeated] {
            let output = taken(result, 1_000).unwrap();
            let document = output.structured.unwrap();
            assert_eq!(document["chart"]["data"], "[image/png 5 bytes left out]");
            assert_eq!(document["url"], "[image/gif 2 bytes left out]");
            assert_eq!(output.content, [Part::Text(document.to_string())]);
        }
    }
}
