//! Tests of the conversion of blocks in many formats to parts and back.

use serde_json::{Value, json};

use crate::agent_server::message::{ReadContext, from_wire, to_wire};

/// The first bytes of a PNG, in base64.
const PNG: &str = "iVBORw0KGgo=";
/// The text `hello`, in base64.
const HELLO: &str = "aGVsbG8=";
const URL: &str = "https://example.com/a.png";

/// Returns a user message with a text and a block.
fn said(block: &Value) -> Value {
    json!({
        "content": [{ "type": "text", "text": "look" }, block], "additional_kwargs": {},
        "response_metadata": {}, "type": "human", "name": null, "id": "m",
    })
}

fn read(block: &Value) -> Result<Value, String> {
    from_wire(&said(block), &mut ReadContext { new_id: &mut String::new, parse: &|_| None })
}

/// Checks the part that each block is converted to. Checks that the part converts back to the
/// block.
fn check(table: Vec<(Value, Value)>) {
    for (block, part) in table {
        let ours = read(&block).unwrap_or_else(|why| panic!("{block}: {why}"));
        assert_eq!(ours["content"], json!([{ "text": "look" }, part]), "{block}");
        assert_eq!(to_wire(&ours), said(&block), "{ours}");
    }
}

#[test]
fn images_of_all_formats_become_image_parts() {
    let data_url = format!("data:image/png;base64,{PNG}");
    let part = json!({ "image": { "source": { "url": data_url }, "media_type": "image/png" } });
    let forms = [
        json!({ "type": "image", "source_type": "base64", "mime_type": "image/png", "data": PNG }),
        json!({ "type": "image", "mimeType": "image/png", "data": PNG }),
        json!({ "type": "image", "annotations": { "priority": 1 }, "mimeType": "image/png",
            "data": PNG }),
        json!({ "type": "image", "cache_control": { "type": "ephemeral" },
            "source": { "type": "base64", "media_type": "image/png", "data": PNG } }),
        json!({ "type": "image", "base64": PNG, "mime_type": "image/png", "id": "lc_1" }),
        json!({ "type": "image", "mediaType": "image/png", "image": PNG }),
        json!({ "type": "image", "url": data_url }),
        json!({ "type": "image", "data": data_url }),
        json!({ "type": "image_url", "image_url": data_url }),
        json!({ "type": "image_url", "image_url": { "url": data_url, "detail": "high" } }),
        json!({ "type": "input_image", "image_url": data_url, "detail": "auto" }),
        json!({ "type": "media", "mime_type": "image/png", "data": PNG }),
        json!({ "type": "file", "source_type": "base64", "mime_type": "image/png", "data": PNG }),
        json!({ "type": "file", "file": { "filename": "a.png", "file_data": data_url } }),
        json!({ "type": "input_file", "filename": "a.png", "file_data": data_url }),
        json!({ "type": "resource",
            "resource": { "uri": "file:///a.png", "mimeType": "image/png", "blob": PNG } }),
        json!({ "inline_data": { "mime_type": "image/png", "data": PNG } }),
        json!({ "inlineData": { "mimeType": "image/png", "data": PNG } }),
        json!({ "image": { "format": "png", "source": { "bytes": PNG } } }),
        json!({ "type": "non_standard", "value": { "inlineData": {
            "mimeType": "image/png", "data": PNG } } }),
        // Deviations of clients that the conversion tolerates.
        json!({ "type": "image", "mime_type": "IMAGE/PNG; a=b", "data": "iVBORw0K\nGgo" }),
        json!({ "type": "image", "data": PNG }),
        json!({ "type": "image_url", "image_url": { "url": PNG } }),
        json!({ "type": "image", "mime_type": "application/octet-stream", "data": PNG }),
    ];
    check(forms.into_iter().map(|block| (block, part.clone())).collect());
}

