//! Changes of a snapshot by the editor of the page.

use std::collections::HashSet;

use wattle_plugin::prelude::{Deserialize, Value};

use crate::block::{Block, spots};
use crate::html;
use crate::preview::Preview;
use crate::session::snapshot::Snapshot;
use crate::session::{step, stored_output};

/// Maximum size of a document from an editor, in bytes. Blocks of a guide take some ten kilobytes,
/// and outputs of tools contain the subtitles of a video.
const DOCUMENT_BYTES: usize = 2 << 20;

/// Maximum size of a page from an editor, in bytes. Pages of models take less than a hundred
/// kilobytes.
const PAGE_BYTES: usize = 1 << 20;

/// Maximum size of the stored results of a session, in bytes. All of them must fit into one
/// response.
const STATE_BYTES: usize = 3 << 20;

/// Maximum number of blocks of a guide. The tool makes at most 16, and a person may add some.
const BLOCKS: usize = 100;

/// The reason why a change is refused, for its sender.
#[derive(Debug, PartialEq)]
pub(crate) enum Refused {
    /// The change is invalid.
    Invalid(String),
    /// The change exceeds a limit.
    TooLarge(String),
}

impl From<String> for Refused {
    fn from(why: String) -> Self {
        Self::Invalid(why)
    }
}

impl From<&str> for Refused {
    fn from(why: &str) -> Self {
        Self::Invalid(why.to_owned())
    }
}

/// Applies a document with any of `blocks`, `spotBlocks`, `toolOutputs`, `handbookHtml` and
/// `previewPath`. The path must be the session's own.
///
/// # Errors
///
/// Returns the error of the document. The snapshot may have been changed in part.
pub(crate) fn patch(
    snapshot: &mut Snapshot,
    patch: &Value,
    preview: &Preview,
) -> Result<(), Refused> {
    let fields = patch.as_object().ok_or("the body must be a JSON object")?;
    for (key, value) in fields {
        match key.as_str() {
            "blocks" => {
                let read = blocks(key, value)?;
                if !fields.contains_key("spotBlocks") {
                    snapshot.spot_blocks = whole(read.as_deref().map(spots).as_deref());
                }
                snapshot.blocks = whole(read.as_deref());
            }
            "spotBlocks" => snapshot.spot_blocks = whole(blocks(key, value)?.as_deref()),
            "toolOutputs" => snapshot.tool_outputs = outputs(value)?,
            "handbookHtml" => snapshot.html = page(snapshot, value, preview)?,
            "previewPath" => snapshot.preview_path = path(value, &preview.path)?,
            _ => {
                return Err(format!(
                    "unknown key `{key}`; known are blocks, spotBlocks, toolOutputs, \
                     handbookHtml and previewPath"
                )
                .into());
            }
        }
    }
    let bytes = snapshot.for_run().to_string().len();
    if bytes > STATE_BYTES {
        let why = format!("the state would have {bytes} bytes, {STATE_BYTES} are kept");
        return Err(Refused::TooLarge(why));
    }
    Ok(())
}

fn blocks(key: &str, value: &Value) -> Result<Option<Vec<Block>>, Refused> {
    if value.is_null() {
        return Ok(None);
    }
    small(key, value)?;
    let read = Vec::<Block>::deserialize(value)
        .map_err(|error| format!("`{key}` is no list of blocks: {error}"))?;
    if read.len() > BLOCKS {
        return Err(format!("`{key}` has more than {BLOCKS} blocks").into());
    }
    check(key, &read)?;
    Ok(Some(read))
}

/// Returns blocks as they are stored: each has all of its fields, also those that a request may
/// leave out.
fn whole(blocks: Option<&[Block]>) -> Value {
    blocks.map_or(Value::Null, |blocks| serde_json::to_value(blocks).unwrap_or_default())
}

/// Checks ids and coordinates: images and coordinates belong to blocks by their ids, and a map
/// shows only valid coordinates.
fn check(key: &str, blocks: &[Block]) -> Result<(), Refused> {
    let mut ids = HashSet::new();
    for (at, block) in blocks.iter().enumerate() {
        let id = block.block_id.as_str();
        if id.trim().is_empty() || !ids.insert(id) {
            return Err(format!("`{key}[{at}].block_id` is empty or not unique").into());
        }
        if block.location.is_some_and(|location| !location.is_on_globe()) {
            let bounds = "`lat` is -90 to 90 and `lng` -180 to 180";
            return Err(format!("`{key}[{at}].location` is nowhere: {bounds}").into());
        }
    }
    Ok(())
}

fn outputs(value: &Value) -> Result<Value, Refused> {
    let fields = match value {
        Value::Null => return Ok(Value::Null),
        Value::Object(fields) => fields,
        _ => return Err("`toolOutputs` must be an object of outputs by tool".into()),
    };
    small("toolOutputs", value)?;
    fields.keys().try_for_each(|name| step::check_name(name))?;
    let stored = fields.iter().map(|(name, output)| (name.clone(), stored_output::of_step(output)));
    Ok(Value::Object(stored.collect()))
}

fn small(key: &str, value: &Value) -> Result<(), Refused> {
    if value.to_string().len() <= DOCUMENT_BYTES {
        return Ok(());
    }
    Err(Refused::TooLarge(format!("`{key}` is larger than {DOCUMENT_BYTES} bytes")))
}

/// Cleans a page from an editor, which is as untrusted as one from a model.
fn page(snapshot: &Snapshot, value: &Value, preview: &Preview) -> Result<Option<String>, Refused> {
    match value {
        Value::Null => Ok(None),
        Value::String(raw) if raw.len() > PAGE_BYTES => {
            Err(Refused::TooLarge(format!("`handbookHtml` is larger than {PAGE_BYTES} bytes")))
        }
        Value::String(raw) => {
            html::page(raw, snapshot.thumbnail(), snapshot.video_url(), &preview.sources)
                .map(Some)
                .map_err(|error| format!("`handbookHtml`: {error}").into())
        }
        _ => Err("`handbookHtml` must be a text".into()),
    }
}

/// Checks the path. The app shows the page at this path in a frame, so it must be the session's
/// own.
fn path(value: &Value, preview: &str) -> Result<Option<String>, Refused> {
    match value {
        Value::Null => Ok(None),
        Value::String(path) if path == preview => Ok(Some(path.clone())),
        _ => Err(format!("`previewPath` must be `{preview}` or null").into()),
    }
}
