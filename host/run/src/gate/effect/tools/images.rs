//! Stores the images of results of MCP servers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::Value;
use wattle_graph::id::Digest;
use wattle_graph::llm::{Image, ImageSource, Part};
use wattle_graph::tool::ToolOutput;

use crate::gate::effect::EffectContext;
use crate::ports::blob::{BlobRef, BlobStore as _};

/// Replaces the reference to a blob that was not stored.
const LEFT_OUT: &str = "left out";

/// Stores the images of an output as blobs and removes them from its content. The texts and the
/// structured output already name the blobs. An image that cannot be stored, such as one above a
/// cap, is left out: the tool has run, so the call does not fail.
pub(super) async fn store_images(
    context: &EffectContext<'_>,
    server: &str,
    mut output: ToolOutput,
) -> ToolOutput {
    let blobs = context.blobs();
    for part in std::mem::take(&mut output.content) {
        let Some((media_type, bytes)) = image(&part) else {
            output.content.push(part);
            continue;
        };
        let blob = BlobRef(Digest::of(&bytes));
        if let Err(failure) = blobs.put(bytes, &media_type).await {
            let text = format!("an image of the MCP server `{server}` is left out: {failure}");
            context.log("warn", &text);
            forget(&mut output, blob);
        }
    }
    output
}

/// Returns the media type and the bytes of an image in a data URL.
fn image(part: &Part) -> Option<(String, Bytes)> {
    let Part::Image(Image { source: ImageSource::Url(url), media_type }) = part else {
        return None;
    };
    let (_, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    Some((media_type.clone(), STANDARD.decode(data).ok()?.into()))
}

/// Removes the reference to a blob. The images follow the texts, so all texts are in the output.
fn forget(output: &mut ToolOutput, blob: BlobRef) {
    let reference = blob.to_string();
    for part in &mut output.content {
        if let Part::Text(text) = part {
            *text = text.replace(&reference, LEFT_OUT);
        }
    }
    if let Some(document) = &mut output.structured {
        forget_in(document, &reference);
    }
}

fn forget_in(value: &mut Value, reference: &str) {
    match value {
        Value::String(text) if text.contains(reference) => {
            *text = text.replace(reference, LEFT_OUT);
        }
        Value::Array(items) => items.iter_mut().for_each(|item| forget_in(item, reference)),
        Value::Object(fields) => {
            fields.values_mut().for_each(|field| forget_in(field, reference));
        }
        _ => {}
    }
}