#[test]
fn image_urls_are_kept() {
    let part = |url: &str, media_type: &str| json!({ "image": { "source": { "url": url }, "media_type": media_type } });
    check(vec![
        (json!({ "type": "image", "source_type": "url", "url": URL }), part(URL, "image/*")),
        (json!({ "type": "image", "url": URL }), part(URL, "image/*")),
        (json!({ "type": "image", "source": { "type": "url", "url": URL } }), part(URL, "image/*")),
        (json!({ "type": "image_url", "image_url": URL }), part(URL, "image/*")),
        (
            json!({ "type": "image_url", "image_url": { "url": URL, "detail": "low" } }),
            part(URL, "image/*"),
        ),
        (json!({ "type": "input_image", "image_url": URL }), part(URL, "image/*")),
        (json!({ "type": "image", "url": URL, "mime_type": "image/jpg" }), part(URL, "image/jpeg")),
        (json!({ "type": "file", "url": URL, "mediaType": "image/png" }), part(URL, "image/png")),
        (
            json!({ "fileData": { "fileUri": "gs://b/a.webp", "mimeType": "image/webp" } }),
            part("gs://b/a.webp", "image/webp"),
        ),
    ]);
}

#[test]
fn text_blocks_of_all_formats_become_text_parts() {
    let text = json!({ "text": "hello" });
    let named = json!({ "text": "[file a.txt]\nhello" });
    let thought = json!({ "reasoning": "hm" });
    check(vec![
        (json!("hello"), text.clone()),
        (json!({ "text": "hello" }), text.clone()),
        (json!({ "text": "hello", "thought": true }), text.clone()),
        (
            json!({ "type": "text", "text": "hello", "cache_control": { "type": "ephemeral" } }),
            text.clone(),
        ),
        (json!({ "type": "text", "text": "hello", "annotations": [] }), text.clone()),
        (json!({ "type": "input_text", "text": "hello" }), text.clone()),
        (json!({ "type": "output_text", "text": "hello" }), text.clone()),
        (json!({ "type": "refusal", "refusal": "hello" }), text.clone()),
        (json!({ "type": "of a later time", "text": "hello" }), text.clone()),
        (json!({ "type": "file", "source_type": "text", "text": "hello" }), text.clone()),
        (json!({ "type": "text-plain", "mime_type": "text/plain", "base64": HELLO }), text.clone()),
        (json!({ "type": "media", "mime_type": "text/csv", "data": HELLO }), text.clone()),
        (
            json!({ "type": "file", "source_type": "base64", "mime_type": "application/json",
                "data": HELLO }),
            text.clone(),
        ),
        (
            json!({ "type": "document",
                "source": { "type": "text", "media_type": "text/plain", "data": "hello" } }),
            text.clone(),
        ),
        (
            json!({ "type": "document", "source": { "type": "content",
                "content": [{ "type": "text", "text": "hello" }] } }),
            text.clone(),
        ),
        (json!({ "type": "tool_result", "tool_use_id": "c", "content": "hello" }), text.clone()),
        (
            json!({ "type": "resource", "resource": { "uri": "file:///a.txt",
                "mimeType": "text/plain", "text": "hello" } }),
            text.clone(),
        ),
        (
            json!({ "type": "file", "file": { "filename": "a.txt",
                "file_data": format!("data:text/plain;charset=utf-8;base64,{HELLO}") } }),
            named,
        ),
        (json!({ "type": "image", "mime_type": "image/svg+xml", "data": HELLO }), text),
        (json!({ "type": "reasoning", "reasoning": "hm", "index": 0 }), thought.clone()),
        (json!({ "type": "thinking", "thinking": "hm", "signature": "s" }), thought.clone()),
        (
            json!({ "type": "reasoning", "id": "rs_1",
                "summary": [{ "type": "summary_text", "text": "hm" }] }),
            thought,
        ),
    ]);
}

#[test]
fn blocks_that_models_cannot_read_are_stored_unchanged() {
    let blocks = [
        json!({ "type": "audio", "mime_type": "audio/wav", "data": HELLO }),
        json!({ "type": "input_audio", "input_audio": { "data": HELLO, "format": "wav" } }),
        json!({ "type": "file", "mime_type": "application/pdf", "data": HELLO }),
        json!({ "type": "file", "mime_type": "text/plain", "data": "/w==" }),
        json!({ "type": "file", "file": { "file_id": "file-1" } }),
        json!({ "type": "document",
            "source": { "type": "base64", "media_type": "application/pdf", "data": HELLO } }),
        json!({ "type": "document", "source": { "type": "url", "url": "https://a/b.pdf" } }),
        json!({ "type": "image", "source": { "type": "file", "file_id": "file-1" } }),
        json!({ "type": "image", "source_type": "id", "id": "file-1" }),
        json!({ "type": "resource_link", "uri": "file:///a.png", "mimeType": "image/png" }),
        json!({ "type": "tool_use", "id": "c", "name": "add", "input": { "text": "x" } }),
        json!({ "type": "redacted_thinking", "data": HELLO }),
        json!({ "type": "reasoning", "summary": [], "encrypted_content": HELLO }),
        json!({ "functionCall": { "name": "add", "args": {} } }),
        json!({ "of a later time": 1 }),
    ];
    check(blocks.into_iter().map(|block| (block.clone(), json!({ "other": block }))).collect());
}

#[test]
fn parts_of_the_state_that_a_client_sends_back_are_unchanged() {
    let blob = json!({ "image": { "source": { "blob": format!("blob:{}", "0".repeat(64)) },
        "media_type": "image/png" } });
    let own = json!({ "other": { "type": "text", "text": "x" } });
    check(vec![(blob.clone(), blob), (own.clone(), own)]);
}

#[test]
fn nested_blocks_become_separate_parts() {
    let block = json!({ "type": "tool_result", "tool_use_id": "c", "content": [
        { "type": "text", "text": "drawn" },
        { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": PNG } },
    ] });
    let ours = read(&block).unwrap();
    assert_eq!(ours["content"].as_array().map(Vec::len), Some(3));
    assert_eq!(ours["content"][1], json!({ "text": "drawn" }));
    assert_eq!(ours["content"][2]["image"]["media_type"], "image/png");
    assert_eq!(to_wire(&ours), said(&block));
}

#[test]
fn errors_name_the_position_of_the_invalid_image() {
    for (block, why) in [
        (
            json!({ "type": "image", "mime_type": "image/png", "data": "no base64!" }),
            "content[1] (`image`): the data is not base64",
        ),
        (
            json!({ "type": "image_url", "image_url": { "url": "data:image/png;base64,%%%" } }),
            "content[1] (`image_url`): the data is not base64",
        ),
        (json!({ "type": "image", "mime_type": "image/png", "data": "" }), "not base64"),
        (json!({ "type": "image", "data": HELLO }), "has no media type"),
        (json!({ "type": "image", "mime_type": "image/x", "data": HELLO }), "`image/x` is not"),
        (json!({ "type": "image", "mime_type": "audio/wav", "data": HELLO }), "`audio/wav`"),
        (json!({ "type": "image", "mime_type": "audio/wav", "url": URL }), "`audio/wav`"),
        (json!({ "type": "image_url", "image_url": "data:text/html;base64,aGk=" }), "`text/html`"),
        (json!({ "type": "image_url", "image_url": "data:image/png,abc" }), "data URL"),
        (json!({ "type": "image_url", "image_url": {} }), "neither data nor a URL"),
        (json!({ "type": "image" }), "neither data nor a URL"),
        (json!({ "type": "image", "url": "file:///a.png" }), "cannot fetch `file:///a.png`"),
        (json!({ "type": "image", "url": "/a.png" }), "not base64"),
        (json!({ "type": "media", "mime_type": "image/png", "data": "?" }), "not base64"),
        (json!({ "inlineData": { "mimeType": "image/png", "data": "?" } }), "content[1]: the data"),
        (json!({ "image": { "source": {} } }), "neither data nor a URL"),
        (
            json!({ "type": "tool_result", "content": [{ "type": "image" }] }),
            "content[1] (`tool_result`): content[0] (`image`): the block has neither",
        ),
        (json!(7), "content[1]: a block must be a string"),
        (json!({}), "content[1]: a block must be a string"),
    ] {
        let error = read(&block).unwrap_err();
        assert!(error.contains(why), "{block}: {error}");
    }
}

#[test]
fn large_images_are_stored_once() {
    let data = "A".repeat(4_000);
    let block = json!({ "type": "image", "mimeType": "image/png", "data": data });
    let ours = read(&block).unwrap();
    assert!(ours.to_string().len() < 5_000);
    assert_eq!(to_wire(&ours), said(&block));
}
